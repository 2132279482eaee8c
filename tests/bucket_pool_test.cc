// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sorting by blocks on several threads.

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/bucket.h"
#include "testing/guarded_buffer.h"
#include "testing/inputs.h"
#include "testing/reference.h"
#include "tests/bucket_case.h"
#include "tests/target_test.h"

namespace switchyard {
namespace testing_support {
namespace {

class BucketPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(BucketPoolTest);

constexpr BucketOrder kOrders[] = {BucketOrder::kAscending,
                                   BucketOrder::kClaim};

TEST_P(BucketPoolTest, SameBitsAsSerialOnEveryThread) {
  // Several grains of 30 us for 7 threads, at about 1 ns a pair.
  const Shape s = {60013, 8, 128};
  for (const Load load : {Load::kUniform, Load::kZipf, Load::kStrangers}) {
    const std::vector<int32_t> ids =
        MakeIds(s.tokens * s.top_k, s.experts, load, 11);
    const Guarded<int32_t> scratch(1, ScratchSize(s, executor()));
    Packed b(s);
    executor().Rendezvous();
    ASSERT_TRUE(BucketPacked(View(ids, s), BucketOrder::kAscending, b.Out(),
                             scratch.span(), &b.summary, executor())
                    .ok());
    // One thread does it without asking the executor at all.
    EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
              executor().ExpectedThreads());
    ExpectPacked(ids, s, b);
    scratch.ExpectIntact("scratch");
    // Less scratch than asked for, or none: the same.
    for (const size_t size :
         {size_t{0}, scratch.span().size - (scratch.span().size != 0)}) {
      Packed c(s);
      ASSERT_TRUE(BucketPacked(View(ids, s), BucketOrder::kAscending, c.Out(),
                               {scratch.data(), size}, &c.summary, executor())
                      .ok());
      ASSERT_EQ(c.pairs.Values(), b.pairs.Values());
      ASSERT_EQ(c.row_index.Values(), b.row_index.Values());
    }
    Packed claimed(s);
    ASSERT_TRUE(BucketPacked(View(ids, s), BucketOrder::kClaim, claimed.Out(),
                             scratch.span(), &claimed.summary, executor())
                    .ok());
    ExpectPacked(ids, s, claimed, /*ordered=*/false);
  }
}

TEST_P(BucketPoolTest, StridedOnEveryThread) {
  executor().Rendezvous();
  for (const size_t experts : {5u, 128u}) {
    const Shape s = {60013, 8, experts};
    const size_t pairs = s.tokens * s.top_k;
    const std::vector<int32_t> ids =
        MakeIds(pairs, experts, Load::kStrangers, 12);
    const reference::Buckets r = reference::Bucket(ids, experts);
    const Guarded<int32_t> scratch(1, ScratchSize(s, executor()));
    const size_t tight = static_cast<size_t>(r.max_tpe);
    // Room for all pairs in each row, or only just enough and padding.
    const bool padding = experts > 5;
    const size_t stride = padding ? tight + 3 : pairs;
    for (const BucketOrder order : kOrders) {
      std::vector<int32_t> tpe(experts), table(experts * stride, -9);
      BucketSummary summary;
      ASSERT_TRUE(BucketStrided(View(ids, s), order,
                                {tpe, table, stride, padding}, scratch.span(),
                                &summary, executor())
                      .ok());
      EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
                executor().ExpectedThreads());
      EXPECT_EQ(tpe, r.tpe);
      EXPECT_EQ(summary.max_tpe, r.max_tpe);
      EXPECT_EQ(summary.row_stride, stride);
      EXPECT_EQ(summary.dropped, r.dropped);
      ExpectStrided(r, table, stride, padding ? 0 : static_cast<uint32_t>(-9),
                    order == BucketOrder::kAscending);

      const Guarded<int32_t> counts(1, experts), small(1, experts * tight - 1);
      const Status status = BucketStrided(
          View(ids, s), order, {counts.span(), small.span(), 0, true},
          scratch.span(), &summary, executor());
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
      small.ExpectUntouched("ids");
      EXPECT_EQ(counts.Values(), r.tpe);
      EXPECT_EQ(summary.row_stride, tight);
      EXPECT_EQ(summary.dropped, r.dropped);
    }
    scratch.ExpectIntact("scratch");
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
    const Guarded<int32_t> scratch(1, ScratchSize(s, executor()));
    const Guarded<int32_t> selected(s.tokens, s.top_k, s.top_k + seed % 2);
    selected.Fill(ids);
    for (const BucketOrder order : kOrders) {
      Packed b(s, 1);
      ASSERT_TRUE(BucketPacked(selected.view(), order, b.Out(), scratch.span(),
                               &b.summary, executor())
                      .ok());
      ExpectPacked(ids, s, b, order == BucketOrder::kAscending);
    }
  }
}

// The sizes around which the number of blocks changes, or the last one is
// short.
TEST_P(BucketPoolTest, BlockBoundaries) {
  const size_t most = 8 * executor().Concurrency();
  for (const size_t pairs :
       {size_t{29999}, size_t{30000}, size_t{30001}, size_t{8 * 4096 - 1},
        size_t{8 * 4096}, size_t{8 * 4096 + 1}, most * 4096 - 1, most * 4096}) {
    for (const size_t experts : {3u, 600u}) {
      SCOPED_TRACE(testing::Message() << pairs << " of " << experts);
      const Shape s = {pairs, 1, experts};
      const std::vector<int32_t> ids = MakeIds(pairs, experts, Load::kZipf, 3);
      const Guarded<int32_t> scratch(1, ScratchSize(s, executor()));
      for (const BucketOrder order : kOrders) {
        Packed b(s);
        ASSERT_TRUE(BucketPacked(View(ids, s), order, b.Out(), scratch.span(),
                                 &b.summary, executor())
                        .ok());
        ExpectPacked(ids, s, b, order == BucketOrder::kAscending);
      }
      scratch.ExpectIntact("scratch");
    }
  }
}

// As TablesBeyondTwoToThe31 in bucket_test.cc, by blocks.
TEST_P(BucketPoolTest, TablesBeyondTwoToThe31) {
  const Shape s = {900000, 10, 512};
  const size_t stride = s.tokens * s.top_k;
  const size_t bytes = s.experts * stride * sizeof(int32_t);
  void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  int32_t* table = static_cast<int32_t*>(map);
  std::vector<int32_t> ids(stride, -1), tpe(s.experts);
  std::vector<int32_t> scratch(ScratchSize(s, executor()));
  ids[7] = 511;
  ids[stride - 1] = 511;
  for (const BucketOrder order : kOrders) {
    table[511 * stride] = table[511 * stride + 1] = -1;
    const Status status = BucketStrided(
        View(ids, s), order, {tpe, {table, s.experts * stride}, stride, false},
        scratch, nullptr, executor());
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(tpe[511], 2);
    // Claimed by different blocks, they may be in any order.
    EXPECT_EQ(table[511 * stride] + table[511 * stride + 1],
              static_cast<int32_t>(stride) + 6);
    if (order == BucketOrder::kAscending) {
      EXPECT_EQ(table[511 * stride], 7);
    }
  }
  munmap(map, bytes);
}

// Runs one index at a time, last first, and fails at call `fail_at`.
class Backwards final : public Executor {
 public:
  explicit Backwards(size_t fail_at = SIZE_MAX) : fail_at_(fail_at) {}
  size_t Concurrency() const noexcept override { return 4; }
  Status ParallelFor(size_t count, size_t, void (*body)(void*, size_t, size_t),
                     void* context) noexcept override {
    if (calls_++ == fail_at_) {
      return Status(StatusCode::kOutOfMemory, "no memory");
    }
    while (count-- != 0) body(context, count, count + 1);
    return Status();
  }

 private:
  size_t calls_ = 0;
  const size_t fail_at_;
};

TEST(BucketOrders, OnlyClaimsDependOnTheExecutor) {
  const Shape s = {10007, 4, 60};
  const std::vector<int32_t> ids =
      MakeIds(s.tokens * s.top_k, s.experts, Load::kUniform, 21);
  Backwards backwards;
  std::vector<int32_t> scratch(ScratchSize(s, backwards));
  ASSERT_FALSE(scratch.empty());
  for (const BucketOrder order : kOrders) {
    const bool ordered = order == BucketOrder::kAscending;
    Packed b(s);
    ASSERT_TRUE(BucketPacked(View(ids, s), order, b.Out(), scratch, &b.summary,
                             backwards)
                    .ok());
    ExpectPacked(ids, s, b, ordered);
    const reference::Buckets r = reference::Bucket(ids, s.experts);
    EXPECT_EQ(b.pairs.Values() == r.pairs, ordered);
    // Claims need no scratch to be shared out.
    if (!ordered) {
      Packed c(s);
      ASSERT_TRUE(
          BucketPacked(View(ids, s), order, c.Out(), {}, &c.summary, backwards)
              .ok());
      EXPECT_EQ(c.pairs.Values(), b.pairs.Values());
    }
  }
}

TEST(BucketFailures, OfAnyLoopAreReported) {
  const Shape s = {10007, 4, 60};
  const std::vector<int32_t> ids =
      MakeIds(s.tokens * s.top_k, s.experts, Load::kUniform, 22);
  for (const BucketOrder order : kOrders) {
    for (size_t fail_at = 0; fail_at <= 3; ++fail_at) {
      Backwards for_packed(fail_at), for_strided(fail_at);
      std::vector<int32_t> scratch(ScratchSize(s, for_packed));
      Packed b(s);
      // Two loops: counting and placing.
      EXPECT_EQ(BucketPacked(View(ids, s), order, b.Out(), scratch, &b.summary,
                             for_packed)
                    .code(),
                fail_at < 2 ? StatusCode::kOutOfMemory : StatusCode::kOk);
      // And padding.
      std::vector<int32_t> tpe(s.experts), table(s.experts * 1000);
      EXPECT_EQ(BucketStrided(View(ids, s), order, {tpe, table, 1000, true},
                              scratch, nullptr, for_strided)
                    .code(),
                fail_at < 3 ? StatusCode::kOutOfMemory : StatusCode::kOk);
    }
  }
}

TEST(BucketScratch, OnlyWhereThreadsPay) {
  Backwards four;
  EXPECT_EQ(BucketScratchSize(1000000, 128, SerialExecutor()), 0u);
  EXPECT_EQ(BucketScratchSize(20000, 128, four), 0u);
  EXPECT_EQ(BucketScratchSize(1000000, 1000000, four), 0u);
  EXPECT_EQ(BucketScratchSize(SIZE_MAX, 128, four), 0u);
  EXPECT_EQ(BucketScratchSize(1000000, SIZE_MAX, four), 0u);
  EXPECT_GE(BucketScratchSize(1000000, 128, four), 4u * 128);
  EXPECT_LE(BucketScratchSize(1000000, 128, four), 1000000u / 8);
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
