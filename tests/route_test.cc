// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "testing/guarded_buffer.h"
#include "testing/inputs.h"
#include "tests/route_rows.h"
#include "tests/target_test.h"

namespace switchyard {
namespace testing_support {
namespace {

class RouteTest : public IsaTest {};
class RoutePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(RouteTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(RoutePoolTest);

// Cases from the seed projects' public tests.
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

// The seed orders those whose probability underflows by index: 1, 0, 2, 3.
TEST_P(RouteTest, KnownAnswerWithUnderflow) {
  const Routed routed = RouteOf(
      {-200.0f, 0.0f, -150.0f, -300.0f, -120.0f, -110.0f, -105.0f, -400.0f}, 1,
      4);
  EXPECT_EQ(routed.ids, (std::vector<int32_t>{1, 6, 5, 4}));
  EXPECT_EQ(routed.weights, (std::vector<float>{1.0f, 0.0f, 0.0f, 0.0f}));
}

// A row with a NaN, a +inf or only -inf gets distinct valid ids; more than 32
// experts of a token are written; all weights are as if they were few.
TEST_P(RouteTest, SeedDefectsOfTheRouter) {
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

// 60 is not a power of two: the seed's tree reduction drops the last 28 lanes.
TEST_P(RouteTest, SeedDefectOfTheTreeReduction) {
  for (size_t lane = 0; lane < 60; ++lane) {
    for (const float large : {100.0f, kNaN}) {
      std::vector<float> logits(60, 0.0f);
      logits[lane] = large;
      uint32_t ids[4] = {};
      float weights[4] = {};
      const Status status =
          RouteTopK({logits.data(), 1, 60}, {}, Matrix<uint32_t>(ids, 1, 4),
                    {weights, 1, 4});
      ASSERT_TRUE(status.ok()) << status.message();
      int32_t as_signed[4];
      std::memcpy(as_signed, ids, sizeof(ids));
      ExpectRow(logits, 4, {}, as_signed, weights);
      if (large == 100.0f) {
        EXPECT_EQ(ids[0], lane);
        EXPECT_EQ(weights[0], 1.0f);
      }
    }
  }
}

TEST_P(RouteTest, RenormalizeMatters) {
  const std::vector<float> logits(8, 3.0f);
  const std::vector<float> halves = {0.5f, 0.5f}, eighths = {0.125f, 0.125f};
  EXPECT_EQ(RouteOf(logits, 1, 2, Options(true)).weights, halves);
  EXPECT_EQ(RouteOf(logits, 1, 2, Options(false)).weights, eighths);
}

// All equal, so that the selected are exactly top_k / experts of the sum, the
// least they can be: the clamp shows where it exceeds that share, and only
// there.
TEST_P(RouteTest, ClampMatters) {
  const std::vector<float> many(65536, -2.0f);
  const auto weight = [&](bool renormalize, float clamp) {
    const Routed routed = RouteOf(many, 1, 1, Options(renormalize, clamp));
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

// Where the selected have more than the clamp asks for, it changes nothing; and
// in between it scales.
TEST_P(RouteTest, ClampOnOrdinaryRows) {
  Random random(2);
  for (const float clamp : {0.0f, 0.01f, 0.2f, 0.5f, 0.9f, 1.0f}) {
    for (const size_t k : {1u, 4u, 40u}) {
      CheckRoute(random.Uniforms(5 * 100, -1.0f, 1.0f), 5, k,
                 Options(true, clamp));
    }
  }
  const std::vector<float> logits = random.Uniforms(100, -1.0f, 1.0f);
  EXPECT_EQ(RouteOf(logits, 1, 4, Options(true, 1.0f)).weights,
            RouteOf(logits, 1, 4, Options(false)).weights);
  EXPECT_LT(RouteOf(logits, 1, 4, Options(true, 0.5f)).weights[0],
            RouteOf(logits, 1, 4, Options(true)).weights[0]);
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
    const float tiny = RouteOf({0.0f, -17.0f}, 1, 2, Options(false)).weights[1];
    float lanes[32] = {};
    for (size_t e = 0; e < experts; ++e) lanes[e % 32] += e == 0 ? 1.0f : tiny;
    for (size_t half = 16; half != 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    EXPECT_EQ(RouteOf(logits, 1, 1, Options(false)).weights[0],
              1.0f / lanes[0]);
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
      const Routed expected = RouteOf(logits, 40, k, Options(renormalize));
      ExpectRows(logits, k, Options(renormalize), expected);
      const ScopedFlushToZero flush;
      const Routed actual = RouteOf(logits, 40, k, Options(renormalize));
      EXPECT_EQ(actual.ids, expected.ids);
      EXPECT_EQ(CanonicalBits(actual.weights), CanonicalBits(expected.weights));
    }
  }
}

TEST_P(RoutePoolTest, SameBitsAsSerialOnEveryThread) {
  Random random(5);
  // Well over seven grains of 30 us.
  const size_t rows = 8191, experts = 60, k = 4;
  const std::vector<float> logits = random.Uniforms(rows * experts, -9, 9);
  executor().Rendezvous();
  const Routed routed = RouteOf(logits, rows, k, Options(false), executor());
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
  ExpectRows(logits, k, Options(false), routed);
  const Routed serial = RouteOf(logits, rows, k, Options(false));
  ASSERT_EQ(routed.ids, serial.ids);
  ASSERT_EQ(CanonicalBits(routed.weights), CanonicalBits(serial.weights));
  // Any batch split gives the same bits.
  Routed slices = {std::vector<int32_t>(rows * k),
                   std::vector<float>(rows * k)};
  for (size_t r = 0; r < rows;) {
    const size_t n = std::min<size_t>(rows - r, 1 + random.Below(40));
    ASSERT_TRUE(RouteTopK({&logits[r * experts], n, experts}, Options(false),
                          Matrix<int32_t>(&slices.ids[r * k], n, k),
                          {&slices.weights[r * k], n, k}, executor())
                    .ok());
    r += n;
  }
  EXPECT_EQ(slices.ids, serial.ids);
  EXPECT_EQ(CanonicalBits(slices.weights), CanonicalBits(serial.weights));
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
    const RouteOptions options =
        Options(random.Below(2) == 0, random.Below(2) == 0 ? 0x1p-14f : 0.5f);
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

void ExpectError(const Status& status, const char* message) {
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_STREQ(status.message(), message);
}

TEST(RouteErrors, NameTheArgumentAndWriteNothing) {
  std::vector<float> logits(64, 1.0f);
  const Guarded<int32_t> ids_buffer(4, 2);
  const Guarded<float> weights_buffer(4, 2);
  const Matrix<const float> l(logits.data(), 4, 8);
  const Matrix<int32_t> ids = ids_buffer.view();
  const Matrix<float> w = weights_buffer.view();
  const size_t huge = SIZE_MAX / 4;
  const auto ids_of = [&](size_t rows, size_t cols, size_t stride) {
    return Matrix<int32_t>(ids.data, rows, cols, stride);
  };
  const auto route = [&](Matrix<const float> a, Matrix<int32_t> b,
                         Matrix<float> c, float clamp = 0.0f) {
    return RouteTopK(a, Options(true, clamp), b, c);
  };
  ExpectError(route({nullptr, 4, 8}, ids, w),
              "RouteTopK: logits: data is null");
  ExpectError(route(l, Matrix<int32_t>(nullptr, 4, 2), w),
              "RouteTopK: ids: data is null");
  ExpectError(route(l, ids, {nullptr, 4, 2}),
              "RouteTopK: weights: data is null");
  ExpectError(route({l.data, 4, 8, 7}, ids, w),
              "RouteTopK: logits: stride is smaller than cols");
  ExpectError(route(l, ids_of(4, 2, 1), w),
              "RouteTopK: ids: stride is smaller than cols");
  ExpectError(route(l, ids, {w.data, 4, 2, 1}),
              "RouteTopK: weights: stride is smaller than cols");
  ExpectError(route({l.data, 4, 8, huge}, ids, w),
              "RouteTopK: logits: size overflows the address space");
  ExpectError(route(l, ids_of(4, 2, huge), w),
              "RouteTopK: ids: size overflows the address space");
  ExpectError(route(l, ids, {w.data, huge, 2}),
              "RouteTopK: weights: size overflows the address space");
  ExpectError(route(l, ids_of(3, 2, 2), w),
              "RouteTopK: ids: rows differ from logits'");
  ExpectError(route(l, ids, {w.data, 3, 2}),
              "RouteTopK: weights: rows differ from logits'");
  ExpectError(route(l, ids, {w.data, 4, 1}),
              "RouteTopK: weights: cols differ from ids'");
  ExpectError(route(l, ids_of(4, 0, 2), {w.data, 4, 0}),
              "RouteTopK: ids: top_k (cols) is zero");
  ExpectError(route({l.data, 4, 1}, ids, w),
              "RouteTopK: ids: top_k (cols) exceeds the experts");
  ExpectError(route({l.data, 4, 0}, ids, w),
              "RouteTopK: ids: top_k (cols) exceeds the experts");
  // The address is only looked at.
  ExpectError(
      route({l.data, 1, size_t{1} << 31}, ids_of(1, 2, 2), {w.data, 1, 2}),
      "RouteTopK: logits: more than 2^31 - 1 experts");
  for (const float clamp : {-0.1f, 1.1f, kInf, -kInf, kNaN}) {
    ExpectError(route(l, ids, w, clamp),
                "RouteTopK: options: clamp is not in [0, 1]");
  }
  ExpectError(route({w.data, 4, 2}, ids, w),
              "RouteTopK: weights: overlaps logits");
  ExpectError(route({reinterpret_cast<float*>(ids.data) + 1, 3, 2},
                    ids_of(3, 2, 2), {w.data, 3, 2}),
              "RouteTopK: ids: overlaps logits");
  ExpectError(route(l, ids, {reinterpret_cast<float*>(ids.data), 4, 2}),
              "RouteTopK: weights: overlaps ids");
  ids_buffer.ExpectUntouched("ids");
  weights_buffer.ExpectUntouched("weights");
  EXPECT_EQ(logits, std::vector<float>(64, 1.0f));
}

TEST(RouteErrors, NothingToDoIsFine) {
  EXPECT_TRUE(RouteTopK({nullptr, 0, 8}, {}, Matrix<int32_t>(nullptr, 0, 2),
                        {nullptr, 0, 2})
                  .ok());
  EXPECT_TRUE(RouteTopK({nullptr, 0, 8}, {}, Matrix<uint32_t>(nullptr, 0, 2),
                        {nullptr, 0, 2})
                  .ok());
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
