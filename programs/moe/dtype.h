// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_DTYPE_H_
#define SWITCHYARD_PROGRAMS_MOE_DTYPE_H_

#include "switchyard/types.h"

namespace moe_layer {

// The types that --dtype selects.
struct Dtype {
  const char* name;
  // Hidden states, their norms and the experts' rows. The router's GEMM
  // multiplies them as they are.
  switchyard::Type rows;
  // The type that the experts' GEMMs multiply.
  switchyard::Type operands;
};

// The default first. Where int8 stands for a model, its router stays bf16.
inline constexpr Dtype kDtypes[] = {
    {"bf16", switchyard::Type::kBF16, switchyard::Type::kBF16},
    {"f32", switchyard::Type::kF32, switchyard::Type::kF32},
    {"int8", switchyard::Type::kBF16, switchyard::Type::kI8},
};

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_DTYPE_H_
