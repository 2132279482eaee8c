// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_DTYPE_H_
#define SWITCHYARD_PROGRAMS_MOE_DTYPE_H_

#include <optional>

#include "switchyard/expert_weights.h"
#include "switchyard/types.h"

namespace moe_layer {

// The types of a layer's data, which --dtype selects by name.
struct Dtype {
  const char* name;
  // The type of hidden states, their norms and the rows that the experts
  // return. The router's GEMM multiplies rows of this type.
  switchyard::Type rows;
  // The type of the rows that the experts' GEMMs multiply.
  switchyard::Type operands;
  // The format of the experts' weights, if they are quantised.
  std::optional<switchyard::WeightFormat> weights = {};
};

// The choices of --dtype; the first is the default. If the experts are
// quantised, the router stays in bf16, as in published models.
inline constexpr Dtype kDtypes[] = {
    {"bf16", switchyard::Type::kBF16, switchyard::Type::kBF16},
    {"f32", switchyard::Type::kF32, switchyard::Type::kF32},
    {"int8", switchyard::Type::kBF16, switchyard::Type::kI8,
     switchyard::WeightFormat::kInt8},
    {"q8_0", switchyard::Type::kBF16, switchyard::Type::kI8,
     switchyard::WeightFormat::kQ8_0},
    {"q4_0", switchyard::Type::kBF16, switchyard::Type::kI8,
     switchyard::WeightFormat::kQ4_0},
    {"mxfp4", switchyard::Type::kBF16, switchyard::Type::kI8,
     switchyard::WeightFormat::kMXFP4},
    {"q4_K", switchyard::Type::kBF16, switchyard::Type::kQ8_K,
     switchyard::WeightFormat::kQ4_K},
    {"q6_K", switchyard::Type::kBF16, switchyard::Type::kQ8_K,
     switchyard::WeightFormat::kQ6_K},
};

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_DTYPE_H_
