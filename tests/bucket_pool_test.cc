// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sorting by blocks on several threads.

#include <sys/mman.h>

#include "switchyard/bucket.h"
#include "tests/bucket_case.h"

namespace switchyard::testing_support {
namespace {

class BucketPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(BucketPoolTest);

constexpr BucketOrder kOrders[] = {BucketOrder::kAscending,
                                   BucketOrder::kClaim};

TEST_P(BucketPoolTest, SameBitsAsSerialOnEveryThread) {
  // Several grains of 30 us for 7 threads, at about 1 ns a pair.
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
    // One thread does it without asking the executor at all.
    EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
              executor().ExpectedThreads());
    scratch.ExpectIntact("scratch");
    // Less scratch than asked for, or none: the same.
    check(0, BucketOrder::kAscending);
    check(size - (size != 0), BucketOrder::kAscending);
    check(size, BucketOrder::kClaim);
  }
}

// Ids of other types, and blocks of them.
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
    // Room for all pairs in each row, or only just enough and padding.
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

// Block boundaries everywhere: many sizes, executors that split into blocks.
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

// The sizes around which the number of blocks changes, or the last one is
// short.
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

// e * row_stride beyond 2^32: 512 experts and 900,000 tokens of 10. The table
// is 18 GB of address space, of which only what is written gets memory.
TEST_P(BucketPoolTest, TablesBeyondTwoToThe31) {
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
    // Claimed by different blocks, they may be in any order.
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
    // Claims need no scratch to be shared out.
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
      // Two loops: counting and placing.
      EXPECT_EQ(BucketPacked(in, b.Out(), {order}, for_packed).code(),
                fail_at < 2 ? StatusCode::kOutOfMemory : StatusCode::kOk);
      EXPECT_EQ(b.report == kUnwritten, fail_at < 2);
      // Padding is tested as well.
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
