// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_SILU_MUL_H_
#define SWITCHYARD_SRC_SIMD_SILU_MUL_H_

#include <cstddef>

#include "switchyard/views.h"

namespace switchyard {
namespace simd {

// out = silu(gate) * up, checked: equal shapes, out equal to an input or
// disjoint from it.
struct SiluMulArgs {
  Matrix<const float> gate;
  Matrix<const float> up;
  Matrix<float> out;
  bool streaming;  // stores bypass the caches
};

void SiluMulRows(const SiluMulArgs& args, size_t begin, size_t end);

}  // namespace simd
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_SIMD_SILU_MUL_H_
