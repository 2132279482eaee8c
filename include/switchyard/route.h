// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The router, which selects experts and computes their weights from logits.

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
  kSigmoid,       // 1 / (1 + exp(-logit)): DeepSeek-V3, GLM, MiniMax
  kSqrtSoftplus,  // sqrt(log(1 + exp(logit))): DeepSeek-V4
  kRaw,           // the logit itself: Granite, gpt-oss, Llama 4
  kSparsemixer,   // two rounds, which RouteTopK() describes: Phi-3.5-MoE
};

// The value to which correction_bias is added. The sum is an expert's key,
// and the experts with the largest keys are selected.
enum class BiasPlace : uint8_t {
  kScore,  // the score: DeepSeek-V3 and most other models
  // The logit, before it becomes a score: Kolibri. With bias_in_weight, this
  // is a bias of the router's matrix product.
  kLogit,
};

// The value from which a selected expert's weight is computed.
enum class WeightOf : uint8_t {
  kScore,              // the expert's score
  kSoftmaxOfSelected,  // softmax over the selected logits: Granite, gpt-oss
  kSigmoidOfSelected,  // sigmoid of the expert's logit: Llama 4, Kolibri
};

// The divisor of the weights with RouteOptions::renormalize. `sum` adds up
// the values of the selected experts, in the order of slots, and with
// shared_logits also the values of the shared experts. `total` adds up the
// values of all experts.
enum class Divisor : uint8_t {
  kMaxOfSumAndShare,  // max(sum, clamp * total)
  kSum,
  kSumPlusEps,
  kMaxOfSumAndEps,
};

// Inputs of RouteTopK(). Only logits are required. Floats are f32, bf16 or f16,
// and every matrix has its own type and stride.
struct RouteInputs {
  ConstAnyMatrix logits;  // [tokens, num_experts] of floats
  // Optional [num_biases, num_experts] of floats: the e_score_correction_bias
  // of DeepSeek-V3. It usually has one row, which is used for every token.
  ConstAnyMatrix correction_bias = {};
  // Optional [tokens, 1] or [1, tokens] of int32, uint32, int64 or uint8: the
  // row of correction_bias that each token uses (DeepSeek-V4.1 has a separate
  // row for images). An index that is not a row of correction_bias is counted
  // as invalid, and gives a bias of 0.
  ConstAnyMatrix bias_index = {};
  // Optional [1, num_experts] of floats: the last step multiplies each weight
  // by its expert's value (Gemma 4).
  ConstAnyMatrix expert_scale = {};
  // Optional [tokens, 1] or [1, tokens] of uint8 (torch.bool): 0 marks a
  // padding token, which gets ids of -1 and weights of 0.
  ConstAnyMatrix token_mask = {};
  // Optional [tokens, top_k] of int32, uint32, int64, uint8 or uint16: these
  // experts are used instead of a selection (hash layers, replay of a
  // record), and the call only computes their weights. given_ids may be the
  // first top_k columns of topk_ids. An id outside [0, num_experts) becomes
  // -1 with weight 0, and is counted as invalid. In uint8, 255 marks a slot
  // without an expert, and in uint16, 65535 does: the slot becomes -1 with
  // weight 0 and is not counted. So uint8 is refused with more than 255
  // experts, and uint16 with more than 65535.
  ConstAnyMatrix given_ids = {};
  // Optional [1, num_experts] of int32: the id that is written to topk_ids
  // for each expert, such as its index on this node. -1 marks an expert on
  // another node; slots with that expert are counted and keep their weights.
  ConstAnyMatrix expert_map = {};
};
// Outputs of RouteTopK().
struct RouteOutputs {
  // [tokens, top_k + num_shared_experts] of int32, uint32 or int64.
  AnyMatrix topk_ids;
  AnyMatrix topk_weights;  // floats in the shape of topk_ids
  // Optional [tokens, 1] or [1, tokens] of floats, with num_zero_experts: for
  // each token, the sum of the weights of its selected zero experts. Combine
  // reads it.
  AnyMatrix identity_weights = {};
  // Optional. The call sets report->invalid_ids (for given_ids and
  // bias_index) and report->elsewhere. Padding tokens of token_mask are not
  // counted.
  Report* report = nullptr;
  // Optional [tokens, top_k] of int32, uint32, int64, uint8 (up to 255
  // experts) or uint16 (up to 65535). The call writes the index of the expert
  // in each slot, as selected or given, before expert_map changes it. Zero
  // experts are recorded, too. A slot without an expert has a value with all
  // bits set: 255, 65535 or -1. Slots of padding tokens, and of given ids that
  // become -1, count as slots without an expert.
  //
  // In a record [tokens, layers, top_k] of several layers, the rows of a
  // layer start layers * top_k elements apart, the first one at element
  // layer * top_k.
  //
  // Replay: a later call gets the record, or any rows of it, as given_ids.
  // With equal logits, inputs and options, it computes equal topk_ids, and
  // topk_weights with the same bits. The call refuses given_ids together with
  // options and inputs that only affect the selection, so a replay sets
  // num_expert_group to 1, topk_group to 0 and select_on_rounded_score to
  // false, and gets correction_bias and bias_index only with bias_in_weight.
  // kSparsemixer has no replay.
  AnyMatrix record = {};
};
// Options of RouteTopK(). The comment on RouteTopK() describes the steps that
// the options change.
struct RouteOptions {
  // Divide the selected weights by their sum (Hugging Face: norm_topk_prob).
  bool renormalize = true;
  // A lower bound for the sum that `renormalize` divides by, as a share of
  // the sum over all experts, in [0, 1]; 0 means no bound. llama.cpp and the
  // Metal kernels that follow it use 2^-14. Only kMaxOfSumAndShare uses
  // clamp. With softmax it has an effect only if it is above top_k /
  // num_experts, because the top_k largest scores have at least that share of
  // the sum.
  float clamp = 0x1p-14f;
  Score score = Score::kSoftmax;  // how a logit becomes a score
  // The divisor of the weights, with renormalize.
  Divisor divisor = Divisor::kMaxOfSumAndShare;
  float eps = 0.0f;  // >= 0, for kSumPlusEps and kMaxOfSumAndEps
  // If the divisor is 0, make weights 0 instead of infinite or NaN.
  bool zero_sum_is_zero = false;
  WeightOf weight_of = WeightOf::kScore;     // the value that becomes a weight
  BiasPlace bias_place = BiasPlace::kScore;  // the value that gets the bias
  // Add the bias to the weight, too, not only to the key. Needs
  // correction_bias. With BiasPlace::kScore it also needs WeightOf::kScore.
  bool bias_in_weight = false;
  // Select by the rounded score, as PyTorch code does, even if scores are
  // equal although their logits differ (an f32 sigmoid is 1 for every logit
  // from 16.6 on).
  bool select_on_rounded_score = false;
  // Multiplies weights after the division.
  float routed_scaling_factor = 1.0f;

  // A factor of logits, not 0. The call first replaces every logit by
  // logit_softcap * tanh(logit * logit_scale / logit_softcap), and clips the
  // result to [-logit_clip, logit_clip]. A logit_softcap of 0 leaves out the
  // tanh, and a logit_clip of 0 leaves out the clipping.
  float logit_scale = 1.0f;
  float logit_softcap = 0.0f;  // the bound of the tanh; 0: none
  float logit_clip = 0.0f;     // the largest magnitude of a logit; 0: none

  // The number of groups, which have num_experts / num_expert_group experts
  // each. 0 or 1 means no groups. Experts are selected from the topk_group
  // groups with the largest scores. A group's score is the sum of its
  // group_score_of largest keys (DeepSeek-V3: 2; DeepSeek-V2: 1, the
  // maximum). The other groups are dropped: their experts get the key -inf,
  // or 0 with dropped_key_is_zero. Such a 0 is above negative keys.
  size_t num_expert_group = 0;
  size_t topk_group = 0;             // the number of groups to select from
  size_t group_score_of = 2;         // the number of keys in a group's score
  bool dropped_key_is_zero = false;  // the key of other groups is 0, not -inf

  // The number of zero experts, which compute nothing. They are the last ones
  // of num_experts. If a zero expert is selected, its weight is added to
  // identity_weights (LongCat's identity experts), and its slot gets id -1
  // and weight 0. ZAYA's skip expert needs no identity_weights.
  size_t num_zero_experts = 0;
  // The number of shared experts, which every token passes through. They get
  // the last slots of a row, with ids num_experts, num_experts + 1, ... and
  // the weight shared_weight. With shared_logits (Inkling), `logits` has a
  // column for each shared expert after the columns of the experts. Shared
  // experts do not take part in the selection, but their scores are divided
  // and scaled together with the scores of the selected experts.
  size_t num_shared_experts = 0;
  float shared_weight = 1.0f;  // each shared expert's weight
  bool shared_logits = false;  // logits have columns for the shared experts

  // f32, bf16 or f16: the score, the sum, the quotient and the scaled weight
  // are each rounded to this type, as in a model of that type. (The key is
  // the rounded score plus the bias, in f32.)
  Type round_to = Type::kF32;

  float jitter_eps = 0.01f;  // >= 0, for Score::kSparsemixer

  // Presets set these, and RouteTopK then refuses a call that lacks a part of
  // the model's recipe: correction_bias (unless given_ids are given and
  // weights have no bias), expert_scale, num_expert_group (1 if the
  // checkpoint has no groups), or a call of ApplyConfig() with the
  // checkpoint's config.json.
  bool needs_correction_bias = false;
  bool needs_expert_scale = false;
  bool needs_groups = false;
  bool needs_config = false;
};

// Selects for each token the top_k experts with the largest keys, best first,
// and computes their weights. The defaults are softmax-top-k. presets.h has
// the options of many models.
//
// For each expert:
//   x = clip(softcap * tanh(logit * logit_scale / softcap)),
//       plus the bias with BiasPlace::kLogit and bias_in_weight;
//   s = score(x), for softmax exp(x - max) / sum over all of exp(x - max),
//       rounded to round_to;
//   key = x; with a correction_bias, s + bias, or x + bias with
//       BiasPlace::kLogit; with groups or select_on_rounded_score, s;
//       in a dropped group, -inf or 0.
// For each selected expert:
//   v = s, the softmax of x over the selected experts, or sigmoid(x), as
//       weight_of says; with BiasPlace::kScore and bias_in_weight, s + bias;
//   topk_weights = v / divisor * routed_scaling_factor * expert_scale[id]
//
// Selection compares x, not s, if s grows with x and no option needs s. If
// two logits round to the same score, other routers pick by index, but
// RouteTopK picks the larger logit. Weights of kSoftmaxOfSelected are divided
// by their own sum only, with or without `renormalize`. With renormalize and
// kSum or kMaxOfSumAndShare, softmax skips the division by the sum over all
// experts, unless a step is rounded or has a bias. With softmax, and with the
// defaults of all options but renormalize, the weight of the expert in slot j
// is:
//
//   S_all = the sum of exp(x - max) over all experts,
//   S_sel = the same sum over the selected experts.
//   Without renormalize:
//     topk_weights[t, j] = exp(x_j - max) / S_all
//   With renormalize:
//     topk_weights[t, j] = exp(x_j - max) / max(S_sel, clamp * S_all)
//
// Score::kSparsemixer selects the two experts with the largest x, in two
// rounds; top_k must be 2. Let m be the x of the expert that a round selects.
// Its weight is exp(0) / sum of exp(x - m), over all x with (m - x) /
// max(|x|, m) <= 2 * jitter_eps. The sum of the second round leaves out the
// first expert. kSparsemixer cannot be combined with renormalize, weight_of,
// bias, groups, given_ids, shared_logits or select_on_rounded_score.
//
// Sizes: 1 <= top_k <= num_experts, and num_experts + num_shared_experts <
// 2^31. With zero tokens the call does nothing. No output may overlap another
// view, except that topk_ids may overlap given_ids as RouteInputs describes.
//
// Order and ties: the larger key comes first and the smaller index wins ties;
// -0 ties with +0, and NaN ranks below every number. Groups are ranked in the
// same way. An expert of a dropped group has the key -inf, so it is selected
// only if fewer than top_k other keys are above -inf. The selected experts
// are always top_k different ones.
//
// Special values:
// * If an x of a row is NaN, all slots of the row that have a logit get the
//   weight NaN (0x7FC00000).
// * With softmax, experts with x = +inf share the weight equally, and an
//   expert with x = -inf gets 0.
// * If all x of a row are -inf (masked, padded), weights are 0. With
//   kSoftmaxOfSelected, weights are also 0 if all selected x are -inf. If
//   keys are scores, the scores of such a row are 1 / num_experts (softmax),
//   0 (sigmoid and sqrt-softplus) or -inf (raw), so that a bias and groups
//   still select.
// * A NaN in a bias makes the key NaN, but not the weight, except with
//   bias_in_weight.
// * A divisor of 0 gives infinity, or NaN if v is 0, as in the models.
// * kMaxOfSumAndShare with a clamp of 0 divides by the sum itself, which may
//   be negative with raw scores.
// * A token with an invalid bias_index has a bias of 0, so its keys are the
//   values without the bias. With BiasPlace::kScore these keys are s, even if
//   s has ties and x does not.
//
// Bits: results do not depend on the batch, on threads or, among ISAs with
// FMA, on the ISA. If keys are x, ids are the same on every ISA. Sums over
// all experts run in 32 lanes (a NaN counts as 0), and sums over slots in the
// order of slots. Weights are computed in f32 and rounded once. exp is within
// 1.5 ulp, sigmoid within 2.5, sqrt-softplus within 2; each is 0 for x <=
// -87.33655 (softmax: for x - max).
//
// Errors: kInvalidArgument names the argument or option, and nothing is
// written: null data, strides, types and shapes that do not match, sizes
// beyond the address space, overlaps, options out of range, an input without
// the option that needs it, an option without its input, and an option that
// has no effect with the other options.
//
// The function follows moe_router_topk_softmax_f32 (ferrum) and
// moe_softmax_topk_f32 (mlx-native), but has no limit on top_k and gives
// other results for rows with NaN or infinities. The options follow
// transformers.
Status RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
                 const RouteOptions& options = {},
                 Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_ROUTE_H_
