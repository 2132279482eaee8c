// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_PACK_WEIGHTS_H_
#define SWITCHYARD_SRC_SIMD_PACK_WEIGHTS_H_

#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/expert_weights.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// Packs the weights of one expert, a [rows, cols] matrix.
struct PackArgs {
  WeightFormat format;
  size_t rows, cols;
  const unsigned char* stored;  // null if `floats` are packed
  const float* channel_scales;  // [rows], if `stored` is kInt8
  ConstAnyMatrix floats;        // [rows, cols], if `stored` is null
  unsigned char* packed;
};
// Packs groups [begin, end) of 16 rows.
RowFunction<PackArgs> PackGroups() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_PACK_WEIGHTS_H_
