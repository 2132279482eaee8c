// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// BucketStrided with rows that collide in the cache: strides that are multiples
// of 256, with so many experts that pairs go to them in tiles of 8192.

#include <cstring>
#include <memory>

#include "switchyard/bucket.h"
#include "testing/crew.h"
#include "tests/bucket_case.h"

namespace switchyard::testing_support {
namespace {

class BucketCollideTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(BucketCollideTest);
class BucketCollidePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(BucketCollidePoolTest);

// A sort to rows of `stride`, and what it has to come to.
struct Rows {
  // The last row has `last` elements, and its end is the page's.
  Rows(const Shape& shape, std::vector<int32_t> values, size_t stride,
       size_t last, bool pad)
      : s(shape),
        ids(std::move(values)),
        exact(reference::Bucket(ids, s.experts)),
        row_stride(stride),
        padded(pad),
        table(1, (s.experts - 1) * stride + (pad ? stride : last)),
        counts(1, s.experts, 0, 1) {
    uint32_t canary = kCanary;
    int32_t behind = 0;
    if (!pad) std::memcpy(&behind, &canary, sizeof(behind));
    expected.assign(table.span().size, behind);
    for (size_t e = 0; e < s.experts; ++e) {
      std::copy(exact.pairs.begin() + exact.offsets[e],
                exact.pairs.begin() + exact.offsets[e + 1],
                expected.begin() + static_cast<ptrdiff_t>(e * stride));
    }
  }

  // sort(outputs, options) for both orders; only one is the same bits.
  template <class Sort>
  void Check(const Sort& sort, bool ordered = true) {
    Report report = kUnwritten;
    const Status status = sort(
        StridedBuckets{counts.span(), table.span(), row_stride, padded,
                       &report},
        BucketOptions{ordered ? BucketOrder::kAscending : BucketOrder::kClaim,
                      exact.dropped % 2 != 0});
    if (exact.dropped == 0 || exact.dropped % 2 != 0) {
      ASSERT_OK(status);
    } else {
      ASSERT_EQ(status.code(), StatusCode::kFailedPrecondition);
    }
    EXPECT_EQ(counts.Values(), exact.tokens_per_expert);
    EXPECT_EQ(report, BucketReport(exact, row_stride));
    counts.ExpectIntact("tokens_per_expert");
    table.ExpectIntact("ids");
    int32_t* const begin = table.data();
    for (size_t e = 0; e < s.experts && !ordered; ++e) {
      int32_t* const row = begin + e * row_stride;
      std::sort(row, row + exact.tokens_per_expert[e]);
    }
    // Not EXPECT_EQ: it would print a table.
    const auto [found, wanted] =
        std::mismatch(begin, begin + expected.size(), expected.begin());
    ASSERT_EQ(found, begin + expected.size())
        << "element " << found - begin << " is " << *found << ", not "
        << *wanted;
  }

  const Shape s;
  const std::vector<int32_t> ids;
  const reference::Buckets exact;
  const size_t row_stride;
  const bool padded;
  const Guarded<int32_t> table, counts;
  std::vector<int32_t> expected;
};

size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

TEST_P(BucketCollideTest, LikeTheReference) {
  uint64_t seed = 2000;
  // Up to a tile, a tile, more; more slots than a tile has pairs; more experts
  // than tiles are for; ids that are few or all the same.
  for (const Shape& s :
       {Shape{16, 8, 17}, Shape{500, 2, 64}, Shape{512, 8, 128},
        Shape{1024, 8, 128}, Shape{1025, 8, 128}, Shape{3001, 7, 300},
        Shape{2, 9000, 200}, Shape{600, 8, 1024}, Shape{600, 8, 1025}}) {
    for (const Load load :
         {Load::kUniform, Load::kZipf, Load::kOneExpert, Load::kStrangers}) {
      SCOPED_TRACE(testing::Message() << s << " seed " << ++seed);
      const std::vector<int32_t> ids = MakeIds(s, load, seed);
      const size_t max = reference::Bucket(ids, s.experts).max_rows;
      for (const size_t unit : {256u, 512u, 1024u}) {
        const size_t stride = RoundUp(max, unit);
        Rows rows(s, ids, stride, seed % 2 ? max : stride, seed % 3 == 0);
        const size_t slack = seed % 3;
        const Guarded<int32_t> topk_ids(s.tokens, s.top_k, s.top_k + slack,
                                        slack, ids);
        rows.Check(
            [&](const StridedBuckets& out, const BucketOptions& options) {
              return BucketStrided({topk_ids.view()}, out, options);
            });
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  }
}

// Any shape, stride, load, type of ids and place of the table; 20,000 cases on
// a machine with AVX-512.
TEST_P(BucketCollideTest, AnyShape) {
  for (uint64_t seed = 10000; seed < 13400; ++seed) {
    Random random(seed);
    const Shape s = {16 + random.Below(random.Below(8) ? 60 : 1200),
                     8 + random.Below(3),
                     17 + random.Below(random.Below(4) ? 60 : 300)};
    const Load load = static_cast<Load>(random.Below(4));
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << s);
    std::vector<int32_t> ids = MakeIds(s, load, seed);
    const size_t max = reference::Bucket(ids, s.experts).max_rows;
    const bool tight = random.Below(2) != 0, padded = random.Below(4) == 0;
    const size_t stride = RoundUp(max + random.Below(300), 256)
                          << (random.Below(2) ? 2 : 0);
    Rows rows(s, ids, stride, tight ? max : stride, padded);
    const std::vector<int64_t> wide(ids.begin(), ids.end());
    const bool is_wide = random.Below(4) == 0;
    const size_t top_k = s.top_k;
    const ConstAnyMatrix view = is_wide
                                    ? ConstAnyMatrix(Matrix<const int64_t>{
                                          wide.data(), s.tokens, top_k, top_k})
                                    : ConstAnyMatrix(Matrix<const int32_t>{
                                          ids.data(), s.tokens, top_k, top_k});
    rows.Check([&](const StridedBuckets& out, const BucketOptions& options) {
      return BucketStrided({view}, out, options);
    });
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST_P(BucketCollideTest, ATooShortStrideLeavesTheRowsAlone) {
  const Shape s = {1024, 8, 20};
  const std::vector<int32_t> ids = MakeIds(s, Load::kUniform, 5);
  const reference::Buckets r = reference::Bucket(ids, s.experts);
  ASSERT_GT(r.max_rows, 256u);
  const Guarded<int32_t> counts(1, s.experts), table(1, s.experts * 256);
  Report report = kUnwritten;
  ExpectError(
      BucketStrided({View(ids, s)},
                    {counts.span(), table.span(), 256, true, &report}),
      "BucketStrided: row_stride: smaller than the busiest expert's pairs",
      StatusCode::kFailedPrecondition);
  table.ExpectUntouched("ids");
  EXPECT_EQ(counts.Values(), r.tokens_per_expert);
  EXPECT_EQ(report, BucketReport(r, r.max_rows));
}

// Blocks that start in the middle of rows; scratch from none to more than
// enough.
TEST_P(BucketCollidePoolTest, InBlocks) {
  uint64_t seed = 3000;
  for (const Shape& s : {Shape{12001, 8, 128}, Shape{40009, 3, 300}}) {
    for (const Load load : {Load::kUniform, Load::kZipf, Load::kStrangers}) {
      SCOPED_TRACE(testing::Message() << s << " seed " << ++seed);
      const std::vector<int32_t> ids = MakeIds(s, load, seed);
      const size_t max = reference::Bucket(ids, s.experts).max_rows;
      const size_t stride = RoundUp(max, 1024);
      const size_t enough = ScratchSize(s, executor());
      for (const size_t size : {size_t{0}, enough - (enough != 0), enough,
                                enough + s.tokens * s.top_k}) {
        for (const bool ordered : {true, false}) {
          const Guarded<int32_t> scratch(1, size);
          Rows rows(s, ids, stride, max, size % 2 != 0);
          rows.Check(
              [&](const StridedBuckets& out, const BucketOptions& options) {
                return BucketStrided({View(ids, s), scratch.span()}, out,
                                     options, executor());
              },
              ordered);
          scratch.ExpectIntact("scratch");
          ASSERT_FALSE(HasFatalFailure());
        }
      }
    }
  }
}

TEST_P(BucketCollideTest, ByATeam) {
  const Shape s = {5003, 8, 256};
  const std::vector<int32_t> ids = MakeIds(s, Load::kUniform, 6);
  const size_t max = reference::Bucket(ids, s.experts).max_rows;
  for (size_t num_threads = 1; num_threads <= 3; ++num_threads) {
    Crew crew(num_threads);
    const Guarded<int32_t> scratch(
        1, BucketScratchSize(ids.size(), s.experts, crew.Member(0)));
    for (const bool ordered : {true, false}) {
      Rows rows(s, ids, RoundUp(max, 1024), max, false);
      rows.Check(
          [&](const StridedBuckets& out, const BucketOptions& options) {
            Status last;
            for (const Status& status : crew.Run([&](const Team& team) {
                   return BucketStrided({View(ids, s), scratch.span()}, out,
                                        options, team);
                 })) {
              if (!status.ok()) last = status;
            }
            return last;
          },
          ordered);
    }
    scratch.ExpectIntact("scratch");
  }
}

}  // namespace
}  // namespace switchyard::testing_support
