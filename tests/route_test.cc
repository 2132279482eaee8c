// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/calls/route.h"

#include <cmath>
#include <cstring>

#include "switchyard/route.h"
#include "tests/route_rows.h"

namespace switchyard::testing_support {
namespace {

class RouteTest : public IsaTest {};
class RoutePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(RouteTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(RoutePoolTest);

// From the public tests of the Metal kernels that this one follows.
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

// Not by index, 1, 0, 2, 3, where probabilities underflow.
TEST_P(RouteTest, KnownAnswerWithUnderflow) {
  const Routed routed = RouteOf(
      {-200.0f, 0.0f, -150.0f, -300.0f, -120.0f, -110.0f, -105.0f, -400.0f}, 1,
      4);
  EXPECT_EQ(routed.ids, (std::vector<int32_t>{1, 6, 5, 4}));
  EXPECT_EQ(routed.weights, (std::vector<float>{1.0f, 0.0f, 0.0f, 0.0f}));
}

// A row with a NaN, a +inf or only -inf gets distinct valid ids; more than 32
// experts of a token are written; all weights are as if they were few.
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

// 60 is not a power of two: a tree reduction may drop the last 28 lanes.
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

// All equal, so that the selected are exactly top_k / experts of the sum, the
// least they can be: the clamp shows where it exceeds that share, and only
// there.
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
  EXPECT_EQ(weight(false, 0x1p-14f), 0x1p-16f);  // no part of it
  EXPECT_EQ(weight(false, 0.0f), 0x1p-16f);
}

// The clamp changes nothing if the selected have more than it asks for; and
// in between it scales.
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

// exp(-17) vanishes when it is added to one, but two of them do not.
TEST_P(RouteTest, SelectedAreSummedInSlotOrder) {
  std::vector<float> logits(9, -17.0f);
  logits[6] = 0.0f;
  EXPECT_EQ(RouteOf(logits, 1, 9).weights[0], 1.0f);
}

// Expert e in lane e mod 32, lanes folded 16, 8, 4, 2, 1.
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

// Another mix of types for each kind of executor.
TEST_P(RoutePoolTest, SameBitsAsSerialOnEveryThread) {
  Random random(5);
  // Well over seven grains of 30 us.
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
  // Any batch split gives the same bits.
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

// Rows of any bit patterns, of narrow and wide ranges, and with many ties.
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

// The same ids on all ISAs; the same bits of weights on those with FMA, few ulp
// apart on the others.
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

// The same with ids of another type, for shapes that are taken a vector of rows
// at a time, one by one, and with large top_k.
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
  ExpectSpoiltCallsAreRefused<calls::RouteCall>();
}

TEST_F(RouteErrors, Shapes) {
  EXPECT_ERROR("topk_ids: top_k (cols) is 0",
               c.out.topk_ids.cols = c.out.topk_weights.cols = 0);
  for (const size_t experts : {0u, 1u}) {
    EXPECT_ERROR("topk_ids: top_k (cols) exceeds the experts",
                 c.in.logits.cols = experts);
  }
  // The address is only looked at.
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

TEST_F(RouteErrors, AnExecutorThatFailsIsReported) {
  ExpectExecutorErrorsAreReported();
}

}  // namespace
}  // namespace switchyard::testing_support
