// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes the weighted sum of the experts' outputs of each token, with
// shared experts, residual and norm.

#ifndef SWITCHYARD_COMBINE_H_
#define SWITCHYARD_COMBINE_H_

#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/report.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// How the gate of a shared expert becomes the factor of its output.
enum class SharedGate : uint8_t {
  kLogit,   // the factor is sigmoid(gate[t]): Qwen2-MoE, Qwen3-Next
  kScalar,  // the factor is gate[t] itself
  kNone,    // the factor is 1, and gate is empty: DeepSeek, Granite
};

// The shared experts, which every token passes through. The default is a
// layer without them.
struct SharedExpert {
  // [tokens * num_shared, hidden]: outputs of the shared experts. A token's
  // rows follow each other.
  ConstAnyMatrix rows = {};
  // [tokens, num_shared], or [1, tokens] for one shared expert: the gate of
  // each row.
  ConstAnyMatrix gate = {};
  SharedGate kind = SharedGate::kLogit;  // how a gate becomes a factor
  // The number of shared experts. Inkling has several, and its router gives
  // their weights.
  size_t num_shared = 1;
};

// Zero experts, which return their input (LongCat-Flash). The default is a
// layer without zero experts.
struct IdentityExperts {
  ConstAnyMatrix rows = {};  // [tokens, hidden]: input of the layer
  // [tokens, 1] or [1, tokens]: the sum of the weights of a token's zero
  // experts, which is RouteOutputs::identity_weights.
  ConstAnyMatrix weight = {};
};

// Weights of the RMSNorms that run before the residual is added. Each is
// optional; a norm without a weight is left out.
struct BlockNorms {
  // [1, hidden]: weight of the norm of the routed sum (Gemma 4).
  ConstAnyMatrix routed = {};
  // [1, hidden]: weight of the norm of the shared experts' sum (Gemma 4).
  ConstAnyMatrix shared = {};
  // [1, hidden]: weight of the norm of both sums together (AFMoE, Beam).
  ConstAnyMatrix block = {};
};

// Learned vectors, each optional. ZAYA has all four, Doge has residual_scale,
// JetMoE block_bias, and Muse Spark block_scale and residual_scale.
struct CombineVectors {
  // [1, hidden]: added to the sum of all experts.
  ConstAnyMatrix block_bias = {};
  // [1, hidden]: multiplies the sum of all experts, after block_bias.
  ConstAnyMatrix block_scale = {};
  ConstAnyMatrix residual_bias = {};  // [1, hidden]: added to the residual
  // [1, hidden]: multiplies the residual, after residual_bias.
  ConstAnyMatrix residual_scale = {};
};

// Tells Combine which row belongs to each (token, slot). It has no default,
// and Combine refuses a call without it, because a wrong order of rows (by
// expert, not by token) would give wrong results without any sign of it.
struct RowIndex : ConstAnyMatrix {
  // [tokens, top_k] of int32, as BucketPacked writes it; -1 skips the slot.
  // Values outside [-1, num_rows) are skipped and counted: a stale row is never
  // read.
  using ConstAnyMatrix::ConstAnyMatrix;
  constexpr RowIndex(const ConstAnyMatrix& m) noexcept  // NOLINT
      : ConstAnyMatrix(m) {}
  // States that the pair (token, slot) has row token * top_k + slot. num_rows
  // is then tokens * top_k.
  enum TokenOrder { kTokenOrder };
  constexpr RowIndex(TokenOrder) noexcept : token_order(true) {}  // NOLINT
  constexpr RowIndex() noexcept = default;  // no index: Combine refuses it

  bool token_order = false;  // true if constructed from kTokenOrder
};

// How a norm uses its weight w.
enum class NormKind : uint8_t {
  kWeight,  // (x * scale) * w
  // As kWeight, except that round_like_unfused does not round x * scale
  // before the multiplication by w: Gemma 4, gpt-oss.
  kWeightInF32,
  kPlusOne,  // (x * scale) * (1 + w): Qwen3-Next, MiniMax-M3, Step-3.7
  // y * scale, where y = x * (1 + w), and scale is computed from y instead of
  // x: Muse Spark's post norms. For CombineOptions::block_norm only.
  kPlusOneFirst,
};

// Factors of sums. A sum with a factor of 1 is not multiplied.
struct CombineScales {
  // Multiplies the routed sum: Beam, Laguna, MiniMax-M3, Step.
  float routed = 1.0f;
  // Multiplies the sum of all experts: by 0.5 to average routed and shared
  // experts (Cohere2), by residual_multiplier (Granite), or by beta (MiniMax,
  // Beam).
  float block = 1.0f;
  float residual = 1.0f;  // multiplies the residual: alpha (MiniMax, Beam)
  float out = 1.0f;       // multiplies the result: layer_scalar (Gemma 4)
};

// Inputs of Combine(). Every matrix is f32, bf16 or f16, unless its comment
// allows more; types and strides may differ between matrices. Leave an input
// out as {}; a null pointer with sizes is an error.
struct CombineInputs {
  // [num_rows, hidden]: the outputs of the down product. They may also be i8,
  // u8, f8e4m3 or f8e5m2 with f32 scales [num_rows, 1]; each row's weight is
  // then topk_weights[t, s] * scale, rounded to f32. Without routed experts,
  // rows and topk_weights are {}, and row_index is kTokenOrder. The call then
  // needs a shared expert, an identity expert or a residual.
  ConstAnyRows rows;
  ConstAnyMatrix topk_weights;   // [tokens, top_k]: weights from RouteTopK
  RowIndex row_index;            // [tokens, top_k] or RowIndex::kTokenOrder
  ConstAnyMatrix residual = {};  // optional [tokens, hidden]: added to the sum
  // [1, hidden]: weight of the norm of CombineOutputs::normed. Give
  // norm_weight and normed, or neither.
  ConstAnyMatrix norm_weight = {};
  SharedExpert shared = {};       // optional: the shared experts
  IdentityExperts identity = {};  // optional: the zero experts
  BlockNorms norms = {};          // optional: norms before the residual
  CombineVectors vectors = {};    // optional: learned biases and factors
};
// Outputs of Combine(). Give at least one of out and normed.
struct CombineOutputs {
  // [tokens, hidden]. May overwrite an input in place, if it has the data,
  // stride and type of that input: residual (residual += sum) or, with one
  // shared expert, shared.rows.
  AnyMatrix out;
  // [tokens, hidden] in any format of quantize.h. Without `out`, normed may
  // overwrite residual or shared.rows in place, as `out` may.
  AnyRows normed = {};
  Report* report = nullptr;  // optional; the call sets report->skipped
};
// Options of Combine().
struct CombineOptions {
  float eps = 1e-6f;  // eps of the norm of `normed`, >= 0
  // Accept values of row_index outside [-1, num_rows). If this is false and
  // the call meets such a value, it returns kFailedPrecondition.
  bool allow_skipped = false;
  // Round each step to out's type, like an engine that runs one operation
  // after the other. Combine() lists the steps.
  bool round_like_unfused = false;
  NormKind norm = NormKind::kWeight;        // the norm of `normed`
  NormKind block_norm = NormKind::kWeight;  // the norms of inputs.norms
  float block_eps = 1e-6f;    // eps of the norms of inputs.norms, >= 0
  CombineScales scales = {};  // factors of sums, all finite
  // Presets set this if the model's next layer starts with a norm that
  // Combine does not have: a LayerNorm (phimoe, dbrx, cohere2_moe) or a gated
  // norm (axk2). A call with `normed` then returns kInvalidArgument, because
  // an RMSNorm would give a wrong result without any sign of it.
  bool needs_other_norm = false;
};

// Adds up the experts' outputs of each token. For token t and column h:
//   sum = 0, then sum = fma(topk_weights[t, s], row(t, s)[h], sum) in the
//   order of slots;
//   with a shared expert, sum = fma(gate, shared[t, h], sum);
//   out[t, h] = residual[t, h] + sum, or sum if there is no residual.
// With `normed`, the same pass over memory also computes the RMSNorm at the
// start of the next layer:
//   normed[t, h] = (out[t, h] * scale) * norm_weight[h],
//   scale = 1 / sqrt(mean over h of out[t, h]^2 + eps).
//
// With every input, Combine computes the following, and rounds each operation
// to f32:
//   routed = 0, then routed = fma(topk_weights[t, s], row(t, s)[h], routed),
//   routed = fma(identity.weight[t], identity.rows[t, h], routed),
//   routed = routed * scales.routed, routed = Norm(routed, norms.routed),
//   block = routed, then for each i
//   block = fma(gate[t, i], shared[t * num_shared + i, h], block);
//   with norms.shared, instead
//     shared = gate[t, 0] * shared[..], shared = fma(gate[t, i], .., shared),
//     block = routed + Norm(shared, norms.shared);
//   block = Norm(block, norms.block), block = block + block_bias[h],
//   block = block * block_scale[h], block = block * scales.block;
//   residual = residual + residual_bias[h],
//   residual = residual * residual_scale[h],
//   residual = residual * scales.residual;
//   out = residual + block, out = out * scales.out.
// Norm() is the formula of `normed` with block_eps and block_norm. A step is
// left out if its input is not given or its factor is 1.
//
// Rounding: the computation is in f32, and `normed` is computed from the sum
// before the sum is rounded to out. With round_like_unfused, each step is
// rounded. Let M be the rounding to the type of `out`. Without `out`, M rounds
// to the type of residual, and without `out` and residual, to the type of
// normed, or to f32 if normed is quantised. The steps are then
//   routed = M(sum over the slots);
//   with a shared expert, sum = M(routed + M(gate * shared[t, h]));
//   out[t, h] = M(residual[t, h] + sum);
//   normed[t, h] = M(out[t, h] * scale) * norm_weight[h].
// Every step of the full list is rounded with M, too. The sum over the slots
// (with identity), the sum over several shared experts and each norm count as
// one step. In addition, a norm of kWeight, as in Llama, rounds x * scale
// before it multiplies by w, and a norm of kPlusOneFirst rounds x * (1 + w)
// before it computes the mean of squares. kWeightInF32 and kPlusOne round
// only their results.
//
// Bits: results do not depend on the batch, threads, alignment or, with FMA,
// the ISA, except the sign and payload of a NaN. The mean of squares is
// summed in 32 lanes: column h is added to lane h mod 32. The upper half of
// the lanes is then added to the lower half, until 16, 8, 4, 2 and at last 1
// lane is left. ISAs without FMA stay within (top_k + 2) * 2^-24 * sum |w *
// x| of the exact sum; the sum includes the shared expert and the residual.
// NaN and infinities propagate, except from a skipped slot. With zero tokens
// or columns the call does nothing.
//
// Errors: kInvalidArgument names the argument, and nothing is written: null
// data, strides, types and shapes that do not match, an input without its
// partner, an option out of range, an overlap that CombineOutputs does not
// allow, a view beyond the address space. kFailedPrecondition is returned,
// after everything is written, for row_index values that need allow_skipped.
//
// docs/models.md lists the models that need one call of Combine, and those
// that need two.
//
// The function follows ferrum's weighted_sum_stacked_f32,
// weighted_sum_batched_f32, weighted_sum_residual_stacked_f32 and
// weighted_sum_residual_norm_stacked_f32, and mlx-native's
// moe_weighted_reduce_f32. (The shader of moe_weighted_reduce_f32 applies the
// sigmoid, as SharedGate::kLogit does, while its documentation expects the
// factor itself, as kScalar does.)
Status Combine(const CombineInputs& inputs, const CombineOutputs& outputs,
               const CombineOptions& options = {},
               Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_COMBINE_H_
