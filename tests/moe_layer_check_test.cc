// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The check against double precision accepts what the block computes and finds
// whatever is wrong with it; its bounds are what they claim to be.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bounded.h"
#include "gtest/gtest.h"
#include "moe_block.h"
#include "reference_check.h"
#include "switchyard/executor.h"
#include "switchyard/views.h"

namespace moe_layer {
namespace {

using switchyard::Matrix;
using switchyard::SerialExecutor;

MoeShape SmallShape() {
  MoeShape shape;
  shape.hidden = 72;
  shape.intermediate = 40;
  shape.shared_intermediate = 56;
  shape.num_experts = 12;
  shape.top_k = 3;
  shape.norm_eps = 1e-6f;
  return shape;
}

constexpr size_t kTokens = 33;

class CheckTest : public testing::TestWithParam<bool> {
 protected:
  CheckTest()
      : weights_([] {
          MoeShape shape = SmallShape();
          shape.renormalize = GetParam();
          return GenerateLayer(shape, SerialExecutor());
        }()),
        hidden_data_(GenerateHidden(kTokens, 72, SerialExecutor())),
        normed_data_(kTokens * 72),
        hidden_(hidden_data_.data(), kTokens, 72),
        normed_(normed_data_.data(), kTokens, 72),
        block_(weights_, kTokens, SerialExecutor()) {
    InputNorm(weights_, hidden_, normed_, SerialExecutor());
    block_.Run(hidden_, normed_);
  }

  const BlockResults& results() const { return block_.results(); }

  CheckReport Check(size_t max_tokens = kTokens) {
    return CheckAgainstDouble(weights_, hidden_, normed_, results(), max_tokens,
                              SerialExecutor());
  }

  LayerWeights weights_;
  FloatBuffer hidden_data_;
  FloatBuffer normed_data_;
  Matrix<float> hidden_;
  Matrix<float> normed_;
  MoeBlock block_;
};

INSTANTIATE_TEST_SUITE_P(MoeLayerRenormalize, CheckTest, testing::Bool());

TEST_P(CheckTest, AcceptsTheBlock) {
  const CheckReport report = Check();
  EXPECT_EQ(report.failure, "");
  EXPECT_EQ(report.tokens, kTokens);
  for (const auto* list : {&report.steps, &report.block}) {
    for (const Difference& difference : *list) {
      EXPECT_TRUE(difference.Holds()) << difference.what;
      // Rounding leaves traces: a step that shows none was not looked at.
      EXPECT_GT(difference.largest, 0) << difference.what;
    }
  }
}

TEST_P(CheckTest, SamplesTheFirstAndTheLastToken) {
  EXPECT_EQ(Check(4).tokens, 4u);
  const float last = results().out.Row(kTokens - 1)[0];
  results().out.Row(kTokens - 1)[0] = last + 1;
  EXPECT_NE(Check(4).failure, "");
  results().out.Row(kTokens - 1)[0] = last;
  EXPECT_EQ(Check(4).failure, "");
  results().out.Row(0)[0] += 1;
  EXPECT_NE(Check(1).failure, "");
}

// Each result spoiled by a little; the step that made it is named.
TEST_P(CheckTest, FindsEveryKindOfWrongResult) {
  const size_t t = 7;
  const auto row = static_cast<size_t>(results().row_index.Row(t)[1]);
  const std::vector<std::pair<std::string, std::pair<float*, float>>> spoils = {
      {"input norm: token 7", {normed_.Row(t) + 5, 1e-4f}},
      {"router GEMM: token 7", {results().logits.Row(t) + 11, 1e-3f}},
      {"router GEMM: token 7", {results().shared_logits.Row(t), 1e-3f}},
      {"routing weights: token 7", {results().weights.Row(t) + 2, 1e-5f}},
      {"expert rows: token 7", {results().expert_rows.Row(row) + 71, 0.05f}},
      {"expert rows: token 7", {results().shared_rows.Row(t), 0.05f}},
      {"combine: token 7", {results().out.Row(t) + 70, 1e-4f}},
      {"next norm: token 7", {results().next_normed.Row(t) + 1, 1e-4f}},
  };
  for (const auto& [where, spoil] : spoils) {
    const auto [place, by] = spoil;
    const float good = *place;
    *place = good + by;
    EXPECT_EQ(Check().failure.substr(0, where.size()), where);
    *place = std::numeric_limits<float>::quiet_NaN();
    EXPECT_NE(Check().failure, "") << where;
    *place = good;
    EXPECT_EQ(Check().failure, "");
  }
}

TEST_P(CheckTest, FindsWrongExpertsAndBuckets) {
  int32_t* ids = results().ids.Row(9);
  int32_t* rows = results().row_index.Row(9);
  const std::string experts =
      "routing: token 9: not the experts with the largest logits";
  std::swap(ids[0], ids[1]);
  EXPECT_EQ(Check().failure, experts);
  std::swap(ids[0], ids[1]);
  for (const int32_t wrong : {-1, 12, ids[1]}) {
    const int32_t good = std::exchange(ids[2], wrong);
    EXPECT_EQ(Check().failure, experts);
    ids[2] = good;
  }
  std::swap(rows[0], rows[2]);
  EXPECT_EQ(Check().failure, "routing: token 9: not in its experts' buckets");
  std::swap(rows[0], rows[2]);
  const int32_t row = std::exchange(rows[1], -1);
  EXPECT_NE(Check().failure, "");
  rows[1] = row;
  EXPECT_EQ(Check().failure, "");
}

// Exact logits that contradict the float ones: both are looked at.
TEST_P(CheckTest, FindsExpertsThatOnlyWrongLogitsExplain) {
  float* logits = results().logits.Row(3);
  const int32_t* ids = results().ids.Row(3);
  std::swap(logits[ids[0]], logits[ids[1]]);
  std::swap(results().ids.Row(3)[0], results().ids.Row(3)[1]);
  EXPECT_EQ(Check().failure,
            "routing: token 3: not the experts with the largest exact logits");
}

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
  const Bounded out = MatVec(w.data(), 1, Bounded(x.data(), 3));
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
  EXPECT_NEAR(SiluMulOf(gate, up).error[0], 1.1 * 0.1 * 3, 1e-6);
}

// Both logits off, in opposite directions, is the worst for a small weight.
TEST(MoeLayerBounded, WeightsAllowForTwoLogitErrors) {
  Bounded logits = Make({0, 5}, {0.1, 0.1});
  const int32_t id = 0;
  MoeShape shape;
  shape.num_experts = 2;
  shape.top_k = 1;
  const Bounded weight = RouteWeightsOf(logits, &id, shape);
  const double moved = 1 / (1 + std::exp(5 - 0.2));
  EXPECT_GE(weight.error[0], moved - weight.value[0]);
  EXPECT_LE(weight.error[0], 1.1 * (moved - weight.value[0]));
}

TEST(MoeLayerBounded, CombineAllowsForTheErrorOfTheSharedGate) {
  const Bounded logit = Make({0}, {0.4});
  const Bounded one = Make({1});
  const float residual = 0;
  // The sigmoid's slope at 0 is 1/4.
  EXPECT_NEAR(CombineOf(one, {Make({0})}, logit, one, &residual).error[0], 0.1,
              1e-6);
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
  const std::vector<float> residual = {1, 2, 3, 4};
  const auto every = [&](const Bounded& a, const Bounded& b, bool renormalize) {
    shape.renormalize = renormalize;
    return std::vector<Bounded>{
        SiluMulOf(a, b), RmsNormOf(a, weight.data(), 1e-6f),
        RouteWeightsOf(a, ids.data(), shape),
        CombineOf(b, {a, b, a, b}, {}, {}, residual.data()),
        CombineOf(b, {b, b, b, b}, a, a, residual.data())};
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

TEST(MoeLayerBounded, TopKToleratesWhatErrorsHide) {
  Bounded logits = Make({1.0, 1.1, 0.5, 1.1});
  const auto is_top_2 = [&](std::vector<int32_t> ids) {
    return IsTopK(logits, ids.data(), 2);
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
