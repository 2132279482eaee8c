// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Which experts RouteTopK selects, for every shape and for rows made to be
// hard, and that it stays inside its views.

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "switchyard/route.h"
#include "tests/route_rows.h"

namespace switchyard::testing_support {
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
// The sizes up to `experts`.
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
  // More rows than are worked on together.
  const size_t rows = 21;
  for (const size_t experts : {8u, 16u, 17u, 60u, 130u}) {
    for (const size_t k : {1u, 2u, 7u, 8u}) {
      CheckGuarded(random.Uniforms(rows * experts, -9.0f, 9.0f), rows, k, {}, 0,
                   {3, 1, 18});
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
  ASSERT_OK(RouteTopK({{logits.data(), rows, experts}},
                      {ids, both.view().ColRange(k, 2 * k)}));
  both.ExpectIntact("outputs");
  for (size_t r = 0; r < rows; ++r) {
    const float* row = &logits[r * experts];
    ExpectRow({row, row + experts}, k, {}, ids.Row(r),
              both.data() + r * 2 * k + k);
  }
}

// Element `e` of a row of `experts`, from which kinds of rows make a logit.
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

// Rows in which a bound from group maxima, a filter or a tie rule could fail,
// among ordinary ones.
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
    // The large ones all in one group, or in as many as are one too few.
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
        // Three rows together, the hard one between ordinary ones.
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

// A NaN of any sign and payload, at each position of a vector and of its tail.
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

// A single largest, smallest or infinite element, everywhere.
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
  // Two of the three: they have two thirds of the probability.
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

// Batches of many rows: those are taken a vector of rows at a time, hard rows
// and what is left over one by one. The same bits either way, whatever stands
// in the rows beside.
class RouteBatchTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(RouteBatchTest);

struct Batch {
  std::vector<float> logits;
  size_t rows, experts, top_k;
  RouteOptions options;
};

// Some batches are all of a kind, others of one kind with a few others, others
// of all.
Batch MakeBatch(size_t rows, size_t experts, size_t top_k, Random& random) {
  Batch batch = {{}, rows, experts, top_k, {}};
  batch.options = {random.Below(2) == 0,
                   random.Below(3) == 0 ? 0.5f : 0x1p-14f};
  const auto any = [&] { return &kKinds[random.Below(std::size(kKinds))]; };
  const Kind* const main = any();
  const size_t others = random.Below(3);  // none, one row in 8, all
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

// Every number of experts up to two groups of candidates and a few above, every
// top_k up to where rows go one by one, every number of rows up to two vectors
// and a half.
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

// The views end at a page that cannot be touched, and begin anywhere.
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
