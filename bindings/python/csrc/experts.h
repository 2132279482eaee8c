// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The experts of a layer: from routed tokens to their weighted sum.

#ifndef SWITCHYARD_PYTHON_EXPERTS_H_
#define SWITCHYARD_PYTHON_EXPERTS_H_

#include <cstdint>
#include <string>

#include "tensors.h"

namespace switchyard {
namespace python {

// The operator whose schema library.cc has.
Tensor Experts(const Tensor& hidden, const Tensor& topk_ids,
               const Tensor& topk_weights, const Tensor& up, const Tensor& down,
               const OptionalTensor& up_bias, const OptionalTensor& down_bias,
               const std::string& activation, const std::string& layout,
               bool transposed, double alpha, double beta, double linear_beta,
               double limit, bool limit_after, bool allow_dropped,
               int64_t packed, const OptionalTensor& gate);

// The step between the experts' two products, alone.
Tensor ActivateRows(const Tensor& up, const std::string& activation,
                    const std::string& layout, double alpha, double beta,
                    double linear_beta, double limit, bool limit_after);

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_EXPERTS_H_
