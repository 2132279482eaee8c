// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Refusals of RouteTopK's optional inputs and its options. (Errors of the
// others: route_test.cc.)

#include "src/calls/route.h"
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

TEST_F(RouteRecipeErrors, EveryLineOfItsTable) {
  ExpectSpoiltCallsAreRefused<calls::RouteCall>();
  Give(call_, given_);
  ExpectSpoiltCallsAreRefused<calls::RouteCall>();
  call_.in = {call_.in.logits};
  call_.out.identity_weights = {};
  call_.options = {};
  ExpectSpoiltCallsAreRefused<calls::RouteCall>();
}

TEST_F(RouteRecipeErrors, Shapes) {
  const std::string bias =
      "correction_bias: is not [1, num_experts], nor [num_biases, num_experts] "
      "with bias_index";
  EXPECT_ERROR(bias, c.in.correction_bias.cols = 7);
  EXPECT_ERROR(bias, c.in.bias_index = {});
  EXPECT_ERROR("correction_bias: has no rows", c.in.correction_bias.rows = 0);
  const std::string per_token = ": is not [tokens, 1] or [1, tokens]";
  EXPECT_ERROR("bias_index" + per_token,
               c.in.bias_index.cols = c.in.bias_index.stride = 2);
  EXPECT_ERROR("token_mask" + per_token,
               c.in.token_mask.cols = c.in.token_mask.stride = 2);
  EXPECT_ERROR("identity_weights" + per_token,
               c.out.identity_weights.cols = c.out.identity_weights.stride = 2);
  EXPECT_ERROR("bias_index: given without correction_bias",
               c.in.correction_bias = {});
  const std::string many = "logits: more than 2^31 - 1 experts";
  EXPECT_ERROR(many, c.in.logits.cols = c.in.logits.stride = size_t{1} << 31);
  EXPECT_ERROR(many, c.options.num_shared_experts = INT32_MAX - 7);
  EXPECT_ERROR("topk_ids: top_k (cols) is 0", c.options.num_shared_experts = 2);
  EXPECT_ERROR("topk_ids: top_k (cols) exceeds the experts",
               c.options.num_shared_experts = 7, c.options.shared_logits = true,
               c.out.topk_ids.cols = c.out.topk_ids.stride = 9);
  EXPECT_ERROR("options: shared_logits: logits has no columns but theirs",
               c.options.num_shared_experts = 8, c.options.shared_logits = true,
               c.out.topk_ids.cols = c.out.topk_ids.stride = 10);
  EXPECT_ERROR("identity_weights: given without num_zero_experts",
               c.options.num_zero_experts = 0);
}

TEST_F(RouteRecipeErrors, Overlaps) {
  Give(call_, given_);
  EXPECT_ERROR("topk_ids: overlaps given_ids without being the same view",
               c.in.given_ids = {ids_.data() + 1, 3, 2, 2},
               c.in.logits.rows = 3,
               c.in.token_mask.rows = c.out.identity_weights.rows =
                   c.out.topk_ids.rows = c.out.topk_weights.rows = 3);
}

TEST_F(RouteRecipeErrors, DivisorsWithoutEps) {
  for (const Divisor d : kDivisors) {
    if (simd::TakesEps(d)) continue;
    EXPECT_ERROR("options: eps: the divisor has none", c.options.eps = 1e-20f,
                 c.options.divisor = d);
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
    RouteOptions& o = call_.options;
    accept(o.renormalize);
    refuse("eps: the divisor has none", o.eps, {1e-20f});
    accept(o.zero_sum_is_zero);
    accept(o.bias_in_weight);
    accept(o.select_on_rounded_score);
    refuse("num_expert_group does not divide the experts", o.num_expert_group,
           {3, 16});
    refuse("topk_group exceeds num_expert_group", o.topk_group, {2});
    accept(o.group_score_of);  // of groups that there are not
    accept(o.dropped_key_is_zero);
    refuse("num_zero_experts leaves no other expert", o.num_zero_experts, {8});
    o.num_shared_experts = 2;
    EXPECT_ERROR("topk_ids: top_k (cols) is 0", (void)c);
    o.num_shared_experts = 0;
    refuse("shared_weight without shared experts whose weight it is",
           o.shared_weight, {0.5f});
    refuse("shared_logits without num_shared_experts", o.shared_logits, {1});
    refuse("num_expert_group is 0, and the options need groups (1: none)",
           o.needs_groups, {1});
    refuse(
        "needs_config: a preset before ApplyConfig has put config.json in the "
        "place of its defaults",
        o.needs_config, {1});
    o.needs_correction_bias = true;
    EXPECT_ERROR("correction_bias: is missing, and the options need one",
                 (void)c);
    o.needs_correction_bias = false;
    o.needs_expert_scale = true;
    EXPECT_ERROR("expert_scale: is missing, and the options need one", (void)c);
    o.needs_expert_scale = false;
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
