// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the check of moe_layer against double precision: it accepts the
// block's results, and finds every error in them.

#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "moe_block.h"
#include "plain_block.h"
#include "reference_check.h"
#include "report.h"
#include "states.h"
#include "switchyard/executor.h"
#include "switchyard/quantize.h"
#include "switchyard/views.h"
#include "tests/moe_layer_files.h"

namespace moe_layer {
namespace {

using switchyard::AnyMatrix;
using switchyard::SerialExecutor;

constexpr size_t kTokens = 11;
constexpr size_t kHidden = 256;

MoeShape SmallShape() {
  MoeShape shape;
  // These sizes are multiples of the blocks of quantised experts.
  shape.hidden = kHidden;
  shape.intermediate = 256;
  shape.shared_intermediate = 512;
  shape.num_experts = 12;
  shape.top_k = 3;
  shape.norm_eps = 1e-6f;
  return shape;
}

using Param = std::tuple<Dtype, bool>;

class CheckTest : public testing::TestWithParam<Param> {
 protected:
  CheckTest()
      : weights_([] {
          MoeShape shape = SmallShape();
          shape.route.renormalize = std::get<1>(GetParam());
          return LoadLayer(PlanGeneratedLayer(shape), dtype(),
                           SerialExecutor());
        }()),
        states_(
            GenerateHidden(kTokens, kHidden, dtype().rows, SerialExecutor())),
        normed_states_(dtype().rows, kTokens, kHidden),
        hidden_(states_.rows()),
        normed_(normed_states_.rows()),
        block_(weights_, kTokens, SerialExecutor()) {
    InputNorm(weights_, hidden_, normed_, SerialExecutor());
    block_.Run(hidden_, normed_);
  }

  static const Dtype& dtype() { return std::get<0>(GetParam()); }
  const BlockResults& results() const { return block_.results(); }

  CheckReport Check(size_t max_tokens = kTokens) {
    return CheckAgainstDouble(weights_, hidden_, normed_, results(), max_tokens,
                              SerialExecutor());
  }

  LayerWeights weights_;
  RowBuffer states_;
  RowBuffer normed_states_;
  AnyMatrix hidden_;
  AnyMatrix normed_;
  MoeBlock block_;
};

TEST(PlainBlock, AgreesWithTheKernelsAndNoOthers) {
  MoeShape shape = SmallShape();
  shape.shared_intermediate = 0;
  shape.route.renormalize = true;
  for (const Dtype& dtype : {kDtypes[0], kDtypes[1]}) {
    switchyard::Executor& executor = SerialExecutor();
    const LayerWeights weights =
        LoadLayer(PlanGeneratedLayer(shape), dtype, executor);
    const RowBuffer hidden =
        GenerateHidden(kTokens, kHidden, dtype.rows, executor);
    const RowBuffer normed(dtype.rows, kTokens, kHidden);
    InputNorm(weights, hidden.rows(), normed.rows(), executor);
    MoeBlock block(weights, kTokens, executor);
    PlainBlock plain(weights, kTokens, executor);
    block.Run(hidden.rows(), normed.rows());
    plain.Run(hidden.rows(), normed.rows());
    EXPECT_TRUE(plain.AgreesWith(block.results())) << dtype.name;
    block.Run(hidden.rows(), hidden.rows());  // skips the input norm
    EXPECT_FALSE(plain.AgreesWith(block.results())) << dtype.name;
  }
}

// Returns the text for rounds in which the library takes 1 s. Plain loops
// take `plain`, which has a median of 2 s.
std::string PlainLoopsTextOf(std::vector<double> plain) {
  Timing timing = {};
  timing.median.stages[0].seconds = 1;
  timing.rounds.assign(plain.size(), 1);
  timing.plain_rounds = std::move(plain);
  timing.plain_loops = 2;
  return PlainLoopsText(timing);
}

TEST(MoeLayerPlainLoops, SayWhereRoundsScatterByMoreThanTheirEffect) {
  const char* const none = "no difference is shown";
  const std::string noise = PlainLoopsTextOf({0.5, 4, 1, 3.5, 2, 2, 1, 3.9, 5});
  EXPECT_NE(noise.find(none), std::string::npos) << noise;
  EXPECT_NE(noise.find("lie between 1 and 3.9."), std::string::npos) << noise;
  // A single outlier does not count as scatter.
  const std::string effect = PlainLoopsTextOf({1.9, 2, 2.1, 2, 2, 1.9, 9});
  EXPECT_EQ(effect.find(none), std::string::npos) << effect;
  EXPECT_NE(effect.find("2000.000 ms, 2 times it"), std::string::npos)
      << effect;
}

// Routing does not depend on the weights' format, so the case without
// renormalisation needs one format only.
std::vector<Param> Params() {
  std::vector<Param> params = {{kDtypes[0], false}};
  for (const Dtype& dtype : kDtypes) params.push_back({dtype, true});
  return params;
}
INSTANTIATE_TEST_SUITE_P(MoeLayerDtypes, CheckTest, testing::ValuesIn(Params()),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) +
                                  (std::get<1>(test.param) ? ""
                                                           : "_unnormalized");
                         });

// An element of a matrix of floats.
struct Element {
  AnyMatrix m;
  size_t row, column;

  float Get() const {
    float value = 0;
    Move(At(), AnyMatrix(&value, 1, 1));
    return value;
  }
  void Set(float value) const { Move(AnyMatrix(&value, 1, 1), At()); }

 private:
  AnyMatrix At() const {
    return m.RowRange(row, row + 1).ColRange(column, column + 1);
  }
  static void Move(const AnyMatrix& from, const AnyMatrix& to) {
    ASSERT_TRUE(switchyard::Quantize({from}, {to}).ok());
  }
};

TEST_P(CheckTest, AcceptsTheBlock) {
  const CheckReport report = Check();
  EXPECT_EQ(report.failure, "");
  EXPECT_EQ(report.tokens, kTokens);
  for (const auto* list : {&report.steps, &report.block}) {
    for (const Difference& difference : *list) {
      EXPECT_TRUE(difference.Holds()) << difference.what;
      // Rounding always leaves a difference. A difference of 0 would mean
      // that the step was not checked.
      EXPECT_GT(difference.largest, 0) << difference.what;
    }
  }
}

TEST_P(CheckTest, SamplesTheFirstAndTheLastToken) {
  EXPECT_EQ(Check(4).tokens, 4u);
  const Element of_last{results().out, kTokens - 1, 0};
  const float last = of_last.Get();
  of_last.Set(last + 1);
  EXPECT_NE(Check(4).failure, "");
  of_last.Set(last);
  EXPECT_EQ(Check(4).failure, "");
  const Element of_first{results().out, 0, 0};
  of_first.Set(of_first.Get() + 1);
  EXPECT_NE(Check(1).failure, "");
}

// Changes each result a little. The check has to name the step that computes
// that result.
TEST_P(CheckTest, FindsEveryKindOfWrongResult) {
  const size_t t = 7;
  const auto row = static_cast<size_t>(results().row_index.Row(t)[1]);
  // The check's bounds are smaller for f32, so it must find smaller changes.
  const bool is_f32 = dtype().rows == switchyard::Type::kF32;
  const auto by = [&](float f32, float bf16) { return is_f32 ? f32 : bf16; };
  const AnyMatrix weights = results().weights;
  const float far = dtype().operands == switchyard::Type::kI8 ? 2 : 0.5f;
  const std::vector<std::tuple<std::string, Element, float>> spoils = {
      {"input norm: token 7", {normed_, t, 5}, by(1e-4f, 0.1f)},
      {"router GEMM: token 7", {results().logits, t, 11}, by(1e-3f, 0.1f)},
      {"router GEMM: token 7",
       {results().shared_logits, t, 0},
       by(1e-3f, 0.1f)},
      {"routing: token 7: weight 2", {weights, t, 2}, 1e-5f},
      {"expert rows: token 7",
       {results().expert_rows, row, 71},
       by(0.05f, far)},
      {"expert rows: token 7", {results().shared_rows, t, 0}, by(0.05f, far)},
      {"combine: token 7", {results().out, t, 70}, by(1e-4f, 0.1f)},
      {"next norm: token 7", {results().next_normed, t, 1}, by(1e-4f, 0.1f)},
  };
  for (const auto& [where, place, amount] : spoils) {
    const float good = place.Get();
    place.Set(good + amount);
    EXPECT_EQ(Check().failure.substr(0, where.size()), where);
    place.Set(std::numeric_limits<float>::quiet_NaN());
    EXPECT_NE(Check().failure, "") << where;
    place.Set(good);
    EXPECT_EQ(Check().failure, "");
  }
}

TEST_P(CheckTest, FindsWrongExpertsAndBuckets) {
  int32_t* ids = results().ids.Row(9);
  int32_t* rows = results().row_index.Row(9);
  const auto expect = [&](size_t slot, int32_t is, int32_t expected) {
    EXPECT_EQ(Check().failure, "routing: token 9: id " + std::to_string(slot) +
                                   " is " + std::to_string(is) +
                                   ".000000, expected " +
                                   std::to_string(expected) + ".000000");
  };
  std::swap(ids[0], ids[1]);
  expect(0, ids[0], ids[1]);
  std::swap(ids[0], ids[1]);
  for (const int32_t wrong : {-1, 12, ids[1]}) {
    const int32_t good = std::exchange(ids[2], wrong);
    expect(2, wrong, good);
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

// The test swaps two logits and their experts. The logits then explain the
// experts, but contradict the product.
TEST_P(CheckTest, FindsExpertsThatOnlyWrongLogitsExplain) {
  const int32_t* ids = results().ids.Row(3);
  const Element first{results().logits, 3, static_cast<size_t>(ids[0])};
  const Element second{results().logits, 3, static_cast<size_t>(ids[1])};
  const float larger = first.Get();
  first.Set(second.Get());
  second.Set(larger);
  std::swap(results().ids.Row(3)[0], results().ids.Row(3)[1]);
  const std::string where = "router GEMM: token 3";
  EXPECT_EQ(Check().failure.substr(0, where.size()), where);
}

// Two percentages would be above 100 here, and the report must print neither.
// Reading the weights would take 150 % of the run, which happens if they are
// in a cache. The wrong result is 250 % of its bound.
TEST(MoeLayerReport, SaysNoPercentageOver100) {
  Timing timing = {};
  timing.runs = 1;
  timing.read_bandwidth = 1e9;
  timing.median.weight_bytes = 3e9;
  for (StageCost& cost : timing.median.stages) cost.seconds = 2.0 / kNumStages;
  Difference difference;
  difference.what = "wrong";
  difference.closest = 2.5;
  CheckReport check;
  check.steps = check.block = {difference};
  testing::internal::CaptureStdout();
  PrintTimes(timing, {"a", "b", "c"}, 1);
  PrintCheck(check, switchyard::Type::kF32);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("The run takes 0.667 times as long.\n"),
            std::string::npos)
      << text;
  for (size_t at = 0; (at = text.find(" %", at)) != std::string::npos; ++at) {
    EXPECT_LE(std::stod(text.substr(text.rfind(' ', at - 1))), 100) << text;
  }
}

}  // namespace
}  // namespace moe_layer
