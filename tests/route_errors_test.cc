// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What RouteTopK refuses of its optional inputs and its options. (Errors of the
// others: route_test.cc.)

#include "switchyard/route.h"
#include "testing/route_scores.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {
namespace {

constexpr size_t kTokens = 4, kExperts = 8, kTopK = 2;

class RouteRecipeErrors
    : public CallErrors<RouteInputs, RouteOutputs, RouteOptions> {
 protected:
  RouteRecipeErrors()
      : CallErrors("RouteTopK", RouteTopK),
        ids_(kTokens, kTopK),
        weights_(kTokens, kTopK),
        identity_(kTokens, 1) {
    call_.in.logits = {logits_.data(), kTokens, kExperts};
    call_.in.correction_bias = {bias_.data(), 2, kExperts};
    call_.in.bias_index = {index_.data(), kTokens, 1};
    call_.in.expert_scale = {bias_.data(), 1, kExperts};
    call_.in.token_mask = {mask_.data(), kTokens, 1};
    call_.in.expert_map = {map_.data(), 1, kExperts};
    call_.out = {ids_.view(), weights_.view(), identity_.view(), &report_};
    call_.options.score = Score::kSigmoid;
    call_.options.num_expert_group = 4;
    call_.options.topk_group = 2;
    call_.options.num_zero_experts = 1;
  }
  // The same with given ids, and without what is refused with them.
  static void Give(Call& c, const std::vector<int32_t>& given) {
    c.in.given_ids = {given.data(), kTokens, kTopK};
    c.in.bias_index = {};
    c.in.correction_bias = {};
    c.options.num_expert_group = c.options.topk_group = 0;
  }
  static void Mix(Call& c) {
    c.options.score = Score::kSparsemixer;
    c.options.renormalize = false;
    c.options.num_expert_group = c.options.topk_group = 0;
    c.in.correction_bias = c.in.bias_index = {};
  }
  void ExpectUntouched() const override {
    ids_.ExpectUntouched("topk_ids");
    weights_.ExpectUntouched("topk_weights");
    identity_.ExpectUntouched("identity_weights");
  }

  const std::vector<float> logits_ = std::vector<float>(64, 1.0f);
  const std::vector<float> bias_ = std::vector<float>(64, 0.5f);
  const std::vector<int32_t> index_ = {0, 1, 0, 1};
  const std::vector<uint8_t> mask_ = {1, 0, 1, 1};
  const std::vector<int32_t> map_ = {0, 1, 2, 3, -1, -1, -1, -1};
  const std::vector<int32_t> given_ = {0, 1, 2, 3, 4, 5, 6, 7};
  const Guarded<int64_t> ids_;
  const Guarded<float> weights_;
  const Guarded<float> identity_;
};

TEST_F(RouteRecipeErrors, ValidAreTheCallsThatAreSpoilt) {
  std::vector<int32_t> ids(kTokens * kTopK);
  std::vector<float> weights(kTokens * kTopK), identity(kTokens);
  Report report;
  for (int kind = 0; kind < 3; ++kind) {
    Call c = call_;
    c.out = {{ids.data(), kTokens, kTopK},
             {weights.data(), kTokens, kTopK},
             {identity.data(), kTokens, 1},
             &report};
    if (kind == 1) Give(c, given_);
    if (kind == 2) Mix(c);
    EXPECT_OK(Run(c)) << kind;
  }
}

TEST_F(RouteRecipeErrors, Views) {
  ExpectViewErrors("logits", [](Call& c) { return &c.in.logits; });
  ExpectViewErrors("correction_bias",
                   [](Call& c) { return &c.in.correction_bias; });
  ExpectViewErrors("expert_scale", [](Call& c) { return &c.in.expert_scale; });
  ExpectViewErrors(
      "expert_map", [](Call& c) { return &c.in.expert_map; }, kTakesI32);
  ExpectViewErrors("token_mask", [](Call& c) { return &c.in.token_mask; },
                   {{Type::kU8}, "uint8"});
  ExpectViewErrors("bias_index", [](Call& c) { return &c.in.bias_index; },
                   {{Type::kI32, Type::kU32, Type::kI64, Type::kU8},
                    "int32, uint32, int64 or uint8"});
  ExpectViewErrors("identity_weights",
                   [](Call& c) { return &c.out.identity_weights; });
  ExpectViewErrors("topk_weights", [](Call& c) { return &c.out.topk_weights; });
  ExpectViewErrors(
      "topk_ids", [](Call& c) { return &c.out.topk_ids; }, kTakesIds);
  Give(call_, given_);
  ExpectViewErrors(
      "given_ids", [](Call& c) { return &c.in.given_ids; }, kTakesIds);
}

TEST_F(RouteRecipeErrors, Shapes) {
  const std::string bias =
      "correction_bias: is not [1, num_experts], nor [num_biases, num_experts] "
      "with bias_index";
  EXPECT_ERROR(bias, c.in.correction_bias.cols = 7);
  EXPECT_ERROR(bias, c.in.bias_index = {});
  EXPECT_ERROR("correction_bias: has no rows", c.in.correction_bias.rows = 0);
  const std::string per_token = ": is not [tokens, 1] or [1, tokens]";
  EXPECT_ERROR("bias_index" + per_token, c.in.bias_index.rows = 3);
  EXPECT_ERROR("bias_index" + per_token,
               c.in.bias_index.cols = c.in.bias_index.stride = 2);
  EXPECT_ERROR("token_mask" + per_token, c.in.token_mask.rows = 3);
  EXPECT_ERROR("token_mask" + per_token,
               c.in.token_mask.cols = c.in.token_mask.stride = 2);
  EXPECT_ERROR("identity_weights" + per_token, c.out.identity_weights.rows = 3);
  EXPECT_ERROR("identity_weights" + per_token,
               c.out.identity_weights.cols = c.out.identity_weights.stride = 2);
  EXPECT_ERROR("bias_index: given without correction_bias",
               c.in.correction_bias = {});
  EXPECT_SIZE_ERRORS("expert_scale: is not [1, num_experts]", c.in.expert_scale,
                     2, 7);
  EXPECT_SIZE_ERRORS("expert_map: is not [1, num_experts]", c.in.expert_map, 2,
                     7);
  EXPECT_SIZE_ERRORS("topk_weights: is not [tokens, top_k]", c.out.topk_weights,
                     3, 1);
  const std::string many = "logits: more than 2^31 - 1 experts";
  EXPECT_ERROR(many, c.in.logits.cols = c.in.logits.stride = size_t{1} << 31);
  EXPECT_ERROR(many, c.options.num_shared_experts = INT32_MAX - 7);
  EXPECT_ERROR("topk_ids: is not [tokens, top_k]", c.out.topk_ids.rows = 3);
  EXPECT_ERROR("topk_ids: top_k (cols) is 0", c.options.num_shared_experts = 2);
  EXPECT_ERROR("topk_ids: top_k (cols) exceeds the experts",
               c.options.num_shared_experts = 7, c.options.shared_logits = true,
               c.out.topk_ids.cols = c.out.topk_ids.stride = 9);
  EXPECT_ERROR("options: shared_logits: logits has no columns but theirs",
               c.options.num_shared_experts = 8, c.options.shared_logits = true,
               c.out.topk_ids.cols = c.out.topk_ids.stride = 10);
  EXPECT_ERROR("identity_weights: given without num_zero_experts",
               c.options.num_zero_experts = 0);
  Give(call_, given_);
  EXPECT_SIZE_ERRORS("given_ids: is not [tokens, top_k]", c.in.given_ids, 3, 1);
}

TEST_F(RouteRecipeErrors, Overlaps) {
  const std::pair<std::string, AnyMatrix RouteOutputs::*> outputs[] = {
      {"topk_ids", &RouteOutputs::topk_ids},
      {"topk_weights", &RouteOutputs::topk_weights},
      {"identity_weights", &RouteOutputs::identity_weights}};
  const std::pair<std::string, ConstAnyMatrix RouteInputs::*> inputs[] = {
      {"logits", &RouteInputs::logits},
      {"correction_bias", &RouteInputs::correction_bias},
      {"bias_index", &RouteInputs::bias_index},
      {"expert_scale", &RouteInputs::expert_scale},
      {"token_mask", &RouteInputs::token_mask},
      {"expert_map", &RouteInputs::expert_map}};
  for (const auto& out : outputs) {
    for (const auto& in : inputs) {
      EXPECT_ERROR(out.first + ": overlaps " + in.first,
                   (c.in.*in.second).data = (c.out.*out.second).data);
    }
  }
  for (size_t second = 1; second < std::size(outputs); ++second) {
    for (size_t first = 0; first < second; ++first) {
      EXPECT_ERROR(outputs[second].first + ": overlaps " + outputs[first].first,
                   (c.out.*outputs[second].second).data =
                       (c.out.*outputs[first].second).data);
    }
  }
  Give(call_, given_);
  EXPECT_ERROR("topk_ids: overlaps given_ids without being the same view",
               c.in.given_ids = {ids_.data() + 1, 3, 2, 2},
               c.in.logits.rows = 3,
               c.in.token_mask.rows = c.out.identity_weights.rows =
                   c.out.topk_ids.rows = c.out.topk_weights.rows = 3);
  for (const size_t i : {1u, 2u}) {
    EXPECT_ERROR(outputs[i].first + ": overlaps given_ids",
                 c.in.given_ids.data = (c.out.*outputs[i].second).data);
  }
}

TEST_F(RouteRecipeErrors, Numbers) {
  const float bad[] = {kInf, -kInf, kNaN};
  for (const float f : bad) {
    EXPECT_ERROR("options: clamp is not in [0, 1]", c.options.clamp = f);
    EXPECT_ERROR("options: eps is negative or not a finite number",
                 c.options.divisor = Divisor::kSumPlusEps, c.options.eps = f);
    EXPECT_ERROR("options: logit_scale is 0 or not a finite number",
                 c.options.logit_scale = f);
    EXPECT_ERROR("options: logit_softcap is negative or not a finite number",
                 c.options.logit_softcap = f);
    EXPECT_ERROR("options: logit_clip is negative or not a finite number",
                 c.options.logit_clip = f);
    EXPECT_ERROR("options: routed_scaling_factor is not a finite number",
                 c.options.routed_scaling_factor = f);
    EXPECT_ERROR("options: shared_weight is not a finite number",
                 c.options.shared_weight = f);
    EXPECT_ERROR("options: jitter_eps is negative or not a finite number",
                 c.options.jitter_eps = f);
  }
  EXPECT_ERROR("options: eps is negative or not a finite number",
               c.options.eps = -1e-20f);
  for (const Divisor d : kDivisors) {
    if (simd::TakesEps(d)) continue;
    EXPECT_ERROR("options: eps: the divisor has none", c.options.eps = 1e-20f,
                 c.options.divisor = d);
  }
  EXPECT_ERROR("options: logit_scale is 0 or not a finite number",
               c.options.logit_scale = -0.0f);
  EXPECT_ERROR("options: logit_softcap is negative or not a finite number",
               c.options.logit_softcap = -1.0f);
  EXPECT_ERROR("options: logit_clip is negative or not a finite number",
               c.options.logit_clip = -1.0f);
  EXPECT_ERROR("options: jitter_eps is negative or not a finite number",
               c.options.jitter_eps = -1.0f);
  EXPECT_ERROR("options: score is not a known Score",
               c.options.score = static_cast<Score>(std::size(kScores)));
  EXPECT_ERROR("options: divisor is not a known Divisor",
               c.options.divisor = static_cast<Divisor>(std::size(kDivisors)));
  EXPECT_ERROR(
      "options: weight_of is not a known WeightOf",
      c.options.weight_of = static_cast<WeightOf>(std::size(kWeightsOf)));
  EXPECT_ERROR(
      "options: bias_place is not a known BiasPlace",
      c.options.bias_place = static_cast<BiasPlace>(std::size(kBiasPlaces)));
  for (const Type type : {Type::kI32, Type::kF8E4M3, Type(99)}) {
    EXPECT_ERROR("options: round_to is not f32, bf16 or f16",
                 c.options.round_to = type);
  }
}

// Every option by itself, on a call that is plain softmax and on one by recipe,
// which look at options in different ways.
TEST_F(RouteRecipeErrors, EveryOptionOfPlainAndOtherCalls) {
  const Call full = call_;
  for (const bool plain : {true, false}) {
    SCOPED_TRACE(plain ? "plain" : "by recipe");
    call_ = {{full.in.logits}, {full.out.topk_ids, full.out.topk_weights}, {}};
    if (!plain) {
      call_.in.token_mask = full.in.token_mask;
      call_.out.report = full.out.report;
    }
    const auto refuse = [&](const std::string& message, auto& option,
                            std::initializer_list<float> values) {
      using T = std::remove_reference_t<decltype(option)>;
      const T valid = option;
      for (const float value : values) {
        option = static_cast<T>(value);
        EXPECT_ERROR("options: " + message, (void)c);
      }
      option = valid;
    };
    const auto accept = [&](auto& option) {
      using T = std::remove_reference_t<decltype(option)>;
      const T valid = option;
      for (const size_t value : {0u, 1u}) {
        option = static_cast<T>(value);
        int32_t ids[kTokens * kTopK];
        float weights[kTokens * kTopK];
        Call c = call_;
        c.out.topk_ids = {ids, kTokens, kTopK};
        c.out.topk_weights = {weights, kTokens, kTopK};
        if (!plain) c.out.report = &report_;
        EXPECT_OK(Run(c));
      }
      report_ = kUnwritten;
      option = valid;
    };
    // All there are: one that is added does not compile until it is here.
    auto& [renormalize, clamp, score, divisor, eps, zero_sum_is_zero, weight_of,
           bias_place, bias_in_weight, select_on_rounded_score,
           routed_scaling_factor, logit_scale, logit_softcap, logit_clip,
           num_expert_group, topk_group, group_score_of, dropped_key_is_zero,
           num_zero_experts, num_shared_experts, shared_weight, shared_logits,
           round_to, jitter_eps, needs_correction_bias, needs_expert_scale,
           needs_groups, needs_config] = call_.options;
    accept(renormalize);
    refuse("clamp is not in [0, 1]", clamp, {-1.0f, 1.5f, kInf, kNaN});
    refuse("score is not a known Score", score,
           {float{std::size(kScores)}, 255});
    refuse("divisor is not a known Divisor", divisor,
           {float{std::size(kDivisors)}, 255});
    refuse("eps is negative or not a finite number", eps, {-1.0f, kInf, kNaN});
    refuse("eps: the divisor has none", eps, {1e-20f});
    accept(zero_sum_is_zero);
    refuse("weight_of is not a known WeightOf", weight_of,
           {float{std::size(kWeightsOf)}, 255});
    refuse("bias_place is not a known BiasPlace", bias_place,
           {float{std::size(kBiasPlaces)}, 255});
    accept(bias_in_weight);
    accept(select_on_rounded_score);
    refuse("routed_scaling_factor is not a finite number",
           routed_scaling_factor, {kInf, -kInf, kNaN});
    refuse("logit_scale is 0 or not a finite number", logit_scale,
           {0.0f, -0.0f, kInf, kNaN});
    refuse("logit_softcap is negative or not a finite number", logit_softcap,
           {-1.0f, kInf, kNaN});
    refuse("logit_clip is negative or not a finite number", logit_clip,
           {-1.0f, kInf, kNaN});
    refuse("num_expert_group does not divide the experts", num_expert_group,
           {3, 16});
    refuse("topk_group exceeds num_expert_group", topk_group, {2});
    accept(group_score_of);  // of groups that there are not
    accept(dropped_key_is_zero);
    refuse("num_zero_experts leaves no other expert", num_zero_experts, {8});
    num_shared_experts = 2;
    EXPECT_ERROR("topk_ids: top_k (cols) is 0", (void)c);
    num_shared_experts = 0;
    refuse("shared_weight is not a finite number", shared_weight,
           {kInf, -kInf, kNaN});
    refuse("shared_weight without shared experts whose weight it is",
           shared_weight, {0.5f});
    refuse("shared_logits without num_shared_experts", shared_logits, {1});
    refuse("round_to is not f32, bf16 or f16", round_to,
           {static_cast<float>(Type::kI32), 99});
    refuse("jitter_eps is negative or not a finite number", jitter_eps,
           {-1.0f, -1e-20f, kInf, kNaN});
    refuse("num_expert_group is 0, and the options need groups (1: none)",
           needs_groups, {1});
    refuse(
        "needs_config: a preset before ApplyConfig has put config.json in the "
        "place of its defaults",
        needs_config, {1});
    needs_correction_bias = true;
    EXPECT_ERROR("correction_bias: is missing, and the options need one",
                 (void)c);
    needs_correction_bias = false;
    needs_expert_scale = true;
    EXPECT_ERROR("expert_scale: is missing, and the options need one", (void)c);
    needs_expert_scale = false;
  }
}

TEST_F(RouteRecipeErrors, Groups) {
  EXPECT_ERROR("options: num_expert_group does not divide the experts",
               c.options.num_expert_group = 3);
  EXPECT_ERROR("options: num_expert_group does not divide the experts",
               c.options.num_expert_group = 16);
  EXPECT_ERROR("options: topk_group is 0", c.options.topk_group = 0);
  EXPECT_ERROR("options: topk_group exceeds num_expert_group",
               c.options.topk_group = 5);
  EXPECT_ERROR("options: topk_group exceeds num_expert_group",
               c.options.num_expert_group = 0);
  EXPECT_ERROR("options: group_score_of is 0", c.options.group_score_of = 0);
  EXPECT_ERROR("options: group_score_of exceeds the experts of a group",
               c.options.group_score_of = 3);
}

TEST_F(RouteRecipeErrors, WhatDoesNotGoTogether) {
  EXPECT_ERROR("options: num_zero_experts leaves no other expert",
               c.options.num_zero_experts = 8);
  EXPECT_ERROR("options: shared_logits without num_shared_experts",
               c.options.shared_logits = true);
  const std::string weight =
      "options: shared_weight without shared experts whose weight it is";
  EXPECT_ERROR(weight, c.options.shared_weight = 0.5f);
  EXPECT_ERROR(
      "options: bias_in_weight: the score that has the bias is not the weight",
      c.options.bias_in_weight = true,
      c.options.weight_of = WeightOf::kSigmoidOfSelected);
  EXPECT_ERROR("options: select_on_rounded_score: the bias is on the logit",
               c.options.select_on_rounded_score = true,
               c.options.bias_place = BiasPlace::kLogit);
  Call groups = call_;
  Give(call_, given_);
  EXPECT_ERROR("options: num_expert_group: with given_ids",
               c.options.num_expert_group = 4, c.options.topk_group = 2);
  EXPECT_ERROR("options: select_on_rounded_score: with given_ids",
               c.options.select_on_rounded_score = true);
  EXPECT_ERROR("bias_index: with given_ids, of which no weight has a bias",
               c.in.bias_index = groups.in.bias_index,
               c.in.correction_bias = groups.in.correction_bias);
}

TEST_F(RouteRecipeErrors, Sparsemixer) {
  Mix(call_);
  EXPECT_ERROR("options: score: kSparsemixer selects two",
               c.out.topk_ids.cols = c.out.topk_weights.cols = 1);
  EXPECT_ERROR("options: renormalize: kSparsemixer's weights are no shares",
               c.options.renormalize = true);
  EXPECT_ERROR("options: weight_of: kSparsemixer has weights of its own",
               c.options.weight_of = WeightOf::kSoftmaxOfSelected);
  const std::string none =
      "options: score: kSparsemixer goes with no bias, groups, given_ids, "
      "shared_logits or select_on_rounded_score";
  EXPECT_ERROR(none, c.in.correction_bias = {bias_.data(), 1, 8});
  EXPECT_ERROR(none, c.options.num_expert_group = 2, c.options.topk_group = 1);
  EXPECT_ERROR(none, c.in.given_ids = {given_.data(), kTokens, kTopK});
  EXPECT_ERROR(none, c.options.select_on_rounded_score = true);
}

TEST_F(RouteRecipeErrors, AnExecutorThatFailsIsReported) {
  ExpectExecutorErrorsAreReported();
}

}  // namespace
}  // namespace switchyard::testing_support
