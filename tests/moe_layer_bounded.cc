// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The steps of the block in double precision: their values, and that the bounds
// on errors are what they claim to be. A part of moe_layer_check_test.

#include <cmath>
#include <cstdint>
#include <vector>

#include "bounded.h"
#include "bounded_route.h"
#include "gtest/gtest.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace moe_layer {
namespace {

Bounded Make(const std::vector<double>& value,
             const std::vector<double>& error = {}) {
  Bounded made(value.size());
  made.value = value;
  if (!error.empty()) made.error = error;
  return made;
}

TEST(MoeLayerBounded, BoundOfASumIsTheContracts) {
  const std::vector<float> w = {1.0f, -2.0f, 4.0f};
  const std::vector<float> x = {3.0f, 5.0f, 0.25f};
  const Bounded out =
      MatVec(w.data(), 1, Bounded(switchyard::ConstAnyMatrix(x)));
  EXPECT_EQ(out.value[0], 3 - 10 + 1);
  EXPECT_NEAR(out.error[0], (3 + 2) * 0x1p-24 * (3 + 10 + 1), 1e-20);
}

TEST(MoeLayerBounded, ErrorsOfInputsArePassedOn) {
  const Bounded x = Make({1, 1}, {0.5, 0.25});
  const std::vector<float> w = {2.0f, -4.0f};
  EXPECT_NEAR(MatVec(w.data(), 1, x).error[0], 2 * 0.5 + 4 * 0.25, 1e-5);

  // silu at 0 has slope 1/2; the bound uses its largest slope, 1.1.
  const Bounded gate = Make({0}, {0.1});
  const Bounded up = Make({3});
  EXPECT_NEAR(ActivatedOf(gate, up, {}).error[0], 1.1 * 0.1 * 3, 1e-6);
}

// Both logits off, in opposite directions, is the worst for a small weight.
TEST(MoeLayerBounded, WeightsAllowForTwoLogitErrors) {
  Bounded logits = Make({0, 5}, {0.1, 0.1});
  const int32_t id = 0;
  MoeShape shape;
  shape.num_experts = 2;
  shape.top_k = 1;
  shape.route.renormalize = false;
  const Bounded weight = RouteWeightsOf(logits, &id, shape);
  const double moved = 1 / (1 + std::exp(5 - 0.2));
  EXPECT_GE(weight.error[0], moved - weight.value[0]);
  EXPECT_LE(weight.error[0], 1.1 * (moved - weight.value[0]));
}

TEST(MoeLayerBounded, CombineAllowsForTheErrorOfTheSharedGate) {
  const Bounded logit = Make({0}, {0.4});
  const Bounded one = Make({1});
  // The sigmoid's slope at 0 is 1/4.
  EXPECT_NEAR(
      CombineOf({one, {Make({0})}, logit, one, Make({0})}, MoeShape()).error[0],
      0.1, 1e-6);
}

// Scores and weights of the families' kinds, by numbers worked out by hand.
TEST(MoeLayerBounded, RoutesAsFamiliesDo) {
  using switchyard::RouteOptions;
  const Bounded logits = Make({0, std::log(3.0), -1, 2});
  const std::vector<int32_t> ids = {1, 0};
  MoeShape shape;
  shape.num_experts = 4;
  shape.top_k = 2;
  RouteOptions& route = shape.route;
  const auto expect = [&](double first, double second) {
    const Bounded weights = RouteWeightsOf(logits, ids.data(), shape);
    EXPECT_NEAR(weights.value[0], first, 1e-12);
    EXPECT_NEAR(weights.value[1], second, 1e-12);
  };
  expect(0.75, 0.25);  // of softmax, divided by their sum
  route.divisor = switchyard::Divisor::kMaxOfSumAndEps;
  route.eps = 1;
  const double all = 4 + std::exp(-1.0) + std::exp(2.0);
  expect(3 / all, 1 / all);
  route = RouteOptions();
  route.score = switchyard::Score::kSigmoid;
  expect(0.75 / 1.25, 0.5 / 1.25);
  route.routed_scaling_factor = 2;
  route.divisor = switchyard::Divisor::kSumPlusEps;
  route.eps = 0.25f;
  expect(1, 1 / 1.5);
  route.renormalize = false;
  expect(1.5, 1);
  route = RouteOptions();
  route.renormalize = false;
  route.score = switchyard::Score::kSqrtSoftplus;
  expect(std::sqrt(std::log(4.0)), std::sqrt(std::log(2.0)));
  route.score = switchyard::Score::kRaw;
  route.weight_of = switchyard::WeightOf::kSigmoidOfSelected;
  expect(0.75, 0.5);
  route.weight_of = switchyard::WeightOf::kSoftmaxOfSelected;
  expect(0.75, 0.25);
}

TEST(MoeLayerBounded, KeysOfGroupsAndBiases) {
  MoeShape shape;
  shape.num_experts = 6;
  shape.top_k = 2;
  shape.route.score = switchyard::Score::kSigmoid;
  shape.route.num_expert_group = 3;
  shape.route.topk_group = 1;
  // The sums of two: 1.5, 1.7, 1.6.
  const std::vector<float> bias = {0.5f, 0, 0.2f, 0.5f, 0.4f, 0.2f};
  Bounded logits = Make({0, 0, 0, 0, 0, 0});
  const auto is_top_2 = [&](std::vector<int32_t> ids) {
    return IsTopK(RouteKeysOf(logits, shape, {bias.data()}), ids.data(), 2);
  };
  EXPECT_TRUE(is_top_2({3, 2}));
  EXPECT_FALSE(is_top_2({2, 3}));
  EXPECT_FALSE(is_top_2({0, 3}));
  EXPECT_FALSE(is_top_2({4, 5}));
  logits.error.assign(6, 0.11);  // a sum may be off by 0.055, two differ by 0.1
  EXPECT_TRUE(is_top_2({4, 5}));
  EXPECT_FALSE(is_top_2({0, 1}));
  EXPECT_FALSE(is_top_2({4, 3}));
}

// Slots of zero experts, which have lost their ids, get them back.
TEST(MoeLayerBounded, ZeroExpertsAreFoundAgain) {
  MoeShape shape;
  shape.num_experts = 2;
  shape.top_k = 3;
  shape.route.num_zero_experts = 2;
  const RouteKeys keys = RouteKeysOf(Make({1, 3, 2, 4}), shape, {});
  const std::vector<int32_t> ids = {-1, 1, -1};
  const auto all = WithZeroExperts(keys, ids.data(), shape);
  EXPECT_EQ(all, (std::vector<int32_t>{3, 1, 2}));
  EXPECT_TRUE(IsTopK(keys, all.data(), 3));
  const std::vector<int32_t> many = {-1, -1, -1};
  EXPECT_TRUE(WithZeroExperts(keys, many.data(), shape).empty());
}

TEST(MoeLayerBounded, ActivationsOfFamilies) {
  using switchyard::Activation;
  const auto value = [](double gate, double up, Activation activation,
                        float limit) {
    switchyard::ActivateOptions options;
    options.activation = activation;
    options.limit = limit;
    return ActivatedOf(Make({gate}), Make({up}), options).value[0];
  };
  const double silu_2 = 2 / (1 + std::exp(-2.0));
  EXPECT_NEAR(value(2, -3, Activation::kSilu, 0), silu_2 * -3, 1e-12);
  EXPECT_NEAR(value(5, -3, Activation::kSilu, 2), silu_2 * -2, 1e-12);
  EXPECT_NEAR(value(5, -3, Activation::kSwigluOai, 2),
              2 / (1 + std::exp(-1.702f * 2.0)) * -1, 1e-7);
  EXPECT_NEAR(value(1, 2, Activation::kGeluTanh, 0), 2 * 0.841191990608, 1e-9);
  EXPECT_NEAR(value(1, 2, Activation::kGelu, 0), 2 * 0.841344746069, 1e-9);
}

// Norms and factors stand where Combine has them.
TEST(MoeLayerBounded, CombinesAsFamiliesDo) {
  MoeShape shape;
  shape.norm_eps = 0;
  const std::vector<float> two = {2, 2}, three = {3, 3}, half = {0.5f, 0.5f};
  CombineTerms terms;
  terms.weights = Make({2});
  terms.rows = {Make({3, -3})};
  terms.shared_row = Make({5, 5});
  terms.residual = Make({1, 1});
  const auto expect = [&](double first, double second) {
    const Bounded out = CombineOf(terms, shape);
    EXPECT_NEAR(out.value[0], first, 1e-12);
    EXPECT_NEAR(out.value[1], second, 1e-12);
  };
  expect(12, 0);
  terms.identity_weight = Make({0.5});
  terms.identity_row = Make({2, 4});
  expect(13, 2);
  terms.identity_row = terms.identity_weight = {};
  shape.scales = {0.5f, 3, 1, 2};
  expect(2 * (1 + 3 * (3 + 5)), 2 * (1 + 3 * (-3 + 5)));
  terms.routed_norm = two.data();
  terms.shared_norm = half.data();
  shape.scales = {};
  expect(1 + 2 + 0.5, 1 - 2 + 0.5);
  terms.routed_norm = terms.shared_norm = nullptr;
  terms.shared_row = {};
  terms.block_norm = three.data();
  expect(4, -2);
  shape.norm = switchyard::NormKind::kPlusOne;
  expect(5, -3);
}

// Moving each input by its error moves no output by more than its error.
TEST(MoeLayerBounded, BoundsHoldAtTheEndsOfTheInputs) {
  const std::vector<float> weight = {0.5f, 2.0f, -1.0f, 1.0f};
  const Bounded x = Make({0.5, -2, 1, 0.125}, {0.01, 0.2, 0.05, 0.03});
  const Bounded up = Make({1, -0.5, 2, -3}, {0.1, 0.02, 0.3, 0.1});
  const std::vector<int32_t> ids = {2, 0};
  MoeShape shape;
  shape.num_experts = 4;
  shape.top_k = 2;
  MoeShape sigmoid = shape;
  sigmoid.route.score = switchyard::Score::kSigmoid;
  switchyard::ActivateOptions oai;
  oai.activation = switchyard::Activation::kSwigluOai;
  oai.limit = 0.9f;
  const Bounded residual = Make({1, 2, 3, 4});
  const auto every = [&](const Bounded& a, const Bounded& b, bool renormalize) {
    shape.route.renormalize = sigmoid.route.renormalize = renormalize;
    return std::vector<Bounded>{
        ActivatedOf(a, b, {}),
        ActivatedOf(a, b, oai),
        ProductOf(a, b),
        SumOf(a, b),
        RouteWeightsOf(a, ids.data(), sigmoid),
        RmsNormOf(a, weight.data(), 1e-6f),
        RouteWeightsOf(a, ids.data(), shape),
        CombineOf({b, {a, b, a, b}, {}, {}, residual}, shape),
        CombineOf({b, {b, b, b, b}, a, a, residual}, shape),
        a.As(switchyard::Type::kI8),
        b.As(switchyard::Type::kI8)};
  };
  for (const bool renormalize : {false, true}) {
    const std::vector<Bounded> middle = every(x, up, renormalize);
    for (int corner = 0; corner < 256; ++corner) {
      Bounded moved_x(4);
      Bounded moved_up(4);
      for (size_t i = 0; i < 4; ++i) {
        const auto side = [&](size_t bit) {
          return ((corner >> bit) & 1) != 0 ? 1 : -1;
        };
        moved_x.value[i] = x.value[i] + side(i) * x.error[i];
        moved_up.value[i] = up.value[i] + side(i + 4) * up.error[i];
      }
      const std::vector<Bounded> moved = every(moved_x, moved_up, renormalize);
      for (size_t f = 0; f < middle.size(); ++f) {
        for (size_t i = 0; i < middle[f].size(); ++i) {
          EXPECT_LE(std::fabs(moved[f].value[i] - middle[f].value[i]),
                    middle[f].error[i])
              << "function " << f << ", corner " << corner;
        }
      }
    }
  }
}

TEST(MoeLayerBounded, Bf16IsOneRounding) {
  const Bounded x = Make({1, -3}, {0, 0.25});
  EXPECT_EQ(x.As(switchyard::Type::kF32).error, x.error);
  const Bounded rounded = x.As(switchyard::Type::kBF16);
  EXPECT_EQ(rounded.value, x.value);
  EXPECT_NEAR(rounded.error[0], 0x1p-8, 1e-20);
  EXPECT_NEAR(rounded.error[1], 0.25 + 3.25 * 0x1p-8, 1e-20);
}

// A code is known where the error cannot change it, and else off by one.
TEST(MoeLayerBounded, Int8IsTheCodesThatErrorsAllow) {
  const Bounded x = Make({127, 10.4, -20.4, 0}, {0, 0.05, 0.2, 0});
  const Bounded quantised = x.As(switchyard::Type::kI8);
  EXPECT_EQ(quantised.value, (std::vector<double>{127, 10, -20, 0}));
  EXPECT_NEAR(quantised.error[0], 0, 1e-4);
  EXPECT_NEAR(quantised.error[1], 0, 1e-4);
  EXPECT_NEAR(quantised.error[2], 1, 1e-4);
  EXPECT_NEAR(quantised.error[3], 0, 1e-4);
  EXPECT_EQ(Make({0, 0}).As(switchyard::Type::kI8).error[1], 0);
}

TEST(MoeLayerBounded, TopKToleratesWhatErrorsHide) {
  Bounded logits = Make({1.0, 1.1, 0.5, 1.1});
  MoeShape shape;
  const auto is_top_2 = [&](std::vector<int32_t> ids) {
    return IsTopK(RouteKeysOf(logits, shape, {}), ids.data(), 2);
  };
  EXPECT_TRUE(is_top_2({1, 3}));
  EXPECT_FALSE(is_top_2({3, 1}));  // the smaller index wins ties
  EXPECT_FALSE(is_top_2({1, 0}));
  EXPECT_FALSE(is_top_2({1, 1}));
  logits.error = {0.06, 0.06, 0.06, 0.06};
  EXPECT_TRUE(is_top_2({3, 1}));
  EXPECT_TRUE(is_top_2({0, 1}));
  EXPECT_FALSE(is_top_2({1, 2}));
  EXPECT_FALSE(is_top_2({1, 1}));
}

}  // namespace
}  // namespace moe_layer
