// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Weighted sum of the experts' outputs, with shared expert, residual and norm.

#ifndef SWITCHYARD_COMBINE_H_
#define SWITCHYARD_COMBINE_H_

#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/report.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// The weight of the shared experts' output.
enum class SharedGate : uint8_t {
  kLogit,   // sigmoid(gate[t]): Qwen2-MoE, Qwen3-Next
  kScalar,  // gate[t] itself
  kNone,    // 1; gate is empty: DeepSeek, Granite
};

// The shared experts, which every token passes through. The default is a
// layer without them.
struct SharedExpert {
  ConstAnyMatrix rows = {};  // [tokens * num_shared, hidden], by token
  // [tokens, num_shared], or [1, tokens] for one shared expert.
  ConstAnyMatrix gate = {};
  SharedGate kind = SharedGate::kLogit;
  size_t num_shared = 1;  // several: Inkling, weighted by its router
};

// Zero experts, which return their input (LongCat-Flash): rows holds that
// input, and weight the sum of a token's weights for them. The default is a
// layer without them.
struct IdentityExperts {
  ConstAnyMatrix rows = {};    // [tokens, hidden]
  ConstAnyMatrix weight = {};  // [tokens, 1] or [1, tokens]
};

// Weights of RMSNorms before the residual, each optional.
struct BlockNorms {
  ConstAnyMatrix routed = {};  // [1, hidden], for the routed sum: Gemma 4
  ConstAnyMatrix shared = {};  // [1, hidden], for the shared experts': Gemma 4
  ConstAnyMatrix block = {};   // [1, hidden], for both together: AFMoE, Beam
};

// Learned vectors, each optional: ZAYA has all, Doge residual_scale, JetMoE
// block_bias, Muse Spark both scales.
struct CombineVectors {
  ConstAnyMatrix block_bias = {};      // [1, hidden]
  ConstAnyMatrix block_scale = {};     // [1, hidden]
  ConstAnyMatrix residual_bias = {};   // [1, hidden]
  ConstAnyMatrix residual_scale = {};  // [1, hidden]
};

// The row of each (token, slot). It has no default, and Combine refuses a
// call without it: if rows sorted by expert were read as rows sorted by
// token, the result would be wrong without any sign of it.
struct RowIndex : ConstAnyMatrix {
  // [tokens, top_k] of int32, as BucketPacked writes it; -1 skips the slot.
  // Values outside [-1, num_rows) are skipped and counted: a stale row is never
  // read.
  using ConstAnyMatrix::ConstAnyMatrix;
  constexpr RowIndex(const ConstAnyMatrix& m) noexcept  // NOLINT
      : ConstAnyMatrix(m) {}
  // Row token * top_k + slot; num_rows is tokens * top_k.
  enum TokenOrder { kTokenOrder };
  constexpr RowIndex(TokenOrder) noexcept : token_order(true) {}  // NOLINT
  constexpr RowIndex() noexcept = default;  // neither is given

  bool token_order = false;
};

// How a norm uses its weight w.
enum class NormKind : uint8_t {
  kWeight,        // (x * scale) * w
  kWeightInF32,   // the same, see round_like_unfused: Gemma 4, gpt-oss
  kPlusOne,       // (x * scale) * (1 + w): Qwen3-Next, MiniMax-M3, Step-3.7
  kPlusOneFirst,  // y * scale, the norm of y = x * (1 + w): Muse Spark's post
};                // norms. Not for `normed`.

// Factors; 1 leaves the step out.
struct CombineScales {
  float routed = 1.0f;    // of the routed sum: Beam, Laguna, MiniMax-M3, Step
  float block = 1.0f;     // 0.5 averages (Cohere2), residual_multiplier
                          // (Granite), beta (MiniMax, Beam)
  float residual = 1.0f;  // alpha (MiniMax, Beam)
  float out = 1.0f;       // layer_scalar (Gemma 4)
};

// Every matrix is f32, bf16 or f16, unless its comment allows more; types and
// strides may differ between matrices. An input that is left out is {}; a
// null pointer with sizes is an error.
struct CombineInputs {
  // [num_rows, hidden]: down-projection outputs. They may also be i8, u8,
  // f8e4m3 or f8e5m2 with f32 scales [num_rows, 1]; a weight is then
  // topk_weights[t, s] * scale, rounded to f32. Without routed experts rows
  // and topk_weights are {} and row_index is kTokenOrder; the call then needs
  // a shared expert, an identity expert or a residual.
  ConstAnyRows rows;
  ConstAnyMatrix topk_weights;      // [tokens, top_k], as RouteTopK writes them
  RowIndex row_index;               // [tokens, top_k] or RowIndex::kTokenOrder
  ConstAnyMatrix residual = {};     // optional [tokens, hidden]
  ConstAnyMatrix norm_weight = {};  // [1, hidden], if and only if `normed` is
  SharedExpert shared = {};         // optional
  IdentityExperts identity = {};    // optional
  BlockNorms norms = {};            // optional
  CombineVectors vectors = {};      // optional
};
// At least one of out and normed.
struct CombineOutputs {
  // [tokens, hidden]. May be exactly residual (residual += sum) or the
  // shared.rows of one shared expert: the same data, stride and type.
  AnyMatrix out;
  // [tokens, hidden] in any format of quantize.h. Without `out` it may lie in
  // place as `out` may.
  AnyRows normed = {};
  Report* report = nullptr;  // optional: sets skipped
};
struct CombineOptions {
  float eps = 1e-6f;  // of `normed`, >= 0
  // Accept values of row_index outside [-1, num_rows). Otherwise the call
  // returns kFailedPrecondition if it has met any.
  bool allow_skipped = false;
  // Round to out's type wherever an engine that runs one operation after the
  // other does: see below.
  bool round_like_unfused = false;
  NormKind norm = NormKind::kWeight;        // of `normed`
  NormKind block_norm = NormKind::kWeight;  // of inputs.norms
  float block_eps = 1e-6f;                  // of inputs.norms, >= 0
  CombineScales scales = {};                // finite
  // Set by the presets of models that open the next layer with a LayerNorm
  // (phimoe, dbrx, cohere2_moe) or a norm with a gate (axk2), which Combine
  // does not have. A call with `normed` is then kInvalidArgument, because an
  // RMSNorm would give a wrong result without any sign of it.
  bool needs_other_norm = false;
};

// Brings the experts' outputs of each token back together. Per token t and
// column h:
//   sum = 0, then sum = fma(topk_weights[t, s], row(t, s)[h], sum) in slot
//   order, sum = fma(gate, shared[t, h], sum)     with a shared expert,
//   out[t, h] = residual[t, h] + sum              with a residual, else sum;
// and with `normed`, in the same pass over memory, the RMSNorm that opens the
// next layer:
//   normed[t, h] = (out[t, h] * scale) * norm_weight[h],
//   scale = 1 / sqrt(mean over h of out[t, h]^2 + eps).
//
// With every input given, and each operation rounded to f32:
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
//   out = residual + block, out = out * scales.out.
// Norm() is the norm above with block_eps and block_norm. A step is left out if
// its input is not given or its factor is 1.
//
// Rounding: the computation is in f32, and `normed` is computed from the sum
// before its rounding to out. With round_like_unfused, where M is the
// rounding to the type of out (without out, of residual; without both, of
// normed, f32 if it is quantised), the steps are instead
//   routed = M(sum over the slots),
//   sum = M(routed + M(gate * shared[t, h]))       with a shared expert,
//   out[t, h] = M(residual[t, h] + sum), and normed from that:
//   normed[t, h] = M(out[t, h] * scale) * norm_weight[h];
// that is, M after every step above. The sum over the slots (with identity),
// the sum over several shared experts and a norm are one step each. A norm of
// kWeight, as in Llama, rounds before its weight too, and a norm of
// kPlusOneFirst after its weight. kWeightInF32 and kPlusOne round once.
//
// Bits: results do not depend on the batch, threads, alignment or, with FMA,
// the ISA, except the sign and payload of a NaN. The mean of squares runs in
// 32 lanes (column h in lane h mod 32), folded 16, 8, 4, 2, 1. ISAs without
// FMA stay within (top_k + 2) * 2^-24 * sum |w * x| of the exact sum, the
// shared and the residual counting as terms. NaN and infinities propagate,
// except from a skipped slot. Zero tokens or columns do nothing.
//
// Errors: kInvalidArgument names the argument, and nothing is written: null
// data, strides, types and shapes that do not match, an input without its
// partner, an option out of range, an overlap that is not in place as above,
// a view beyond the address space. kFailedPrecondition, after everything is
// written, for row_index values that need allow_skipped.
//
// docs/models.md lists which models need one call, and which two.
//
// It follows ferrum's weighted_sum_stacked_f32, weighted_sum_batched_f32,
// weighted_sum_residual_stacked_f32 and
// weighted_sum_residual_norm_stacked_f32, and mlx-native's
// moe_weighted_reduce_f32 (its shader applies the sigmoid,
// SharedGate::kLogit, while its documentation expects a ready gate, kScalar).
Status Combine(const CombineInputs& inputs, const CombineOutputs& outputs,
               const CombineOptions& options = {},
               Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_COMBINE_H_
