// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// GatherRows and ScatterRows between formats of quantize.h.

#include <cstring>

#include "switchyard/gather.h"
#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

class GatherFormatsTest : public IsaTest {};
class GatherFormatsPoolTest : public IsaPoolTest {};
class ScatterTest : public IsaTest {};
class ScatterPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(GatherFormatsTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(GatherFormatsPoolTest);
SWITCHYARD_FOR_EVERY_ISA(ScatterTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(ScatterPoolTest);

using Ids = std::vector<int32_t>;

// The place of each pair of `pairs`, as BucketPacked would write it.
Ids RowIndexOf(const Ids& pairs, size_t num_pairs) {
  Ids index(num_pairs, -1);
  for (size_t r = 0; r < pairs.size(); ++r) {
    if (pairs[r] >= 0 && static_cast<size_t>(pairs[r]) < num_pairs) {
      index[static_cast<size_t>(pairs[r])] = static_cast<int32_t>(r);
    }
  }
  return index;
}
// In a random order; some are left out, some come twice, some are strangers.
Ids Pairs(Random& random, size_t num_pairs, bool strangers) {
  Ids pairs;
  for (size_t p = 0; p < num_pairs; ++p) {
    if (random.Below(8) != 0) pairs.push_back(static_cast<int32_t>(p));
  }
  for (size_t n = pairs.size(); n > 1; --n) {
    std::swap(pairs[n - 1], pairs[random.Below(n)]);
  }
  const Ids odd = {-1, static_cast<int32_t>(num_pairs), INT32_MIN, INT32_MAX};
  for (size_t r = 0; r < pairs.size(); r += 1 + random.Below(9)) {
    pairs[r] =
        strangers ? odd[random.Below(4)] : pairs[random.Below(pairs.size())];
  }
  return pairs;
}

struct Indices {
  std::vector<int64_t> rows;  // -1: zeros
  size_t strangers = 0;
};
Indices TokensOf(const Ids& pairs, size_t num_pairs, size_t top_k) {
  Indices result;
  for (const int32_t pair : pairs) {
    const bool fine = pair >= 0 && static_cast<size_t>(pair) < num_pairs;
    result.rows.push_back(fine ? pair / static_cast<int32_t>(top_k) : -1);
    result.strangers += !fine;
  }
  return result;
}

// Gathers `tokens`, the reference's bits, in the format and order wanted:
// without a row_index, with the right one, and with others.
void CheckGather(const FormatRows& tokens, const Format& to, const Ids& pairs,
                 size_t top_k, size_t slack, size_t gap, Executor& executor) {
  const size_t num_pairs = tokens.rows * top_k;
  const Indices indices = TokensOf(pairs, num_pairs, top_k);
  const FormatRows right =
      reference::Pick(reference::Quantize(tokens, to), indices.rows);
  const GuardedRows in(tokens, slack, gap);
  const Guarded<int32_t> list(pairs, slack), ids(tokens.rows, top_k);
  const Ids consistent = RowIndexOf(pairs, num_pairs);
  Ids partly = consistent, stale(num_pairs);
  Random random(pairs.size());
  for (size_t p = 0; p < num_pairs; p += 1 + random.Below(4)) {
    partly[p] = static_cast<int32_t>(random.Below(pairs.size() + 4)) - 2;
  }
  for (int32_t& row : stale) row = static_cast<int32_t>(random.Next() >> 32);
  const std::pair<const char*, Ids> all[] = {
      {"no row_index", {}},
      {"row_index", consistent},
      {"row_index, partly wrong", partly},
      {"row_index of something else", stale},
      {"row_index of zeros", Ids(num_pairs)}};
  for (const auto& [name, values] : all) {
    SCOPED_TRACE(name);
    const Guarded<int32_t> index(values.size() / top_k, top_k, top_k + gap,
                                 slack, values);
    GatherInputs inputs = {in.view(), list.span(), ids.view()};
    if (!values.empty()) inputs.row_index = index.view();
    const GuardedRows out(to, pairs.size(), tokens.cols, slack, 3 - gap);
    Report report = kUnwritten, expected = kUnwritten;
    expected.invalid = indices.strangers;
    ASSERT_OK(GatherRows(inputs, {out.view(), &report},
                         {indices.strangers != 0}, executor));
    EXPECT_EQ(report, expected);
    out.ExpectIntact("rows");
    ExpectSameRows(out.Values(), right);
    if (tokens.format.CopiesTo(to, tokens.cols)) {
      ExpectSameBytes(out.Values(), right);
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(GatherFormatsTest, EveryFormat) {
  ForEveryConversion([](const Format& from, const Format& to) {
    for (const size_t cols : {1u, 33u, 160u}) {
      SCOPED_TRACE(testing::Message() << "cols " << cols);
      Random random(cols);
      CheckGather(RowsOf(from, EveryKind(), to.Cols(from.Cols(cols)), cols), to,
                  Pairs(random, 2 * kNumRowKinds, cols == 33), 2, cols % 4,
                  cols % 3, SerialExecutor());
      if (testing::Test::HasFailure()) return;
    }
  });
}

TEST_P(GatherFormatsTest, LongRows) {
  for (const Format& to : kFormats) {
    SCOPED_TRACE(to.name);
    const FormatRows tokens = RowsOf(kF32Rows, {0, 9}, to.Cols(16384 + 33), 4);
    CheckGather(tokens, to, {3, 0, -7, 2}, 2, 1, 1, SerialExecutor());
    if (HasFailure()) return;
  }
}

// More tokens than a grain has, a row_index that sends each to other threads.
TEST_P(GatherFormatsPoolTest, SameRowsOnEveryThread) {
  Random random(6);
  std::vector<size_t> kinds(150);
  for (size_t& kind : kinds) kind = random.Below(kNumRowKinds);
  const FormatRows tokens = RowsOf(kF32Rows, kinds, 512, 8);
  const Ids pairs = Pairs(random, 8 * kinds.size(), true);
  executor().Rendezvous();
  ForSomeFormats([&](const Format& to) {
    CheckGather(tokens, to, pairs, 8, 0, 0, executor());
  });
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
}

// Scatters packed `rows` and expects the reference's bits.
void CheckScatter(const FormatRows& rows, const Format& to, size_t top_k,
                  const Ids& row_index, size_t slack, size_t gap,
                  Executor& executor) {
  const std::vector<int64_t> indices(row_index.begin(), row_index.end());
  const FormatRows right =
      reference::Pick(reference::Quantize(rows, to), indices);
  size_t strangers = 0;
  for (const int64_t row : indices) {
    strangers += row < -1 || row >= static_cast<int64_t>(rows.rows);
  }
  const GuardedRows in(rows, slack, gap);
  const Guarded<int32_t> index(row_index.size() / top_k, top_k, top_k + gap,
                               slack, row_index);
  const GuardedRows out(to, row_index.size(), rows.cols, slack, 3 - gap);
  Report report = kUnwritten, expected = kUnwritten;
  expected.skipped = strangers;
  ASSERT_OK(ScatterRows({in.view(), index.view()}, {out.view(), &report},
                        {strangers != 0}, executor));
  EXPECT_EQ(report, expected);
  out.ExpectIntact("rows");
  ExpectSameRows(out.Values(), right);
  if (rows.format.CopiesTo(to, rows.cols)) {
    ExpectSameBytes(out.Values(), right);
  }
}

Ids RowIndex(Random& random, size_t num_pairs, size_t num_rows,
             bool strangers) {
  Ids index;
  for (size_t p = 0; p < num_pairs; ++p) {
    index.push_back(static_cast<int32_t>(random.Below(num_rows + 1)) - 1);
  }
  const Ids odd = {-2, static_cast<int32_t>(num_rows), INT32_MIN, INT32_MAX};
  for (size_t p = 0; strangers && p < num_pairs; p += 1 + random.Below(9)) {
    index[p] = odd[random.Below(4)];
  }
  return index;
}

TEST_P(ScatterTest, EveryFormat) {
  ForEveryConversion([](const Format& from, const Format& to) {
    for (const size_t cols : {1u, 33u, 160u}) {
      SCOPED_TRACE(testing::Message() << "cols " << cols);
      Random random(cols);
      CheckScatter(RowsOf(from, EveryKind(), to.Cols(from.Cols(cols)), cols),
                   to, 3, RowIndex(random, 21, kNumRowKinds, cols == 33),
                   cols % 4, cols % 3, SerialExecutor());
      if (testing::Test::HasFailure()) return;
    }
  });
}

TEST_P(ScatterTest, EveryHiddenSizeAndMisalignment) {
  const Ids index = {2, 0, -1, 1, 1, 3};
  for (size_t hidden = 1; hidden <= 2 * 64 + 1; ++hidden) {
    for (size_t slack = 0; slack <= 3; ++slack) {
      CheckScatter(RowsOf(kF32Rows, {10, 10, 0, 1}, hidden, hidden), kF32Rows,
                   2, index, slack, slack, SerialExecutor());
    }
  }
}

TEST_P(ScatterTest, StrangersGiveZerosAndAreCounted) {
  std::vector<float> rows = {1, 2, 3, 4}, out(8, 7.0f);
  const Ids index = {1, 2, -2, 0};
  const ScatterInputs in = {{rows.data(), 2, 2}, {index.data(), 2, 2}};
  const std::vector<float> right = {3, 4, 0, 0, 0, 0, 1, 2};
  Report report = kUnwritten;
  ExpectError(ScatterRows(in, {{out.data(), 4, 2}, &report}),
              "ScatterRows: row_index: outside [-1, num_rows), and "
              "options.allow_skipped is not set",
              StatusCode::kFailedPrecondition);
  EXPECT_EQ(report.skipped, 2u);
  EXPECT_EQ(out, right);
  out.assign(8, 7.0f);
  EXPECT_OK(ScatterRows(in, {{out.data(), 4, 2}}, {true}));
  EXPECT_EQ(out, right);
}

TEST_P(ScatterTest, UndoesGatherRows) {
  const FormatRows tokens = RowsOf(kF32Rows, {0, 1, 9, 10}, 77, 1);
  const Ids pairs = {4, 2, 7, 0, 1, 6, 3};  // 5 is dropped
  const Ids index = RowIndexOf(pairs, 8), ids(8);
  const GuardedRows in(tokens, 0, 0), packed(kF32Rows, 7, 77, 0, 0),
      out(kF32Rows, 8, 77, 0, 0);
  ASSERT_OK(
      GatherRows({in.view(), pairs, {ids.data(), 4, 2}}, {packed.view()}));
  ASSERT_OK(ScatterRows({packed.view(), {index.data(), 4, 2}}, {out.view()}));
  EXPECT_EQ(out.Values().codes,
            reference::Pick(tokens, {0, 0, 1, 1, 2, -1, 3, 3}).codes);
}

TEST_P(ScatterPoolTest, SameRowsOnEveryThread) {
  Random random(7);
  std::vector<size_t> kinds(1000);
  for (size_t& kind : kinds) kind = random.Below(kNumRowKinds);
  const FormatRows rows = RowsOf(kF32Rows, kinds, 512, 8);
  const Ids index = RowIndex(random, 1024, kinds.size(), true);
  executor().Rendezvous();
  ForSomeFormats([&](const Format& to) {
    CheckScatter(rows, to, 8, index, 0, 0, executor());
  });
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
}

}  // namespace
}  // namespace switchyard::testing_support
