// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The table of RouteTopK. See call.h.

#ifndef SWITCHYARD_SRC_CALLS_ROUTE_H_
#define SWITCHYARD_SRC_CALLS_ROUTE_H_

#include <cfloat>

#include "src/base/view_checks.h"
#include "src/calls/call.h"
#include "src/calls/names.h"
#include "switchyard/route.h"

namespace switchyard::calls {

struct RouteSizes {
  size_t tokens, num_experts, top_k;
  size_t num_shared, shared_columns;  // columns in topk_ids, and in logits
};
struct RouteCall
    : CallBase<RouteInputs, RouteOutputs, RouteOptions, RouteSizes,
               swy_route_inputs, swy_route_outputs, swy_route_options> {
  static constexpr const char* kName = "RouteTopK";
  static constexpr Size<Sizes> kSizes[] = {
      {"tokens", &Sizes::tokens},
      {"num_experts", &Sizes::num_experts},
      {"top_k", &Sizes::top_k},
      {"num_shared", &Sizes::num_shared, true},
      {"shared_columns", &Sizes::shared_columns, true}};
  static Sizes Measure(const Inputs& in, const Outputs& out,
                       const Options& options) {
    const size_t shared = options.num_shared_experts,
                 columns = options.shared_logits ? shared : 0;
    return {in.logits.rows, in.logits.cols - columns,
            out.topk_ids.cols - shared, shared, columns};
  }
  // given_ids may be the first top_k columns of topk_ids.
  static bool IsInPlace(const AnyMatrix& ids, const ConstAnyMatrix& given,
                        const Args& c) {
    return internal::SameView(ids.ColRange(0, c.sizes.top_k), given);
  }
  static constexpr Shape kSlots = {
      "[tokens, top_k + num_shared]", {}, "is not [tokens, top_k]"};
  static constexpr Shape kPerToken = {"[tokens, 1] or [1, tokens]"};

  static constexpr Argument kInputs[] = {
      {INPUT(logits),
       kFloats,
       {{"[tokens, num_experts + shared_columns]",
         {},
         "is not [tokens, num_experts]"}}},
      {INPUT(correction_bias), kFloats, {}, kRare},
      {INPUT(bias_index), kIdsOrU8, {kPerToken}, kRare},
      {INPUT(expert_scale), kFloats, {{"[1, num_experts]"}}, kRare},
      {INPUT(token_mask), kU8, {kPerToken}, kRare},
      {INPUT(given_ids),
       kAnyIds,
       {{"[tokens, top_k]"}},
       kRare,
       0,
       {},
       "topk_ids"},
      {INPUT(expert_map), kI32, {{"[1, num_experts]"}}, kRare}};
  static constexpr Argument kOutputs[] = {
      {OUTPUT(topk_ids), kIds, {kSlots}},
      {OUTPUT(topk_weights), kFloats, {kSlots}},
      {OUTPUT(identity_weights), kFloats, {kPerToken}, kRare},
      {OUTPUT(report), {}, {}, kRare},
      {OUTPUT(record), kAnyIds, {{"[tokens, top_k]"}}, kRare}};

  static constexpr Range kNotNegative =
      UpTo(FLT_MAX, " is negative or not a finite number");
  static constexpr Range kNumber = {Range::kFinite, 0, 0, 0,
                                    " is not a finite number"};
  static constexpr Option kOptions[] = {
      {OPTION(renormalize), kAnyValue, true},
      {OPTION(clamp), UpTo(1.0f, " is not in [0, 1]"), true},
      {OPTION(score), OneOf<Score>(" is not a known Score")},
      {OPTION(divisor), OneOf<Divisor>(" is not a known Divisor")},
      {OPTION(eps), kNotNegative},
      {OPTION(zero_sum_is_zero)},
      {OPTION(weight_of), OneOf<WeightOf>(" is not a known WeightOf")},
      {OPTION(bias_place), OneOf<BiasPlace>(" is not a known BiasPlace")},
      {OPTION(bias_in_weight)},
      {OPTION(select_on_rounded_score)},
      {OPTION(routed_scaling_factor), kNumber},
      {OPTION(logit_scale),
       {Range::kFiniteNotZero, 0, 0, 0, " is 0 or not a finite number"}},
      {OPTION(logit_softcap), kNotNegative},
      {OPTION(logit_clip), kNotNegative},
      {OPTION(num_expert_group)},
      {OPTION(topk_group)},
      {OPTION(group_score_of), kAnyValue, true},
      {OPTION(dropped_key_is_zero), kAnyValue, true},
      {OPTION(num_zero_experts)},
      {OPTION(num_shared_experts)},
      {OPTION(shared_weight), kNumber},
      {OPTION(shared_logits)},
      {OPTION(round_to),
       OneOf<Type>(" is not f32, bf16 or f16",
                   Values(Type::kF32, Type::kBF16, Type::kF16))},
      {OPTION(jitter_eps), kNotNegative},
      {OPTION(needs_correction_bias)},
      {OPTION(needs_expert_scale)},
      {OPTION(needs_groups)},
      {OPTION(needs_config)}};

  static bool HasBias(const Args& c) {
    return internal::Given(c.in.correction_bias);
  }
  static bool HasIds(const Args& c) { return internal::Given(c.in.given_ids); }
  // True if the type of `ids` has a value for each expert, and one more as the
  // mark for "no expert".
  template <class M>
  static bool HasRoomForIds(const M& ids, const Args& c) {
    return c.sizes.num_experts <= (ids.type == Type::kU8    ? UINT8_MAX
                                   : ids.type == Type::kU16 ? UINT16_MAX
                                                            : INT32_MAX);
  }
  static bool HasGroups(const Args& c) {
    return c.options.num_expert_group > 1;
  }
  static bool IsOnScore(const Args& c) {
    return internal::IsOnScore(c.options.bias_place);
  }
  static bool IsSparsemixer(const Args& c) {
    return c.options.score == Score::kSparsemixer;
  }
  static constexpr auto kFirst = Rule<Args>::kBeforeShapes;
  static constexpr auto kSpecial = Rule<Args>::kSpecial;
  static constexpr auto kFirstSpecial = Rule<Args>::kSpecialBeforeShapes;
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) {
         return c.sizes.shared_columns == 0 ||
                c.sizes.shared_columns < c.in.logits.cols;
       },
       "options: shared_logits: logits has only the shared experts' columns",
       kFirstSpecial},
      {[](const Args& c) {
         return c.sizes.num_experts <= INT32_MAX &&
                c.sizes.num_shared <= INT32_MAX - c.sizes.num_experts;
       },
       "logits: more than 2^31 - 1 experts", kFirstSpecial},
      {[](const Args& c) { return c.out.topk_ids.cols > c.sizes.num_shared; },
       "topk_ids: top_k (cols) is 0", kFirst},
      {[](const Args& c) {
         return c.sizes.top_k <= c.sizes.num_experts ||
                !internal::Given(c.in.logits);
       },
       "topk_ids: top_k (cols) exceeds the experts", kFirst},
      {[](const Args& c) {
         const ConstAnyMatrix& bias = c.in.correction_bias;
         return !HasBias(c) ||
                (bias.cols == c.sizes.num_experts &&
                 (bias.rows == 1 || internal::Given(c.in.bias_index)));
       },
       "correction_bias: is not [1, num_experts], nor [num_biases, "
       "num_experts] "
       "with bias_index",
       kSpecial},
      {[](const Args& c) {
         return !HasBias(c) || c.in.correction_bias.rows != 0;
       },
       "correction_bias: has no rows", kSpecial},
      {[](const Args& c) {
         return !internal::Given(c.in.bias_index) || HasBias(c);
       },
       "bias_index: given without correction_bias", kFirstSpecial},
      {[](const Args& c) {
         return !internal::Given(c.out.identity_weights) ||
                c.options.num_zero_experts != 0;
       },
       "identity_weights: given without num_zero_experts", kSpecial},
      {[](const Args& c) {
         return internal::IsUpTo(0.0f, c.options.eps) ||
                internal::TakesEps(c.options.divisor);
       },
       "options: eps: this divisor has no eps", kSpecial},
      {[](const Args& c) { return !c.options.needs_config; },
       "options: needs_config: call ApplyConfig for the preset first",
       kSpecial},
      {[](const Args& c) {
         return !c.options.needs_correction_bias || HasBias(c) ||
                (HasIds(c) && !c.options.bias_in_weight);
       },
       "correction_bias: not given, but the options need it", kSpecial},
      {[](const Args& c) {
         return !c.options.needs_expert_scale ||
                internal::Given(c.in.expert_scale);
       },
       "expert_scale: not given, but the options need it", kSpecial},
      {[](const Args& c) {
         return !c.options.needs_groups || c.options.num_expert_group != 0;
       },
       "options: num_expert_group is 0, but the options need groups (1: none)",
       kSpecial},
      {[](const Args& c) {
         return !HasGroups(c) ||
                (c.options.num_expert_group <= c.sizes.num_experts &&
                 c.sizes.num_experts % c.options.num_expert_group == 0);
       },
       "options: num_expert_group does not divide the experts", kSpecial},
      {[](const Args& c) { return !HasGroups(c) || c.options.topk_group != 0; },
       "options: topk_group is 0", kSpecial},
      {[](const Args& c) {
         return c.options.topk_group <=
                (HasGroups(c) ? c.options.num_expert_group : 1);
       },
       "options: topk_group exceeds num_expert_group", kSpecial},
      {[](const Args& c) {
         return !HasGroups(c) || c.options.group_score_of != 0;
       },
       "options: group_score_of is 0", kSpecial},
      {[](const Args& c) {
         return !HasGroups(c) ||
                c.options.group_score_of <=
                    c.sizes.num_experts / c.options.num_expert_group;
       },
       "options: group_score_of exceeds the experts of a group", kSpecial},
      {[](const Args& c) {
         return c.options.num_zero_experts == 0 ||
                c.options.num_zero_experts < c.sizes.num_experts;
       },
       "options: num_zero_experts: every expert is a zero expert", kSpecial},
      {[](const Args& c) {
         return !c.options.shared_logits || c.options.num_shared_experts != 0;
       },
       "options: shared_logits without num_shared_experts", kSpecial},
      {[](const Args& c) {
         return internal::SameBits(c.options.shared_weight, 1.0f) ||
                (c.options.num_shared_experts != 0 && !c.options.shared_logits);
       },
       "options: shared_weight: has no effect without num_shared_experts, or "
       "with shared_logits",
       kSpecial},
      {[](const Args& c) { return !c.options.bias_in_weight || HasBias(c); },
       "correction_bias: not given, but options.bias_in_weight needs it",
       kSpecial},
      {[](const Args& c) {
         return !(HasBias(c) && c.options.bias_in_weight && IsOnScore(c)) ||
                c.options.weight_of == WeightOf::kScore;
       },
       "options: bias_in_weight: weight_of is not kScore, to which the bias is "
       "added",
       kSpecial},
      {[](const Args& c) {
         return !c.options.select_on_rounded_score || !HasBias(c) ||
                IsOnScore(c) || c.options.bias_in_weight;
       },
       "options: select_on_rounded_score: has no effect with BiasPlace::kLogit",
       kSpecial},
      {[](const Args& c) { return HasRoomForIds(c.in.given_ids, c); },
       "given_ids: uint8 has room for 255 experts, uint16 for 65535", kSpecial},
      {[](const Args& c) { return HasRoomForIds(c.out.record, c); },
       "record: uint8 has room for 255 experts, uint16 for 65535", kSpecial},
      {[](const Args& c) { return !HasIds(c) || !HasGroups(c); },
       "options: num_expert_group: has no effect with given_ids", kSpecial},
      {[](const Args& c) {
         return !HasIds(c) || !c.options.select_on_rounded_score;
       },
       "options: select_on_rounded_score: has no effect with given_ids",
       kSpecial},
      {[](const Args& c) {
         return !HasIds(c) || !internal::Given(c.in.bias_index) ||
                c.options.bias_in_weight;
       },
       "bias_index: given_ids are given, and weights have no bias", kSpecial},
      {[](const Args& c) { return !IsSparsemixer(c) || c.sizes.top_k == 2; },
       "topk_ids: top_k (cols) is not 2, which kSparsemixer needs", kSpecial},
      {[](const Args& c) {
         return !IsSparsemixer(c) || !c.options.renormalize;
       },
       "options: renormalize: kSparsemixer does not renormalise", kSpecial},
      {[](const Args& c) {
         return !IsSparsemixer(c) || c.options.weight_of == WeightOf::kScore;
       },
       "options: weight_of: kSparsemixer computes its own weights", kSpecial},
      {[](const Args& c) {
         return !IsSparsemixer(c) ||
                !(HasGroups(c) || c.options.select_on_rounded_score ||
                  c.options.shared_logits || HasBias(c) || HasIds(c));
       },
       "options: score: kSparsemixer cannot be combined with a bias, groups, "
       "given_ids, shared_logits or select_on_rounded_score",
       kSpecial}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_ROUTE_H_
