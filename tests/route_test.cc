// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/calls/route.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "switchyard/route.h"
#include "tests/route_rows.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

class RouteTest : public IsaTest {};
class RoutePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(RouteTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(RoutePoolTest);

// These cases are from the public tests of the Metal kernel that RouteTopK()
// follows.
TEST_P(RouteTest, KnownAnswers) {
  std::vector<float> logits;
  for (int b = 0; b < 3; ++b) {
    for (int e = 0; e < 16; ++e) {
      logits.push_back(std::sin(0.7f * static_cast<float>(b) +
                                0.13f * static_cast<float>(e)) +
                       0.05f * static_cast<float>(e));
    }
  }
  const Routed routed = RouteOf(logits, 3, 4);
  EXPECT_EQ(routed.ids, (std::vector<int32_t>{15, 14, 13, 12,  //
                                              10, 9, 11, 8,    //
                                              4, 5, 3, 6}));
  const float weights[] = {.25781122f, .25528407f, .24868114f, .23822355f,
                           .25243434f, .25149554f, .24951813f, .24655199f,
                           .2522141f,  .25163895f, .24881358f, .24733333f};
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(routed.weights[i], weights[i], 1e-5f) << i;
  }
}

// Ids are in the order of the logits, although probabilities underflow. In
// the order of indices they would be 1, 0, 2, 3.
TEST_P(RouteTest, KnownAnswerWithUnderflow) {
  const Routed routed = RouteOf(
      {-200.0f, 0.0f, -150.0f, -300.0f, -120.0f, -110.0f, -105.0f, -400.0f}, 1,
      4);
  EXPECT_EQ(routed.ids, (std::vector<int32_t>{1, 6, 5, 4}));
  EXPECT_EQ(routed.weights, (std::vector<float>{1.0f, 0.0f, 0.0f, 0.0f}));
}

// Rows with a NaN, a +inf or only -inf get distinct valid ids. More than 32
// experts per token give right results, too.
TEST_P(RouteTest, SpecialRowsAndLargeTopKAreLikeAnyOther) {
  Random random(1);
  for (const float special : {kNaN, kInf, -kInf}) {
    std::vector<float> logits = random.Uniforms(64, -3.0f, 3.0f);
    if (special == -kInf) logits.assign(64, -kInf);
    logits[17] = special;
    CheckRoute(logits, 1, 8);
  }
  CheckRoute(random.Uniforms(3 * 200, -3.0f, 3.0f), 3, 33);
  CheckRoute(random.Uniforms(3 * 200, -3.0f, 3.0f), 3, 100);
}

// 60 is not a power of two: a tree reduction could drop the last 28 lanes.
TEST_P(RouteTest, EveryLaneOfSixtyExpertsCounts) {
  for (size_t lane = 0; lane < 60; ++lane) {
    for (const float large : {100.0f, kNaN}) {
      std::vector<float> logits(60, 0.0f);
      logits[lane] = large;
      CheckGuarded<uint32_t>(logits, 1, 4, {}, 0, {});
      if (large == 100.0f) {
        const Routed routed = RouteOf(logits, 1, 4);
        EXPECT_EQ(routed.ids[0], static_cast<int32_t>(lane));
        EXPECT_EQ(routed.weights[0], 1.0f);
      }
    }
  }
}

TEST_P(RouteTest, RenormalizeMatters) {
  const std::vector<float> logits(8, 3.0f);
  const std::vector<float> halves = {0.5f, 0.5f}, eighths = {0.125f, 0.125f};
  EXPECT_EQ(RouteOf(logits, 1, 2, {true}).weights, halves);
  EXPECT_EQ(RouteOf(logits, 1, 2, {false}).weights, eighths);
}

// All logits are equal, so the selected experts have the least possible
// share, top_k / experts. The clamp matters only if it exceeds that share.
TEST_P(RouteTest, ClampMatters) {
  const std::vector<float> many(65536, -2.0f);
  const auto weight = [&](bool renormalize, float clamp) {
    const Routed routed = RouteOf(many, 1, 1, {renormalize, clamp});
    EXPECT_EQ(routed.ids[0], 0);
    return routed.weights[0];
  };
  EXPECT_EQ(weight(true, 0.0f), 1.0f);
  EXPECT_EQ(weight(true, 0x1p-16f), 1.0f);
  EXPECT_EQ(weight(true, 0x1p-15f), 0.5f);
  EXPECT_EQ(weight(true, 0x1p-14f), 0.25f);
  EXPECT_EQ(RouteOf(many, 1, 1).weights[0], 0.25f);  // the default
  EXPECT_EQ(weight(true, 1.0f), 0x1p-16f);
  EXPECT_EQ(weight(false, 0x1p-14f), 0x1p-16f);  // here the clamp has no effect
  EXPECT_EQ(weight(false, 0.0f), 0x1p-16f);
}

// The clamp changes nothing if the share of the selected experts is larger,
// and scales the weights otherwise.
TEST_P(RouteTest, ClampOnOrdinaryRows) {
  Random random(2);
  for (const float clamp : {0.0f, 0.01f, 0.2f, 0.5f, 0.9f, 1.0f}) {
    for (const size_t k : {1u, 4u, 40u}) {
      CheckRoute(random.Uniforms(5 * 100, -1.0f, 1.0f), 5, k, {true, clamp});
    }
  }
  const std::vector<float> logits = random.Uniforms(100, -1.0f, 1.0f);
  EXPECT_EQ(RouteOf(logits, 1, 4, {true, 1.0f}).weights,
            RouteOf(logits, 1, 4, {false}).weights);
  EXPECT_LT(RouteOf(logits, 1, 4, {true, 0.5f}).weights[0],
            RouteOf(logits, 1, 4, {true}).weights[0]);
}

TEST_P(RouteTest, WeightsSumToOne) {
  Random random(3);
  for (const size_t k : {1u, 8u, 32u, 60u}) {
    const Routed routed = RouteOf(random.Uniforms(60, -5.0f, 5.0f), 1, k);
    float sum = 0.0f;
    for (const float w : routed.weights) sum += w;
    EXPECT_NEAR(sum, 1.0f, 1e-5f);
    EXPECT_TRUE(std::is_sorted(routed.weights.rbegin(), routed.weights.rend()));
  }
}

// exp(-17) vanishes if it is added to 1. The sum of two such terms would not
// vanish.
TEST_P(RouteTest, SelectedAreSummedInSlotOrder) {
  std::vector<float> logits(9, -17.0f);
  logits[6] = 0.0f;
  EXPECT_EQ(RouteOf(logits, 1, 9).weights[0], 1.0f);
}

// The sum has 32 lanes. Expert e is added to lane e mod 32. Then the upper
// half of the lanes is added to the lower half, until one lane is left (16,
// 8, 4, 2, 1).
TEST_P(RouteTest, AllAreSummedInThirtyTwoLanes) {
  for (const size_t experts : {64u, 70u, 400u}) {
    std::vector<float> logits(experts, -17.0f);
    logits[0] = 0.0f;
    const float tiny = RouteOf({0.0f, -17.0f}, 1, 2, {false}).weights[1];
    float lanes[32] = {};
    for (size_t e = 0; e < experts; ++e) lanes[e % 32] += e == 0 ? 1.0f : tiny;
    for (size_t half = 16; half != 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    EXPECT_EQ(RouteOf(logits, 1, 1, {false}).weights[0], 1.0f / lanes[0]);
  }
}

TEST_P(RouteTest, SameBitsInFlushToZeroMode) {
  Random random(4);
  std::vector<float> logits = random.Uniforms(40 * 50, -90.0f, 0.0f);
  for (size_t i = 0; i < 500; ++i) {
    logits[i] = kDenormal * random.Uniform(-9.0f, 9.0f);
  }
  for (const bool renormalize : {true, false}) {
    for (const size_t k : {5u, 40u}) {
      CheckRoute(logits, 40, k, {renormalize});
      for (const InOut& types : EveryInOut()) {
        SCOPED_TRACE(types);
        const auto route = [&] {
          return TypedRoute(types, logits, 40, k, {renormalize});
        };
        const Routed expected = route();
        const ScopedFlushToZero flush;
        ExpectSame(route(), expected);
      }
    }
  }
}

// The types depend on the kind of executor, so that each kind tests another
// pair of types.
TEST_P(RoutePoolTest, SameBitsAsSerialOnEveryThread) {
  Random random(5);
  // The work exceeds seven grains of 30 us, one for each thread of the largest
  // pool.
  const size_t rows = 8191, experts = 60, k = 4;
  const std::vector<float> logits = random.Uniforms(rows * experts, -9, 9);
  executor().Rendezvous();
  const Routed routed = TypedRoute(kF32s, logits, rows, k, {false}, executor());
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
  ExpectRows(logits, k, {false}, routed);
  ExpectSame(routed, TypedRoute(kF32s, logits, rows, k, {false}));

  const InOut types = EveryInOut()[1 + static_cast<size_t>(GetParam().pool)];
  SCOPED_TRACE(types);
  const Routed expected = ExpectedRoute(types, logits, rows, k, {false});
  ExpectSame(TypedRoute(types, logits, rows, k, {false}, executor()), expected);
  // The batch may be split in any way. The bits do not change.
  Stored in(types.in, logits);
  Stored weights(types.out, std::vector<float>(rows * k));
  std::vector<int32_t> ids(rows * k);
  for (size_t r = 0; r < rows;) {
    const size_t end = std::min<size_t>(rows, r + 1 + random.Below(40));
    const AnyMatrix all_ids(ids.data(), rows, k);
    ASSERT_OK(RouteTopK(
        {in.View(rows, experts).RowRange(r, end)},
        {all_ids.RowRange(r, end), weights.View(rows, k).RowRange(r, end)},
        {false}, executor()));
    r = end;
  }
  ExpectSame({ids, weights.Values()}, expected);
}

TEST_P(RoutePoolTest, LargeTopKOnEveryThread) {
  Random random(6);
  const size_t rows = 1021, experts = 200, k = 50;
  const std::vector<float> logits = random.Uniforms(rows * experts, -9, 9);
  executor().Rendezvous();
  const Routed routed = RouteOf(logits, rows, k, {}, executor());
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
  ExpectRows(logits, k, {}, routed);
}

// Returns rows with random bits, with a wide or a narrow range, or with many
// ties.
std::vector<float> FuzzedRows(size_t rows, size_t experts, Random& random) {
  std::vector<float> logits;
  for (size_t r = 0; r < rows; ++r) {
    const size_t kind = random.Below(5);
    const float range = random.Uniform(0.0f, 3.0f);
    for (size_t e = 0; e < experts; ++e) {
      const float uniform = random.Uniform(-50.0f, 50.0f);
      logits.push_back(kind == 0   ? random.AnyBits()
                       : kind == 1 ? uniform
                       : kind == 2 ? std::floor(uniform * 0.1f)
                                   : uniform * 0.02f * range);
    }
  }
  return logits;
}

// All ISAs select the same ids. Weights have the same bits on ISAs with FMA,
// and differ by at most 10 ulp on the other ISAs.
TEST(RouteAcrossIsas, Agree) {
  for (uint64_t seed = 100; seed < 160; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const size_t rows = 24, experts = 1 + random.Below(300);
    const size_t k = 1 + random.Below(std::min<size_t>(experts, 40));
    const RouteOptions options = {random.Below(2) == 0,
                                  random.Below(2) == 0 ? 0x1p-14f : 0.5f};
    const std::vector<float> logits = FuzzedRows(rows, experts, random);
    Routed first;
    for (const std::string& isa : RunnableIsaNames()) {
      SCOPED_TRACE(isa);
      const ScopedIsa scoped(isa);
      const Routed routed = RouteOf(logits, rows, k, options);
      ASSERT_EQ(LastIsa()->name, isa);
      ExpectRows(logits, k, options, routed);
      if (first.ids.empty()) first = routed;
      ASSERT_EQ(routed.ids, first.ids);
      if (ActiveIsa().fma) {
        ASSERT_EQ(CanonicalBits(routed.weights), CanonicalBits(first.weights));
        continue;
      }
      for (size_t i = 0; i < routed.weights.size(); ++i) {
        const double other = static_cast<double>(first.weights[i]);
        ASSERT_LE(UlpError(routed.weights[i], other), 10.0) << i;
      }
    }
  }
}

// Tests calls with ids of type Id, with all views between guard pages.
// The shapes cover all code paths: as many rows at a time as a vector has
// lanes, single rows, and a large top_k.
template <class Id>
void CheckIdsOfType() {
  Random random(7);
  for (const size_t rows : {1u, 2u, 17u, 40u}) {
    for (const size_t experts : {1u, 8u, 17u, 60u, 128u, 300u}) {
      for (const size_t top_k : {1u, 2u, 8u, 16u, 17u, 33u}) {
        if (top_k > experts) continue;
        SCOPED_TRACE(testing::Message() << rows << " rows of " << experts
                                        << " experts, top_k " << top_k);
        CheckGuarded<Id>(FuzzedRows(rows, experts, random), rows, top_k, {},
                         random.Below(4), {0, random.Below(3), 0});
      }
    }
  }
}

TEST_P(RouteTest, UnsignedIds) { CheckIdsOfType<uint32_t>(); }
TEST_P(RouteTest, WideIds) { CheckIdsOfType<int64_t>(); }

TEST_P(RoutePoolTest, WideIdsOnEveryThread) {
  const size_t rows = 8191, experts = 60, k = 4;
  const std::vector<float> logits = Random(8).Uniforms(rows * experts, -9, 9);
  ExpectSame(RouteOf<int64_t>(logits, rows, k, {}, executor()),
             RouteOf(logits, rows, k));
}

class RouteErrors : public CallErrors<RouteInputs, RouteOutputs, RouteOptions> {
 protected:
  RouteErrors() : CallErrors("RouteTopK", RouteTopK), ids_(4, 2), w_(4, 2) {
    call_ = {{{logits_.data(), 4, 8}}, {ids_.view(), w_.view()}, {}};
  }
  void ExpectUntouched() const override {
    ids_.ExpectUntouched("topk_ids");
    w_.ExpectUntouched("topk_weights");
    EXPECT_EQ(logits_, std::vector<float>(64, 1.0f));
  }

  const std::vector<float> logits_ = std::vector<float>(64, 1.0f);
  const Guarded<int64_t> ids_;
  const Guarded<float> w_;
};

TEST_F(RouteErrors, EveryLineOfItsTable) {
  ExpectExecutorErrorsAreReported();
  ExpectSpoiltCallsAreRefused<calls::RouteCall>();
}

TEST_F(RouteErrors, Shapes) {
  EXPECT_ERROR("topk_ids: top_k (cols) is 0",
               c.out.topk_ids.cols = c.out.topk_weights.cols = 0);
  for (const size_t experts : {0u, 1u}) {
    EXPECT_ERROR("topk_ids: top_k (cols) exceeds the experts",
                 c.in.logits.cols = experts);
  }
  // The check compares addresses only, and reads no memory.
  EXPECT_ERROR(
      "logits: more than 2^31 - 1 experts",
      c.in.logits.rows = c.out.topk_ids.rows = c.out.topk_weights.rows = 1,
      c.in.logits.cols = size_t{1} << 31);
}

TEST_F(RouteErrors, NothingToDoIsFine) {
  const void* const logits = nullptr;
  void* const out = nullptr;
  for (const Type ids : {Type::kI32, Type::kU32, Type::kI64}) {
    for (const InOut& types : EveryInOut()) {
      EXPECT_OK(RouteTopK({{logits, types.in, 0, 8, 8}},
                          {{out, ids, 0, 2, 2}, {out, types.out, 0, 2, 2}}));
    }
  }
}

// An executor that records the grain. The estimated time per row decides
// which batches use a second thread.
class GrainExecutor final : public Executor {
 public:
  size_t grain = 0;
  size_t Concurrency() const noexcept override { return 2; }
  Status ParallelFor(size_t count, size_t rows, Body body,
                     void* context) noexcept override {
    grain = rows;
    body(context, 0, 0, count);
    return Status();
  }
};

TEST(RouteGrain, RowsTakeLongerWhereAllExpertsAreSummed) {
  const size_t tokens = 4096, experts = 128, top_k = 8;
  const std::vector<float> logits(tokens * experts, 1.0f);
  std::vector<int32_t> ids(tokens * top_k);
  std::vector<float> weights(tokens * top_k);
  const auto grain = [&](const RouteOptions& options) {
    GrainExecutor executor;
    EXPECT_OK(RouteTopK(
        {{logits.data(), tokens, experts}},
        {{ids.data(), tokens, top_k}, {weights.data(), tokens, top_k}}, options,
        executor));
    return executor.grain;
  };
  const size_t renormalized = grain({true});
  EXPECT_LT(grain({false}), renormalized);
  // The first clamp exceeds top_k / experts, so it matters, and rows take
  // longer.
  EXPECT_LT(grain({true, 0.5f}), renormalized);
  EXPECT_EQ(grain({true, 0.0f}), renormalized);
}

// On a slower ISA, smaller batches are worth a second thread.
TEST(RouteGrain, FollowsTheIsa) {
  const size_t tokens = 4096, experts = 128, top_k = 8;
  const std::vector<float> logits(tokens * experts, 1.0f);
  std::vector<int32_t> ids(tokens * top_k);
  std::vector<float> weights(tokens * top_k);
  std::vector<size_t> grains;
  for (const Isa& isa : RunnableIsas()) {
    const ScopedIsa cap(isa.name);
    GrainExecutor executor;
    ASSERT_OK(RouteTopK(
        {{logits.data(), tokens, experts}},
        {{ids.data(), tokens, top_k}, {weights.data(), tokens, top_k}}, {},
        executor));
    EXPECT_STREQ(LastIsa()->name, isa.name);
    grains.push_back(executor.grain);
  }
  EXPECT_TRUE(std::is_sorted(grains.rbegin(), grains.rend()));
  // The fallback has no vectors. It takes 2.5 times the time of AVX2, and an
  // even larger multiple of the time of AVX-512.
  if (grains.size() > 1) {
    EXPECT_GT(grains.front(), 2 * grains.back());
  }
}

// Tests which experts RouteTopK() selects, for every shape and for difficult
// rows, and that it stays within its views.

class RouteSelectionTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(RouteSelectionTest);

// Returns the numbers of experts to test: 1 to 2 * 64 + 1, and larger numbers
// that occur in real models.
std::vector<size_t> ExpertCounts() {
  std::vector<size_t> counts = {160, 256, 288, 384, 512, 768, 896, 1000};
  for (size_t experts = 1; experts <= 2 * 64 + 1; ++experts) {
    counts.push_back(experts);
  }
  return counts;
}
// Returns values of top_k from 1 to `experts`.
std::vector<size_t> TopKs(size_t experts) {
  std::vector<size_t> top_ks = {experts};
  for (const size_t k :
       {1u, 2u, 4u, 6u, 8u, 10u, 16u, 17u, 22u, 32u, 33u, 64u, 65u}) {
    if (k < experts) top_ks.push_back(k);
  }
  return top_ks;
}

TEST_P(RouteSelectionTest, EveryShapeAndMisalignment) {
  Random random(1);
  for (const size_t experts : ExpertCounts()) {
    for (const size_t k : TopKs(experts)) {
      const size_t slacks = experts <= 129 ? 4 : 1;
      for (size_t s = 0; s < slacks; ++s) {
        CheckGuarded(random.Uniforms(experts, -8.0f, 8.0f), 1, k, {s % 2 == 0},
                     s, {});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(RouteSelectionTest, StridedViewsLeaveTheGapsAlone) {
  Random random(2);
  // The kernel processes fewer than 21 rows at a time.
  const size_t rows = 21;
  for (const size_t experts : {8u, 16u, 17u, 60u, 130u}) {
    for (const size_t k : {1u, 2u, 7u, 8u}) {
      CheckGuarded(random.Uniforms(rows * experts, -9.0f, 9.0f), rows, k, {}, 0,
                   {3, 1, 18});
    }
  }
}

// ids and weights are columns of one matrix [rows, 2 * k]. They have equal
// strides and disjoint columns.
TEST_P(RouteSelectionTest, InterleavedOutputs) {
  Random random(3);
  const size_t rows = 9, experts = 40, k = 3;
  const std::vector<float> logits = random.Uniforms(rows * experts, -9, 9);
  const Guarded<float> both(rows, 2 * k);
  const Matrix<int32_t> ids(reinterpret_cast<int32_t*>(both.data()), rows, k,
                            2 * k);
  ASSERT_OK(RouteTopK({{logits.data(), rows, experts}},
                      {ids, both.view().ColRange(k, 2 * k)}));
  both.ExpectIntact("outputs");
  for (size_t r = 0; r < rows; ++r) {
    const float* row = &logits[r * experts];
    ExpectRow({row, row + experts}, k, {}, ids.Row(r),
              both.data() + r * 2 * k + k);
  }
}

// The place of a logit: index `e` in a row of `experts` logits.
// Kind::element() computes the logit at this place.
struct Place {
  size_t e, experts, top_k;
  Random& r;

  float index() const { return static_cast<float>(e); }
  float Pick(std::initializer_list<float> values) const {
    return values.begin()[r.Below(values.size())];
  }
  float Within(float x) const { return r.Uniform(-x, x); }
};
struct Kind {
  const char* name;
  float (*element)(const Place& at);
};

// Ordinary rows, and rows that are difficult for the kernel. On difficult rows,
// its bound from group maxima, its filter or its rule for ties could fail.
const Kind kKinds[] = {
    {"ordinary", [](const Place& at) { return at.Within(9.0f); }},
    {"all equal", [](const Place&) { return -1.5f; }},
    {"all +0 or -0",
     [](const Place& at) {
       return at.Pick({0.0f, -0.0f});
     }},
    {"zeros among denormals",
     [](const Place& at) {
       return at.Pick({0.0f, -0.0f, kDenormal, -kDenormal, 1e-45f});
     }},
    {"two values",
     [](const Place& at) {
       return at.Pick({0.0f, 1.0f});
     }},
    {"few values",
     [](const Place& at) {
       return at.Pick({0, 0.25f, 0.5f, 0.75f, 1});
     }},
    {"integers", [](const Place& at) { return std::floor(at.Within(9.0f)); }},
    {"sorted up", [](const Place& at) { return 0.125f * at.index(); }},
    {"sorted down", [](const Place& at) { return -0.125f * at.index(); }},
    {"sorted up slowly",
     [](const Place& at) { return std::floor(at.index() / 3.0f); }},
    {"spread over 200", [](const Place& at) { return at.Within(100.0f); }},
    {"huge",
     [](const Place& at) {
       return at.Pick({3e38f, at.Within(3e38f)});
     }},
    // All large logits are in a single group, or the groups with large logits
    // are one too few for the kernel's bound.
    {"heavy in one of 16",
     [](const Place& at) { return at.e % 16 == 5 ? 9 + at.index() : 0; }},
    {"heavy in one of 64",
     [](const Place& at) {
       return at.e % 64 == 63 ? 9 + at.index() : -at.index();
     }},
    {"heavy in 7 of 16",
     [](const Place& at) {
       return (at.e % 16 < 7 ? 5 : 0) + at.index() * 1e-3f;
     }},
    {"heavy in 31 of 64",
     [](const Place& at) {
       return (at.e % 64 < 31 ? 5 : 0) + at.r.Uniform(0.0f, 1.0f);
     }},
    {"only an eighth is not -inf",
     [](const Place& at) { return at.e % 8 == 3 ? at.Within(3.0f) : -kInf; }},
    {"fewer than top_k are not -inf",
     [](const Place& at) {
       return at.experts - at.e <= at.top_k / 2 ? at.Within(9.0f) : -kInf;
     }},
    {"only -inf", [](const Place&) { return -kInf; }},
    {"some +inf",
     [](const Place& at) { return at.r.Below(8) ? at.Within(9.0f) : kInf; }},
    {"mostly +inf",
     [](const Place& at) {
       return at.Pick({1, kInf, kInf});
     }},
    {"infinities",
     [](const Place& at) {
       return at.Pick({kInf, -kInf, 1.0f, 3.4e38f, -3.4e38f});
     }},
    {"one NaN", [](const Place& at) { return at.Within(9.0f); }},
    {"only NaN", [](const Place& at) { return at.e % 2 == 0 ? kNaN : -kNaN; }},
    {"many NaN",
     [](const Place& at) { return at.r.Below(3) ? at.Within(3.0f) : kNaN; }},
    {"NaN and infinities",
     [](const Place& at) {
       return at.Pick({kInf, -kInf, kNaN, -kNaN, 0.0f, -0.0f});
     }},
    {"any bits", [](const Place& at) { return at.r.AnyBits(); }},
};

void AppendRow(const Kind& kind, size_t experts, size_t top_k, Random& random,
               std::vector<float>& logits) {
  for (size_t e = 0; e < experts; ++e) {
    logits.push_back(kind.element({e, experts, top_k, random}));
  }
  if (kind.name == std::string("one NaN")) {
    logits[logits.size() - 1 - random.Below(experts)] = kNaN;
  }
}

TEST_P(RouteSelectionTest, HardRows) {
  Random random(4);
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    for (const size_t experts : {1u, 3u, 8u, 15u, 16u, 17u, 31u, 60u, 64u, 72u,
                                 128u, 160u, 257u, 512u, 896u}) {
      for (const size_t k : TopKs(experts)) {
        const bool renormalize = random.Below(2) == 0;
        // A difficult row is between two ordinary rows.
        std::vector<float> logits;
        for (const Kind* row : {&kKinds[0], &kind, &kKinds[0]}) {
          AppendRow(*row, experts, k, random, logits);
        }
        CheckRoute(logits, 3, k, {renormalize});
        if (HasFailure()) return;
      }
    }
  }
}

// Puts a NaN of any sign and payload in each lane of a vector and of its
// tail.
TEST_P(RouteSelectionTest, NaNInEveryPosition) {
  Random random(5);
  const uint32_t payloads[3] = {0x7F800001, 0xFFC12345, 0x7FFFFFFF};
  for (const size_t experts : {1u, 8u, 16u, 17u, 67u, 130u}) {
    for (size_t position = 0; position < experts; ++position) {
      for (const size_t k : TopKs(experts)) {
        std::vector<float> logits = random.Uniforms(experts, -3.0f, 3.0f);
        std::memcpy(&logits[position], &payloads[position % 3], sizeof(float));
        CheckRoute(logits, 1, k, {position % 2 == 0});
        if (HasFailure()) return;
      }
    }
  }
}

// A single element is the largest, the smallest or infinite, at each
// position.
TEST_P(RouteSelectionTest, ExtremeInEveryPosition) {
  for (const size_t experts : {1u, 8u, 16u, 17u, 67u, 130u}) {
    for (size_t position = 0; position < experts; ++position) {
      for (const float extreme : {kInf, -kInf, 3e38f, -3e38f, 100.0f, 1e-45f}) {
        std::vector<float> logits(experts, 0.0f);
        logits[position] = extreme;
        for (const size_t k : {size_t{1}, (experts + 1) / 2, experts}) {
          CheckRoute(logits, 1, k, {position % 2 == 0});
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(RouteSelectionTest, InfinitiesShareEqually) {
  const std::vector<float> logits = {1.0f, kInf, -kInf, kInf, 3e38f, kInf};
  for (const bool renormalize : {true, false}) {
    const Routed routed = RouteOf(logits, 1, 6, {renormalize});
    EXPECT_EQ(routed.ids, (std::vector<int32_t>{1, 3, 5, 4, 0, 2}));
    const float third = 1.0f / 3.0f;
    EXPECT_EQ(routed.weights,
              (std::vector<float>{third, third, third, 0.0f, 0.0f, 0.0f}));
  }
  // Two of three equal experts together have two thirds of the probability.
  EXPECT_EQ(RouteOf(logits, 1, 2, {true}).weights,
            (std::vector<float>{0.5f, 0.5f}));
  EXPECT_EQ(RouteOf(logits, 1, 2, {false}).weights,
            (std::vector<float>{1.0f / 3.0f, 1.0f / 3.0f}));
}

TEST_P(RouteSelectionTest, MaskedRowsGetZeroWeights) {
  for (const size_t experts : {4u, 16u, 60u, 512u}) {
    const std::vector<float> logits(experts, -kInf);
    for (const bool renormalize : {true, false}) {
      const Routed routed = RouteOf(logits, 1, 4, {renormalize, 1.0f});
      EXPECT_EQ(routed.ids, (std::vector<int32_t>{0, 1, 2, 3}));
      EXPECT_EQ(CanonicalBits(routed.weights), std::vector<uint32_t>(4, 0));
    }
  }
}

// The logits are so close or so low that their probabilities are equal
// floats. Even then the larger logit wins, not the smaller index.
TEST_P(RouteSelectionTest, SelectsOnLogitsWhereProbabilitiesTie) {
  const Routed close = RouteOf({0.0f, 1e-8f, -1e-8f, 2e-8f}, 1, 3);
  EXPECT_EQ(close.ids, (std::vector<int32_t>{3, 1, 0}));
  EXPECT_EQ(Bits(close.weights[0]), Bits(close.weights[2]));
  const Routed low = RouteOf({-500.0f, 0.0f, -400.0f, -300.0f}, 1, 3);
  EXPECT_EQ(low.ids, (std::vector<int32_t>{1, 3, 2}));
  EXPECT_EQ(low.weights, (std::vector<float>{1.0f, 0.0f, 0.0f}));
  const Routed denormal = RouteOf({0.0f, 0x1p-149f, -0x1p-149f}, 1, 3);
  EXPECT_EQ(denormal.ids, (std::vector<int32_t>{1, 0, 2}));
}

// Tests batches of many rows. The kernel processes as many rows at a time as
// a vector has lanes. It processes difficult rows and the remainder one by one.
// Both ways give the same bits, whatever the neighbouring rows contain.
class RouteBatchTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(RouteBatchTest);

struct Batch {
  std::vector<float> logits;
  size_t rows, experts, top_k;
  RouteOptions options;
};

// Draws a batch. All rows are of one kind, or one row in eight is of any kind,
// or all rows are of any kind.
Batch MakeBatch(size_t rows, size_t experts, size_t top_k, Random& random) {
  Batch batch = {{}, rows, experts, top_k, {}};
  batch.options = {random.Below(2) == 0,
                   random.Below(3) == 0 ? 0.5f : 0x1p-14f};
  const auto any = [&] { return &kKinds[random.Below(std::size(kKinds))]; };
  const Kind* const main = any();
  const size_t others = random.Below(3);  // 0: none, 1: one row in 8, 2: all
  for (size_t r = 0; r < rows; ++r) {
    const bool other = others == 2 || (others == 1 && random.Below(8) == 0);
    AppendRow(other ? *any() : *main, experts, top_k, random, batch.logits);
  }
  return batch;
}

void ExpectSameAsRowByRow(const Batch& batch) {
  const size_t experts = batch.experts, k = batch.top_k;
  const Routed together = RouteOf(batch.logits, batch.rows, k, batch.options);
  ExpectRows(batch.logits, k, batch.options, together);
  for (size_t r = 0; r < batch.rows; ++r) {
    const float* const row = batch.logits.data() + r * experts;
    const Routed alone =
        RouteOf(std::vector<float>(row, row + experts), 1, k, batch.options);
    const auto slots = [&](const auto& all) {
      return std::vector(all.data() + r * k, all.data() + (r + 1) * k);
    };
    SCOPED_TRACE(testing::Message() << "row " << r);
    ExpectSame({slots(together.ids), slots(together.weights)}, alone);
  }
}

// The numbers of experts from 1 to 70 cover the kernel's first two groups of
// candidates and a few experts more. top_k goes up to values for which the
// kernel processes rows one by one. A batch has up to 41 rows, two and a half
// times as many as a vector of AVX-512 has lanes.
TEST_P(RouteBatchTest, SameBitsAsRowByRow) {
  Random random(1);
  std::vector<size_t> counts = {96, 128, 160, 256, 384, 512, 1000};
  for (size_t experts = 1; experts <= 70; ++experts) counts.push_back(experts);
  for (const size_t experts : counts) {
    for (size_t k = 1; k <= std::min<size_t>(experts, 18); ++k) {
      const size_t rows = 1 + random.Below(41);
      SCOPED_TRACE(testing::Message() << rows << " rows of " << experts
                                      << " experts, top_k " << k);
      ExpectSameAsRowByRow(MakeBatch(rows, experts, k, random));
      if (HasFailure()) return;
    }
  }
}

TEST_P(RouteBatchTest, EveryNumberOfRows) {
  Random random(2);
  for (size_t rows = 1; rows <= 70; ++rows) {
    for (const size_t experts : {8u, 16u, 17u, 64u, 72u}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << experts);
      ExpectSameAsRowByRow(
          MakeBatch(rows, experts, std::min<size_t>(8, experts), random));
      if (HasFailure()) return;
    }
  }
}

// The views end at an inaccessible page and begin at any element.
TEST_P(RouteBatchTest, StaysInsideItsViews) {
  Random random(3);
  for (const size_t experts : {2u, 7u, 8u, 15u, 16u, 17u, 60u, 64u, 131u}) {
    for (size_t k = 1; k <= std::min<size_t>(experts, 17); ++k) {
      const size_t rows = 16 + random.Below(20), slack = random.Below(4);
      const Batch batch = MakeBatch(rows, experts, k, random);
      CheckGuarded(batch.logits, rows, k, batch.options, slack,
                   {random.Below(3), random.Below(3), random.Below(3)});
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
