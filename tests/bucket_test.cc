// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <sys/mman.h>

#include <cstring>
#include <memory>

#include "tests/bucket_case.h"

namespace switchyard::testing_support {
namespace {

class BucketTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(BucketTest);

const Shape kShapes[] = {{1, 1, 1},     {1, 8, 128},  {5, 3, 8},
                         {7, 5, 5},     {33, 4, 60},  {64, 10, 7},
                         {100, 8, 16},  {90, 22, 17}, {257, 8, 128},
                         {64, 10, 512}, {3, 2, 5000}, {600, 8, 3}};

constexpr Load kLoads[] = {Load::kUniform, Load::kZipf, Load::kOneExpert,
                           Load::kStrangers};

// Calls check(shape, load, ids, seed) for each shape and each load. (A load is
// a distribution of the ids over the experts.)
template <class Check>
void ForEveryCase(uint64_t seed, Check check) {
  for (const Shape& s : kShapes) {
    for (const Load load : kLoads) {
      SCOPED_TRACE(testing::Message() << s << " seed " << ++seed);
      check(s, load, MakeIds(s, load, seed), seed);
    }
  }
}

TEST_P(BucketTest, PackedLikeTheReference) {
  ForEveryCase(0, [](const Shape& s, Load load, const auto& ids, uint64_t) {
    for (size_t slack = 0; slack <= 3; ++slack) {
      const Guarded<int32_t> topk_ids(s.tokens, s.top_k, s.top_k + slack, slack,
                                      ids);
      CheckPacked({topk_ids.view()}, ids, s, slack);
    }
    // Sorts again without row_index and report. On a single thread, kClaim
    // keeps the order of pairs.
    Packed b(s);
    PackedBuckets out = b.Out();
    out.row_index = {};
    out.report = nullptr;
    ASSERT_OK(BucketPacked({View(ids, s)}, out,
                           {BucketOrder::kClaim, load == Load::kStrangers}));
    std::vector<int32_t> pairs = b.pairs.Values();
    const reference::Buckets r = reference::Bucket(ids, s.experts);
    pairs.resize(r.pairs.size());
    ASSERT_EQ(pairs, r.pairs);
    b.row_index.ExpectUntouched("row_index");
    EXPECT_EQ(b.report, kUnwritten);
  });
}

// If there are few experts, the kernel counts by comparing vectors of ids. It
// works in chunks of ids, and handles the remainder one by one.
TEST_P(BucketTest, FewExpertsAtEveryLength) {
  std::vector<size_t> lengths = {159,  160,       193,        2047,        2048,
                                 2049, 2048 + 65, 2048 + 161, 3 * 2048 + 1};
  for (size_t n = 1; n <= 2 * 64 + 1; ++n) lengths.push_back(n);
  for (const size_t experts : {1u, 2u, 4u, 5u, 8u, 9u, 16u, 17u, 64u, 65u}) {
    for (const size_t n : lengths) {
      const Shape s = {n, 1, experts};
      SCOPED_TRACE(testing::Message() << s);
      const std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, n);
      const Guarded<int32_t> topk_ids(ids, n % 4);
      CheckPacked({{topk_ids.data(), n, 1}}, ids, s);
    }
  }
}

// Sorts `given` by BucketStrided(), and checks the table. The gaps between
// rows and the memory around the table hold canaries. `ids` has the values of
// `given` as int32.
template <class Id>
void ExpectStridedSort(const std::vector<Id>& given,
                       const std::vector<int32_t>& ids, const Shape& s,
                       size_t stride, bool padding, size_t slack) {
  const reference::Buckets r = reference::Bucket(ids, s.experts);
  const size_t tight = std::max<size_t>(1, r.max_rows);
  const size_t used = stride == StridedBuckets::kTightStride ? tight : stride;
  const Guarded<Id> topk_ids(s.tokens, s.top_k, s.top_k + slack, slack, given);
  const Guarded<int32_t> tokens_per_expert(1, s.experts, 0, slack);
  const Guarded<int32_t> table(1, s.experts * used, 0, slack);
  Report report = kUnwritten;
  ASSERT_OK(BucketStrided(
      {topk_ids.view()},
      {tokens_per_expert.span(), table.span(), stride, padding, &report},
      {BucketOrder::kAscending, r.dropped != 0}));
  table.ExpectIntact("ids");
  tokens_per_expert.ExpectIntact("tokens_per_expert");
  EXPECT_EQ(tokens_per_expert.Values(), r.tokens_per_expert);
  EXPECT_EQ(report, BucketReport(r, used));
  ExpectStrided(r, table.Values(), used, padding ? 0 : kCanary);
}

TEST_P(BucketTest, StridedLikeTheReference) {
  ForEveryCase(100, [](const Shape& s, Load, const auto& ids, uint64_t seed) {
    const size_t pairs = ids.size();
    const size_t max = reference::Bucket(ids, s.experts).max_rows;
    for (const size_t stride : {StridedBuckets::kTightStride, max + 1,
                                std::max<size_t>(1, max), pairs, pairs + 16}) {
      for (const bool padding : {false, true}) {
        ExpectStridedSort(ids, ids, s, stride, padding, seed % 3);
      }
    }
  });
}

TEST_P(BucketTest, AnyShape) {
  for (uint64_t seed = 1000; seed < 1150; ++seed) {
    Random random(seed);
    const size_t experts = 1 + random.Below(random.Below(2) ? 20 : 600);
    const Shape s = {1 + random.Below(80), 1 + random.Below(12), experts};
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << s);
    const std::vector<int32_t> ids =
        MakeIds(s, static_cast<Load>(random.Below(4)), seed);
    const size_t slack = random.Below(4);
    const Guarded<int32_t> topk_ids(s.tokens, s.top_k, s.top_k + slack, 0, ids);
    CheckPacked({topk_ids.view()}, ids, s, random.Below(4));
    ExpectStridedSort(ids, ids, s,
                      random.Below(2) ? ids.size() + random.Below(20) : 0,
                      random.Below(2) != 0, slack);
    ASSERT_FALSE(HasFatalFailure());
  }
}

// Checks that ids of type Id give the same pairs as int32 ids. `strangers`
// are ids of type Id that int32 cannot hold. The sort must drop them like
// other invalid ids.
template <class Id>
void ExpectSameFor(const std::vector<Id>& strangers) {
  ForEveryCase(500, [&](const Shape& s, Load load, std::vector<int32_t> ids,
                        uint64_t seed) {
    std::vector<Id> wide(ids.begin(), ids.end());
    for (size_t i = 0; load == Load::kStrangers && i < ids.size(); i += 5) {
      ids[i] = -1;
      wide[i] = strangers[i / 5 % strangers.size()];
    }
    const size_t slack = seed % 4;
    const Guarded<Id> topk_ids(s.tokens, s.top_k, s.top_k + slack, slack, wide);
    CheckPacked({topk_ids.view()}, ids, s, slack);
    ExpectStridedSort(wide, ids, s, 0, true, slack);
  });
}

TEST_P(BucketTest, UnsignedIds) {
  ExpectSameFor<uint32_t>({0x80000000u, 0xFFFFFFFFu, 0x80000001u});
}

// The low 32 bits of some ids are valid ids.
TEST_P(BucketTest, WideIds) {
  ExpectSameFor<int64_t>({int64_t{1} << 32, (int64_t{1} << 32) + 1, INT64_MAX,
                          INT64_MIN, -(int64_t{1} << 32), int64_t{1} << 31,
                          -1});
}

// Runs the cases of the original kernel's public tests: 5 tokens, 8 experts,
// 3 slots.
TEST_P(BucketTest, KnownAnswers) {
  std::vector<int32_t> ids;
  for (int b = 0; b < 5; ++b) {
    for (int s = 0; s < 3; ++s) ids.push_back((3 * b + 2 * s + b) % 8);
  }
  std::vector<int32_t> counts(8), table(8 * 15, -1);
  Report report;
  ASSERT_OK(
      BucketStrided({{ids.data(), 5, 3}}, {counts, table, 15, false, &report}));
  EXPECT_EQ(counts, (std::vector<int32_t>{5, 0, 3, 0, 5, 0, 2, 0}));
  const auto bucket = [&](int e, int n) {
    return std::vector<int32_t>(table.begin() + e * 15,
                                table.begin() + e * 15 + n);
  };
  EXPECT_EQ(bucket(0, 5), (std::vector<int32_t>{0, 5, 6, 11, 12}));
  EXPECT_EQ(bucket(2, 3), (std::vector<int32_t>{1, 7, 13}));
  EXPECT_EQ(bucket(4, 5), (std::vector<int32_t>{2, 3, 8, 9, 14}));
  EXPECT_EQ(bucket(6, 2), (std::vector<int32_t>{4, 10}));
  EXPECT_EQ(table[5], -1);
  std::vector<uint32_t> args(3);
  ASSERT_OK(MakeDispatchArgs({report.max_rows, 8, 768}, {args}));
  EXPECT_EQ(args, (std::vector<uint32_t>{1, 12, 8}));
  ASSERT_OK(MakeDispatchArgs({report.max_rows, 8, 2048}, {args}));
  EXPECT_EQ(args, (std::vector<uint32_t>{1, 32, 8}));

  // This is the layout of the original host reference: rows have no gaps
  // between them, and the padding is 0.
  ids = {1, 3, 1, 0};
  counts.assign(4, -1);
  table.assign(8, -1);
  ASSERT_OK(BucketStrided(
      {{ids.data(), 2, 2}},
      {counts, table, StridedBuckets::kTightStride, true, &report}));
  EXPECT_EQ(counts, (std::vector<int32_t>{1, 2, 0, 1}));
  EXPECT_EQ(report.row_stride, 2u);
  EXPECT_EQ(table, (std::vector<int32_t>{3, 0, 0, 2, 0, 0, 1, 0}));
}

TEST_P(BucketTest, ARowTooShortTellsTheStrideAndLeavesIdsAlone) {
  const Shape s = {40, 3, 6};
  const std::vector<int32_t> ids = MakeIds(s, Load::kZipf, 9);
  const reference::Buckets r = reference::Bucket(ids, 6);
  const size_t tight = r.max_rows;
  struct Case {
    size_t stride, size;
    std::string message;
  };
  const std::string too_small = "ids: too small for num_experts rows";
  const Case cases[] = {
      {tight - 1, 1000, "row_stride: smaller than the busiest expert's pairs"},
      {tight, tight * 5, too_small},
      {0, 3, too_small},
      {120, 500, too_small}};
  for (const Case& c : cases) {
    const Guarded<int32_t> counts(1, 6), table(1, c.size);
    Report report = kUnwritten;
    ExpectError(BucketStrided({View(ids, s)}, {counts.span(), table.span(),
                                               c.stride, true, &report}),
                "BucketStrided: " + c.message, StatusCode::kFailedPrecondition);
    table.ExpectUntouched("ids");
    EXPECT_EQ(counts.Values(), r.tokens_per_expert);
    EXPECT_EQ(report, BucketReport(r, tight));
  }
  // Without padding, the last row needs room for its own pairs only.
  const Guarded<int32_t> counts(1, 6), table(1, 5 * 120 + tight);
  EXPECT_OK(BucketStrided({View(ids, s)}, {counts.span(), table.span(), 120}));
}

// allow_dropped changes only the status, not the results. The option exists
// because the function cannot tell a wrong id from an id of another node.
TEST_P(BucketTest, DroppedIdsAreAnErrorUnlessAllowed) {
  const std::vector<int32_t> ids = {0, 2, -1, 1, 2, 3};
  const std::string error =
      ": topk_ids: outside [0, num_experts), and options.allow_dropped is not "
      "set";
  for (const bool allowed : {true, false}) {
    BucketOptions options;
    options.allow_dropped = allowed;
    Packed b({3, 2, 3});
    std::vector<int32_t> counts(3), table(18, -9);
    Report report = kUnwritten;
    const Status packed = BucketPacked({{ids.data(), 3, 2}}, b.Out(), options);
    const Status strided = BucketStrided(
        {{ids.data(), 3, 2}}, {counts, table, 6, false, &report}, options);
    if (allowed) {
      EXPECT_OK(packed);
      EXPECT_OK(strided);
    } else {
      ExpectError(packed, "BucketPacked" + error,
                  StatusCode::kFailedPrecondition);
      ExpectError(strided, "BucketStrided" + error,
                  StatusCode::kFailedPrecondition);
    }
    ExpectPacked(ids, {3, 2, 3}, b);
    EXPECT_EQ(report, BucketReport(reference::Bucket(ids, 3), 6));
    EXPECT_EQ(table[0], 0);
    EXPECT_EQ(table[12], 1);
  }
}

TEST_P(BucketTest, NoTokens) {
  std::vector<int32_t> counts(4, -1), offsets(5, -1), none;
  Report report = kUnwritten;
  // The ids have to be given, even without tokens. An empty view counts as
  // given if it has a type.
  ExpectError(BucketPacked({}, {counts, offsets, none, {}, &report}),
              "BucketPacked: topk_ids: not given");
  EXPECT_EQ(report, kUnwritten);
  const ConstAnyMatrix no_ids = Matrix<const int32_t>();
  ASSERT_OK(BucketPacked({no_ids}, {counts, offsets, none, {}, &report}));
  EXPECT_EQ(counts, std::vector<int32_t>(4, 0));
  EXPECT_EQ(offsets, std::vector<int32_t>(5, 0));
  EXPECT_EQ(report, BucketReport({}));
  // Without tokens or without slots, the table may have any size, because a
  // stride of tokens * top_k is 0.
  const Guarded<int32_t> table(1, 3);
  const int32_t* const nowhere = nullptr;
  for (const size_t stride : {0u, 1u, 5u}) {
    counts.assign(4, -1);
    ASSERT_OK(BucketStrided({{nowhere, stride, 0}},
                            {counts, table.span(), stride, true, &report},
                            {BucketOrder::kClaim}));
    EXPECT_EQ(counts, std::vector<int32_t>(4, 0));
    EXPECT_EQ(report.row_stride, std::max<size_t>(1, stride));
  }
  table.ExpectUntouched("ids");
  // Even without rows the dispatch is not empty, because Metal requires that.
  std::vector<uint32_t> args(3);
  ASSERT_OK(MakeDispatchArgs({0, 4, 64}, {args}));
  EXPECT_EQ(args, (std::vector<uint32_t>{1, 1, 4}));
  // The fixture fails unless a kernel of this ISA has run, so the test runs
  // one.
  const std::vector<int32_t> one = {0};
  std::vector<int32_t> pairs(1);
  ASSERT_OK(BucketPacked({one}, {counts, offsets, pairs}));
}

// Tests BucketStrided() with rows that collide in the cache, because their
// strides are multiples of 256 elements. There are so many experts that the
// kernel sorts in tiles of 8192 pairs.

class BucketCollideTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(BucketCollideTest);
class BucketCollidePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(BucketCollidePoolTest);

// The inputs and outputs of a BucketStrided() call, and the table that it
// should write.
struct Rows {
  // Makes the last row `last` elements long, and ends it at the end of a
  // page.
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

  // Calls sort(outputs, options) and checks the results. Only kAscending,
  // which `ordered` selects, determines the order of pairs inside a row.
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
    // EXPECT_EQ on the vectors would print the whole table.
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
  // Most shapes have fewer pairs than a tile (8192 pairs), exactly a tile, or
  // more. One shape has 9000 slots per token, more than a tile has pairs. One
  // shape has 1025 experts, one more than tiles support.
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

// Draws shapes, strides, loads, types of ids and places of the table. Tests
// 20,000 cases on a machine with AVX-512.
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

// Several blocks of tokens write to each row of the table, so most blocks
// begin in the middle of a row. The scratch has no elements, one too few,
// exactly enough, or more.
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

// Tests sorting by blocks on several threads.

class BucketPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(BucketPoolTest);

constexpr BucketOrder kOrders[] = {BucketOrder::kAscending,
                                   BucketOrder::kClaim};

TEST_P(BucketPoolTest, SameBitsAsSerialOnEveryThread) {
  // At about 1 ns per pair, each of 7 threads gets more than two grains of 30
  // us.
  const Shape s = {60013, 8, 128};
  for (const Load load : {Load::kUniform, Load::kZipf, Load::kStrangers}) {
    const std::vector<int32_t> ids = MakeIds(s, load, 11);
    const Guarded<int32_t> scratch(1, ScratchSize(s, executor()));
    const auto check = [&](size_t size, BucketOrder order) {
      CheckPacked({View(ids, s), {scratch.data(), size}}, ids, s, 0, order,
                  executor());
    };
    const size_t size = scratch.span().size;
    executor().Rendezvous();
    check(size, BucketOrder::kAscending);
    // If the executor has one thread, the sort runs on the calling thread
    // without using the executor, so the executor counts 0 threads.
    EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
              executor().ExpectedThreads());
    scratch.ExpectIntact("scratch");
    // Less scratch, or none, gives the same results.
    check(0, BucketOrder::kAscending);
    check(size - (size != 0), BucketOrder::kAscending);
    check(size, BucketOrder::kClaim);
  }
}

// Sorts ids of other types than int32, also in blocks of tokens.
TEST_P(BucketPoolTest, WideAndUnsignedIds) {
  const Shape s = {20011, 8, 128};
  const std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 13);
  const std::vector<uint32_t> unsigned_ids(ids.begin(), ids.end());
  std::vector<int64_t> wide(ids.begin(), ids.end());
  std::vector<int32_t> narrow = ids;
  for (size_t i = 0; i < ids.size(); i += 100) {
    wide[i] = ids[i] + (int64_t{1} << 32);
    narrow[i] = -1;
  }
  const Guarded<int32_t> scratch(1, ScratchSize(s, executor()));
  for (const BucketOrder order : kOrders) {
    CheckPacked({{unsigned_ids.data(), s.tokens, s.top_k}, scratch.span()}, ids,
                s, 0, order, executor());
    CheckPacked({{wide.data(), s.tokens, s.top_k}, scratch.span()}, narrow, s,
                0, order, executor());
    scratch.ExpectIntact("scratch");
  }
}

TEST_P(BucketPoolTest, StridedOnEveryThread) {
  executor().Rendezvous();
  for (const size_t experts : {5u, 128u}) {
    const Shape s = {60013, 8, experts};
    const size_t pairs = s.tokens * s.top_k;
    const std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 12);
    const reference::Buckets r = reference::Bucket(ids, experts);
    const Guarded<int32_t> scratch(1, ScratchSize(s, executor()));
    const BucketInputs in = {View(ids, s), scratch.span()};
    const size_t tight = r.max_rows;
    // Each row either has room for all pairs, or has just enough room for its
    // own pairs and the padding.
    const bool padding = experts > 5;
    const size_t stride = padding ? tight + 3 : pairs;
    for (const BucketOrder order : kOrders) {
      std::vector<int32_t> counts(experts), table(experts * stride, -9);
      Report report = kUnwritten;
      ASSERT_OK(BucketStrided(in, {counts, table, stride, padding, &report},
                              {order, true}, executor()));
      EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
                executor().ExpectedThreads());
      EXPECT_EQ(counts, r.tokens_per_expert);
      EXPECT_EQ(report, BucketReport(r, stride));
      ExpectStrided(r, table, stride, padding ? 0 : static_cast<uint32_t>(-9),
                    order == BucketOrder::kAscending);

      const Guarded<int32_t> short_counts(1, experts);
      const Guarded<int32_t> small(1, experts * tight - 1);
      report = kUnwritten;
      const Status status = BucketStrided(
          in, {short_counts.span(), small.span(), 0, true, &report},
          {order, true}, executor());
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
      small.ExpectUntouched("ids");
      EXPECT_EQ(short_counts.Values(), r.tokens_per_expert);
      EXPECT_EQ(report, BucketReport(r, tight));
    }
    scratch.ExpectIntact("scratch");
  }
}

// Draws sizes, so that blocks begin at many different pairs.
TEST_P(BucketPoolTest, OddSizes) {
  for (uint64_t seed = 300; seed < 312; ++seed) {
    Random random(seed);
    const Shape s = {9000 + random.Below(9000), 1 + random.Below(9),
                     1 + random.Below(300)};
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << s);
    const std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, seed);
    const Guarded<int32_t> scratch(1, ScratchSize(s, executor()));
    const Guarded<int32_t> topk_ids(s.tokens, s.top_k, s.top_k + seed % 2, 0,
                                    ids);
    for (const BucketOrder order : kOrders) {
      CheckPacked({topk_ids.view(), scratch.span()}, ids, s, 1, order,
                  executor());
    }
  }
}

// Tests numbers of pairs around those at which the number of blocks changes,
// and numbers that make the last block short.
TEST_P(BucketPoolTest, BlockBoundaries) {
  const size_t most = 8 * executor().Concurrency();
  for (const size_t pairs :
       {size_t{59999}, size_t{60000}, size_t{60001}, size_t{16 * 4096 - 1},
        size_t{16 * 4096}, size_t{16 * 4096 + 1}, most * 4096 - 1,
        most * 4096}) {
    for (const size_t experts : {3u, 600u}) {
      const Shape s = {pairs, 1, experts};
      SCOPED_TRACE(testing::Message() << s);
      const std::vector<int32_t> ids = MakeIds(s, Load::kZipf, 3);
      const Guarded<int32_t> scratch(1, ScratchSize(s, executor()));
      for (const BucketOrder order : kOrders) {
        CheckPacked({View(ids, s), scratch.span()}, ids, s, 0, order,
                    executor());
      }
      scratch.ExpectIntact("scratch");
    }
  }
}

// Tests that the start of a row, e * row_stride, may exceed 2^32: 512 experts
// and 900,000 tokens of 10 slots. The table takes 18 GB of address space, but
// only pages that are written get memory.
TEST_P(BucketPoolTest, TablesBeyond32BitOffsets) {
  const Shape s = {900000, 10, 512};
  const size_t stride = s.tokens * s.top_k, size = s.experts * stride;
  ASSERT_GT(511 * stride, size_t{1} << 32);
  void* const map =
      mmap(nullptr, size * sizeof(int32_t), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  int32_t* const table = static_cast<int32_t*>(map);
  int32_t* const row = table + 511 * stride;
  std::vector<int32_t> ids(stride, -1), counts(s.experts);
  std::vector<int32_t> scratch(ScratchSize(s, executor()));
  ids[7] = ids[stride - 1] = 511;
  ids[12345] = 510;
  for (const BucketOrder order : kOrders) {
    row[0] = row[1] = row[-static_cast<ptrdiff_t>(stride)] = -1;
    EXPECT_OK(BucketStrided({View(ids, s), scratch},
                            {counts, {table, size}, stride}, {order, true},
                            executor()));
    EXPECT_EQ(counts[511], 2);
    // With kClaim the row's two pairs may be in any order, because they are
    // in different blocks.
    EXPECT_EQ(row[0] + row[1], static_cast<int32_t>(stride) + 6);
    if (order == BucketOrder::kAscending) {
      EXPECT_EQ(row[0], 7);
    }
    EXPECT_EQ(row[-static_cast<ptrdiff_t>(stride)], 12345);
  }
  munmap(map, size * sizeof(int32_t));
}

TEST(BucketOrders, OnlyClaimsDependOnTheExecutor) {
  const Shape s = {16007, 4, 60};
  const std::vector<int32_t> ids = MakeIds(s, Load::kUniform, 21);
  BackwardsExecutor backwards;
  std::vector<int32_t> scratch(ScratchSize(s, backwards));
  ASSERT_FALSE(scratch.empty());
  for (const BucketOrder order : kOrders) {
    const bool ordered = order == BucketOrder::kAscending;
    Packed b(s);
    ASSERT_OK(
        BucketPacked({View(ids, s), scratch}, b.Out(), {order}, backwards));
    ExpectPacked(ids, s, b, ordered);
    const reference::Buckets r = reference::Bucket(ids, s.experts);
    EXPECT_EQ(b.pairs.Values() == r.pairs, ordered);
    // With kClaim, a call without scratch gives the same pairs as a call with
    // scratch.
    if (!ordered) {
      Packed c(s);
      ASSERT_OK(BucketPacked({View(ids, s)}, c.Out(), {order}, backwards));
      EXPECT_EQ(c.pairs.Values(), b.pairs.Values());
    }
  }
}

TEST(BucketFailures, OfAnyLoopAreReported) {
  const Shape s = {16007, 4, 60};
  const std::vector<int32_t> ids = MakeIds(s, Load::kUniform, 22);
  for (const BucketOrder order : kOrders) {
    for (size_t fail_at = 0; fail_at <= 3; ++fail_at) {
      BackwardsExecutor for_packed(fail_at), for_strided(fail_at);
      std::vector<int32_t> scratch(ScratchSize(s, for_packed));
      const BucketInputs in = {View(ids, s), scratch};
      Packed b(s);
      // BucketPacked() runs two loops: the first counts, the second places.
      EXPECT_EQ(BucketPacked(in, b.Out(), {order}, for_packed).code(),
                fail_at < 2 ? StatusCode::kOutOfMemory : StatusCode::kOk);
      EXPECT_EQ(b.report == kUnwritten, fail_at < 2);
      // BucketStrided() runs a third loop, which pads.
      std::vector<int32_t> counts(s.experts), table(s.experts * 1500);
      Report report = kUnwritten;
      EXPECT_EQ(BucketStrided(in, {counts, table, 1500, true, &report}, {order},
                              for_strided)
                    .code(),
                fail_at < 3 ? StatusCode::kOutOfMemory : StatusCode::kOk);
      EXPECT_EQ(report == kUnwritten, fail_at < 3);
    }
  }
}

TEST(BucketScratch, OnlyWhereThreadsPay) {
  BackwardsExecutor four;
  EXPECT_EQ(BucketScratchSize(1000000, 128, SerialExecutor()), 0u);
  EXPECT_EQ(BucketScratchSize(60000, 128, four), 0u);
  EXPECT_EQ(BucketScratchSize(1000000, 1000000, four), 0u);
  EXPECT_EQ(BucketScratchSize(SIZE_MAX, 128, four), 0u);
  EXPECT_EQ(BucketScratchSize(1000000, SIZE_MAX, four), 0u);
  EXPECT_GE(BucketScratchSize(1000000, 128, four), 4u * 128);
  EXPECT_LE(BucketScratchSize(1000000, 128, four), 1000000u / 8);
}

}  // namespace
}  // namespace switchyard::testing_support
