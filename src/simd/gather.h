// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_GATHER_H_
#define SWITCHYARD_SRC_SIMD_GATHER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "switchyard/views.h"

namespace switchyard {
namespace simd {

// out[r] = tokens[pairs[r] / top_k], checked: shapes match, out overlaps
// nothing. Pairs outside [0, tokens.rows * top_k) make rows of zeros and are
// added to *invalid.
struct GatherArgs {
  Matrix<const float> tokens;
  const int32_t* pairs;
  size_t top_k;
  Matrix<float> out;
  std::atomic<size_t>* invalid;
};

void GatherRows(const GatherArgs& args, size_t begin, size_t end);

}  // namespace simd
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_SIMD_GATHER_H_
