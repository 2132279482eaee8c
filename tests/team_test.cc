// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sorts that a team of threads makes together: the results of one thread, on
// every member, whatever they are given. And such threads as an executor.

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>

#include "switchyard/route.h"
#include "switchyard/team_executor.h"
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

// How often each index ran, and on behalf of whom.
struct Visited {
  explicit Visited(size_t n) : counts(n) {}
  std::vector<std::atomic<int>> counts;
  std::atomic<uint32_t> workers{0};

  static void Body(void* opaque, size_t worker, size_t begin, size_t end) {
    Visited& self = *static_cast<Visited*>(opaque);
    for (size_t i = begin; i < end; ++i) self.counts[i].fetch_add(1);
    self.workers.fetch_or(1u << worker);
  }
};

// A team's executor and its threads.
struct Lent {
  explicit Lent(size_t num_threads)
      : crew(num_threads),
        executor(num_threads, crew.Member(0).barrier, crew.Member(0).context) {}

  template <class Work>
  void Run(const Work& work) {
    crew.Run([&](const Team& team) {
      executor.Run(team.thread, work);
      return Status();
    });
  }

  Crew crew;
  TeamExecutor executor;
};

TEST(TeamExecutorTest, EachIndexOnceOnAsManyAsAreWorthIt) {
  for (const size_t num_threads : {1u, 2u, 3u, 5u}) {
    Lent lent(num_threads);
    EXPECT_EQ(lent.executor.Concurrency(), num_threads);
    lent.Run([&] {
      for (const size_t count : {0u, 1u, 2u, 7u, 100u, 1000u}) {
        for (const size_t grain : {0u, 1u, 2u, 64u, 999u, 100000u}) {
          SCOPED_TRACE(testing::Message()
                       << count << " by " << grain << " on " << num_threads);
          Visited visited(count);
          ASSERT_OK(
              lent.executor.ParallelFor(count, grain, Visited::Body, &visited));
          for (const auto& n : visited.counts) ASSERT_EQ(n.load(), 1);
          // If there are several each, the others may be done by the time
          // that a thread comes.
          const Pieces pieces(count, grain, num_threads);
          const uint32_t all = (1u << pieces.workers()) - 1;
          EXPECT_EQ(visited.workers.load() | all, all);
          if (pieces.number() <= num_threads) {
            EXPECT_EQ(visited.workers.load(), all);
          }
        }
      }
    });
  }
}

// Threads go on to the next region as soon as they are let go.
TEST(TeamExecutorTest, RegionAfterRegion) {
  constexpr size_t kRegions = 300;
  Lent lent(4);
  Visited visited(64);
  size_t written = 0;
  lent.crew.Run([&](const Team& team) {
    for (size_t region = 0; region < kRegions; ++region) {
      lent.executor.Run(team.thread, [&] {
        if (region % 3 == 2) return;  // nothing to share out
        EXPECT_OK(lent.executor.ParallelFor(64, 1, Visited::Body, &visited));
        ++written;
      });
      if (region % 2 == 0) continue;
      // The values that thread 0 wrote are there.
      EXPECT_EQ(written, region + 1 - (region + 1) / 3);
      team.barrier(team.context);
    }
    return Status();
  });
  for (const auto& n : visited.counts) EXPECT_EQ(n.load(), 200);
}

TEST(TeamExecutorTest, WhatIsThrownReachesItsCallerAndLetsTheOthersGo) {
  Lent lent(3);
  std::atomic<int> thrown{0};
  lent.crew.Run([&](const Team& team) {
    try {
      lent.executor.Run(team.thread,
                        [] { throw std::runtime_error("engine"); });
    } catch (const std::runtime_error&) {
      thrown.fetch_add(1);
      EXPECT_EQ(team.thread, 0u);
    }
    return Status();
  });
  EXPECT_EQ(thrown.load(), 1);
  // Outside of a region nobody would come.
  Visited visited(9);
  EXPECT_OK(lent.executor.ParallelFor(9, 1, Visited::Body, &visited));
  EXPECT_EQ(visited.workers.load(), 1u);
}

// Several threads without a barrier share nothing, and only thread 0 calls.
TEST(TeamExecutorTest, RefusesThreadsWithoutABarrier) {
  constexpr size_t kTokens = 1 << 16, kExperts = 8, kTopK = 2;
  const std::vector<float> logits(kTokens * kExperts, 1.0f);
  std::vector<int32_t> ids(kTokens * kTopK, -7);
  std::vector<float> weights(ids.size());
  const auto route = [&](Executor& executor) {
    return RouteTopK(
        {{logits.data(), kTokens, kExperts}},
        {{ids.data(), kTokens, kTopK}, {weights.data(), kTokens, kTopK}}, {},
        executor);
  };
  TeamExecutor none(4, nullptr);
  EXPECT_EQ(none.Concurrency(), 4u);
  int calls = 0;
  for (const size_t thread : {3u, 2u, 1u, 0u}) {
    none.Run(thread, [&] {
      ++calls;
      ExpectError(route(none),
                  "TeamExecutor: barrier: null, with more than one thread");
    });
  }
  EXPECT_EQ(calls, 1);
  TeamExecutor nobody(0, [](void*) {});
  ExpectError(route(nobody),
              "Executor: Concurrency() is 0, and has to be at least 1");
  EXPECT_EQ(ids, std::vector<int32_t>(ids.size(), -7));
  TeamExecutor alone(1, nullptr);
  alone.Run(0, [&] { EXPECT_OK(route(alone)); });
}

// A router's rows, and a sort, which takes several steps, with its report.
TEST_P(TeamTest, LentItGivesTheBitsOfOneThread) {
  const Shape s = {7507, 8, 128};
  std::vector<float> logits(s.tokens * s.experts);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(i * 2654435761u % 4096) / 512.0f;
  }
  const auto run = [&](Executor& executor, std::vector<int32_t>& ids,
                       std::vector<float>& weights, Packed& b) {
    ASSERT_OK(RouteTopK(
        {{logits.data(), s.tokens, s.experts}},
        {{ids.data(), s.tokens, s.top_k}, {weights.data(), s.tokens, s.top_k}},
        {}, executor));
    std::vector<int32_t> scratch(
        BucketScratchSize(s.tokens * s.top_k, s.experts, executor));
    ASSERT_OK(BucketPacked({View(ids, s), scratch}, b.Out(), {}, executor));
  };
  std::vector<int32_t> ids(s.tokens * s.top_k), lent_ids(ids);
  std::vector<float> weights(ids.size()), lent_weights(ids.size());
  Packed packed(s), lent_packed(s);
  run(SerialExecutor(), ids, weights, packed);
  Lent lent(3);
  lent.Run([&] { run(lent.executor, lent_ids, lent_weights, lent_packed); });
  EXPECT_EQ(lent_ids, ids);
  EXPECT_EQ(lent_weights, weights);
  EXPECT_EQ(lent_packed.report, packed.report);
  ExpectPacked(ids, s, lent_packed);
}

}  // namespace
}  // namespace switchyard::testing_support
