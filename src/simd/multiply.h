// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_MULTIPLY_H_
#define SWITCHYARD_SRC_SIMD_MULTIPLY_H_

#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/expert_weights.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// Multiplies rows by the weights of one expert. Checked: rows are i8 with f32
// scales, or q8_0, of weights.cols columns; first_column + out.cols <=
// weights.rows, and first_column is a multiple of 16 if the weights are
// packed.
struct MultiplyArgs {
  const ExpertWeights& weights;
  const unsigned char* expert;  // data of this expert
  const float* channel_scales;  // its scales; kInt8 as stored
  size_t first_column;
  const ConstAnyRows& rows;
  const AnyMatrix& out;
};
// Its range is of rows.
RowFunction<MultiplyArgs> MultiplyRows() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_MULTIPLY_H_
