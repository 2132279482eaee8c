// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

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

// check(shape, load, ids, seed) for each shape and load.
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
    // There is no row_index and no report; claims of one thread are in order
    // too.
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

// Counting compares vectors of ids where there are few experts, in chunks, with
// single ids behind.
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

// `given`, which come to the ids `ids`, sorted to rows with canaries in the
// gaps and around.
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

// The same pairs for the same ids as another type. `strangers` are ids of that
// type that int32 does not have, to be dropped like any other.
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

// The public tests of the kernel's origin: 5 tokens, 8 experts, 3 slots.
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

  // The host reference's layout: tight stride, zero padding.
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
  // The last row needs room for its own pairs only, unless it is padded.
  const Guarded<int32_t> counts(1, 6), table(1, 5 * 120 + tight);
  EXPECT_OK(BucketStrided({View(ids, s)}, {counts.span(), table.span(), 120}));
}

// Results are the same either way; the function cannot know whose ids are
// whose.
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
  // Views have a type even where they have no data.
  ExpectError(BucketPacked({}, {counts, offsets, none, {}, &report}),
              "BucketPacked: topk_ids: not given");
  EXPECT_EQ(report, kUnwritten);
  const ConstAnyMatrix no_ids = Matrix<const int32_t>();
  ASSERT_OK(BucketPacked({no_ids}, {counts, offsets, none, {}, &report}));
  EXPECT_EQ(counts, std::vector<int32_t>(4, 0));
  EXPECT_EQ(offsets, std::vector<int32_t>(5, 0));
  EXPECT_EQ(report, BucketReport({}));
  // Whatever the table's size: a stride of tokens * top_k is 0 here. Without
  // slots it is the same.
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
  // The dispatch stays non-empty, as Metal demands.
  std::vector<uint32_t> args(3);
  ASSERT_OK(MakeDispatchArgs({0, 4, 64}, {args}));
  EXPECT_EQ(args, (std::vector<uint32_t>{1, 1, 4}));
  // So that a kernel of this ISA ran.
  const std::vector<int32_t> one = {0};
  std::vector<int32_t> pairs(1);
  ASSERT_OK(BucketPacked({one}, {counts, offsets, pairs}));
}

}  // namespace
}  // namespace switchyard::testing_support
