// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_MULTIPLY_H_
#define SWITCHYARD_SRC_SIMD_MULTIPLY_H_

#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/expert_weights.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// Multiplies rows by the weights of one expert. The caller has checked that
// rows have weights.cols columns, and are i8 with f32 scales, q8_0 or q8_K, or
// floats if weights are floats; that first_column + out.cols <= weights.rows;
// and that first_column is a multiple of 16 if weights are packed.
struct MultiplyArgs {
  const ExpertWeights& weights;
  const unsigned char* expert;  // the data of this expert
  // The expert's scales, if the weights are kInt8 and not packed.
  const float* channel_scales;
  size_t first_column;
  const ConstAnyRows& rows;
  const AnyMatrix& out;
};
// Computes rows [begin, end) of args.out.
RowFunction<MultiplyArgs> MultiplyRows() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_MULTIPLY_H_
