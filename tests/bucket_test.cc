// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "testing/guarded_buffer.h"
#include "testing/inputs.h"
#include "testing/reference.h"
#include "tests/bucket_case.h"
#include "tests/target_test.h"

namespace switchyard {
namespace testing_support {
namespace {

class BucketTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(BucketTest);

const Shape kShapes[] = {{1, 1, 1},     {1, 8, 128},  {5, 3, 8},
                         {7, 5, 5},     {33, 4, 60},  {64, 10, 7},
                         {100, 8, 16},  {90, 22, 17}, {257, 8, 128},
                         {64, 10, 512}, {3, 2, 5000}, {600, 8, 3}};

TEST_P(BucketTest, PackedLikeTheReference) {
  uint64_t seed = 0;
  for (const Shape& s : kShapes) {
    for (const Load load :
         {Load::kUniform, Load::kZipf, Load::kOneExpert, Load::kStrangers}) {
      SCOPED_TRACE(testing::Message() << s.tokens << "x" << s.top_k << " of "
                                      << s.experts << " seed " << seed);
      const std::vector<int32_t> ids =
          MakeIds(s.tokens * s.top_k, s.experts, load, ++seed);
      for (size_t slack = 0; slack <= 3; ++slack) {
        Packed b(s, slack);
        const Guarded<int32_t> selected(s.tokens, s.top_k, s.top_k + slack,
                                        slack);
        selected.Fill(ids);
        const Status status = BucketPacked(
            selected.view(), BucketOrder::kAscending, b.Out(), {}, &b.summary);
        ASSERT_TRUE(status.ok()) << status.message();
        ExpectPacked(ids, s, b);
      }
      // Without row_index and summary; claims of one thread are in order too.
      Packed b(s);
      PackedBuckets out = b.Out();
      out.row_index = {};
      ASSERT_TRUE(
          BucketPacked(View(ids, s), BucketOrder::kClaim, out, {}, nullptr)
              .ok());
      std::vector<int32_t> pairs = b.pairs.Values();
      const reference::Buckets r = reference::Bucket(ids, s.experts);
      pairs.resize(r.pairs.size());
      ASSERT_EQ(pairs, r.pairs);
      b.row_index.ExpectUntouched("row_index");
    }
  }
}

// Counting compares vectors of ids where there are few experts, in chunks, with
// single ids behind.
TEST_P(BucketTest, FewExpertsAtEveryLength) {
  std::vector<size_t> lengths = {2047, 2048, 2049, 2048 + 65, 3 * 2048 + 1};
  for (size_t n = 1; n <= 2 * 64 + 1; ++n) lengths.push_back(n);
  for (const size_t experts : {1u, 2u, 4u, 5u, 8u, 9u, 16u, 17u, 64u, 65u}) {
    for (const size_t n : lengths) {
      SCOPED_TRACE(testing::Message() << n << " ids of " << experts);
      const Shape s = {n, 1, experts};
      const std::vector<int32_t> ids = MakeIds(n, experts, Load::kStrangers, n);
      const Guarded<int32_t> selected(ids, n % 4);
      Packed b(s);
      ASSERT_TRUE(BucketPacked({selected.data(), n, 1}, BucketOrder::kAscending,
                               b.Out(), {}, &b.summary)
                      .ok());
      ExpectPacked(ids, s, b);
    }
  }
}

// Strides, misaligned and with canaries in the gaps, all outputs at once.
void ExpectStridedSort(const std::vector<int32_t>& ids, const Shape& s,
                       size_t stride, bool padding, size_t slack) {
  const reference::Buckets r = reference::Bucket(ids, s.experts);
  const size_t tight = std::max<size_t>(1, static_cast<size_t>(r.max_tpe));
  const size_t used = stride == StridedBuckets::kTightStride ? tight : stride;
  const Guarded<int32_t> selected(s.tokens, s.top_k, s.top_k + slack, slack);
  selected.Fill(ids);
  const Guarded<int32_t> tpe(1, s.experts, 0, slack);
  const Guarded<int32_t> table(1, s.experts * used, 0, slack);
  BucketSummary summary;
  const Status status =
      BucketStrided(selected.view(), BucketOrder::kAscending,
                    {tpe.span(), table.span(), stride, padding}, {}, &summary);
  ASSERT_TRUE(status.ok()) << status.message();
  table.ExpectIntact("ids");
  tpe.ExpectIntact("tpe");
  EXPECT_EQ(tpe.Values(), r.tpe);
  EXPECT_EQ(summary.max_tpe, r.max_tpe);
  EXPECT_EQ(summary.row_stride, used);
  EXPECT_EQ(summary.dropped, r.dropped);
  ExpectStrided(r, table.Values(), used, padding ? 0 : kCanary);
}

TEST_P(BucketTest, StridedLikeTheReference) {
  uint64_t seed = 100;
  for (const Shape& s : kShapes) {
    for (const Load load :
         {Load::kUniform, Load::kZipf, Load::kOneExpert, Load::kStrangers}) {
      const size_t pairs = s.tokens * s.top_k;
      const std::vector<int32_t> ids = MakeIds(pairs, s.experts, load, ++seed);
      const size_t max =
          static_cast<size_t>(reference::Bucket(ids, s.experts).max_tpe);
      SCOPED_TRACE(testing::Message() << s.tokens << "x" << s.top_k << " of "
                                      << s.experts << " seed " << seed);
      for (const size_t stride :
           {StridedBuckets::kTightStride, max + 1, std::max<size_t>(1, max),
            pairs, pairs + 16}) {
        for (const bool padding : {false, true}) {
          ExpectStridedSort(ids, s, stride, padding, seed % 3);
        }
      }
    }
  }
}

TEST_P(BucketTest, AnyShape) {
  for (uint64_t seed = 1000; seed < 1150; ++seed) {
    Random random(seed);
    const size_t experts = 1 + random.Below(random.Below(2) ? 20 : 600);
    const Shape s = {1 + random.Below(80), 1 + random.Below(12), experts};
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << s.tokens
                                    << "x" << s.top_k << " of " << experts);
    const Load load = static_cast<Load>(random.Below(4));
    const size_t pairs = s.tokens * s.top_k;
    const std::vector<int32_t> ids = MakeIds(pairs, experts, load, seed);
    const size_t slack = random.Below(4);
    const Guarded<int32_t> selected(s.tokens, s.top_k, s.top_k + slack);
    selected.Fill(ids);
    Packed b(s, random.Below(4));
    ASSERT_TRUE(BucketPacked(selected.view(), BucketOrder::kAscending, b.Out(),
                             {}, &b.summary)
                    .ok());
    ExpectPacked(ids, s, b);
    ExpectStridedSort(ids, s, random.Below(2) ? pairs + random.Below(20) : 0,
                      random.Below(2) != 0, slack);
    ASSERT_FALSE(HasFatalFailure());
  }
}

// The public tests of the kernel's origin: 5 tokens, 8 experts, 3 slots.
TEST_P(BucketTest, KnownAnswers) {
  std::vector<int32_t> ids;
  for (int b = 0; b < 5; ++b) {
    for (int s = 0; s < 3; ++s) ids.push_back((3 * b + 2 * s + b) % 8);
  }
  std::vector<int32_t> tpe(8), table(8 * 15, -1);
  BucketSummary summary;
  ASSERT_TRUE(BucketStrided({ids.data(), 5, 3}, BucketOrder::kAscending,
                            {tpe, table, 15, false}, {}, &summary)
                  .ok());
  EXPECT_EQ(tpe, (std::vector<int32_t>{5, 0, 3, 0, 5, 0, 2, 0}));
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
  ASSERT_TRUE(MakeDispatchArgs(summary.max_tpe, 8, 768, {}, args).ok());
  EXPECT_EQ(args, (std::vector<uint32_t>{1, 12, 8}));
  ASSERT_TRUE(MakeDispatchArgs(summary.max_tpe, 8, 2048, {}, args).ok());
  EXPECT_EQ(args, (std::vector<uint32_t>{1, 32, 8}));

  // The host reference's layout: tight stride, zero padding.
  ids = {1, 3, 1, 0};
  tpe.assign(4, -1);
  table.assign(8, -1);
  ASSERT_TRUE(BucketStrided({ids.data(), 2, 2}, BucketOrder::kAscending,
                            {tpe, table, StridedBuckets::kTightStride, true},
                            {}, &summary)
                  .ok());
  EXPECT_EQ(tpe, (std::vector<int32_t>{1, 2, 0, 1}));
  EXPECT_EQ(summary.row_stride, 2u);
  EXPECT_EQ(table, (std::vector<int32_t>{3, 0, 0, 2, 0, 0, 1, 0}));
}

TEST_P(BucketTest, ARowTooShortTellsTheStrideAndLeavesIdsAlone) {
  const Shape s = {40, 3, 6};
  const std::vector<int32_t> ids = MakeIds(120, 6, Load::kZipf, 9);
  const reference::Buckets r = reference::Bucket(ids, 6);
  const size_t tight = static_cast<size_t>(r.max_tpe);
  struct Case {
    size_t stride, size;
    const char* message;
  };
  const Case cases[] = {
      {tight - 1, 1000,
       "BucketStrided: row_stride: smaller than the max of tpe"},
      {tight, tight * 5, "BucketStrided: ids: too small for num_experts rows"},
      {0, 3, "BucketStrided: ids: too small for num_experts rows"},
      {120, 500, "BucketStrided: ids: too small for num_experts rows"}};
  for (const Case& c : cases) {
    const Guarded<int32_t> tpe(1, 6), table(1, c.size);
    BucketSummary summary;
    const Status status =
        BucketStrided(View(ids, s), BucketOrder::kAscending,
                      {tpe.span(), table.span(), c.stride, true}, {}, &summary);
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_STREQ(status.message(), c.message);
    table.ExpectUntouched("ids");
    EXPECT_EQ(tpe.Values(), r.tpe);
    EXPECT_EQ(summary.max_tpe, r.max_tpe);
    EXPECT_EQ(summary.row_stride, tight);
  }
  // The last row needs room for its own pairs only, unless it is padded.
  const size_t size = 5 * 120 + 120;
  const Guarded<int32_t> tpe(1, 6), table(1, size - 120 + tight);
  EXPECT_TRUE(BucketStrided(View(ids, s), BucketOrder::kAscending,
                            {tpe.span(), table.span(), 120, false}, {}, nullptr)
                  .ok());
}

// e * row_stride beyond 2^32: the seed's index wrapped at 2^31; 512 experts and
// 900,000 tokens of 10. The table is 18 GB of address space, of which only
// what is written gets memory.
TEST_P(BucketTest, TablesBeyondTwoToThe31) {
  const Shape s = {900000, 10, 512};
  const size_t stride = s.tokens * s.top_k;
  const size_t bytes = s.experts * stride * sizeof(int32_t);
  void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  int32_t* table = static_cast<int32_t*>(map);
  std::vector<int32_t> ids(stride, -1), tpe(s.experts);
  ids[7] = 511;
  ids[stride - 1] = 511;
  ids[12345] = 510;
  const Status status = BucketStrided(
      View(ids, s), BucketOrder::kAscending,
      {tpe, {table, s.experts * stride}, stride, false}, {}, nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_GT(511 * stride, size_t{1} << 32);
  EXPECT_EQ(table[511 * stride], 7);
  EXPECT_EQ(table[511 * stride + 1], static_cast<int32_t>(stride) - 1);
  EXPECT_EQ(table[510 * stride], 12345);
  munmap(map, bytes);
}

TEST_P(BucketTest, NoTokens) {
  std::vector<int32_t> tpe(4, -1), offsets(5, -1), none;
  BucketSummary summary = {7, 7, 7};
  ASSERT_TRUE(BucketPacked({}, BucketOrder::kAscending,
                           {tpe, offsets, none, {}}, {}, &summary)
                  .ok());
  EXPECT_EQ(tpe, std::vector<int32_t>(4, 0));
  EXPECT_EQ(offsets, std::vector<int32_t>(5, 0));
  EXPECT_EQ(summary.max_tpe, 0);
  EXPECT_EQ(summary.dropped, 0u);
  EXPECT_EQ(summary.row_stride, 0u);
  // Whatever the table's size: a stride of tokens * top_k is 0 here. Without
  // slots it is the same.
  const Guarded<int32_t> table(1, 3);
  for (const size_t stride : {0u, 1u, 5u}) {
    tpe.assign(4, -1);
    ASSERT_TRUE(BucketStrided({nullptr, stride, 0}, BucketOrder::kClaim,
                              {tpe, table.span(), stride, true}, {}, &summary)
                    .ok());
    EXPECT_EQ(tpe, std::vector<int32_t>(4, 0));
    EXPECT_EQ(summary.row_stride, std::max<size_t>(1, stride));
  }
  table.ExpectUntouched("ids");
  // The dispatch stays non-empty, as Metal demands.
  std::vector<uint32_t> args(3);
  ASSERT_TRUE(MakeDispatchArgs(0, 4, 64, {}, args).ok());
  EXPECT_EQ(args, (std::vector<uint32_t>{1, 1, 4}));
  // So that a kernel of this ISA ran.
  const std::vector<int32_t> one = {0};
  std::vector<int32_t> pairs(1);
  ASSERT_TRUE(BucketPacked({one.data(), 1, 1}, BucketOrder::kAscending,
                           {tpe, offsets, pairs, {}}, {}, nullptr)
                  .ok());
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
