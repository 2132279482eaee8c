// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The router: from logits to expert ids and weights.

#ifndef SWITCHYARD_ROUTE_H_
#define SWITCHYARD_ROUTE_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/report.h"
#include "switchyard/status.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace switchyard {

// How a logit becomes a score (Hugging Face: scoring_func).
enum class Score : uint8_t {
  kSoftmax,       // exp(logit) / sum over all experts
  kSigmoid,       // DeepSeek-V3, GLM, MiniMax
  kSqrtSoftplus,  // sqrt(log(1 + exp(logit))): DeepSeek-V4
  kRaw,           // the logit itself: Granite, gpt-oss, Llama 4
  kSparsemixer,   // Phi-3.5-MoE: two rounds, see the end of this file
};

// The value to which correction_bias is added. The sum is the key: the
// experts with the largest keys are selected.
enum class BiasPlace : uint8_t {
  kScore,  // DeepSeek-V3 and most others
  kLogit,  // Kolibri; with bias_in_weight a bias of the router's matmul
};

// The value from which a selected expert's weight is computed.
enum class WeightOf : uint8_t {
  kScore,              // its score
  kSoftmaxOfSelected,  // softmax over the selected logits: Granite, gpt-oss
  kSigmoidOfSelected,  // sigmoid of its logit: Llama 4, Kolibri
};

// The divisor of weights with RouteOptions::renormalize. `sum` adds the
// values of the selected experts in slot order and, with shared_logits, of
// the shared experts.
enum class Divisor : uint8_t {
  kMaxOfSumAndShare,  // max(sum, clamp * sum over all experts)
  kSum,
  kSumPlusEps,
  kMaxOfSumAndEps,
};

// Floats are f32, bf16 or f16. Every matrix has its own type and stride.
struct RouteInputs {
  ConstAnyMatrix logits;  // [tokens, num_experts] of floats
  // Optional [num_biases, num_experts] of floats: the e_score_correction_bias
  // of DeepSeek-V3. It usually has one row, which holds for every token.
  ConstAnyMatrix correction_bias = {};
  // Optional [tokens, 1] or [1, tokens] of int32, uint32, int64 or uint8:
  // each token's row of correction_bias (DeepSeek-V4.1 has another row for
  // images). An index outside of correction_bias is counted as invalid and
  // means a bias of 0.
  ConstAnyMatrix bias_index = {};
  // Optional [1, num_experts] of floats: multiplies weights last (Gemma 4).
  ConstAnyMatrix expert_scale = {};
  // Optional [tokens, 1] or [1, tokens] of uint8 (torch.bool): 0 marks padding,
  // which gets ids of -1 and weights of 0.
  ConstAnyMatrix token_mask = {};
  // Optional [tokens, top_k] of int32, uint32 or int64: these experts are
  // used in place of a selection (hash layers, replay), and only their
  // weights are computed. May be the first top_k columns of topk_ids. An id
  // outside [0, num_experts) becomes -1 with weight 0, and is counted.
  ConstAnyMatrix given_ids = {};
  // Optional [1, num_experts] of int32: the id that topk_ids gets for each
  // expert, such as its index on this node. -1 marks an expert on another
  // node; its slots are counted and keep their weights.
  ConstAnyMatrix expert_map = {};
};
struct RouteOutputs {
  // [tokens, top_k + num_shared_experts] of int32, uint32 or int64.
  AnyMatrix topk_ids;
  AnyMatrix topk_weights;  // the same shape, of floats
  // Optional [tokens, 1] or [1, tokens] of floats, with num_zero_experts: the
  // sum of the weights of a token's selected zero experts, for Combine.
  AnyMatrix identity_weights = {};
  // Optional: sets invalid_ids (of given_ids and bias_index) and elsewhere.
  // Masked tokens are not counted.
  Report* report = nullptr;
};
struct RouteOptions {
  // Divide the selected weights by their sum (Hugging Face: norm_topk_prob).
  bool renormalize = true;
  // Lower bound of that sum as a share of the sum over all experts, in [0,
  // 1]; 0 is no bound. 2^-14 is the bound of llama.cpp and of the Metal
  // kernels that follow it. It matters with kMaxOfSumAndShare only; with
  // softmax, only if it is above top_k / num_experts, the least share that
  // the top_k largest can have.
  float clamp = 0x1p-14f;
  Score score = Score::kSoftmax;
  Divisor divisor = Divisor::kMaxOfSumAndShare;
  float eps = 0.0f;  // >= 0, for kSumPlusEps and kMaxOfSumAndEps
  // Weights are 0, not infinite or NaN, if the divisor is 0.
  bool zero_sum_is_zero = false;
  WeightOf weight_of = WeightOf::kScore;
  BiasPlace bias_place = BiasPlace::kScore;
  // The bias is part of the weight too, not only of the key; needs
  // correction_bias. With BiasPlace::kScore it also needs WeightOf::kScore.
  bool bias_in_weight = false;
  // Select by the rounded score, as PyTorch code does, even where the logits
  // still differ (an f32 sigmoid is 1 from 16.6 on).
  bool select_on_rounded_score = false;
  // Multiplies weights after the division.
  float routed_scaling_factor = 1.0f;

  // Every logit is first replaced by clip(softcap * tanh(logit * logit_scale
  // / softcap)), clipped to [-logit_clip, logit_clip]. logit_scale is not 0;
  // a softcap or clip of 0 leaves that step out.
  float logit_scale = 1.0f;
  float logit_softcap = 0.0f;
  float logit_clip = 0.0f;

  // Groups of num_experts / num_expert_group experts each (0 or 1: none). The
  // topk_group groups with the largest scores take part; a group's score is
  // the sum of its group_score_of largest keys (DeepSeek-V3: 2; DeepSeek-V2:
  // 1, the maximum). An expert of another group has the key -inf, or 0 with
  // dropped_key_is_zero, which beats negative keys.
  size_t num_expert_group = 0;
  size_t topk_group = 0;
  size_t group_score_of = 2;
  bool dropped_key_is_zero = false;

  // The number of zero experts, which compute nothing; they are the last of
  // num_experts. Their slots get id -1 and weight 0, and their weight goes to
  // identity_weights (LongCat's identity experts). ZAYA's skip expert needs
  // no identity_weights.
  size_t num_zero_experts = 0;
  // Shared experts, which every token passes through. They get the last slots
  // of a row: ids num_experts, num_experts + 1, ... with weight
  // shared_weight. With shared_logits (Inkling) `logits` has further columns
  // for them, behind the columns of the experts. They do not take part in the
  // selection, but their scores are divided and scaled together with the
  // scores of the selected experts.
  size_t num_shared_experts = 0;
  float shared_weight = 1.0f;
  bool shared_logits = false;

  // f32, bf16 or f16: each step of score, sum, quotient and scale is rounded to
  // this type, as the operations of a model of that type do. (The key is the
  // rounded score plus the bias, in f32.)
  Type round_to = Type::kF32;

  float jitter_eps = 0.01f;  // >= 0, for Score::kSparsemixer

  // Presets set these, and RouteTopK then refuses a call that lacks a part of
  // the recipe: a correction_bias (unless given_ids are given and no weight
  // has a bias), an expert_scale, a num_expert_group (1: without groups), or
  // ApplyConfig() with the checkpoint's config.json.
  bool needs_correction_bias = false;
  bool needs_expert_scale = false;
  bool needs_groups = false;
  bool needs_config = false;
};

// Routes each token to the top_k experts with the largest keys, best first, and
// computes their weights; by default this is softmax-top-k. presets.h has the
// options of many models.
//
//   x = clip(softcap * tanh(logit * logit_scale / softcap))    for each expert,
//       plus the bias with BiasPlace::kLogit and bias_in_weight;
//   s = score(x), for softmax exp(x - max) / sum over all of exp(x - max),
//       rounded to round_to;
//   key = x; with a bias s + bias, or x + bias with BiasPlace::kLogit; with
//       groups or select_on_rounded_score s; -inf or 0 in a dropped group;
//   v = s, softmax over the selected of x, or sigmoid(x)   for the selected,
//       s + bias with BiasPlace::kScore and bias_in_weight;
//   topk_weights = v / divisor * routed_scaling_factor * expert_scale[id]
//
// Selection uses x wherever s grows with x and no option needs s. If two
// logits round to the same score, other routers pick by index; this
// function picks the larger logit. Softmax of the selected is divided by its
// own sum only, with or without `renormalize`. Softmax with kSum or
// kMaxOfSumAndShare skips the division by the sum over all experts, unless a
// step is rounded or has a bias:
//
//   S_all = sum over all experts of exp(x - max),  S_sel = over the selected
//   topk_weights[t, j] = exp(x_j - max) / S_all                     without, or
//   topk_weights[t, j] = exp(x_j - max) / max(S_sel, clamp * S_all)      with
//                                                               renormalize
//
// Score::kSparsemixer selects top_k = 2 experts, the two largest x, in two
// rounds. The one of a round, m, has the weight exp(0) / sum of exp(x - m)
// over the x with (m - x) / max(|x|, m) <= 2 * jitter_eps; the second round's
// sum leaves out the first expert. It cannot be combined with renormalize,
// weight_of, bias, groups, given_ids, shared_logits or
// select_on_rounded_score.
//
// Sizes: 1 <= top_k <= num_experts, and num_experts + num_shared_experts <
// 2^31. Zero tokens do nothing. No output may overlap another view, except
// given_ids as described there.
//
// Order and ties: the larger key comes first and the smaller index wins ties;
// -0 ties with +0, and NaN ranks below every number. Groups are ranked the
// same way. An expert of a dropped group, with key -inf, is selected only if
// too few other keys are above -inf. The selected experts are always top_k
// different ones.
//
// Special values: a row with a NaN among its x gets NaN (0x7FC00000) for the
// weights of all slots that have a logit. With softmax, experts with x = +inf
// share equally and one with -inf gets 0. A row of only -inf (masked, padded)
// gets weights of 0, and so does softmax of the selected if these are all
// -inf; if its keys are scores, these are 1 / num_experts (softmax), 0
// (sigmoid and sqrt-softplus) or -inf (raw), so that a bias and groups still
// select. A NaN in a bias makes the key NaN, but no weight. A divisor of 0
// gives infinity, or NaN if v is 0, as in the models. kMaxOfSumAndShare with
// a clamp of 0 divides by the sum itself, which raw scores may make negative.
// A token with an invalid bias_index has a bias of 0: its keys are the values
// without the bias, so s with BiasPlace::kScore, even if s ties and x does
// not.
//
// Bits: results do not depend on the batch, threads or, with FMA, the ISA. ids
// are the same on every ISA if keys are x. Sums over all experts run in 32
// lanes (a NaN's share is 0), sums over slots in their order. Weights are
// computed in f32 and rounded once. exp is within 1.5 ulp, sigmoid 2.5,
// sqrt-softplus 2; each is 0 for x <= -87.33655 (softmax: for x - max).
//
// Errors: kInvalidArgument names the argument or option, and nothing is
// written: null data, strides, types and shapes that do not match, sizes
// beyond the address space, overlaps, options out of range, and combinations
// that do not fit (an input without the option it is for, or the reverse; an
// option that this recipe does not use).
//
// It follows moe_router_topk_softmax_f32 (ferrum) and moe_softmax_topk_f32
// (mlx-native), but has no limit on top_k and other results for rows with NaN
// or infinities. Recipes follow transformers.
Status RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
                 const RouteOptions& options = {},
                 Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_ROUTE_H_
