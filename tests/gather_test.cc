// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/calls/gather.h"

#include <cstring>

#include "switchyard/gather.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {
namespace {

class GatherTest : public IsaTest {};
class GatherPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(GatherTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(GatherPoolTest);

// [n, hidden] of any bits.
std::vector<float> AnyRows(size_t n, size_t hidden, uint64_t seed) {
  return Random(seed).AnyBits(n * hidden);
}

// rows must be the reference's bit for bit, and so must the count.
void ExpectGathered(const std::vector<float>& tokens, size_t hidden,
                    const std::vector<int32_t>& pairs, size_t top_k,
                    const std::vector<float>& rows, const Report& report) {
  const reference::Gathered right =
      reference::Gather(tokens, hidden, pairs, top_k);
  ASSERT_EQ(rows.size(), right.rows.size());
  for (size_t r = 0; r < pairs.size(); ++r) {
    ASSERT_EQ(std::memcmp(&rows[r * hidden], &right.rows[r * hidden],
                          hidden * sizeof(float)),
              0)
        << "row " << r << " of pair " << pairs[r];
  }
  Report expected = kUnwritten;
  expected.invalid = right.invalid;
  EXPECT_EQ(report, expected);
}

// Ids whose shape says the top_k of `num_tokens` tokens.
class TopKIds {
 public:
  TopKIds(size_t num_tokens, size_t top_k)
      : ids_(num_tokens * top_k), rows_(num_tokens), cols_(top_k) {}
  operator ConstAnyMatrix() const {  // NOLINT
    return {ids_.data(), rows_, cols_};
  }

 private:
  std::vector<int32_t> ids_;
  size_t rows_, cols_;
};

// The same for views that start anywhere and have gaps between their rows,
// between guard pages. Returns how many pairs were invalid.
size_t CheckGather(const std::vector<float>& tokens, size_t hidden,
                   const std::vector<int32_t>& pairs, size_t top_k,
                   size_t slack, size_t token_gap, size_t row_gap) {
  const Guarded<float> in(tokens.size() / hidden, hidden, hidden + token_gap,
                          slack, tokens);
  const Guarded<int32_t> list(pairs, slack);
  const Guarded<float> rows(pairs.size(), hidden, hidden + row_gap, slack);
  const TopKIds ids(in.view().rows, top_k);
  const bool strangers =
      reference::Gather(tokens, hidden, pairs, top_k).invalid != 0;
  Report report = kUnwritten;
  EXPECT_OK(GatherRows({in.view(), list.span(), ids}, {rows.view(), &report},
                       {strangers}));
  rows.ExpectIntact("rows");
  ExpectGathered(tokens, hidden, pairs, top_k, rows.Values(), report);
  return report.invalid;
}

TEST_P(GatherTest, EveryHiddenSizeAndMisalignment) {
  for (size_t hidden = 1; hidden <= 2 * 64 + 1; ++hidden) {
    for (size_t slack = 0; slack <= 3; ++slack) {
      CheckGather(AnyRows(4, hidden, hidden), hidden, {5, 0, 1, 11, 5, 6, 7}, 3,
                  slack, slack, 3 - slack);
    }
  }
}

TEST_P(GatherTest, PairsOutOfRangeGiveZerosAndAreCounted) {
  const std::vector<int32_t> pairs = {-1, 2, 6, INT32_MIN, 5, INT32_MAX, 0};
  const std::vector<float> values = AnyRows(3, 33, 1);
  EXPECT_EQ(CheckGather(values, 33, pairs, 2, 0, 0, 0), 4u);
  // The report may be left out.
  std::vector<float> rows(7 * 33);
  const TopKIds ids(3, 2);
  const GatherInputs in = {{values.data(), 3, 33}, pairs, ids};
  const GatherOutputs out = {{rows.data(), 7, 33}};
  EXPECT_OK(GatherRows(in, out, {true}));
  const std::vector<float> allowed = rows;
  std::fill(rows.begin(), rows.end(), 7.0f);
  // Unless that is allowed, they are an error, with the same results.
  ExpectError(GatherRows(in, out),
              "GatherRows: pairs: outside [0, num_tokens * top_k), and "
              "options.allow_invalid is not set",
              StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::memcmp(rows.data(), allowed.data(), rows.size() * 4), 0);
}

TEST_P(GatherTest, TopKMatters) {
  const std::vector<float> values = {1, 2, 3, 4};
  const std::vector<int32_t> pairs = {3};
  float out = 0;
  for (const size_t top_k : {1u, 2u, 3u, 4u, 100u}) {
    ASSERT_OK(GatherRows({{values.data(), 4, 1}, pairs, TopKIds(4, top_k)},
                         {{&out, 1, 1}}));
    EXPECT_EQ(out, values[3 / top_k]);
  }
}

TEST_P(GatherPoolTest, SameRowsOnEveryThreadAndBySlices) {
  const size_t num_tokens = 257, hidden = 1031, top_k = 8;
  const std::vector<float> tokens = AnyRows(num_tokens, hidden, 2);
  std::vector<int32_t> pairs;
  Random random(3);
  for (size_t p = 0; p < num_tokens * top_k; ++p) {
    pairs.push_back(static_cast<int32_t>(random.Below(num_tokens * top_k)));
  }
  for (size_t p = 0; p < pairs.size(); p += 100) pairs[p] = -5;
  std::vector<float> rows(pairs.size() * hidden, kNaN);
  const Matrix<float> all(rows.data(), pairs.size(), hidden);
  Report report = kUnwritten;
  executor().Rendezvous();
  const TopKIds ids(num_tokens, top_k);
  ASSERT_OK(GatherRows({{tokens.data(), num_tokens, hidden}, pairs, ids},
                       {all, &report}, {true}, executor()));
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
  EXPECT_EQ(report.invalid, 21u);
  ExpectGathered(tokens, hidden, pairs, top_k, rows, report);
  // One expert's part of the list at a time.
  std::fill(rows.begin(), rows.end(), kNaN);
  for (size_t begin = 0; begin < pairs.size(); begin += 100) {
    const size_t end = std::min(pairs.size(), begin + 100);
    Report part;
    ASSERT_OK(GatherRows({{tokens.data(), num_tokens, hidden},
                          {pairs.data() + begin, end - begin},
                          ids},
                         {all.RowRange(begin, end), &part}, {true},
                         executor()));
    EXPECT_EQ(part.invalid, 1u);
  }
  ExpectGathered(tokens, hidden, pairs, top_k, rows, report);
}

TEST_P(GatherTest, AnyShape) {
  for (uint64_t seed = 400; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const size_t num_tokens = 1 + random.Below(9),
                 hidden = 1 + random.Below(999);
    const size_t top_k = 1 + random.Below(9), n = random.Below(30);
    const std::vector<float> values = AnyRows(num_tokens, hidden, seed);
    std::vector<int32_t> pairs;
    size_t strangers = 0;
    for (size_t r = 0; r < n; ++r) {
      const int32_t pair =
          static_cast<int32_t>(random.Below(num_tokens * top_k + 3)) - 1;
      strangers += pair < 0 || pair >= static_cast<int32_t>(num_tokens * top_k);
      pairs.push_back(pair);
    }
    EXPECT_EQ(CheckGather(values, hidden, pairs, top_k, 0, random.Below(4),
                          random.Below(4)),
              strangers);
  }
}

// Tokens and rows may be columns of one matrix.
TEST_P(GatherTest, ColumnsOfOneMatrix) {
  const std::vector<float> values = AnyRows(3, 10, 4);
  const Guarded<float> both(3, 10, 0, 0, values);
  const std::vector<int32_t> pairs = {2, 1, 0};
  ASSERT_OK(GatherRows({both.view().ColRange(0, 5), pairs, TopKIds(3, 1)},
                       {both.view().ColRange(5, 10)}));
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(std::memcmp(&both.At(r, 5), &values[(2 - r) * 10], 20), 0);
    EXPECT_EQ(std::memcmp(&both.At(r, 0), &values[r * 10], 20), 0);
  }
}

class GatherErrors
    : public CallErrors<GatherInputs, GatherOutputs, GatherOptions> {
 protected:
  GatherErrors() : CallErrors("GatherRows", GatherRows), rows_(3, 4) {
    call_ = {
        {{tokens_.data(), 2, 4}, pairs_, ids_}, {rows_.view(), &report_}, {}};
  }
  void ExpectUntouched() const override { rows_.ExpectUntouched("rows"); }

  const std::vector<float> tokens_ = std::vector<float>(64, 1.0f);
  const std::vector<int32_t> pairs_ = {0, 1, 2};
  const TopKIds ids_ = {2, 2};
  const Guarded<float> rows_;
};

TEST_F(GatherErrors, EveryLineOfItsTable) {
  ExpectSpoiltCallsAreRefused<calls::GatherCall>();
}

TEST_F(GatherErrors, ShapesAndTopK) {
  EXPECT_SIZE_ERRORS("rows: is not [n, hidden]", c.out.rows, 2, 3);
  EXPECT_ERROR("rows: is not [n, hidden]", c.in.pairs.size = 2);
  EXPECT_ERROR("rows: is not [n, hidden]", c.in.tokens.cols = 3);
  EXPECT_ERROR("topk_ids: is not [num_tokens, top_k]", c.in.topk_ids.rows = 3);
  EXPECT_ERROR("topk_ids: is not [num_tokens, top_k]", c.in.tokens.rows = 1);
  EXPECT_ERROR("topk_ids: top_k (cols) is 0", c.in.topk_ids.cols = 0);
}

TEST_F(GatherErrors, Overlaps) {
  // They overlap by the last element.
  EXPECT_ERROR("rows: overlaps tokens",
               c.in.tokens = {rows_.data() + 11, 2, 4});
  EXPECT_ERROR("rows: overlaps tokens", c.in.tokens = {rows_.data(), 2, 4});
  EXPECT_ERROR(
      "rows: overlaps pairs",
      c.in.pairs = {reinterpret_cast<const int32_t*>(rows_.data()), 3});
}

TEST_F(GatherErrors, NothingToDoIsFine) {
  const float* const none = nullptr;
  float* const nowhere = nullptr;
  Report report;
  report.invalid = 77;
  EXPECT_OK(GatherRows({{none, 0, 4}, {}, TopKIds(0, 2)},
                       {{nowhere, 0, 4}, &report}));
  EXPECT_EQ(report.invalid, 0u);
  const std::vector<int32_t> pairs = {0};
  EXPECT_OK(
      GatherRows({{none, 2, 0}, pairs, TopKIds(2, 2)}, {{nowhere, 1, 0}}));
  // No tokens at all: every pair is invalid.
  float out = 1.0f;
  EXPECT_OK(GatherRows({{none, 0, 1}, pairs, TopKIds(0, 2)},
                       {{&out, 1, 1}, &report}, {true}));
  EXPECT_EQ(report.invalid, 1u);
  EXPECT_EQ(out, 0.0f);
}

TEST_F(GatherErrors, AnExecutorThatFailsIsReported) {
  ExpectExecutorErrorsAreReported();
}

}  // namespace
}  // namespace switchyard::testing_support
