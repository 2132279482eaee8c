// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// RouteTopK by a preset's name.

#ifndef SWITCHYARD_PYTHON_ROUTE_H_
#define SWITCHYARD_PYTHON_ROUTE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "tensors.h"

namespace switchyard {
namespace python {

// The operator whose schema library.cc has: ids, weights, weights of identity
// experts. `options` replaces some of the preset's, "renormalize=1
// num_expert_group=8".
std::tuple<Tensor, Tensor, Tensor> Route(
    const Tensor& logits, const std::string& preset, int64_t top_k,
    const OptionalTensor& correction_bias, const OptionalTensor& expert_scale,
    const std::string& options, std::optional<ScalarType> dtype);

// A line for each preset: its name, then its options as above.
std::string PresetsAsText();

// A preset with its config.json applied: num_experts, top_k and all options.
// `config` has a line for each scalar of that file, "norm_topk_prob=1".
std::string ConfiguredPreset(const std::string& family,
                             const std::string& config);

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_ROUTE_H_
