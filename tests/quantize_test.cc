// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/quantize.h"

#include <cstring>

#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

class QuantizeTest : public IsaTest {};
class QuantizePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(QuantizeTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(QuantizePoolTest);

// Quantize has to give the reference's bits, and write nothing else.
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
      // Quantised sources have sizes around the ends of groups.
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

// Longer than any buffer inside.
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
