// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"
#include "testing/crew.h"
#include "testing/reference_map.h"
#include "tests/bucket_case.h"

namespace switchyard::testing_support {
namespace {

class BucketAlignedTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(BucketAlignedTest);
class BucketAlignedPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(BucketAlignedPoolTest);

// Everything that a call writes, in guarded memory, and what that should be.
struct Aligned {
  Aligned(const Shape& shape, std::vector<int32_t> values,
          std::vector<int32_t> expert_map, const AlignedOptions& given,
          size_t slack = 0)
      : s(shape),
        ids(std::move(values)),
        map(std::move(expert_map)),
        options(given),
        exact(reference::BucketAligned(
            map.empty() ? ids : reference::MapIds(ids, map), s.top_k, s.experts,
            given.block_size, given.capacity)),
        size(BucketAlignedSize(ids.size(), s.experts, given) + slack),
        topk_ids(s.tokens, s.top_k, s.top_k + slack, slack, ids),
        tokens_per_expert(1, s.experts, 0, slack),
        offsets(1, s.experts + 1, 0, slack),
        pairs(1, size),
        row_index(s.tokens, s.top_k, s.top_k + slack, slack),
        block_experts(1, size / given.block_size + slack),
        row_tokens(1, size),
        active_experts(1, s.experts) {
    options.allow_dropped = exact.dropped % 2 != 0;
  }
  AlignedInputs In() const { return {topk_ids.view(), map}; }
  AlignedBuckets Out() {
    return {tokens_per_expert.span(),
            offsets.span(),
            pairs.span(),
            row_index.view(),
            block_experts.span(),
            row_tokens.span(),
            active_experts.span(),
            &report};
  }
  // The memory behind the values holds the fill, or canaries.
  static void ExpectTail(const Guarded<int32_t>& memory,
                         std::vector<int32_t> wanted, bool filled, int32_t fill,
                         const char* name) {
    memory.ExpectIntact(name);
    int32_t canary;
    std::memcpy(&canary, &kCanary, sizeof(canary));
    wanted.resize(memory.span().size, filled ? fill : canary);
    EXPECT_EQ(memory.Values(), wanted) << name;
  }
  void Expect(const Status& status) const {
    if (exact.dropped == 0 || options.allow_dropped) {
      ASSERT_OK(status);
    } else {
      ExpectError(status,
                  "BucketAligned: topk_ids: outside [0, num_experts), and "
                  "options.allow_dropped is not set",
                  StatusCode::kFailedPrecondition);
    }
    EXPECT_EQ(tokens_per_expert.Values(), exact.tokens_per_expert);
    EXPECT_EQ(offsets.Values(), exact.offsets);
    EXPECT_EQ(row_index.Values(), exact.row_index);
    tokens_per_expert.ExpectIntact("tokens_per_expert");
    offsets.ExpectIntact("offsets");
    row_index.ExpectIntact("row_index");
    const bool fill = options.fill_unused;
    ExpectTail(pairs, exact.pairs, fill, static_cast<int32_t>(ids.size()),
               "pairs");
    ExpectTail(block_experts, exact.block_experts, fill, -1, "block_experts");
    ExpectTail(row_tokens, exact.row_tokens, false, 0, "row_tokens");
    ExpectTail(active_experts, exact.active_experts, true, -1,
               "active_experts");
    Report expected = kUnwritten;
    expected.max_rows = exact.max_rows;
    expected.dropped = exact.dropped;
    expected.over_capacity = exact.over_capacity;
    expected.active_experts = exact.active_experts.size();
    EXPECT_EQ(report, expected);
  }

  const Shape s;
  const std::vector<int32_t> ids, map;
  AlignedOptions options;
  const reference::Aligned exact;
  const size_t size;
  const Guarded<int32_t> topk_ids, tokens_per_expert, offsets, pairs, row_index,
      block_experts, row_tokens, active_experts;
  Report report = kUnwritten;
};

// Half of the ids are another node's, or come to what is no expert.
std::vector<int32_t> MakeMap(size_t ids, size_t experts, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> map;
  for (size_t i = 0; i < ids; ++i) {
    const size_t e = random.Below(2 * experts);
    map.push_back(e < experts  ? static_cast<int32_t>(e)
                  : e % 4 == 0 ? static_cast<int32_t>(e)
                               : -static_cast<int32_t>(1 + e % 3));
  }
  return map;
}

AlignedOptions MakeOptions(Random& random) {
  AlignedOptions options;
  const size_t blocks[] = {1, 2, 3, 16, 17, 64, 1 + random.Below(200)};
  options.block_size = blocks[random.Below(7)];
  if (random.Below(2) != 0) options.capacity = random.Below(40);
  options.fill_unused = random.Below(2) != 0;
  return options;
}

Aligned MakeCase(uint64_t seed, const Shape& s) {
  Random random(seed);
  const AlignedOptions options = MakeOptions(random);
  const size_t global = 1 + random.Below(2 * s.experts);
  const bool mapped = random.Below(2) != 0;
  std::vector<int32_t> ids =
      MakeIds(s.tokens * s.top_k, mapped ? global : s.experts,
              static_cast<Load>(random.Below(4)), seed);
  return {s, std::move(ids),
          mapped ? MakeMap(global, s.experts, seed) : std::vector<int32_t>(),
          options, random.Below(4)};
}

TEST_P(BucketAlignedTest, AnyShapeLikeTheReference) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(1000 + seed);
    const size_t experts = 1 + random.Below(random.Below(2) ? 20 : 600);
    const Shape s = {1 + random.Below(random.Below(8) ? 80 : 600),
                     1 + random.Below(12), experts};
    Aligned c = MakeCase(seed, s);
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ": " << s << " block "
                 << c.options.block_size << " capacity " << c.options.capacity);
    c.Expect(BucketAligned(c.In(), c.Out(), c.options));
    ASSERT_FALSE(HasFailure());
  }
}

// Ids of other types: strangers that are valid ids once they are cut to 32
// bits.
TEST_P(BucketAlignedTest, WideAndUnsignedIds) {
  for (const bool mapped : {false, true}) {
    const Shape s = {301, 8, 60};
    std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 5);
    std::vector<int64_t> wide(ids.begin(), ids.end());
    for (size_t i = 0; i < ids.size(); i += 7) {
      wide[i] = ids[i] + (int64_t{1} << 32);
      ids[i] = -1;
    }
    AlignedOptions options;
    options.block_size = 7;
    const std::vector<int32_t> map =
        mapped ? MakeMap(60, 60, 3) : std::vector<int32_t>();
    Aligned c(s, ids, map, options);
    AlignedInputs in = c.In();
    in.topk_ids = {wide.data(), s.tokens, s.top_k};
    c.Expect(BucketAligned(in, c.Out(), c.options));
    const std::vector<uint32_t> unsigned_ids(ids.begin(), ids.end());
    Aligned d(s, ids, map, options);
    in.topk_ids = {unsigned_ids.data(), s.tokens, s.top_k};
    d.Expect(BucketAligned(in, d.Out(), d.options));
  }
}

// Optional outputs are optional, each.
TEST_P(BucketAlignedTest, LeavesOutWhatIsNotThere) {
  for (int left_out = 0; left_out < 5; ++left_out) {
    Aligned c = MakeCase(77, {40, 6, 30});
    AlignedBuckets out = c.Out();
    if (left_out == 0) out.row_index = {};
    if (left_out == 1) out.block_experts = {};
    if (left_out == 2) out.row_tokens = {};
    if (left_out == 3) out.active_experts = {};
    if (left_out == 4) out.report = nullptr;
    EXPECT_OK(BucketAligned(
        c.In(), out, {c.options.block_size, c.options.capacity, false, true}));
    EXPECT_EQ(c.offsets.Values(), c.exact.offsets);
    const Guarded<int32_t>* const memory[] = {&c.row_index, &c.block_experts,
                                              &c.row_tokens, &c.active_experts};
    for (int i = 0; i < 4; ++i) {
      if (i == left_out) memory[i]->ExpectUntouched("left out");
      if (i != left_out) {
        EXPECT_NE(static_cast<uint32_t>(memory[i]->At(0, 0)), kCanary);
      }
    }
    EXPECT_EQ(c.report == kUnwritten, left_out == 4);
  }
}

// The example of vLLM's moe_align_block_size, whose experts count from 1 there.
TEST_P(BucketAlignedTest, KnownAnswers) {
  const std::vector<int32_t> ids = {1, 2, 3, 0, 1, 3, 0, 2, 3, 0, 1, 2};
  std::vector<int32_t> counts(4), offsets(5), pairs(24), experts(6);
  AlignedOptions options;
  options.block_size = 4;
  options.fill_unused = true;
  ASSERT_EQ(BucketAlignedSize(12, 4, options), 24u);
  ASSERT_OK(BucketAligned({{ids.data(), 4, 3}},
                          {counts, offsets, pairs, {}, experts}, options));
  const std::vector<int32_t> wanted = {3,  6,  9,  12, 0,  4,  10, 12,
                                       1,  7,  11, 12, 2,  5,  8,  12,
                                       12, 12, 12, 12, 12, 12, 12, 12};
  EXPECT_EQ(pairs, wanted);
  EXPECT_EQ(experts, (std::vector<int32_t>{0, 1, 2, 3, -1, -1}));
  EXPECT_EQ(offsets[4], 16);
}

// Two a pair: the first pairs are kept, in the order of tokens.
TEST_P(BucketAlignedTest, CapacityKeepsTheFirst) {
  const std::vector<int32_t> ids = {1, 0, 1, 1, 0, 1};
  std::vector<int32_t> counts(2), offsets(3), pairs(4), index(6);
  AlignedOptions options;
  options.capacity = 2;
  ASSERT_EQ(BucketAlignedSize(6, 2, options), 4u);
  Report report;
  ASSERT_OK(BucketAligned(
      {ids},
      {counts, offsets, pairs, {index.data(), 1, 6}, {}, {}, {}, &report},
      options));
  EXPECT_EQ(pairs, (std::vector<int32_t>{1, 4, 0, 2}));
  EXPECT_EQ(index, (std::vector<int32_t>{2, 0, 3, -1, 1, -1}));
  EXPECT_EQ(report.over_capacity, 2u);
  EXPECT_EQ(report.dropped, 0u);
}

TEST_P(BucketAlignedTest, NoTokens) {
  Aligned c({0, 4, 5}, {}, {}, {3, 7, true, false}, 3);
  c.Expect(BucketAligned(c.In(), c.Out(), c.options));
  // So that a kernel of this ISA ran.
  Aligned d = MakeCase(1, {2, 2, 2});
  d.Expect(BucketAligned(d.In(), d.Out(), d.options));
}

// Blocks of tokens on several threads, with and without scratch.
TEST_P(BucketAlignedPoolTest, SameBitsOnEveryThread) {
  executor().Rendezvous();
  for (const bool mapped : {false, true}) {
    const Shape s = {30011, 8, 128};
    const std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 6);
    Guarded<int32_t> scratch(1, ScratchSize(s, executor()));
    AlignedOptions options;
    options.block_size = 48;
    if (mapped) options.capacity = 1000;
    const std::vector<int32_t> map =
        mapped ? MakeMap(128, 128, 3) : std::vector<int32_t>();
    for (const bool with_scratch : {true, false}) {
      Aligned c(s, ids, map, options);
      AlignedInputs in = c.In();
      if (with_scratch) in.scratch = scratch.span();
      c.Expect(BucketAligned(in, c.Out(), c.options, executor()));
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
              executor().ExpectedThreads());
    scratch.ExpectIntact("scratch");
  }
}

TEST_P(BucketAlignedTest, TeamsLikeOneThread) {
  for (const size_t num_threads : {1u, 2u, 3u}) {
    Crew crew(num_threads);
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const size_t tokens = seed == 0 ? 0 : seed < 3 ? 37 : 4099;
      Aligned c = MakeCase(seed, {tokens, 8, 128});
      Guarded<int32_t> scratch(
          1, BucketScratchSize(8 * tokens, 128, crew.Member(0)));
      AlignedInputs in = c.In();
      in.scratch = scratch.span();
      const std::vector<Status> statuses = crew.Run([&](const Team& team) {
        return BucketAligned(in, c.Out(), c.options, team);
      });
      for (const Status& status : statuses) c.Expect(status);
      ASSERT_FALSE(HasFailure());
    }
  }
  Aligned d = MakeCase(1, {2, 2, 2});
  ExpectError(
      BucketAligned(d.In(), d.Out(), d.options, Team{2, 2, [](void*) {}}),
      "BucketAligned: team: thread is not below num_threads");
}

TEST(BucketAlignedFailures, OfAnyLoopAreReported) {
  const Shape s = {15007, 4, 60};
  const std::vector<int32_t> ids = MakeIds(s, Load::kUniform, 22);
  AlignedOptions options;
  options.block_size = 16;
  // Counting, placing, padding, tokens.
  for (size_t fail_at = 0; fail_at <= 4; ++fail_at) {
    BackwardsExecutor executor(fail_at);
    std::vector<int32_t> scratch(ScratchSize(s, executor));
    Aligned c(s, ids, {}, options);
    AlignedInputs in = c.In();
    in.scratch = scratch;
    EXPECT_EQ(BucketAligned(in, c.Out(), options, executor).code(),
              fail_at < 4 ? StatusCode::kOutOfMemory : StatusCode::kOk);
    EXPECT_EQ(c.report == kUnwritten, fail_at < 4);
  }
}

TEST(BucketAlignedSizes, AreTheWorstCase) {
  const auto size = [](size_t pairs, size_t experts, size_t block,
                       size_t capacity = AlignedOptions::kNoCapacity) {
    return BucketAlignedSize(pairs, experts, {block, capacity});
  };
  EXPECT_EQ(size(12, 4, 1), 12u);
  EXPECT_EQ(size(3, 8, 4), 12u);     // a block for each pair
  EXPECT_EQ(size(100, 4, 7), 119u);  // of at most 124
  EXPECT_EQ(size(100, 4, 1, 5), 20u);
  EXPECT_EQ(size(100, 4, 8, 0), 0u);
  EXPECT_EQ(size(100, 4, 0), SIZE_MAX);
  EXPECT_EQ(size(SIZE_MAX, 4, 2), SIZE_MAX);
  EXPECT_EQ(size(SIZE_MAX / 2, SIZE_MAX / 2, SIZE_MAX), SIZE_MAX);
}

}  // namespace
}  // namespace switchyard::testing_support
