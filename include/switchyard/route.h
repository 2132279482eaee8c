// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

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
  // Phi-3.5-MoE: top_k rounds (two), each the largest logit, with a softmax
  // over what is near to it: see RouteOptions::jitter_eps.
  kSparsemixer,
};

// What correction_bias is added to, to make the key that experts are selected
// by. A weight is made of the score without it, unless bias_in_weight says so.
enum class BiasPlace : uint8_t {
  kScore,  // DeepSeek-V3 and most others
  kLogit,  // Kolibri; with bias_in_weight a bias of the router's matmul
};

// What a selected expert's weight is made of.
enum class WeightOf : uint8_t {
  kScore,              // its score
  kSoftmaxOfSelected,  // softmax over the selected logits: Granite, gpt-oss
  kSigmoidOfSelected,  // sigmoid of its logit: Llama 4, Kolibri
};

// By what weights are divided with RouteOptions::renormalize; sum is that of
// the selected, in slot order, and of shared experts' with shared_logits.
enum class Divisor : uint8_t {
  // max(sum, clamp * sum over all experts); with a clamp of 0 the sum itself,
  // which raw scores may make negative.
  kMaxOfSumAndShare,
  kSum,
  kSumPlusEps,
  kMaxOfSumAndEps,
};

struct RouteInputs {
  ConstAnyMatrix logits;  // [tokens, num_experts]
  // Optional [num_biases, num_experts], mostly one row, for every token: the
  // e_score_correction_bias of DeepSeek-V3.
  ConstAnyMatrix correction_bias = {};
  // Optional [tokens, 1] or [1, tokens]: each token's row of correction_bias
  // (DeepSeek-V4.1's images have a bias of their own).
  ConstAnyMatrix bias_index = {};
  // Optional [1, num_experts], by which weights are multiplied last: Gemma 4.
  ConstAnyMatrix expert_scale = {};
  // Optional [tokens, 1] or [1, tokens] of u8 (torch.bool): 0 marks padding,
  // whose ids are -1 and weights 0.
  ConstAnyMatrix token_mask = {};
  // Optional [tokens, top_k]: the experts are these (hash layers, replay), and
  // only their weights are computed, as if they had been selected. May be
  // topk_ids itself. An id outside [0, num_experts) becomes -1, weight 0, and
  // is counted.
  ConstAnyMatrix given_ids = {};
  // Optional int32 [1, num_experts]: what topk_ids has in the place of each
  // expert's id, such as its index on this node. -1: it is elsewhere; counted,
  // and the weight is kept.
  ConstAnyMatrix expert_map = {};
};
struct RouteOutputs {
  AnyMatrix topk_ids;      // [tokens, top_k + num_shared_experts]
  AnyMatrix topk_weights;  // the same
  // Optional [tokens, 1] or [1, tokens]: the sum of the weights of the selected
  // among num_zero_experts, for Combine.
  AnyMatrix identity_weights = {};
  Report* report = nullptr;  // sets invalid_ids and elsewhere
};
struct RouteOptions {
  // Divide the selected weights by their sum (Hugging Face: norm_topk_prob).
  bool renormalize = true;
  // Lower bound of that sum, as a share of the softmax sum over all experts;
  // 2^-14 in llama.cpp and the Metal kernels that follow it. Only matters with
  // `renormalize` and Divisor::kMaxOfSumAndShare; with softmax only where
  // clamp > top_k / num_experts: the sum of the top_k largest is never below
  // that. 0 <= clamp <= 1; 0 is no bound.
  float clamp = 0x1p-14f;
  Score score = Score::kSoftmax;
  Divisor divisor = Divisor::kMaxOfSumAndShare;
  float eps = 0.0f;  // of kSumPlusEps and kMaxOfSumAndEps, >= 0
  // Weights are 0, not infinite or NaN, where the divisor is 0.
  bool zero_sum_is_zero = false;
  WeightOf weight_of = WeightOf::kScore;
  BiasPlace bias_place = BiasPlace::kScore;
  bool bias_in_weight = false;
  // Select by the score as it is rounded, as PyTorch code does, even where the
  // logit would tell more (an f32 sigmoid is 1 from 16.6 on).
  bool select_on_rounded_score = false;
  // By which weights are multiplied after the division.
  float routed_scaling_factor = 1.0f;

  // The logit that all else sees: clip(softcap * tanh(l * logit_scale /
  // softcap)), with clip to [-logit_clip, logit_clip]. 0: no soft-cap, no clip.
  float logit_scale = 1.0f;
  float logit_softcap = 0.0f;
  float logit_clip = 0.0f;

  // Groups of num_experts / num_expert_group experts, of which only those with
  // the topk_group largest group scores take part: a group's score is the sum
  // of its group_score_of largest keys (DeepSeek-V3: 2; DeepSeek-V2: 1, the
  // maximum). 0 or 1 groups: none. The key of an expert of another group is
  // -inf, or 0 with dropped_key_is_zero (then it beats negative keys).
  size_t num_expert_group = 0;
  size_t topk_group = 0;
  size_t group_score_of = 2;
  bool dropped_key_is_zero = false;

  // The last of the num_experts that compute nothing: their weight goes to
  // identity_weights, their slots get id -1, weight 0. LongCat's identity
  // experts; ZAYA's skip expert, whose weight is not asked for.
  size_t num_zero_experts = 0;
  // Experts that every token passes through, in the last slots of a row: ids
  // num_experts, num_experts + 1, ... and weight shared_weight. With
  // shared_logits (Inkling) logits has a column for each behind the experts';
  // they are not selected, but their scores are divided and scaled with the
  // others.
  size_t num_shared_experts = 0;
  float shared_weight = 1.0f;
  bool shared_logits = false;

  // Each step of score, sum, quotient and scale is rounded to this type, as the
  // operations of a model of that type would: f32, bf16 or f16. (The key is the
  // rounded score plus the bias, in f32.)
  Type round_to = Type::kF32;

  float jitter_eps = 0.01f;  // of Score::kSparsemixer

  // Presets set these, so that a recipe is not run without what belongs to it:
  // RouteTopK refuses a call without correction_bias (unless the experts are
  // given and no weight has a bias), without expert_scale, with a
  // num_expert_group of 0 (1 says that there are none), or with a preset whose
  // config.json ApplyConfig() has not seen.
  bool needs_correction_bias = false;
  bool needs_expert_scale = false;
  bool needs_groups = false;
  bool needs_config = false;
};

// For each token the top_k experts with the largest keys, best first, and their
// weights; by default softmax-top-k routing. presets.h has the options of many
// models.
//
//   x = clip(softcap * tanh(logit * logit_scale / softcap))    for each expert,
//       plus the bias with BiasPlace::kLogit and bias_in_weight;
//   s = score(x), of softmax exp(x - max) / sum over all of exp(x - max),
//       rounded to round_to;
//   key = x; with a bias s + bias, or x + bias with BiasPlace::kLogit; with
//       groups, or select_on_rounded_score, s; -inf or 0 in a dropped group;
//   v = s, softmax over the selected of x, or sigmoid(x)   for the selected,
//       s + bias with BiasPlace::kScore and bias_in_weight;
//   topk_weights = v / divisor * routed_scaling_factor * expert_scale[id]
//
// Selection is on x wherever s grows with it and nothing of the above needs s:
// where two different logits round to the same score (or both underflow to 0),
// other routers pick by index and this picks the larger logit.
// Sums are over all columns of logits in 32 lanes, and over slots in their
// order; a NaN's share of the former is 0. Softmax of the selected is divided
// by its own sum and nothing else, whatever `renormalize` says. Softmax divided
// by Divisor::kSum or kMaxOfSumAndShare is never divided by the sum over all
// experts, unless a step is rounded or has a bias:
//
//   S_all = sum over all experts of exp(x - max),  S_sel = over the selected
//   topk_weights[t, j] = exp(x_j - max) / S_all                     without, or
//   topk_weights[t, j] = exp(x_j - max) / max(S_sel, clamp * S_all)      with
//                                                               renormalize
//
// Score::kSparsemixer: of the two largest x, m, each has the weight exp(0) /
// sum of exp(x - m) over the x with (m - x) / max(|x|, m) <= 2 * jitter_eps;
// the first is not among the second's.
//
// Types: logits, correction_bias and expert_scale f32, bf16 or f16;
// topk_weights and identity_weights too, computed in f32 and rounded once;
// topk_ids and given_ids int32, uint32 or int64; bias_index one of these or
// uint8; token_mask uint8; expert_map int32.
// Shapes: as above, each with its own stride; 1 <= top_k <= num_experts, and
// num_experts + num_shared_experts < 2^31, no other limit. Zero tokens do
// nothing. Nothing may overlap an output, but given_ids may be the first top_k
// columns of topk_ids.
// Order: larger key first; the smaller expert index wins ties, -0 ties with +0,
// a NaN ranks below every number. So do groups by their scores; an expert of a
// dropped group is selected with -inf only if too few others are above that.
// The selected are top_k different experts in [0, num_experts), whatever the
// input, and topk_ids has them unless a mask, given_ids, num_zero_experts or
// expert_map say otherwise.
// Special rows: one with an x that is NaN gets NaN (0x7FC00000) for the weights
// of all its slots that have a logit. Experts with x = +inf share softmax
// equally, one of -inf gets 0. A row of only -inf (masked, padded) gets weights
// 0, and so does softmax of the selected where these are all -inf. Its keys,
// where they are scores, are made of softmax's 1 / num_experts for each expert,
// 0 of sigmoid and sqrt-softplus, -inf of raw: a bias and groups select as
// elsewhere, and among equal keys the index. A NaN in a bias that is for
// selection makes the key NaN, no weight. A divisor of 0 gives what a division
// by 0 does, as in the models: an infinity, or NaN where v is 0; or 0 with
// zero_sum_is_zero. A bias_index without a row of correction_bias is counted as
// invalid, and its token has a bias of 0: its keys are what a bias is added to,
// s with BiasPlace::kScore even where s ties and x does not.
// report: invalid_ids is the number of given ids outside [0, num_experts) and
// of such bias_index; elsewhere that of selected experts that expert_map has as
// -1. Neither counts masked tokens. Accuracy: exp within 1.5 ulp, sigmoid 2.5,
// sqrt-softplus 2, each of them 0 for x <= -87.33655 (of softmax, for x - max);
// the bits do not depend on batch size, threads or, where it has FMA, the ISA.
// ids are the same on every ISA where keys are x, and on those with FMA where
// they are scores. Errors: kInvalidArgument for null data, strides, shapes and
// types that do not match, top_k of 0 or above num_experts, an overlap, a view
// larger than the address space; for options outside their enumeration or range
// (clamp in [0, 1], other numbers finite; eps, logit_softcap, logit_clip,
// jitter_eps >= 0; logit_scale not 0; round_to a float type); and for what does
// not go together: bias_index without correction_bias, several biases without
// bias_index, eps with a divisor without, groups that do not divide the
// experts, topk_group of 0 or above num_expert_group, group_score_of above the
// experts of a group, num_zero_experts that leave no other, identity_weights
// without them, shared_logits without shared experts, shared_weight without
// them or with shared_logits, bias_in_weight where the weight is not that
// score, select_on_rounded_score with a bias on the logit alone, given_ids with
// groups, select_on_rounded_score or a bias_index that no weight needs,
// kSparsemixer with top_k other than 2, renormalize, weight_of or any of bias,
// groups, given_ids, shared_logits, select_on_rounded_score; and for options
// that need a correction_bias, an expert_scale, groups or a configuration that
// they have not got. Nothing written.
//
// From moe_router_topk_softmax_f32 (ferrum) and moe_softmax_topk_f32
// (mlx-native), without their limits on top_k and their output on rows with
// NaN or infinities; recipes as transformers computes them.
Status RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
                 const RouteOptions& options = {},
                 Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_ROUTE_H_
