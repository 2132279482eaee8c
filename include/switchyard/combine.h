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

// Experts that every token passes through. Default-made: there is none.
struct SharedExpert {
  ConstAnyMatrix rows = {};  // [tokens * num_shared, hidden], by token
  ConstAnyMatrix gate = {};  // [tokens, num_shared], of one also [1, tokens]
  SharedGate kind = SharedGate::kLogit;
  size_t num_shared = 1;  // several: Inkling, weighted by its router
};

// Zero experts, whose output is their input: it and the sum of the weights that
// a token gave to them (LongCat-Flash). Default-made: there are none.
struct IdentityExperts {
  ConstAnyMatrix rows = {};    // [tokens, hidden]
  ConstAnyMatrix weight = {};  // [tokens, 1] or [1, tokens]
};

// Weights of RMSNorms before the residual, each optional.
struct BlockNorms {
  ConstAnyMatrix routed = {};  // [1, hidden], of the routed sum: Gemma 4
  ConstAnyMatrix shared = {};  // [1, hidden], of the shared experts': Gemma 4
  ConstAnyMatrix block = {};   // [1, hidden], of both together: AFMoE, Beam
};

// Learned vectors, each optional: ZAYA has all, Doge residual_scale, JetMoE
// block_bias, Muse Spark both scales.
struct CombineVectors {
  ConstAnyMatrix block_bias = {};      // [1, hidden]
  ConstAnyMatrix block_scale = {};     // [1, hidden]
  ConstAnyMatrix residual_bias = {};   // [1, hidden]
  ConstAnyMatrix residual_scale = {};  // [1, hidden]
};

// Place of the row of each (token, slot). Combine refuses a call that says
// neither of the two: rows in the order of experts, taken to be in that of
// tokens, would be a wrong answer that nothing shows.
struct RowIndex : ConstAnyMatrix {
  // [tokens, top_k], as BucketPacked writes it; -1 skips the slot. Values
  // outside [-1, num_rows) are skipped and counted: a stale row is never read.
  using ConstAnyMatrix::ConstAnyMatrix;
  constexpr RowIndex(const ConstAnyMatrix& m) noexcept  // NOLINT
      : ConstAnyMatrix(m) {}
  // Row token * top_k + slot; num_rows is tokens * top_k.
  enum TokenOrder { kTokenOrder };
  constexpr RowIndex(TokenOrder) noexcept : token_order(true) {}  // NOLINT
  constexpr RowIndex() noexcept = default;  // says neither

  bool token_order = false;
};

// How a norm uses its weight.
enum class NormKind {
  kWeight,        // (x * scale) * w
  kWeightInF32,   // the same, see round_like_unfused: Gemma 4, DeepSeek-V4
  kPlusOne,       // (x * scale) * (1 + w): Gemma 2 and 3, MiniMax-M3, Qwen4
  kPlusOneFirst,  // y * scale, the norm of y = x * (1 + w): Muse Spark's post
};                // norms. Not for `normed`.

// Factors; 1 is none at all.
struct CombineScales {
  float routed = 1.0f;    // of the routed sum: Beam, Laguna, MiniMax-M3, Step
  float block = 1.0f;     // 0.5 averages (Cohere2), residual_multiplier
                          // (Granite), beta (MiniMax, Beam)
  float residual = 1.0f;  // alpha (MiniMax, Beam)
  float out = 1.0f;       // layer_scalar (Gemma 4)
};

struct CombineInputs {
  // No rows, no topk_weights and kTokenOrder: there are no routed experts.
  ConstAnyRows rows;             // [num_rows, hidden]: down-projection outputs
  ConstAnyMatrix topk_weights;   // [tokens, top_k], as RouteTopK writes them
  RowIndex row_index;            // [tokens, top_k] or RowIndex::kTokenOrder
  ConstAnyMatrix residual = {};  // optional [tokens, hidden]
  ConstAnyMatrix norm_weight = {};  // [1, hidden], for `normed`
  SharedExpert shared = {};         // optional
  IdentityExperts identity = {};    // optional
  BlockNorms norms = {};            // optional
  CombineVectors vectors = {};      // optional
};
struct CombineOutputs {      // at least one of the two:
  AnyMatrix out;             // [tokens, hidden]
  AnyRows normed = {};       // [tokens, hidden]
  Report* report = nullptr;  // sets skipped
};
struct CombineOptions {
  float eps = 1e-6f;  // of `normed`
  // Values of row_index outside [-1, num_rows) are expected. Otherwise the call
  // returns kFailedPrecondition when it has met any.
  bool allow_skipped = false;
  // Round to out's type wherever an engine that runs one operation after the
  // other does: see below.
  bool round_like_unfused = false;
  NormKind norm = NormKind::kWeight;        // of `normed`
  NormKind block_norm = NormKind::kWeight;  // of inputs.norms
  float block_eps = 1e-6f;                  // of inputs.norms
  CombineScales scales = {};
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
// With everything that there is, each step left out whose input is not given or
// whose factor is 1, and each operation rounded to f32:
//   routed = 0, then routed = fma(topk_weights[t, s], row(t, s)[h], routed),
//   routed = fma(identity.weight[t], identity.rows[t, h], routed),
//   routed = routed * scales.routed, routed = Norm(routed, norms.routed),
//   block = fma(gate[t, i], shared[t * num_shared + i, h], block) from routed
//   on, for each i, or, with norms.shared,
//     shared = gate[t, 0] * shared[..], shared = fma(gate[t, i], .., shared),
//     block = routed + Norm(shared, norms.shared);
//   block = Norm(block, norms.block), block = block + block_bias[h],
//   block = block * block_scale[h], block = block * scales.block;
//   residual = residual + residual_bias[h],
//   residual = residual * residual_scale[h],
//   residual = residual * scales.residual;
//   out = residual + block, out = out * scales.out;
// Norm() as above, with block_eps; NormKind says how the weight comes in.
//
// Types: each of f32, bf16 or f16, but for row_index, which is int32. rows may
// also be i8, u8, f8e4m3 or f8e5m2 with f32 scales [num_rows, 1]: a weight is
// then topk_weights[t, s] * scale, rounded to f32. normed may have any format
// of quantize.h. Computed in f32, from f32: `normed` sees the sum that out is
// rounded from. With round_like_unfused, M being the rounding to the type of
// out (without out, of residual; without both, of normed, f32 if it is
// quantised), instead
//   routed = M(sum over the slots),
//   sum = M(routed + M(gate * shared[t, h]))       with a shared expert,
//   out[t, h] = M(residual[t, h] + sum), and normed from that:
//   normed[t, h] = M(out[t, h] * scale) * norm_weight[h];
// that is, M of every step above, the sum over the slots (and identity), the
// sum over several shared experts and a norm being one each; but a norm of
// kWeight, as Llama's, rounds before its weight, too, and one of kPlusOneFirst
// behind it. kWeightInF32 and kPlusOne round once.
// Shapes: as above; each matrix has its own stride. Zero tokens or columns do
// nothing. What is optional is left out as {}: a null pointer with sizes is an
// error. Without routed experts there has to be a shared expert, an identity
// expert or a residual.
// In place: out may be exactly residual (residual += sum) or exactly
// shared.rows of one shared expert (same data, stride and type); without out,
// normed may. Any other overlap of an output with another view is an error.
// Values: NaN and infinities propagate, but not those of a skipped slot.
// Same bits for every batch split, thread count and alignment, and on every ISA
// with FMA, but for a NaN's sign and payload: the mean of squares runs in 32
// lanes (column h in lane h mod 32), folded 16, 8, 4, 2, 1. ISAs without FMA
// stay within (top_k + 2) * 2^-24 * sum |w * x| of the exact sum, the shared
// and the residual counting as terms.
// Errors: kInvalidArgument for null data, strides, shapes and types that do not
// match, normed without norm_weight or the reverse, an
// eps that is negative or NaN, a scale that is not finite, norms.routed without
// rows, norms.shared without shared, vectors of the residual without one,
// overlap, overflow; nothing written. kFailedPrecondition for row_index values
// that allow_skipped would allow, after everything is written.
//
// docs/combine.md has the models' forms: which are one call and which are two.
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
