// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/guarded_buffer.h"
#include "tests/inputs.h"
#include "tests/reference.h"
#include "tests/target_test.h"

namespace switchyard {
namespace testing_support {
namespace {

class BucketTest : public IsaTest {};
class BucketPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(BucketTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(BucketPoolTest);

enum class Load { kUniform, kZipf, kOneExpert, kStrangers };

// Ids of `pairs` pairs; kStrangers mixes in ones that are to be dropped.
std::vector<int32_t> MakeIds(size_t pairs, size_t experts, Load load,
                             uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> ids;
  for (size_t p = 0; p < pairs; ++p) {
    size_t e = random.Below(experts);
    if (load == Load::kZipf) {
      const double u = static_cast<double>(random.Uniform(0.0f, 1.0f));
      e = static_cast<size_t>(std::pow(static_cast<double>(experts), u)) - 1;
      e = std::min(e, experts - 1);
    }
    if (load == Load::kOneExpert) e = experts / 2;
    int32_t id = static_cast<int32_t>(e);
    if (load == Load::kStrangers && random.Below(4) == 0) {
      const int32_t strangers[] = {-1, static_cast<int32_t>(experts), INT32_MIN,
                                   INT32_MAX, -128};
      id = strangers[random.Below(5)];
    }
    ids.push_back(id);
  }
  return ids;
}

struct Shape {
  size_t tokens, top_k, experts;
};

Matrix<const int32_t> View(const std::vector<int32_t>& ids, const Shape& s) {
  return {ids.data(), s.tokens, s.top_k};
}

std::vector<int32_t> Scratch(const Shape& s, const Executor& executor) {
  return std::vector<int32_t>(
      BucketScratchSize(s.tokens * s.top_k, s.experts, executor));
}

// Everything a packed sort writes, in guarded memory.
struct Packed {
  explicit Packed(const Shape& s, size_t slack = 0)
      : tpe(1, s.experts, 0, slack),
        offsets(1, s.experts + 1, 0, slack),
        pairs(1, s.tokens * s.top_k, 0, slack),
        row_index(s.tokens, s.top_k, s.top_k + slack, slack) {}
  PackedBuckets Out() const {
    return {tpe.span(), offsets.span(), pairs.span(), row_index.view()};
  }
  Guarded<int32_t> tpe, offsets, pairs, row_index;
  BucketSummary summary = {77, 77, 77};
};

void ExpectPacked(const std::vector<int32_t>& ids, const Shape& s,
                  const Packed& b, bool ordered = true) {
  const reference::Buckets r = reference::Bucket(ids, s.experts);
  b.tpe.ExpectIntact("tpe");
  b.offsets.ExpectIntact("offsets");
  b.pairs.ExpectIntact("pairs");
  b.row_index.ExpectIntact("row_index");
  ASSERT_EQ(b.tpe.Values(), r.tpe);
  ASSERT_EQ(b.offsets.Values(), r.offsets);
  EXPECT_EQ(b.summary.max_tpe, r.max_tpe);
  EXPECT_EQ(b.summary.dropped, r.dropped);
  EXPECT_EQ(b.summary.row_stride, 0u);
  const std::vector<int32_t> index = b.row_index.Values();
  std::vector<int32_t> pairs = b.pairs.Values();
  // row_index is the inverse of pairs, whatever the order.
  for (size_t p = 0; p < ids.size(); ++p) {
    if (index[p] == -1) {
      EXPECT_EQ(r.row_index[p], -1);
    } else {
      ASSERT_LT(static_cast<size_t>(index[p]), r.pairs.size());
      ASSERT_EQ(pairs[static_cast<size_t>(index[p])], static_cast<int32_t>(p));
    }
  }
  // Behind the last pair nothing is written.
  for (size_t i = r.pairs.size(); i < pairs.size(); ++i) {
    ASSERT_EQ(static_cast<uint32_t>(pairs[i]), kCanary);
  }
  pairs.resize(r.pairs.size());
  if (!ordered) {
    for (size_t e = 0; e < s.experts; ++e) {
      std::sort(pairs.begin() + r.offsets[e], pairs.begin() + r.offsets[e + 1]);
    }
  } else {
    EXPECT_EQ(index, r.row_index);
  }
  ASSERT_EQ(pairs, r.pairs);
}

// Rows of `ids` up to tpe; what follows is `behind`.
void ExpectStrided(const reference::Buckets& r, const std::vector<int32_t>& ids,
                   size_t row_stride, uint32_t behind, bool ordered = true) {
  for (size_t e = 0; e < r.tpe.size(); ++e) {
    const auto row = ids.begin() + static_cast<ptrdiff_t>(e * row_stride);
    std::vector<int32_t> bucket(row, row + r.tpe[e]);
    if (!ordered) std::sort(bucket.begin(), bucket.end());
    const std::vector<int32_t> expected(r.pairs.begin() + r.offsets[e],
                                        r.pairs.begin() + r.offsets[e + 1]);
    ASSERT_EQ(bucket, expected) << "expert " << e;
    for (size_t i = static_cast<size_t>(r.tpe[e]); i < row_stride; ++i) {
      ASSERT_EQ(static_cast<uint32_t>(row[static_cast<ptrdiff_t>(i)]), behind)
          << "expert " << e << " entry " << i;
    }
  }
}

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

TEST_P(BucketTest, StridedLikeTheReference) {
  uint64_t seed = 100;
  for (const Shape& s : kShapes) {
    for (const Load load : {Load::kUniform, Load::kStrangers}) {
      const size_t pairs = s.tokens * s.top_k;
      const std::vector<int32_t> ids = MakeIds(pairs, s.experts, load, ++seed);
      const reference::Buckets r = reference::Bucket(ids, s.experts);
      const size_t tight = std::max<size_t>(1, static_cast<size_t>(r.max_tpe));
      SCOPED_TRACE(testing::Message() << s.tokens << "x" << s.top_k << " of "
                                      << s.experts << " seed " << seed);
      for (const size_t stride : {StridedBuckets::kTightStride, tight,
                                  tight + 1, pairs, pairs + 16}) {
        for (const bool padding : {false, true}) {
          const size_t used = stride == 0 ? tight : stride;
          const Guarded<int32_t> tpe(1, s.experts);
          const Guarded<int32_t> table(1, s.experts * used);
          BucketSummary summary;
          const Status status = BucketStrided(
              View(ids, s), BucketOrder::kAscending,
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
      }
    }
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

// e * row_stride beyond 2^31, where the seed's index wrapped: 512 experts and
// 420,300 tokens of 10. The table is 8.6 GB of address space, of which only
// what is written gets memory.
TEST_P(BucketTest, TablesBeyondTwoToThe31) {
  const Shape s = {420300, 10, 512};
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
  ASSERT_GT(511 * stride, size_t{1} << 31);
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
  tpe.assign(4, -1);
  ASSERT_TRUE(BucketStrided({nullptr, 0, 8}, BucketOrder::kClaim,
                            {tpe, none, 0, false}, {}, &summary)
                  .ok());
  EXPECT_EQ(tpe, std::vector<int32_t>(4, 0));
  EXPECT_EQ(summary.row_stride, 1u);
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

TEST_P(BucketPoolTest, SameBitsAsSerialOnEveryThread) {
  // Several grains of 30 us for 7 threads, at about 1 ns a pair.
  const Shape s = {60013, 8, 128};
  for (const Load load : {Load::kUniform, Load::kZipf, Load::kStrangers}) {
    const std::vector<int32_t> ids =
        MakeIds(s.tokens * s.top_k, s.experts, load, 11);
    std::vector<int32_t> scratch = Scratch(s, executor());
    Packed b(s);
    executor().Rendezvous();
    ASSERT_TRUE(BucketPacked(View(ids, s), BucketOrder::kAscending, b.Out(),
                             scratch, &b.summary, executor())
                    .ok());
    // One thread does it without asking the executor at all.
    EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
              executor().ExpectedThreads());
    ExpectPacked(ids, s, b);
    // Less scratch than asked for, or none: the same.
    for (const size_t size : {size_t{0}, scratch.size() / 2}) {
      Packed c(s);
      ASSERT_TRUE(BucketPacked(View(ids, s), BucketOrder::kAscending, c.Out(),
                               {scratch.data(), size}, &c.summary, executor())
                      .ok());
      ASSERT_EQ(c.pairs.Values(), b.pairs.Values());
      ASSERT_EQ(c.row_index.Values(), b.row_index.Values());
    }
    Packed claimed(s);
    ASSERT_TRUE(BucketPacked(View(ids, s), BucketOrder::kClaim, claimed.Out(),
                             scratch, &claimed.summary, executor())
                    .ok());
    ExpectPacked(ids, s, claimed, /*ordered=*/false);

    const reference::Buckets r = reference::Bucket(ids, s.experts);
    for (const BucketOrder order :
         {BucketOrder::kAscending, BucketOrder::kClaim}) {
      const size_t stride = static_cast<size_t>(r.max_tpe) + 3;
      std::vector<int32_t> tpe(s.experts), table(s.experts * stride, -9);
      BucketSummary summary;
      ASSERT_TRUE(BucketStrided(View(ids, s), order, {tpe, table, stride, true},
                                scratch, &summary, executor())
                      .ok());
      EXPECT_EQ(tpe, r.tpe);
      EXPECT_EQ(summary.dropped, r.dropped);
      ExpectStrided(r, table, stride, 0, order == BucketOrder::kAscending);
    }
  }
}

// Block boundaries everywhere: many sizes, executors that split into blocks.
TEST_P(BucketPoolTest, OddSizes) {
  for (uint64_t seed = 300; seed < 312; ++seed) {
    Random random(seed);
    const Shape s = {4000 + random.Below(9000), 1 + random.Below(9),
                     1 + random.Below(300)};
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << s.tokens
                                    << "x" << s.top_k << " of " << s.experts);
    const std::vector<int32_t> ids =
        MakeIds(s.tokens * s.top_k, s.experts, Load::kStrangers, seed);
    std::vector<int32_t> scratch = Scratch(s, executor());
    for (const BucketOrder order :
         {BucketOrder::kAscending, BucketOrder::kClaim}) {
      Packed b(s, 1);
      ASSERT_TRUE(BucketPacked(View(ids, s), order, b.Out(), scratch,
                               &b.summary, executor())
                      .ok());
      ExpectPacked(ids, s, b, order == BucketOrder::kAscending);
    }
  }
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
