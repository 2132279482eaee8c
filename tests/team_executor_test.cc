// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the executor that consists of the threads of an engine's own parallel
// region.

#include "switchyard/team_executor.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>

#include "switchyard/route.h"
#include "testing/crew.h"
#include "tests/bucket_case.h"

namespace switchyard::testing_support {
namespace {

class TeamTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(TeamTest);

// Records how often each index ran, and as which worker.
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
    crew.Run(
        [&](const EngineThread& team) { executor.Run(team.thread, work); });
  }

  EngineThreads crew;
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
          // If each thread has several pieces, fast threads may finish all
          // pieces before a slow thread comes.
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

// Threads enter the next region as soon as the previous region lets them go.
TEST(TeamExecutorTest, RegionAfterRegion) {
  constexpr size_t kRegions = 300;
  Lent lent(4);
  Visited visited(64);
  size_t written = 0;
  lent.crew.Run([&](const EngineThread& team) {
    for (size_t region = 0; region < kRegions; ++region) {
      lent.executor.Run(team.thread, [&] {
        if (region % 3 == 2) return;  // this region has no loop
        EXPECT_OK(lent.executor.ParallelFor(64, 1, Visited::Body, &visited));
        ++written;
      });
      if (region % 2 == 0) continue;
      // This thread sees the value that thread 0 has written.
      EXPECT_EQ(written, region + 1 - (region + 1) / 3);
      team.barrier(team.context);
    }
  });
  for (const auto& n : visited.counts) EXPECT_EQ(n.load(), 200);
}

TEST(TeamExecutorTest, WhatIsThrownReachesItsCallerAndLetsTheOthersGo) {
  Lent lent(3);
  std::atomic<int> thrown{0};
  lent.crew.Run([&](const EngineThread& team) {
    try {
      lent.executor.Run(team.thread,
                        [] { throw std::runtime_error("engine"); });
    } catch (const std::runtime_error&) {
      thrown.fetch_add(1);
      EXPECT_EQ(team.thread, 0u);
    }
  });
  EXPECT_EQ(thrown.load(), 1);
  // Outside of a region no other threads would come, so the caller runs the
  // whole loop.
  Visited visited(9);
  EXPECT_OK(lent.executor.ParallelFor(9, 1, Visited::Body, &visited));
  EXPECT_EQ(visited.workers.load(), 1u);
}

// Without a barrier, several threads cannot share work, so a call returns an
// error and writes nothing. Only thread 0 makes the call.
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

// Runs RouteTopK(), and BucketPacked(), which runs several loops and writes a
// report.
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
