// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_MULTIPLY_H_
#define SWITCHYARD_SRC_SIMD_MULTIPLY_H_

#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/expert_weights.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// Rows times the weights of one expert. Checked: rows are i8 with f32 scales,
// or q8_0, of weights.cols columns; first_column + out.cols <= weights.rows,
// and first_column is a multiple of 16 if the weights are packed.
struct MultiplyArgs {
  const ExpertWeights& weights;
  const unsigned char* expert;  // the expert's own
  const float* channel_scales;  // the same of scales; kInt8 as stored
  size_t first_column;
  const ConstAnyRows& rows;
  const AnyMatrix& out;
};
// Its range is of rows.
RowFunction<MultiplyArgs> MultiplyRows() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_MULTIPLY_H_
