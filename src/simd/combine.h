// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_COMBINE_H_
#define SWITCHYARD_SRC_SIMD_COMBINE_H_

#include <atomic>
#include <cstddef>

#include "switchyard/combine.h"
#include "switchyard/views.h"

namespace switchyard {
namespace simd {

// Checked: shapes agree with out, [tokens, hidden], hidden >= 1; outputs are
// disjoint from inputs, but for out == residual and out == shared rows.
struct CombineArgs {
  const CombineInputs& inputs;  // to copy 200 bytes would take one token 30 ns
  Matrix<float> out;
  std::atomic<size_t>* skipped;  // row_index values outside [-1, rows)
  // WeightedSumRmsNormRows only:
  const float* norm_weight;
  float eps;
  Matrix<float> normed;
};

void WeightedSumRows(const CombineArgs& args, size_t begin, size_t end);
void WeightedSumRmsNormRows(const CombineArgs& args, size_t begin, size_t end);

}  // namespace simd
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_SIMD_COMBINE_H_
