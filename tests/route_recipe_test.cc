// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// RouteTopK by any options, on rows of every kind, against their restatement.

#include "switchyard/route.h"
#include "testing/route_case.h"
#include "tests/route_rows.h"

namespace switchyard::testing_support {
namespace {

class RouteRecipeTest : public IsaTest {};
class RouteRecipePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(RouteRecipeTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(RouteRecipePoolTest);

// `seed` fixes a case.
std::string WrongCase(uint64_t seed, size_t num_experts = 0) {
  Random random(seed);
  const RouteCase c = DrawRouteCase(random, num_experts);
  RouteResult result;
  const Status status = RunRouteCase(c, SerialExecutor(), &result);
  if (!status.ok()) return status.message();
  return WrongRouteCase(c, result);
}

TEST_P(RouteRecipeTest, AnyOptions) {
  // Other cases on every ISA: 20,000 in all on the six of x86.
  uint64_t first = 0;
  for (const char c : GetParam()) first = first * 31 + static_cast<uint8_t>(c);
  first *= 1000000;
  for (uint64_t seed = first; seed < first + 3400; ++seed) {
    const std::string wrong = WrongCase(seed);
    ASSERT_EQ(wrong, "") << "seed " << seed;
  }
}

// The same bits and counts for any batch split.
TEST_P(RouteRecipePoolTest, SameAsSerial) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const RouteCase c = DrawRouteCase(random);
    RouteResult serial, pooled;
    ASSERT_OK(RunRouteCase(c, SerialExecutor(), &serial));
    ASSERT_OK(RunRouteCase(c, executor(), &pooled));
    ExpectSame({pooled.ids, pooled.weights}, {serial.ids, serial.weights});
    ASSERT_EQ(CanonicalBits(pooled.identity), CanonicalBits(serial.identity));
    ASSERT_EQ(pooled.report, serial.report);
  }
}

// Rows of outputs that do not follow each other, one or the other or both.
TEST_P(RouteRecipeTest, OutputsWithGaps) {
  constexpr size_t kTokens = 20, kExperts = 16, kTopK = 3, kStride = 5;
  const std::vector<float> logits =
      Random(1).Uniforms(kTokens * kExperts, -4.0f, 4.0f);
  RouteOptions options;
  options.score = Score::kSigmoid;
  const auto run = [&](size_t id_stride, size_t weight_stride) {
    std::vector<int32_t> ids(kTokens * kStride, -7);
    std::vector<float> weights(kTokens * kStride, -7.0f);
    EXPECT_OK(RouteTopK({{logits.data(), kTokens, kExperts}},
                        {{ids.data(), kTokens, kTopK, id_stride},
                         {weights.data(), kTokens, kTopK, weight_stride}},
                        options));
    RouteResult result;
    for (size_t t = 0; t < kTokens; ++t) {
      for (size_t i = 0; i < kTopK; ++i) {
        result.ids.push_back(ids[t * id_stride + i]);
        result.weights.push_back(weights[t * weight_stride + i]);
      }
      for (size_t i = kTopK; i < id_stride; ++i) {
        EXPECT_EQ(ids[t * id_stride + i], -7) << t;
      }
      for (size_t i = kTopK; i < weight_stride; ++i) {
        EXPECT_EQ(weights[t * weight_stride + i], -7.0f) << t;
      }
    }
    return result;
  };
  const RouteResult want = run(kTopK, kTopK);
  for (const auto& [id_stride, weight_stride] :
       {std::pair{kStride, kTopK}, {kTopK, kStride}, {kStride, kStride}}) {
    const RouteResult got = run(id_stride, weight_stride);
    ExpectSame({got.ids, got.weights}, {want.ids, want.weights});
  }
}

// Rows that are not kept as a whole, and those just below.
TEST_P(RouteRecipeTest, LongRows) {
  for (const size_t experts : {16384u, 16386u, 20000u}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const std::string wrong = WrongCase(seed, experts);
      ASSERT_EQ(wrong, "") << experts << " experts, seed " << seed;
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
