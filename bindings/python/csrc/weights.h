// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tensors that hold experts' weights in the formats of
// switchyard/expert_weights.h.

#ifndef SWITCHYARD_PYTHON_WEIGHTS_H_
#define SWITCHYARD_PYTHON_WEIGHTS_H_

#include <cstdint>
#include <string>

#include "switchyard/expert_weights.h"
#include "tensors.h"

namespace switchyard {
namespace python {

// Returns the format with a name such as "q4_0". For an unknown name, the
// operator `op` raises an error that lists the names.
WeightFormat FormatOf(const char* op, const char* argument,
                      const std::string& name);

// Returns a view of a product's weights, which are [rows, cols] for each
// expert. A tensor of two dimensions has packed weights: uint8 [experts, packed
// size]. A tensor of three dimensions has weights as stored: uint8 [experts,
// rows, bytes of a row], or floats [experts, rows, cols], without gaps between
// the rows of an expert.
ExpertWeights WeightsOf(const char* op, const char* argument,
                        const Tensor& tensor, WeightFormat format, int64_t rows,
                        int64_t cols);

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_WEIGHTS_H_
