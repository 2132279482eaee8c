// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/calls/gather.h"

#include <cstring>

#include "switchyard/gather.h"
#include "switchyard/quantize.h"
#include "tests/call_errors.h"
#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

class GatherTest : public IsaTest {};
class GatherPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(GatherTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(GatherPoolTest);

// Ids with the shape [num_tokens, top_k].
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

using Ids = std::vector<int32_t>;

// Returns row_index, the row of each pair in `pairs`, as BucketPacked()
// writes it.
Ids RowIndexOf(const Ids& pairs, size_t num_pairs) {
  Ids index(num_pairs, -1);
  for (size_t r = 0; r < pairs.size(); ++r) {
    if (pairs[r] >= 0 && static_cast<size_t>(pairs[r]) < num_pairs) {
      index[static_cast<size_t>(pairs[r])] = static_cast<int32_t>(r);
    }
  }
  return index;
}
// Returns pairs in random order. Some are missing. Some are replaced by other
// pairs of the list or, if `strangers`, by invalid values.
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
  std::vector<int64_t> rows;  // -1 gives a row of zeros
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

// Gathers `tokens` into the format `to` and expects the reference's bits.
// Makes the call without row_index, with the right row_index, and with several
// wrong values of row_index.
void CheckFormats(const FormatRows& tokens, const Format& to, const Ids& pairs,
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

// Returns f32 rows with random bits.
FormatRows AnyRows(size_t n, size_t hidden, uint64_t seed) {
  return RowsOf(kF32Rows, std::vector<size_t>(n, 10), hidden, seed);
}

TEST_P(GatherTest, EveryHiddenSizeAndMisalignment) {
  for (size_t hidden = 1; hidden <= 2 * 64 + 1; ++hidden) {
    for (size_t slack = 0; slack <= 3; ++slack) {
      CheckFormats(AnyRows(4, hidden, hidden), kF32Rows, {5, 0, 1, 11, 5, 6, 7},
                   3, slack, slack, SerialExecutor());
    }
  }
}

TEST_P(GatherTest, PairsOutOfRangeGiveZerosAndAreCounted) {
  const std::vector<int32_t> pairs = {-1, 2, 6, INT32_MIN, 5, INT32_MAX, 0};
  CheckFormats(AnyRows(3, 33, 1), kF32Rows, pairs, 2, 0, 0, SerialExecutor());
  const std::vector<float> values = Random(1).AnyBits(3 * 33);
  // The report is optional.
  std::vector<float> rows(7 * 33);
  const TopKIds ids(3, 2);
  const GatherInputs in = {{values.data(), 3, 33}, pairs, ids};
  const GatherOutputs out = {{rows.data(), 7, 33}};
  EXPECT_OK(GatherRows(in, out, {true}));
  const std::vector<float> allowed = rows;
  std::fill(rows.begin(), rows.end(), 7.0f);
  // Without allow_invalid, invalid pairs are an error, but the call writes the
  // same rows as with allow_invalid.
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
  const size_t num_tokens = 257, top_k = 8, num_pairs = num_tokens * top_k;
  const FormatRows tokens = AnyRows(num_tokens, 1031, 2);
  Ids pairs;
  Random random(3);
  for (size_t p = 0; p < num_pairs; ++p) {
    pairs.push_back(static_cast<int32_t>(random.Below(num_pairs)));
  }
  for (size_t p = 0; p < pairs.size(); p += 100) pairs[p] = -5;
  const FormatRows right =
      reference::Pick(tokens, TokensOf(pairs, num_pairs, top_k).rows);
  const GuardedRows in(tokens, 0, 0), all(kF32Rows, num_pairs, 1031, 0, 0);
  Report report = kUnwritten;
  executor().Rendezvous();
  const TopKIds ids(num_tokens, top_k);
  ASSERT_OK(GatherRows({in.view(), pairs, ids}, {all.view(), &report}, {true},
                       executor()));
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
  Report expected = kUnwritten;
  expected.invalid = 21;
  EXPECT_EQ(report, expected);
  ExpectSameBytes(all.Values(), right);
  // Gathers the list in parts, like an engine that handles one expert at a
  // time.
  const GuardedRows parts(kF32Rows, num_pairs, 1031, 0, 0);
  for (size_t begin = 0; begin < pairs.size(); begin += 100) {
    const size_t end = std::min(pairs.size(), begin + 100);
    Report part;
    ASSERT_OK(GatherRows({in.view(), {pairs.data() + begin, end - begin}, ids},
                         {parts.view().RowRange(begin, end), &part}, {true},
                         executor()));
    EXPECT_EQ(part.invalid, 1u);
  }
  ExpectSameBytes(parts.Values(), right);
}

TEST_P(GatherTest, AnyShape) {
  for (uint64_t seed = 400; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const size_t num_tokens = 1 + random.Below(9),
                 hidden = 1 + random.Below(999);
    const size_t top_k = 1 + random.Below(9), n = random.Below(30);
    Ids pairs;
    for (size_t r = 0; r < n; ++r) {
      pairs.push_back(
          static_cast<int32_t>(random.Below(num_tokens * top_k + 3)) - 1);
    }
    CheckFormats(AnyRows(num_tokens, hidden, seed), kF32Rows, pairs, top_k, 0,
                 random.Below(4), SerialExecutor());
  }
}

// Tokens and rows may be columns of the same matrix.
TEST_P(GatherTest, ColumnsOfOneMatrix) {
  const std::vector<float> values = Random(4).AnyBits(3 * 10);
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
  ExpectExecutorErrorsAreReported();
  ExpectSpoiltCallsAreRefused<calls::GatherCall>();
}

TEST_F(GatherErrors, NoTopK) {
  EXPECT_ERROR("topk_ids: top_k (cols) is 0", c.in.topk_ids.cols = 0);
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
  // Without tokens, every pair is invalid.
  float out = 1.0f;
  EXPECT_OK(GatherRows({{none, 0, 1}, pairs, TopKIds(0, 2)},
                       {{&out, 1, 1}, &report}, {true}));
  EXPECT_EQ(report.invalid, 1u);
  EXPECT_EQ(out, 0.0f);
}

// Tests GatherRows and ScatterRows between the formats of quantize.h.

class GatherFormatsTest : public IsaTest {};
class GatherFormatsPoolTest : public IsaPoolTest {};
class ScatterTest : public IsaTest {};
class ScatterPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(GatherFormatsTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(GatherFormatsPoolTest);
SWITCHYARD_FOR_EVERY_ISA(ScatterTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(ScatterPoolTest);

TEST_P(GatherFormatsTest, EveryFormat) {
  ForEveryConversion([](const Format& from, const Format& to) {
    for (const size_t cols : {1u, 33u, 160u}) {
      SCOPED_TRACE(testing::Message() << "cols " << cols);
      Random random(cols);
      CheckFormats(RowsOf(from, EveryKind(), to.Cols(from.Cols(cols)), cols),
                   to, Pairs(random, 2 * kNumRowKinds, cols == 33), 2, cols % 4,
                   cols % 3, SerialExecutor());
      if (testing::Test::HasFailure()) return;
    }
  });
}

TEST_P(GatherFormatsTest, LongRows) {
  for (const Format& to : kFormats) {
    SCOPED_TRACE(to.name);
    const FormatRows tokens = RowsOf(kF32Rows, {0, 9}, to.Cols(16384 + 33), 4);
    CheckFormats(tokens, to, {3, 0, -7, 2}, 2, 1, 1, SerialExecutor());
    if (HasFailure()) return;
  }
}

// There are enough tokens for several threads, and row_index spreads the rows
// of each token over several threads.
TEST_P(GatherFormatsPoolTest, SameRowsOnEveryThread) {
  Random random(6);
  std::vector<size_t> kinds(150);
  for (size_t& kind : kinds) kind = random.Below(kNumRowKinds);
  const FormatRows tokens = RowsOf(kF32Rows, kinds, 512, 8);
  const Ids pairs = Pairs(random, 8 * kinds.size(), true);
  executor().Rendezvous();
  ForSomeFormats([&](const Format& to) {
    CheckFormats(tokens, to, pairs, 8, 0, 0, executor());
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

class QuantizeTest : public IsaTest {};
class QuantizePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(QuantizeTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(QuantizePoolTest);

// Quantize() has to give the reference's bits and write nothing else.
void Check(const FormatRows& from, const Format& to, size_t slack, size_t gap) {
  const GuardedRows in(from, slack, gap);
  const GuardedRows out(to, from.rows, from.cols, slack, 3 - gap);
  ASSERT_OK(Quantize({in.view()}, {out.view()}));
  out.ExpectIntact("rows");
  const FormatRows right = reference::Quantize(from, to);
  ExpectSameRows(out.Values(), right);
  if (from.format.CopiesTo(to, from.cols)) ExpectSameBytes(out.Values(), right);
}

TEST_P(QuantizeTest, EverySizeAndMisalignment) {
  ForEveryConversion([](const Format& from, const Format& to) {
    const size_t last = 2 * std::max<size_t>(64, BlockOf(to.type)) + 1;
    for (size_t cols = 1; cols <= last; ++cols) {
      if (to.Cols(cols) != cols) continue;
      // Quantised sources are tested only with sizes around the ends of
      // groups.
      if (from.group != 0 && cols % 32 > 1 && cols % 32 < 31) continue;
      SCOPED_TRACE(testing::Message() << "cols " << cols);
      const size_t n = cols / BlockOf(to.type);
      Check(RowsOf(from, {n, n + 5, n + 10}, cols, n), to, n % 4, n / 4 % 4);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST_P(QuantizeTest, EveryKindOfRow) {
  ForEveryConversion([](const Format& from, const Format& to) {
    for (const size_t cols : {32u, 100u, 289u}) {
      SCOPED_TRACE(testing::Message() << "cols " << cols);
      Check(RowsOf(from, EveryKind(), to.Cols(from.Cols(cols)), cols + 1), to,
            1, 2);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

// Rows are longer than all internal buffers.
TEST_P(QuantizeTest, LongRows) {
  for (const char* const name : {"f32", "bf16", "i8", "f8e4m3 of 32"}) {
    for (const Format& from : kFormats) {
      if (from.name != std::string(name)) continue;
      for (const Format& to : kFormats) {
        SCOPED_TRACE(std::string(name) + " to " + to.name);
        for (const size_t cols : {16384u, 16385u, 40033u}) {
          Check(RowsOf(from, {0, 9}, to.Cols(cols), 4), to, 1, 1);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(QuantizeTest, AnyShape) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const Format& to = kFormats[random.Below(std::size(kFormats))];
    const Format* from = &to;
    do {
      from = &kFormats[random.Below(std::size(kFormats))];
    } while (!from->IsSource());
    std::vector<size_t> kinds(random.Below(9));
    for (size_t& kind : kinds) kind = random.Below(kNumRowKinds);
    Check(RowsOf(*from, kinds, to.Cols(random.Below(999)), seed), to,
          random.Below(4), random.Below(4));
    if (HasFatalFailure()) return;
  }
}

TEST_P(QuantizeTest, FlushingOfTheCallerIsNotSeen) {
  for (const Format& to : kFormats) {
    SCOPED_TRACE(to.name);
    const FormatRows from = RowsOf(kF32Rows, {5, 6}, to.Cols(100), 7);
    const FormatRows right = reference::Quantize(from, to);
    const GuardedRows in(from, 0, 0), out(to, 2, from.cols, 0, 0);
    {
      const ScopedFlushToZero flush;
      ASSERT_OK(Quantize({in.view()}, {out.view()}));
    }
    ExpectSameRows(out.Values(), right);
  }
}

TEST_P(QuantizePoolTest, SameBitsOnEveryThreadAndBySlices) {
  constexpr size_t kRows = 600, kCols = 1024;
  std::vector<size_t> kinds(kRows);
  for (size_t r = 0; r < kRows; ++r) kinds[r] = r;
  const FormatRows from = RowsOf(kF32Rows, kinds, kCols, 5);
  const GuardedRows in(from, 0, 1);
  executor().Rendezvous();
  ForSomeFormats([&](const Format& to) {
    const FormatRows right = reference::Quantize(from, to);
    const GuardedRows whole(to, kRows, kCols, 0, 2);
    ASSERT_OK(Quantize({in.view()}, {whole.view()}, {}, executor()));
    ExpectSameRows(whole.Values(), right);
    const GuardedRows parts(to, kRows, kCols, 0, 2);
    for (size_t begin = 0; begin < kRows; begin += 150) {
      const size_t end = std::min(kRows, begin + 150);
      ASSERT_OK(Quantize({in.view().RowRange(begin, end)},
                         {parts.view().RowRange(begin, end)}, {}, executor()));
    }
    ExpectSameRows(parts.Values(), right);
  });
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
}

}  // namespace
}  // namespace switchyard::testing_support
