// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Bringing the experts' outputs of each token back together.

#ifndef SWITCHYARD_COMBINE_H_
#define SWITCHYARD_COMBINE_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// How the shared expert's output is weighted.
enum class SharedGate {
  kLogit,   // by sigmoid(gate[t]): Qwen2-MoE, Qwen3-Next
  kScalar,  // by gate[t] as it stands
  kNone,    // by 1, gate is empty: DeepSeek, Granite
};

// An expert that every token passes through. Default-made: there is none.
struct SharedExpert {
  Matrix<const float> rows;  // [tokens, hidden]
  Span<const float> gate;    // [tokens]
  SharedGate kind = SharedGate::kLogit;
};

struct CombineInputs {
  Matrix<const float> rows;     // [num_rows, hidden]: down-projection outputs
  Matrix<const float> weights;  // [tokens, top_k], as RouteTopK writes them
  // Optional [tokens, top_k]: the row of each (token, slot), as BucketPacked
  // writes it; -1 skips the slot. Without it, row token * top_k + slot, and
  // num_rows is tokens * top_k. Values outside [-1, num_rows) are skipped and
  // counted: a stale row is never read.
  Matrix<const int32_t> row_index = {};
  SharedExpert shared = {};           // optional
  Matrix<const float> residual = {};  // optional [tokens, hidden]
};

// Per token t and column h:
//   sum = 0, then sum = fma(weights[t, s], row(t, s)[h], sum) in slot order,
//   sum = fma(gate, shared[t, h], sum)     with a shared expert,
//   out[t, h] = residual[t, h] + sum       with a residual, else sum.
// WeightedSumRmsNorm adds, in the same pass over memory,
//   normed[t, h] = (out[t, h] * scale) * norm_weight[h],
//   scale = 1 / sqrt(mean over h of out[t, h]^2 + eps):
// the norm that opens the next layer.
//
// Shapes: out, normed, residual and shared.rows are [tokens, hidden], weights
// and row_index [tokens, top_k] with top_k >= 1, norm_weight [hidden]; each
// matrix has its own stride. Zero tokens or columns do nothing.
// In place: out may be exactly residual (residual += sum) or exactly
// shared.rows (same data and stride). Any other overlap of an output with
// another view is an error.
// Values: NaN and infinities propagate, but not those of a skipped slot.
// Same bits for every batch split, thread count and alignment, and on every ISA
// with FMA: the mean of squares runs in 32 lanes (column h in lane h mod 32),
// folded 16, 8, 4, 2, 1. ISAs without FMA stay within (top_k + 2) * 2^-24 *
// sum |w * x| of the exact sum, the shared and the residual counting as terms.
// *skipped (may be null; set on success) counts row_index values outside
// [-1, num_rows).
// Errors: kInvalidArgument for null data, strides, shapes that do not match, an
// eps that is negative or NaN, overlap, overflow; nothing written.
//
// From ferrum's weighted_sum_stacked_f32, weighted_sum_batched_f32,
// weighted_sum_residual_stacked_f32 and weighted_sum_residual_norm_stacked_f32,
// and mlx-native's moe_weighted_reduce_f32 (whose shader applies the sigmoid,
// SharedGate::kLogit, while its documentation expects a ready gate, kScalar).
Status WeightedSum(const CombineInputs& inputs, Matrix<float> out,
                   Executor& executor = SerialExecutor(),
                   size_t* skipped = nullptr) noexcept;
Status WeightedSumRmsNorm(const CombineInputs& inputs,
                          Span<const float> norm_weight, float eps,
                          Matrix<float> out, Matrix<float> normed,
                          Executor& executor = SerialExecutor(),
                          size_t* skipped = nullptr) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_COMBINE_H_
