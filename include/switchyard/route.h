// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_ROUTE_H_
#define SWITCHYARD_ROUTE_H_

#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// How a logit becomes a score (Hugging Face: scoring_func).
enum class Score : uint8_t {
  kSoftmax,  // exp(logit) / sum over all experts
};

struct RouteInputs {
  ConstAnyMatrix logits;  // [tokens, num_experts]
};
struct RouteOutputs {
  AnyMatrix topk_ids;      // [tokens, top_k]
  AnyMatrix topk_weights;  // [tokens, top_k]
};
struct RouteOptions {
  // Divide the selected weights by their sum (Hugging Face: norm_topk_prob).
  bool renormalize = true;
  // Lower bound of that sum, as a share of the softmax sum over all experts;
  // 2^-14 in llama.cpp and the Metal kernels that follow it. Only matters with
  // `renormalize`, and only where clamp > top_k / num_experts: the sum of the
  // top_k largest is never below that. 0 <= clamp <= 1.
  float clamp = 0x1p-14f;
  Score score = Score::kSoftmax;
};

// Softmax-top-k routing: for each token the top_k experts with the largest
// logits, best first, and their weights.
//
//   S_all = sum over all experts of exp(l - max),  S_sel = over the selected
//   topk_weights[t, j] = exp(l_j - max) / S_all                     without, or
//   topk_weights[t, j] = exp(l_j - max) / max(S_sel, clamp * S_all)      with
//                                                               renormalize
//
// Types: logits and topk_weights f32; topk_ids int32, uint32 or int64.
// Shapes: as above, each with its own stride; 1 <= top_k <= num_experts < 2^31,
// no other limit. Zero tokens do nothing. Nothing may overlap an output.
// Order: by logit, larger first; the smaller expert index wins ties, -0 ties
// with +0, a NaN ranks below every number. Selection is on logits, not on
// probabilities: where two different logits round to the same probability (or
// both underflow to 0), other routers pick by index and this picks the larger
// logit.
// ids are top_k different experts in [0, num_experts), whatever the input.
// A row with a NaN logit gets NaN (0x7FC00000) for all its weights. Experts
// with a +inf logit share the probability equally. A -inf logit gets weight 0,
// and a row of only -inf (masked, padded) gets ids 0..top_k-1, weights 0.
// Accuracy: exp within 1.5 ulp; sums in a fixed order (32 lanes over experts,
// slot order over the selected), so that the bits do not depend on batch size,
// threads or, where it has FMA, the ISA. ids are the same on every ISA.
// Errors: kInvalidArgument for null data, strides, shapes and types that do not
// match, top_k of 0 or above num_experts, a clamp outside [0, 1] or NaN, a
// score outside its enumeration, an overlap, a view larger than the address
// space; nothing written.
//
// From moe_router_topk_softmax_f32 (ferrum) and moe_softmax_topk_f32
// (mlx-native), without their limits on top_k and their output on rows with
// NaN or infinities.
Status RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
                 const RouteOptions& options = {},
                 Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_ROUTE_H_
