// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sorts that a team of threads makes together: the results of one thread, on
// every member, whatever they are given.

#include "testing/crew.h"
#include "tests/bucket_case.h"

namespace switchyard::testing_support {
namespace {

class TeamTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(TeamTest);

// Threads of which each gets the same, which is returned.
class AgreeingCrew : public Crew {
 public:
  using Crew::Crew;

  template <class Call>
  Status Run(const Call& call) {
    const std::vector<Status> statuses = Crew::Run(call);
    for (const Status& status : statuses) {
      EXPECT_STREQ(status.message(), statuses[0].message());
      EXPECT_EQ(status.code(), statuses[0].code());
    }
    return statuses[0];
  }
};

constexpr BucketOrder kOrders[] = {BucketOrder::kAscending,
                                   BucketOrder::kClaim};
// None, one pair, one thread's work, and enough for several.
const Shape kShapes[] = {
    {0, 4, 9}, {1, 1, 3}, {37, 8, 128}, {4099, 8, 128}, {9001, 4, 16}};

TEST_P(TeamTest, PackedLikeOneThread) {
  for (const size_t num_threads : {1u, 2u, 3u, 5u}) {
    AgreeingCrew crew(num_threads);
    for (const Shape& s : kShapes) {
      for (const BucketOrder order : kOrders) {
        SCOPED_TRACE(testing::Message() << s << " on " << num_threads);
        const std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 31);
        const size_t pairs = s.tokens * s.top_k;
        const Guarded<int32_t> scratch(
            1, BucketScratchSize(pairs, s.experts, crew.Member(0)));
        Packed b(s);
        // Twice with the same memory: a second call may not meet the first.
        const auto call = [&](const Team& team) {
          Status status;
          for (int round = 0; round < 2 && status.ok(); ++round) {
            status = BucketPacked({View(ids, s), scratch.span()}, b.Out(),
                                  {order, true}, team);
            // The report is there for every member.
            EXPECT_EQ(b.report,
                      BucketReport(reference::Bucket(ids, s.experts)));
          }
          return status;
        };
        ASSERT_OK(crew.Run(call));
        scratch.ExpectIntact("scratch");
        ExpectPacked(ids, s, b, order == BucketOrder::kAscending);
      }
    }
  }
}

TEST_P(TeamTest, StridedLikeOneThread) {
  for (const size_t num_threads : {2u, 3u}) {
    AgreeingCrew crew(num_threads);
    for (const Shape& s : kShapes) {
      const std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 32);
      const reference::Buckets r = reference::Bucket(ids, s.experts);
      const size_t tight = std::max<size_t>(1, r.max_rows);
      const size_t pairs = s.tokens * s.top_k;
      std::vector<int32_t> scratch(
          BucketScratchSize(pairs, s.experts, crew.Member(0)));
      for (const size_t stride : {StridedBuckets::kTightStride, tight + 3,
                                  std::max<size_t>(1, pairs)}) {
        for (const BucketOrder order : kOrders) {
          SCOPED_TRACE(testing::Message() << s << " stride " << stride);
          const size_t used = stride == 0 ? tight : stride;
          std::vector<int32_t> counts(s.experts), table(s.experts * used, -9);
          Report report = kUnwritten;
          ASSERT_OK(crew.Run([&](const Team& team) {
            return BucketStrided({View(ids, s), scratch},
                                 {counts, table, stride, true, &report},
                                 {order, true}, team);
          }));
          EXPECT_EQ(counts, r.tokens_per_expert);
          EXPECT_EQ(report, BucketReport(r, used));
          if (pairs != 0) {
            ExpectStrided(r, table, used, 0, order == BucketOrder::kAscending);
          }
        }
      }
    }
  }
}

TEST_P(TeamTest, EveryMemberGetsTheError) {
  AgreeingCrew crew(3);
  const Shape s = {4099, 8, 128};
  const size_t pairs = s.tokens * s.top_k;
  const std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 33);
  const reference::Buckets r = reference::Bucket(ids, s.experts);
  std::vector<int32_t> scratch(
      BucketScratchSize(pairs, s.experts, crew.Member(0)));
  EXPECT_EQ(scratch.size(), 3 * s.experts);
  Packed b(s);
  ExpectError(crew.Run([&](const Team& team) {
    return BucketPacked({View(ids, s), scratch}, b.Out(), {}, team);
  }),
              "BucketPacked: topk_ids: outside [0, num_experts), and "
              "options.allow_dropped is not set",
              StatusCode::kFailedPrecondition);
  ExpectPacked(ids, s, b);
  const Guarded<int32_t> counts(1, s.experts), table(1, 7);
  ExpectError(crew.Run([&](const Team& team) {
    return BucketStrided({View(ids, s), scratch}, {counts.span(), table.span()},
                         {}, team);
  }),
              "BucketStrided: ids: too small for num_experts rows",
              StatusCode::kFailedPrecondition);
  table.ExpectUntouched("ids");
  EXPECT_EQ(counts.Values(), r.tokens_per_expert);
}

TEST(Teams, MustBeWhole) {
  const std::vector<int32_t> ids = {0, 1};
  std::vector<int32_t> counts(2), offsets(3), pairs(2), table(4);
  const auto barrier = [](void*) {};
  for (const auto& [team, message] :
       {std::pair<Team, std::string>{{2, 2, barrier},
                                     "team: thread is not below num_threads"},
        {{0, 0, barrier}, "team: thread is not below num_threads"},
        {{1, 2, nullptr}, "team: barrier is null"}}) {
    ExpectError(BucketPacked({ids}, {counts, offsets, pairs}, {}, team),
                "BucketPacked: " + message);
    ExpectError(BucketStrided({ids}, {counts, table, 2}, {}, team),
                "BucketStrided: " + message);
  }
  // Alone, without a barrier.
  EXPECT_OK(BucketPacked({ids}, {counts, offsets, pairs}, {}, Team()));
  EXPECT_EQ(pairs, ids);
  EXPECT_EQ(BucketScratchSize(SIZE_MAX, 2, Team{0, 4, barrier}), 0u);
}

}  // namespace
}  // namespace switchyard::testing_support
