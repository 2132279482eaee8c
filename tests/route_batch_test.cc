// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// RouteTopK of many rows takes them a vector of rows at a time, hard rows and
// what is left over one by one: the same bits either way, whatever stands in
// the rows beside.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
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

class RouteBatchTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(RouteBatchTest);

// Kinds of rows that a batch may hold next to each other.
enum class Kind {
  kRandom,
  kEqual,      // ties for every slot
  kTwoValues,  // more ties than candidates
  kSmallInts,  // some ties
  kUp,         // the best ones last
  kZeros,      // of both signs
  kNaN,        // one of them
  kInfinity,   // some
  kMasked,     // -inf but for fewer than top_k
  kAllMasked,  // -inf
  kAnyBits,
  kKinds,
};

std::vector<float> RowOf(Kind kind, size_t experts, size_t top_k,
                         Random& random) {
  std::vector<float> row = random.Uniforms(experts, -9.0f, 9.0f);
  for (size_t e = 0; e < experts; ++e) {
    switch (kind) {
      case Kind::kEqual:
        row[e] = 1.5f;
        break;
      case Kind::kTwoValues:
        row[e] = random.Below(2) == 0 ? -1.0f : 1.0f;
        break;
      case Kind::kSmallInts:
        row[e] = std::floor(row[e]);
        break;
      case Kind::kZeros:
        row[e] = random.Below(2) == 0 ? -0.0f : 0.0f;
        break;
      case Kind::kInfinity:
        if (random.Below(8) == 0) row[e] = kInf;
        break;
      case Kind::kMasked:
        if (e >= top_k / 2) row[e] = -kInf;
        break;
      case Kind::kAllMasked:
        row[e] = -kInf;
        break;
      case Kind::kAnyBits:
        row[e] = random.AnyBits();
        break;
      default:
        break;
    }
  }
  if (kind == Kind::kUp) std::sort(row.begin(), row.end());
  if (kind == Kind::kNaN) row[random.Below(experts)] = kNaN;
  if (kind == Kind::kMasked) std::reverse(row.begin(), row.end());
  return row;
}

struct Batch {
  std::vector<float> logits;
  size_t rows, experts, top_k;
  RouteOptions options;
};

// Some batches are all of a kind, others of one kind with a few others, others
// of all.
Batch MakeBatch(size_t rows, size_t experts, size_t top_k, Random& random) {
  constexpr size_t kKinds = static_cast<size_t>(Kind::kKinds);
  Batch batch = {{}, rows, experts, top_k, {}};
  batch.options =
      Options(random.Below(2) == 0, random.Below(3) == 0 ? 0.5f : 0x1p-14f);
  const Kind main = static_cast<Kind>(random.Below(kKinds));
  const size_t others = random.Below(3);  // none, one row in 8, all
  for (size_t r = 0; r < rows; ++r) {
    const bool other = others == 2 || (others == 1 && random.Below(8) == 0);
    const Kind kind = other ? static_cast<Kind>(random.Below(kKinds)) : main;
    const std::vector<float> row = RowOf(kind, experts, top_k, random);
    batch.logits.insert(batch.logits.end(), row.begin(), row.end());
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
    for (size_t j = 0; j < k; ++j) {
      ASSERT_EQ(together.ids[r * k + j], alone.ids[j]) << "row " << r;
      ASSERT_EQ(CanonicalBits(together.weights[r * k + j]),
                CanonicalBits(alone.weights[j]))
          << "row " << r << " slot " << j;
    }
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
      const Guarded<float> logits(rows, experts, experts + random.Below(3),
                                  slack);
      logits.Fill(batch.logits);
      const Guarded<int32_t> ids(rows, k, k + random.Below(3), (slack + 1) % 4);
      const Guarded<float> weights(rows, k, k + random.Below(3),
                                   (slack + 2) % 4);
      ASSERT_TRUE(RouteTopK({logits.view()}, {ids.view(), weights.view()},
                            batch.options)
                      .ok());
      logits.ExpectIntact("logits");
      ids.ExpectIntact("ids");
      weights.ExpectIntact("weights");
      ExpectRows(batch.logits, k, batch.options,
                 {ids.Values(), weights.Values()});
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
