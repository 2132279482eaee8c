// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/gather.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "testing/guarded_buffer.h"
#include "testing/inputs.h"
#include "tests/target_test.h"

namespace switchyard {
namespace testing_support {
namespace {

class GatherTest : public IsaTest {};
class GatherPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(GatherTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(GatherPoolTest);

std::vector<float> AnyBits(size_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> v(n);
  for (float& x : v) x = random.AnyBits();
  return v;
}

// out must be tokens[pair / top_k] bit for bit, zeros for pairs out of range.
void ExpectGathered(const std::vector<float>& tokens, size_t hidden,
                    const std::vector<int32_t>& pairs, size_t top_k,
                    const std::vector<float>& out) {
  const size_t num_pairs = tokens.size() / hidden * top_k;
  const std::vector<float> zeros(hidden, 0.0f);
  ASSERT_EQ(out.size(), pairs.size() * hidden);
  for (size_t r = 0; r < pairs.size(); ++r) {
    const bool valid =
        pairs[r] >= 0 && static_cast<size_t>(pairs[r]) < num_pairs;
    const float* row =
        valid ? &tokens[static_cast<size_t>(pairs[r]) / top_k * hidden]
              : zeros.data();
    ASSERT_EQ(std::memcmp(&out[r * hidden], row, hidden * sizeof(float)), 0)
        << "row " << r << " of pair " << pairs[r];
  }
}

TEST_P(GatherTest, EveryHiddenSizeAndMisalignment) {
  const std::vector<int32_t> pairs = {5, 0, 1, 11, 5, 6, 7};
  for (size_t hidden = 1; hidden <= 2 * 64 + 1; ++hidden) {
    const std::vector<float> values = AnyBits(4 * hidden, hidden);
    for (size_t slack = 0; slack <= 3; ++slack) {
      const Guarded<float> tokens(4, hidden, hidden + slack, slack);
      tokens.Fill(values);
      const Guarded<int32_t> list(pairs, slack);
      const Guarded<float> out(7, hidden, hidden + 3 - slack, slack);
      size_t invalid = 77;
      const Status status = GatherRows(tokens.view(), list.span(), 3,
                                       out.view(), SerialExecutor(), &invalid);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(invalid, 0u);
      out.ExpectIntact("out");
      ExpectGathered(values, hidden, pairs, 3, out.Values());
    }
  }
}

TEST_P(GatherTest, PairsOutOfRangeGiveZerosAndAreCounted) {
  const std::vector<int32_t> pairs = {-1, 2, 6, INT32_MIN, 5, INT32_MAX, 0};
  const std::vector<float> values = AnyBits(3 * 33, 1);
  const Guarded<float> tokens(3, 33);
  tokens.Fill(values);
  std::vector<float> out(7 * 33, kNaN);
  size_t invalid = 0;
  ASSERT_TRUE(GatherRows(tokens.view(), pairs, 2, {out.data(), 7, 33},
                         SerialExecutor(), &invalid)
                  .ok());
  EXPECT_EQ(invalid, 4u);
  ExpectGathered(values, 33, pairs, 2, out);
  // The count may be left out.
  EXPECT_TRUE(GatherRows(tokens.view(), pairs, 2, {out.data(), 7, 33}).ok());
}

TEST_P(GatherTest, TopKMatters) {
  const std::vector<float> values = {1, 2, 3, 4};
  const std::vector<int32_t> pairs = {3};
  float out = 0;
  for (const size_t top_k : {1u, 2u, 3u, 4u, 100u}) {
    ASSERT_TRUE(
        GatherRows({values.data(), 4, 1}, pairs, top_k, {&out, 1, 1}).ok());
    EXPECT_EQ(out, values[3 / top_k]);
  }
}

TEST_P(GatherPoolTest, SameRowsOnEveryThreadAndBySlices) {
  const size_t num_tokens = 257, hidden = 1031, top_k = 8;
  const std::vector<float> tokens = AnyBits(num_tokens * hidden, 2);
  std::vector<int32_t> pairs;
  Random random(3);
  for (size_t p = 0; p < num_tokens * top_k; ++p) {
    pairs.push_back(static_cast<int32_t>(random.Below(num_tokens * top_k)));
  }
  for (size_t p = 0; p < pairs.size(); p += 100) pairs[p] = -5;
  std::vector<float> out(pairs.size() * hidden, kNaN);
  const Matrix<float> all(out.data(), pairs.size(), hidden);
  size_t invalid = 0;
  executor().Rendezvous();
  ASSERT_TRUE(GatherRows({tokens.data(), num_tokens, hidden}, pairs, top_k, all,
                         executor(), &invalid)
                  .ok());
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
  EXPECT_EQ(invalid, 21u);
  ExpectGathered(tokens, hidden, pairs, top_k, out);
  // One expert's part of the list at a time.
  std::fill(out.begin(), out.end(), kNaN);
  for (size_t begin = 0; begin < pairs.size(); begin += 100) {
    const size_t end = std::min(pairs.size(), begin + 100);
    ASSERT_TRUE(GatherRows({tokens.data(), num_tokens, hidden},
                           {pairs.data() + begin, end - begin}, top_k,
                           all.RowRange(begin, end), executor(), &invalid)
                    .ok());
    EXPECT_EQ(invalid, 1u);
  }
  ExpectGathered(tokens, hidden, pairs, top_k, out);
}

TEST_P(GatherTest, AnyShape) {
  for (uint64_t seed = 400; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const size_t num_tokens = 1 + random.Below(9),
                 hidden = 1 + random.Below(999);
    const size_t top_k = 1 + random.Below(9), n = random.Below(30);
    const std::vector<float> values = AnyBits(num_tokens * hidden, seed);
    std::vector<int32_t> pairs;
    size_t strangers = 0;
    for (size_t r = 0; r < n; ++r) {
      const int32_t pair =
          static_cast<int32_t>(random.Below(num_tokens * top_k + 3)) - 1;
      strangers += pair < 0 || pair >= static_cast<int32_t>(num_tokens * top_k);
      pairs.push_back(pair);
    }
    const Guarded<float> tokens(num_tokens, hidden, hidden + random.Below(4));
    tokens.Fill(values);
    const Guarded<float> out(n, hidden, hidden + random.Below(4));
    size_t invalid = 77;
    ASSERT_TRUE(GatherRows(tokens.view(), pairs, top_k, out.view(),
                           SerialExecutor(), &invalid)
                    .ok());
    EXPECT_EQ(invalid, strangers);
    out.ExpectIntact("out");
    ExpectGathered(values, hidden, pairs, top_k, out.Values());
  }
}

// Tokens and out may be columns of one matrix.
TEST_P(GatherTest, ColumnsOfOneMatrix) {
  const Guarded<float> both(3, 10);
  const std::vector<float> values = AnyBits(3 * 10, 4);
  both.Fill(values);
  const std::vector<int32_t> pairs = {2, 1, 0};
  ASSERT_TRUE(GatherRows(both.view().ColRange(0, 5), pairs, 1,
                         both.view().ColRange(5, 10))
                  .ok());
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(std::memcmp(&both.At(r, 5), &values[(2 - r) * 10], 20), 0);
    EXPECT_EQ(std::memcmp(&both.At(r, 0), &values[r * 10], 20), 0);
  }
}

void ExpectError(const Status& status, const char* message) {
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_STREQ(status.message(), message);
}

TEST(GatherErrors, NameTheArgumentAndWriteNothing) {
  std::vector<float> storage(64, 1.0f);
  std::vector<int32_t> list = {0, 1, 2};
  const Guarded<float> o(3, 4);
  const Matrix<const float> tokens(storage.data(), 2, 4);
  const Span<const int32_t> pairs(list);
  const Matrix<float> out = o.view();
  ExpectError(GatherRows({nullptr, 2, 4}, pairs, 2, out),
              "GatherRows: tokens: data is null");
  ExpectError(GatherRows({storage.data(), 2, 4, 3}, pairs, 2, out),
              "GatherRows: tokens: stride is smaller than cols");
  ExpectError(GatherRows({storage.data(), 2, 4, SIZE_MAX / 4}, pairs, 2, out),
              "GatherRows: tokens: size overflows the address space");
  ExpectError(GatherRows(tokens, {nullptr, 3}, 2, out),
              "GatherRows: pairs: data is null");
  ExpectError(GatherRows(tokens, pairs, 2, {nullptr, 3, 4}),
              "GatherRows: out: data is null");
  ExpectError(GatherRows(tokens, pairs, 2, {out.data, 3, 4, 3}),
              "GatherRows: out: stride is smaller than cols");
  ExpectError(GatherRows(tokens, pairs, 0, out), "GatherRows: top_k: is 0");
  ExpectError(GatherRows(tokens, pairs, 2, {out.data, 2, 4}),
              "GatherRows: out: rows differ from pairs' size");
  ExpectError(GatherRows(tokens, pairs, 2, {out.data, 3, 3, 4}),
              "GatherRows: out: cols differ from tokens'");
  ExpectError(GatherRows({out.data + 11, 1, 4}, pairs, 2, out),
              "GatherRows: out: overlaps tokens");
  ExpectError(
      GatherRows(tokens, {reinterpret_cast<const int32_t*>(out.data), 3}, 2,
                 out),
      "GatherRows: out: overlaps pairs");
  o.ExpectUntouched("out");
}

TEST(GatherErrors, NothingToDoIsFine) {
  size_t invalid = 77;
  EXPECT_TRUE(GatherRows({nullptr, 0, 4}, {}, 2, {nullptr, 0, 4},
                         SerialExecutor(), &invalid)
                  .ok());
  EXPECT_EQ(invalid, 0u);
  const std::vector<int32_t> pairs = {0};
  EXPECT_TRUE(GatherRows({nullptr, 2, 0}, pairs, 2, {nullptr, 1, 0}).ok());
  // No tokens at all: every pair is invalid.
  float out = 1.0f;
  EXPECT_TRUE(GatherRows({nullptr, 0, 1}, pairs, 2, {&out, 1, 1},
                         SerialExecutor(), &invalid)
                  .ok());
  EXPECT_EQ(invalid, 1u);
  EXPECT_EQ(out, 0.0f);
}

TEST(GatherErrors, AnExecutorThatFailsIsReported) {
  class Failing final : public Executor {
   public:
    size_t Concurrency() const noexcept override { return 4; }
    Status ParallelFor(size_t, size_t, void (*)(void*, size_t, size_t),
                       void*) noexcept override {
      return Status(StatusCode::kOutOfMemory, "no memory");
    }
  } failing;
  const std::vector<float> tokens(8, 1.0f);
  const std::vector<int32_t> pairs = {0, -1};
  std::vector<float> out(8);
  size_t invalid = 77;
  EXPECT_EQ(GatherRows({tokens.data(), 2, 4}, pairs, 1, {out.data(), 2, 4},
                       failing, &invalid)
                .code(),
            StatusCode::kOutOfMemory);
  EXPECT_EQ(invalid, 77u);
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
