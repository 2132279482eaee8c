// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Which experts RouteTopK selects, for every shape and for rows made to be
// hard, and that it stays inside its views.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/route.h"
#include "testing/guarded_buffer.h"
#include "testing/inputs.h"
#include "tests/route_rows.h"
#include "tests/target_test.h"

namespace switchyard {
namespace testing_support {
namespace {

class RouteSelectionTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(RouteSelectionTest);

// 1 to 2 * 64 + 1, and those of real models that are not among them.
std::vector<size_t> ExpertCounts() {
  std::vector<size_t> counts = {160, 256, 288, 384, 512, 768, 896, 1000};
  for (size_t experts = 1; experts <= 2 * 64 + 1; ++experts) {
    counts.push_back(experts);
  }
  return counts;
}
// Those up to `experts`.
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
        const std::vector<float> logits = random.Uniforms(experts, -8.0f, 8.0f);
        const RouteOptions options = Options(s % 2 == 0);
        const Guarded<float> l(logits, s);
        const Guarded<int32_t> ids(1, k, 0, (s + 1) % 4);
        const Guarded<float> weights(1, k, 0, (s + 2) % 4);
        const Status status =
            RouteTopK({l.view()}, {ids.view(), weights.view()}, options);
        ASSERT_TRUE(status.ok()) << status.message();
        l.ExpectIntact("logits");
        ids.ExpectIntact("ids");
        weights.ExpectIntact("weights");
        ASSERT_EQ(l.Values(), logits);
        ExpectRow(logits, k, options, ids.data(), weights.data());
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(RouteSelectionTest, StridedViewsLeaveTheGapsAlone) {
  Random random(2);
  // More rows than are worked on together.
  const size_t rows = 21;
  for (const size_t experts : {8u, 16u, 17u, 60u, 130u}) {
    for (const size_t k : {1u, 2u, 7u, 8u}) {
      const std::vector<float> logits =
          random.Uniforms(rows * experts, -9.0f, 9.0f);
      const Guarded<float> l(rows, experts, experts + 3);
      const Guarded<int32_t> ids(rows, k, k + 1);
      const Guarded<float> weights(rows, k, k + 18);
      l.Fill(logits);
      ASSERT_TRUE(RouteTopK({l.view()}, {ids.view(), weights.view()}).ok());
      ids.ExpectIntact("ids");
      weights.ExpectIntact("weights");
      ExpectRows(logits, k, {}, {ids.Values(), weights.Values()});
    }
  }
}

// ids and weights as columns of one matrix [rows, 2 * k], as a caller may keep
// them: equal strides, disjoint columns.
TEST_P(RouteSelectionTest, InterleavedOutputs) {
  Random random(3);
  const size_t rows = 9, experts = 40, k = 3;
  const std::vector<float> logits = random.Uniforms(rows * experts, -9, 9);
  const Guarded<float> both(rows, 2 * k);
  const Matrix<int32_t> ids(reinterpret_cast<int32_t*>(both.data()), rows, k,
                            2 * k);
  ASSERT_TRUE(RouteTopK({{logits.data(), rows, experts}},
                        {ids, both.view().ColRange(k, 2 * k)})
                  .ok());
  both.ExpectIntact("outputs");
  for (size_t r = 0; r < rows; ++r) {
    const float* row = &logits[r * experts];
    ExpectRow({row, row + experts}, k, {}, ids.Row(r),
              both.data() + r * 2 * k + k);
  }
}

// Rows in which a bound from group maxima, a filter or a tie rule could fail.
std::vector<float> HardRow(const std::string& kind, size_t experts, Random& r) {
  std::vector<float> row(experts);
  for (size_t e = 0; e < experts; ++e) {
    const float index = static_cast<float>(e);
    float& x = row[e];
    if (kind == "all equal") x = -1.5f;
    if (kind == "all +0 or -0") x = r.Below(2) == 0 ? 0.0f : -0.0f;
    if (kind == "zeros among denormals") {
      const float choice[] = {0.0f, -0.0f, kDenormal, -kDenormal, 1e-45f};
      x = choice[r.Below(5)];
    }
    if (kind == "two values") x = static_cast<float>(r.Below(2));
    if (kind == "few values") x = static_cast<float>(r.Below(5)) * 0.25f;
    if (kind == "sorted up") x = 0.125f * index;
    if (kind == "sorted down") x = -0.125f * index;
    if (kind == "sorted up slowly") x = std::floor(index / 3.0f);
    if (kind == "spread over 200") x = r.Uniform(-100.0f, 100.0f);
    if (kind == "huge") x = r.Below(2) == 0 ? 3e38f : r.Uniform(-3e38f, 3e38f);
    // The large ones all in one group, or in as many as are one too few.
    if (kind == "heavy in one of 16") x = e % 16 == 5 ? 9.0f + index : 0.0f;
    if (kind == "heavy in one of 64") x = e % 64 == 63 ? 9.0f + index : -index;
    if (kind == "heavy in 7 of 16")
      x = (e % 16 < 7 ? 5.0f : 0.0f) + index * 1e-3f;
    if (kind == "heavy in 31 of 64") {
      x = e % 64 < 31 ? r.Uniform(5.0f, 6.0f) : r.Uniform(0.0f, 1.0f);
    }
    if (kind == "only an eighth is not -inf") {
      x = e % 8 == 3 ? r.Uniform(-3.0f, 3.0f) : -kInf;
    }
    if (kind == "mostly +inf") x = r.Below(3) == 0 ? 1.0f : kInf;
    if (kind == "only -inf") x = -kInf;
    if (kind == "infinities") {
      const float choice[] = {kInf, -kInf, 1.0f, 3.4e38f, -3.4e38f};
      x = choice[r.Below(5)];
    }
    if (kind == "only NaN") x = e % 2 == 0 ? kNaN : -kNaN;
    if (kind == "many NaN") x = r.Below(3) == 0 ? kNaN : r.Uniform(-3.0f, 3.0f);
    if (kind == "NaN and infinities") {
      const float choice[] = {kInf, -kInf, kNaN, -kNaN, 0.0f, -0.0f};
      x = choice[r.Below(6)];
    }
    if (kind == "any bits") x = r.AnyBits();
  }
  return row;
}

TEST_P(RouteSelectionTest, HardRows) {
  Random random(4);
  for (const char* kind : {"all equal",
                           "all +0 or -0",
                           "zeros among denormals",
                           "two values",
                           "few values",
                           "sorted up",
                           "sorted down",
                           "sorted up slowly",
                           "spread over 200",
                           "huge",
                           "heavy in one of 16",
                           "heavy in one of 64",
                           "heavy in 7 of 16",
                           "heavy in 31 of 64",
                           "only an eighth is not -inf",
                           "mostly +inf",
                           "only -inf",
                           "infinities",
                           "only NaN",
                           "many NaN",
                           "NaN and infinities",
                           "any bits"}) {
    SCOPED_TRACE(kind);
    for (const size_t experts : {1u, 3u, 8u, 15u, 16u, 17u, 31u, 60u, 64u, 72u,
                                 128u, 160u, 257u, 512u, 896u}) {
      for (const size_t k : TopKs(experts)) {
        const bool renormalize = random.Below(2) == 0;
        // Three rows together, the hard one between ordinary ones.
        std::vector<float> logits = random.Uniforms(experts, -3.0f, 3.0f);
        const std::vector<float> hard = HardRow(kind, experts, random);
        const std::vector<float> last = random.Uniforms(experts, -3.0f, 3.0f);
        logits.insert(logits.end(), hard.begin(), hard.end());
        logits.insert(logits.end(), last.begin(), last.end());
        CheckRoute(logits, 3, k, Options(renormalize));
        if (HasFailure()) return;
      }
    }
  }
}

// A NaN of any sign and payload, at each position of a vector and of its tail.
TEST_P(RouteSelectionTest, NaNInEveryPosition) {
  Random random(5);
  float payloads[3];
  const uint32_t bits[3] = {0x7F800001, 0xFFC12345, 0x7FFFFFFF};
  std::memcpy(payloads, bits, sizeof(payloads));
  for (const size_t experts : {1u, 8u, 16u, 17u, 67u, 130u}) {
    for (size_t position = 0; position < experts; ++position) {
      for (const size_t k : TopKs(experts)) {
        std::vector<float> logits = random.Uniforms(experts, -3.0f, 3.0f);
        std::memcpy(&logits[position], &payloads[position % 3], sizeof(float));
        CheckRoute(logits, 1, k, Options(position % 2 == 0));
        if (HasFailure()) return;
      }
    }
  }
}

// A single largest, smallest or infinite element, everywhere.
TEST_P(RouteSelectionTest, ExtremeInEveryPosition) {
  for (const size_t experts : {1u, 8u, 16u, 17u, 67u, 130u}) {
    for (size_t position = 0; position < experts; ++position) {
      for (const float extreme : {kInf, -kInf, 3e38f, -3e38f, 100.0f, 1e-45f}) {
        std::vector<float> logits(experts, 0.0f);
        logits[position] = extreme;
        for (const size_t k : {size_t{1}, (experts + 1) / 2, experts}) {
          CheckRoute(logits, 1, k, Options(position % 2 == 0));
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(RouteSelectionTest, InfinitiesShareEqually) {
  const std::vector<float> logits = {1.0f, kInf, -kInf, kInf, 3e38f, kInf};
  for (const bool renormalize : {true, false}) {
    const Routed routed = RouteOf(logits, 1, 6, Options(renormalize));
    EXPECT_EQ(routed.ids, (std::vector<int32_t>{1, 3, 5, 4, 0, 2}));
    const float third = 1.0f / 3.0f;
    EXPECT_EQ(routed.weights,
              (std::vector<float>{third, third, third, 0.0f, 0.0f, 0.0f}));
  }
  // Two of the three: they have two thirds of the probability.
  EXPECT_EQ(RouteOf(logits, 1, 2, Options(true)).weights,
            (std::vector<float>{0.5f, 0.5f}));
  EXPECT_EQ(RouteOf(logits, 1, 2, Options(false)).weights,
            (std::vector<float>{1.0f / 3.0f, 1.0f / 3.0f}));
}

TEST_P(RouteSelectionTest, MaskedRowsGetZeroWeights) {
  for (const size_t experts : {4u, 16u, 60u, 512u}) {
    const std::vector<float> logits(experts, -kInf);
    for (const bool renormalize : {true, false}) {
      const Routed routed = RouteOf(logits, 1, 4, Options(renormalize, 1.0f));
      EXPECT_EQ(routed.ids, (std::vector<int32_t>{0, 1, 2, 3}));
      EXPECT_EQ(CanonicalBits(routed.weights), std::vector<uint32_t>(4, 0));
    }
  }
}

// Logits that differ by so little, or lie so low, that their probabilities are
// equal floats: the larger logit wins, not the smaller index.
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

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
