// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Bringing the experts' outputs of each token back together.

#ifndef SWITCHYARD_COMBINE_H_
#define SWITCHYARD_COMBINE_H_

#include "switchyard/executor.h"
#include "switchyard/report.h"
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
  ConstAnyMatrix rows = {};  // [tokens, hidden]
  ConstAnyMatrix gate = {};  // [tokens, 1] or [1, tokens]
  SharedGate kind = SharedGate::kLogit;
};

// Where the row of each (token, slot) is. One of the two has to be said: rows
// in the order of experts, taken to be in that of tokens, would be a wrong
// answer that nothing shows.
struct RowIndex : ConstAnyMatrix {
  // [tokens, top_k], as BucketPacked writes it; -1 skips the slot. Values
  // outside [-1, num_rows) are skipped and counted: a stale row is never read.
  using ConstAnyMatrix::ConstAnyMatrix;
  constexpr RowIndex(const ConstAnyMatrix& m) noexcept  // NOLINT
      : ConstAnyMatrix(m) {}
  // Row token * top_k + slot; num_rows is tokens * top_k.
  enum TokenOrder { kTokenOrder };
  constexpr RowIndex(TokenOrder) noexcept : token_order(true) {}  // NOLINT
  RowIndex() = delete;

  bool token_order = false;
};

struct CombineInputs {
  ConstAnyMatrix rows;           // [num_rows, hidden]: down-projection outputs
  ConstAnyMatrix topk_weights;   // [tokens, top_k], as RouteTopK writes them
  RowIndex row_index;            // [tokens, top_k] or RowIndex::kTokenOrder
  ConstAnyMatrix residual = {};  // optional [tokens, hidden]
  ConstAnyMatrix norm_weight = {};  // [1, hidden], for `normed`
  SharedExpert shared = {};         // optional
};
struct CombineOutputs {
  AnyMatrix out;             // [tokens, hidden]
  AnyMatrix normed = {};     // optional [tokens, hidden]
  Report* report = nullptr;  // sets skipped
};
struct CombineOptions {
  float eps = 1e-6f;  // of the norm
  // Values of row_index outside [-1, num_rows) are expected. Otherwise the call
  // returns kFailedPrecondition when it has met any.
  bool allow_skipped = false;
};

// Per token t and column h:
//   sum = 0, then sum = fma(topk_weights[t, s], row(t, s)[h], sum) in slot
//   order, sum = fma(gate, shared[t, h], sum)     with a shared expert,
//   out[t, h] = residual[t, h] + sum              with a residual, else sum;
// and with `normed`, in the same pass over memory,
//   normed[t, h] = (out[t, h] * scale) * norm_weight[h],
//   scale = 1 / sqrt(mean over h of out[t, h]^2 + eps):
// the RMSNorm that opens the next layer.
//
// Types: row_index int32, all else f32.
// Shapes: as above, top_k >= 1; each matrix has its own stride. Zero tokens or
// columns do nothing. What is optional is left out as {}: a null pointer with
// sizes is an error.
// In place: out may be exactly residual (residual += sum) or exactly
// shared.rows (same data and stride). Any other overlap of an output with
// another view is an error.
// Values: NaN and infinities propagate, but not those of a skipped slot.
// Same bits for every batch split, thread count and alignment, and on every ISA
// with FMA, but for a NaN's sign and payload: the mean of squares runs in 32
// lanes (column h in lane h mod 32), folded 16, 8, 4, 2, 1. ISAs without FMA
// stay within (top_k + 2) * 2^-24 * sum |w * x| of the exact sum, the shared
// and the residual counting as terms.
// Errors: kInvalidArgument for null data, strides, shapes and types that do not
// match, normed without norm_weight or the reverse, an eps that is negative or
// NaN, overlap, overflow; nothing written. kFailedPrecondition for row_index
// values that allow_skipped would allow, after everything is written.
//
// From ferrum's weighted_sum_stacked_f32, weighted_sum_batched_f32,
// weighted_sum_residual_stacked_f32 and weighted_sum_residual_norm_stacked_f32,
// and mlx-native's moe_weighted_reduce_f32 (whose shader applies the sigmoid,
// SharedGate::kLogit, while its documentation expects a ready gate, kScalar).
Status Combine(const CombineInputs& inputs, const CombineOutputs& outputs,
               const CombineOptions& options = {},
               Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_COMBINE_H_
