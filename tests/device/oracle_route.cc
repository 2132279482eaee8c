// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The built-in routers and the seeds', on the same logits: alike where these
// are healthy, and where the seeds have defects only the seeds are wrong.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "testing/inputs.h"
#include "testing/reference.h"
#include "tests/device/oracle_case.h"
#include "tests/device/seed_route.h"
#include "tests/device/seed_texts.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

enum class Kernel { kRouter, kSoftmaxTopk };
constexpr Kernel kBoth[] = {Kernel::kRouter, Kernel::kSoftmaxTopk};

struct RouteCase {
  Kernel kernel;
  size_t tokens, experts, top_k;
  bool renormalize;
  std::vector<float> logits;

  // The binding of the ids; weights follow.
  size_t Ids() const { return kernel == Kernel::kRouter ? 1 : 2; }
  size_t Weights() const { return Ids() + 1; }
};

// Distinct logits in random order, a hundredth apart at the least, so that
// probabilities are further apart than their roundings.
std::vector<float> HealthyLogits(Random& random, size_t tokens,
                                 size_t experts) {
  std::vector<float> logits;
  for (size_t t = 0; t < tokens; ++t) {
    const float step =
        random.Uniform(0.02f, 0.02f + 20.0f / static_cast<float>(experts));
    const float low = random.Uniform(-30.0f, 10.0f);
    std::vector<float> row;
    for (size_t e = 0; e < experts; ++e) {
      row.push_back(
          low + step * (static_cast<float>(e) + random.Uniform(-0.25f, 0.25f)));
    }
    for (size_t e = experts; e > 1; --e) {
      std::swap(row[e - 1], row[random.Below(e)]);
    }
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

// Inside the seeds' limits.
RouteCase HealthyCase(Kernel kernel, uint64_t seed) {
  Random random(seed);
  RouteCase c = {kernel, 1 + random.Below(5), 1 + random.Below(70), 1, true,
                 {}};
  if (random.Below(4) == 0) c.experts = 1 + random.Below(600);
  size_t most = 32;
  if (kernel == Kernel::kSoftmaxTopk) {
    most = seeds::SoftmaxTopk::kMostTopK;
    if (c.experts < 128) c.experts = size_t{1} << random.Below(7);
  } else {
    c.renormalize = random.Below(2) == 0;
  }
  most = std::min(most, c.experts);
  c.top_k = 1 + random.Below(random.Below(3) == 0 ? most : (most + 3) / 4);
  c.logits = HealthyLogits(random, c.tokens, c.experts);
  return c;
}

std::string WrongSlot(const RouteCase& c, const Ran& ran, size_t slot,
                      int32_t right_id, double right_weight) {
  const auto untouched = [&](size_t index) {
    return ran.before.at(index)[slot] == ran.after.at(index)[slot];
  };
  if (untouched(c.Ids()) && untouched(c.Weights())) return "nothing is written";
  const int32_t id = ran.Ints(c.Ids())[slot];
  const double weight = static_cast<double>(ran.Floats(c.Weights())[slot]);
  if (id != right_id) return Text("the id is ", id, ", not ", right_id);
  if (std::isnan(weight) && std::isnan(right_weight)) return "";
  if (std::isnan(right_weight)) return "the weight is a number, not NaN";
  return Apart("weight", slot, weight, right_weight, 1e-5);
}

// Checks the contract for any logits and any top_k.
std::string Wrong(const RouteCase& c, const Ran& ran) {
  const std::vector<int32_t> ids = ran.Ints(c.Ids());
  const std::vector<float> weights = ran.Floats(c.Weights());
  if (c.top_k > c.experts) {
    if (ran.error.empty()) {
      return Text("no error for too large a top_k; id ", ids[0], " has weight ",
                  weights[0]);
    }
    return ran.Untouched(c.Ids()) && ran.Untouched(c.Weights())
               ? ""
               : "an error, but something was written";
  }
  if (!ran.error.empty()) return ran.error;
  for (size_t t = 0; t < c.tokens; ++t) {
    const float* const row = c.logits.data() + t * c.experts;
    const reference::Route right =
        reference::RouteRow(std::vector<float>(row, row + c.experts), c.top_k,
                            c.renormalize, 0x1p-14);
    for (size_t s = 0; s < c.top_k; ++s) {
      const std::string wrong =
          WrongSlot(c, ran, t * c.top_k + s, right.ids[s], right.weights[s]);
      if (!wrong.empty()) {
        return Text("token ", t, ", slot ", s, ": ", wrong);
      }
    }
  }
  return "";
}

// Ids exactly; weights within what these roundings come to, in units of 2^-24.
// The differences to the maximum are the same floats in both. exp is within 1.5
// ulp here and 1 there, of the weight itself and in the divisor: 10. Quotients
// and products: 1 and 4. And the additions of the divisor in each, of which
// those that make all probabilities cancel if weights are renormalised.
double WeightBound(const RouteCase& c) {
  const size_t additions = c.renormalize ? c.top_k : c.experts / 32 + 6;
  return (15.0 + 2.0 * static_cast<double>(additions)) * 0x1p-24;
}
std::string Differ(const RouteCase& c, const Ran& a, const Ran& b) {
  if (a.Ints(c.Ids()) != b.Ints(c.Ids())) return "ids differ";
  const std::vector<float> x = a.Floats(c.Weights()), y = b.Floats(c.Weights());
  for (size_t i = 0; i < x.size(); ++i) {
    const double weight = x[i];
    const std::string apart =
        Apart("weights", i, y[i], weight, WeightBound(c) * weight);
    if (!apart.empty()) return apart;
  }
  return "";
}

// The router's scratch may start behind so many floats.
OracleWork MakeWork(const RouteCase& c, size_t in_front = 0) {
  OracleWork w;
  w.shape = Text(c.tokens, " tokens, ", c.experts, " experts, top ", c.top_k,
                 c.renormalize ? ", renormalised" : "");
  w.wrong = [c](const Ran& ran) { return Wrong(c, ran); };
  w.differ = [c](const Ran& a, const Ran& b) { return Differ(c, a, b); };
  w.grid = Size(c.tokens, 1, 1);
  if (c.kernel == Kernel::kRouter) {
    w.threads = 32;
    w.threadgroup_memory =
        seeds::RouterTopkSoftmax::MemoryLength(c.experts, c.top_k) +
        4 * in_front;
    w.SetSeed("moe_router_topk_softmax_f32", seeds::RouterTopkSoftmax{in_front},
              3,
              MoeRouterTopkSoftmaxParams{static_cast<int32_t>(c.experts),
                                         static_cast<int32_t>(c.top_k),
                                         c.renormalize});
  } else {
    w.grid.width += c.top_k % 3;  // beyond the tokens, which it knows
    w.threads = seeds::SoftmaxTopk::Threads(c.experts);
    w.threadgroup_memory = seeds::SoftmaxTopk::MemoryLength(c.experts);
    w.SetSeed("moe_softmax_topk_f32", seeds::SoftmaxTopk{}, 0,
              MoeSoftmaxTopkParams{static_cast<uint32_t>(c.tokens),
                                   static_cast<uint32_t>(c.experts),
                                   static_cast<uint32_t>(c.top_k), kNaN});
  }
  w.In(c.Ids() - 1, c.logits);
  w.Out(c.Ids(), c.tokens * c.top_k);
  w.Out(c.Weights(), c.tokens * c.top_k);
  return w;
}

const bool kAdded = AddOracles(
    kBoth,
    [](Kernel kernel, uint64_t seed) {
      return MakeWork(HealthyCase(kernel, seed));
    },
    [](Kernel kernel) {
      Random random(64);
      RouteCase c = {kernel, 6, 64, 5, true, {}};
      c.logits = HealthyLogits(random, c.tokens, c.experts);
      return MakeWork(c);
    });

class DeviceOracleRoute : public OracleTest {
 protected:
  void ExpectAlike(const RouteCase& c) { device_.ExpectAlike(MakeWork(c)); }
  // The built-in kernel is right, and the seed wrong in just this way.
  void ExpectDefect(const RouteCase& c, const std::string& wrong) {
    const OracleWork work = MakeWork(c, 1);
    EXPECT_EQ(device_.Wrong(work, Who::kBuiltIn), "") << work.shape;
    EXPECT_EQ(device_.Wrong(work, Who::kSeed), wrong) << work.shape;
  }
};
SWITCHYARD_FOR_EVERY_ISA(DeviceOracleRoute);

TEST_P(DeviceOracleRoute, TheSmallerExpertWinsTies) {
  for (const Kernel kernel : kBoth) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
      RouteCase c = HealthyCase(kernel, seed);
      Random random(seed);
      for (float& logit : c.logits) {
        logit = static_cast<float>(random.Below(3));
      }
      ExpectAlike(c);
      if (HasFatalFailure()) return;
    }
  }
}

// From the seed projects' public tests.
TEST_P(DeviceOracleRoute, KnownAnswers) {
  RouteCase c = {Kernel::kRouter, 3, 16, 4, true, {}};
  for (int b = 0; b < 3; ++b) {
    for (int e = 0; e < 16; ++e) {
      c.logits.push_back(std::sin(0.7f * static_cast<float>(b) +
                                  0.13f * static_cast<float>(e)) +
                         0.05f * static_cast<float>(e));
    }
  }
  const std::vector<int32_t> ids = {15, 14, 13, 12, 10, 9, 11, 8, 4, 5, 3, 6};
  const double weights[] = {.25781122, .25528407, .24868114, .23822355,
                            .25243434, .25149554, .24951813, .24655199,
                            .2522141,  .25163895, .24881358, .24733333};
  for (const Kernel kernel : kBoth) {
    c.kernel = kernel;
    ExpectAlike(c);
    const Ran seed = device_.Run(MakeWork(c), Who::kSeed);
    EXPECT_EQ(seed.Ints(c.Ids()), ids);
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(seed.Floats(c.Weights())[i]), weights[i],
                  1e-5);
    }
  }
  // Selection on probabilities, which underflow, or on logits: not a defect,
  // but a decision.
  RouteCase low = {Kernel::kRouter, 1, 8, 4, true, {}};
  low.logits = {-200.0f, 0.0f,    -150.0f, -300.0f,
                -120.0f, -110.0f, -105.0f, -400.0f};
  const Ran built_in = device_.Run(MakeWork(low), Who::kBuiltIn);
  const Ran seed = device_.Run(MakeWork(low), Who::kSeed);
  EXPECT_EQ(built_in.Ints(1), (std::vector<int32_t>{1, 6, 5, 4}));
  EXPECT_EQ(built_in.Floats(2), (std::vector<float>{1, 0, 0, 0}));
  EXPECT_EQ(seed.Ints(1), (std::vector<int32_t>{1, 0, 2, 3}));
  EXPECT_EQ(seed.Floats(2), (std::vector<float>{1, 0, 0, 0}));
}

TEST_P(DeviceOracleRoute, TreesDropLanesOfSixtyExperts) {
  Random random(60);
  RouteCase c = {Kernel::kSoftmaxTopk, 2, 60, 4, true, {}};
  c.logits = HealthyLogits(random, c.tokens, c.experts);
  // Nothing to be seen of it as long as the weights are renormalised.
  ExpectAlike(c);
  // The trees fold 60 to 30, 15, 7, 3 and 1, and lanes 14, 6 and 2 stay behind
  // with what they hold by then.
  std::vector<size_t> kept;
  for (size_t lane = 0; lane < 60; ++lane) {
    const size_t of_15 = lane % 15, of_7 = of_15 % 7;
    if (of_15 < 14 && of_7 < 6 && of_7 % 3 < 2) kept.push_back(lane);
  }
  ASSERT_EQ(kept.size(), 32u);
  for (size_t lane = 0; lane < 60; ++lane) {
    RouteCase tall = c;
    tall.top_k = 1;  // all else underflows
    float& logit = tall.logits[60 + lane];
    logit = 100.0f + *std::max_element(c.logits.begin(), c.logits.end());
    if (std::find(kept.begin(), kept.end(), lane) != kept.end()) {
      ExpectAlike(tall);
    } else {
      // exp overflows, and inf / inf follows.
      ExpectDefect(tall,
                   "token 1, slot 0: weight[1] is NaN, and ought to be within "
                   "1e-05 of 1");
    }
  }
  // A NaN in a dropped lane is passed over.
  c.logits[60 + 14] = kNaN;
  ExpectDefect(c, "token 1, slot 0: the weight is a number, not NaN");
}

TEST_P(DeviceOracleRoute, ThirtyThreePicksForThirtyTwoLanes) {
  Random random(33);
  RouteCase c = {Kernel::kRouter, 1, 60, 32, true, {}};
  c.logits = HealthyLogits(random, c.tokens, c.experts);
  ExpectAlike(c);
  c.top_k = 33;
  ExpectDefect(c, "token 0, slot 32: nothing is written");
}

TEST_P(DeviceOracleRoute, MorePicksThanExperts) {
  Random random(5);
  RouteCase c = {Kernel::kRouter, 1, 4, 4, true, {1.0f, 1.0f, 1.0f, 1.0f}};
  ExpectAlike(c);
  c.top_k = 5;
  // A quarter, times 2^14.
  ExpectDefect(c, "no error for too large a top_k; id 0 has weight 4096");
}

// Where nothing is above -inf the router picks -1, and writes there: in front
// of its 9 probabilities, 2 or 10 weights, as many ids and their sum.
TEST(DeviceOracleRouteDefects, ThePickThatIsMinusOne) {
  Random random(9);
  RouteCase c = {Kernel::kRouter, 3, 9, 2, true, {}};
  c.logits = HealthyLogits(random, c.tokens, c.experts);
  RouteCase nan = c, too_many = c;
  nan.logits[2 * 9 + 4] = kNaN;
  too_many.top_k = 10;

  EXPECT_EQ(OracleDevice(true).Run(MakeWork(c), Who::kSeed).error, "");
  EXPECT_EQ(OracleDevice(true).Run(MakeWork(nan), Who::kSeed).error,
            "moe_router_topk_softmax_f32: threadgroup (2, 0, 0), thread 0: "
            "writes threadgroup memory 0[-1], which has 14 elements");
  EXPECT_EQ(OracleDevice(true).Run(MakeWork(too_many), Who::kSeed).error,
            "moe_router_topk_softmax_f32: threadgroup (0, 0, 0), thread 0: "
            "writes threadgroup memory 0[-1], which has 30 elements");
  // Whichever row comes first.
  const Ran shuffled =
      OracleDevice(true, 5).Run(MakeWork(too_many), Who::kSeed);
  EXPECT_NE(shuffled.error.find("thread 0: writes threadgroup memory 0[-1], "
                                "which has 30 elements (schedule_seed 5)"),
            std::string::npos)
      << shuffled.error;

  // Unchecked, with a word of its own to write to, and as it is to be.
  EXPECT_EQ(OracleDevice().Wrong(MakeWork(nan, 1), Who::kSeed),
            "token 2, slot 0: the id is -1, not 6");
  for (const bool checked : {false, true}) {
    OracleDevice device(checked);
    EXPECT_EQ(device.Wrong(MakeWork(nan), Who::kBuiltIn), "");
    EXPECT_EQ(device.Wrong(MakeWork(too_many), Who::kBuiltIn), "");
  }
}

// The same defects in the seeds' own texts: the same wrong results, and in
// checked mode the line that writes at -1.
TEST(DeviceOracleRouteTexts, HaveTheDefects) {
  SWITCHYARD_NEEDS_SEEDS();
  Random random(9);
  RouteCase c = {Kernel::kRouter, 3, 9, 2, true, {}};
  c.logits = HealthyLogits(random, c.tokens, c.experts);
  RouteCase nan = c, too_many = c;
  nan.logits[2 * 9 + 4] = kNaN;
  too_many.top_k = 10;
  EXPECT_TRUE(SeedTexts::NewOracleDevice(true)
                  .Run(MakeWork(c), Who::kText)
                  .findings.empty());
  for (const RouteCase* bad : {&nan, &too_many}) {
    for (uint64_t schedule = 0; schedule < 20; ++schedule) {
      const OracleWork work = MakeWork(*bad);
      const Ran ran =
          SeedTexts::NewOracleDevice(true, schedule).Run(work, Who::kText);
      ASSERT_FALSE(ran.findings.empty()) << "schedule " << schedule;
      const Finding& finding = ran.findings[0];
      EXPECT_EQ(finding.kind, FindingKind::kBounds) << finding.text;
      EXPECT_EQ(finding.thread, 0u);
      const std::string line =
          SeedTexts::Of(true).Line(work.seed.name, finding.where.line);
      EXPECT_NE(line.find("] = -INFINITY"), std::string::npos) << line;
    }
  }

  RouteCase tall = {Kernel::kSoftmaxTopk, 2, 60, 1, true, {}};
  tall.logits = HealthyLogits(random, tall.tokens, tall.experts);
  // Lane 14 is one of those that the trees drop.
  tall.logits[60 + 14] =
      100.0f + *std::max_element(tall.logits.begin(), tall.logits.end());
  RouteCase wide = {Kernel::kRouter, 1, 60, 33, true, {}};
  wide.logits = HealthyLogits(random, wide.tokens, wide.experts);
  auto device = SeedTexts::NewOracleDevice(false);
  for (const RouteCase* bad : {&tall, &wide}) {
    const OracleWork work = MakeWork(*bad, 1);
    const std::string wrong = device.Wrong(work, Who::kSeed);
    EXPECT_NE(wrong, "");
    EXPECT_EQ(device.Wrong(work, Who::kText), wrong);
  }
}

}  // namespace
}  // namespace switchyard::testing_support
