// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests calls from threads that the library did not start: TBB tasks, an
// OpenMP region, and 64 threads on one executor. All give the same bits. Also
// tests OpenMP's own executor.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/openmp_executor.h"
#include "switchyard/team_executor.h"
#include "testing/crew.h"
#include "tests/faults/layer.h"
#include "tests/target_test.h"

#ifdef SWITCHYARD_WITH_DEVICE
#include "device/tests/device_pass.h"
#endif
#ifdef SWITCHYARD_WITH_TBB
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#endif

namespace switchyard::testing_support {
namespace {

constexpr Shape kShape = {192, 64, 4, 96};

// A caller: its own layer, and the digest of the layer's results.
struct Caller {
  explicit Caller(uint64_t seed)
      : layer(kShape, seed), expected(layer.Expected()) {}
  void Call(Executor& executor) {
    if (layer.IsRight(executor, expected)) ++right;
  }

  Layer layer;
  const uint64_t expected;
  size_t right = 0;
};
std::vector<std::unique_ptr<Caller>> Callers(size_t count) {
  std::vector<std::unique_ptr<Caller>> callers;
  for (size_t i = 0; i < count; ++i) {
    callers.push_back(std::make_unique<Caller>(i));
  }
  return callers;
}

class CallersTest : public testing::TestWithParam<Pool> {};
INSTANTIATE_TEST_SUITE_P(Pools, CallersTest, testing::ValuesIn(EveryPool()),
                         testing::PrintToStringParamName());

TEST_P(CallersTest, SixtyFourThreadsOnOneExecutor) {
  const auto executor = MakeExecutor(GetParam());
  const auto callers = Callers(64);
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (const auto& caller : callers) {
    threads.emplace_back([&, c = caller.get()] {
      while (!go) std::this_thread::yield();
      for (int round = 0; round < 5; ++round) c->Call(*executor);
    });
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
  for (const auto& caller : callers) EXPECT_EQ(caller->right, 5u);
}

// With 64 threads, most threads wait for threads that do not have a core at
// the moment.
TEST(Callers, SixtyFourThreadsInOneCall) {
  EngineThreads crew(64);
  const EngineThread first = crew.Member(0);
  TeamExecutor team(first.num_threads, first.barrier, first.context);
  const auto callers = Callers(8);
  for (const auto& caller : callers) caller->layer.yields = true;
  crew.Run([&](const EngineThread& member) {
    team.Run(member.thread, [&] {
      for (const auto& caller : callers) caller->Call(team);
    });
  });
  for (const auto& caller : callers) EXPECT_EQ(caller->right, 1u);
}

#ifdef SWITCHYARD_WITH_TBB

// The calls come from nested tasks in TBB's default arena. The executor has
// its own arena.
TEST_P(CallersTest, InsideTbbTasks) {
  const auto executor = MakeExecutor(GetParam());
  const auto callers = Callers(24);
  tbb::parallel_for(0, 4, [&](int outer) {
    tbb::parallel_for(0, 6, [&](int inner) {
      callers[static_cast<size_t>(outer * 6 + inner)]->Call(*executor);
    });
  });
  for (const auto& caller : callers) EXPECT_EQ(caller->right, 1u);
}

#ifdef SWITCHYARD_WITH_DEVICE
TEST(Callers, DeviceInsideTbbTasks) {
  const DevicePass pass(kShape, 4);
  std::atomic<int> right{0};
  tbb::parallel_for(0, 8, [&](int) {
    if (pass.Run({}) == DevicePass::Outcome::kRight) ++right;
  });
  EXPECT_EQ(right, 8);
}
#endif  // SWITCHYARD_WITH_DEVICE

#endif  // SWITCHYARD_WITH_TBB

// Records a call: how often each index ran, and on which worker.
struct Visits {
  explicit Visits(size_t n) : times(n), busy(64) {}
  std::vector<std::atomic<int>> times, busy;
  std::atomic<int> collisions{0};

  static void Body(void* opaque, size_t worker, size_t begin, size_t end) {
    Visits& self = *static_cast<Visits*>(opaque);
    if (self.busy.at(worker)++ != 0) ++self.collisions;
    for (size_t i = begin; i < end; ++i) ++self.times[i];
    std::this_thread::yield();  // bodies then overlap, even on two cores
    --self.busy[worker];
  }
};
// Runs loops with one piece per thread (as in a layer), with several pieces
// per thread, and with fewer pieces than threads.
void Expect64Threads(Executor& executor) {
  ASSERT_EQ(executor.Concurrency(), 64u);
  for (const size_t count : {64u, 20000u, 65u, 2u}) {
    Visits visits(count);
    ASSERT_OK(executor.ParallelFor(count, 1, Visits::Body, &visits));
    for (const auto& n : visits.times) ASSERT_EQ(n.load(), 1);
    EXPECT_EQ(visits.collisions.load(), 0);
  }
}

TEST(SixtyFourThreads, OfATeam) {
  EngineThreads crew(64);
  const EngineThread member = crew.Member(0);
  TeamExecutor executor(64, member.barrier, member.context);
  crew.Run([&](const EngineThread& team) {
    executor.Run(team.thread, [&] { Expect64Threads(executor); });
  });
}

#ifdef SWITCHYARD_WITH_TBB
TEST(SixtyFourThreads, OfTbb) {
  const tbb::global_control most(tbb::global_control::max_allowed_parallelism,
                                 64);
  Expect64Threads(*MakeTbbExecutor(64));
}
#endif

#ifdef _OPENMP

TEST(SixtyFourThreads, OfOpenMp) {
  OpenMpExecutor executor(64);
  Expect64Threads(executor);
}

TEST_P(CallersTest, InsideAnOpenMpRegion) {
  const auto executor = MakeExecutor(GetParam());
  const auto callers = Callers(24);
#pragma omp parallel for num_threads(6) schedule(dynamic, 1)
  for (size_t i = 0; i < 24; ++i) callers[i]->Call(*executor);
  for (const auto& caller : callers) EXPECT_EQ(caller->right, 1u);
}

// Records a call of ParallelFor(): how often each index ran, and the length
// of each worker's ranges. Two bodies with the same worker at the same time
// would write the same vector.
struct Ranges {
  Ranges(size_t count, size_t workers) : visits(count), of_worker(workers) {}
  std::vector<std::atomic<int>> visits;
  std::vector<std::vector<size_t>> of_worker;

  static void Body(void* opaque, size_t worker, size_t begin, size_t end) {
    Ranges& self = *static_cast<Ranges*>(opaque);
    self.of_worker.at(worker).push_back(end - begin);
    for (size_t i = begin; i < end; ++i) ++self.visits[i];
  }
  size_t Run(OpenMpExecutor& executor, size_t grain) {
    EXPECT_OK(executor.ParallelFor(visits.size(), grain, Body, this));
    for (const std::atomic<int>& n : visits) EXPECT_EQ(n.load(), 1);
    size_t ranges = 0;
    for (const auto& lengths : of_worker) ranges += lengths.size();
    return ranges;
  }
};

TEST(OpenMpExecutor, CutsLoopsIntoPiecesThatPay) {
  OpenMpExecutor executor(4);
  EXPECT_EQ(executor.Concurrency(), 4u);
  EXPECT_EQ(OpenMpExecutor().Concurrency(),
            static_cast<size_t>(omp_get_max_threads()));
  struct {
    size_t count, grain, ranges;
  } const cases[] = {{0, 1, 0},    {1, 1, 1},    {7, 0, 4},    {31, 1, 4},
                     {32, 1, 8},   {99, 50, 1},  {100, 50, 4}, {40, 20, 4},
                     {199, 50, 4}, {1600, 50, 8}};
  for (const auto& c : cases) {
    Ranges ranges(c.count, 4);
    EXPECT_EQ(ranges.Run(executor, c.grain), c.ranges) << c.count;
  }
}

// Threads spin between regions only if each can have a core. If they spin,
// starting a region is cheaper.
TEST(OpenMpExecutor, ForksForLessWhereThreadsSpin) {
  const size_t cores = static_cast<size_t>(omp_get_num_procs());
  EXPECT_EQ(OpenMpExecutor(cores).ForkNs(), 6000u);
  EXPECT_EQ(OpenMpExecutor(cores + 1).ForkNs(), 30000u);
}

// libgomp ends and restarts threads if a region asks for another number of
// threads. So the executor always asks for the same number.
TEST(OpenMpExecutor, AlwaysAsksForTheWholeTeam) {
  OpenMpExecutor executor(4);
  for (const size_t count : {2u, 3u, 400u}) {
    std::atomic<int> others{0};
    EXPECT_OK(executor.ParallelFor(
        count, 1,
        [](void* counter, size_t, size_t, size_t) {
          if (omp_get_num_threads() != 4)
            ++*static_cast<std::atomic<int>*>(counter);
        },
        &others));
    EXPECT_EQ(others.load(), 0) << count;
  }
}

TEST(OpenMpExecutor, GoesOnWithFewerThreadsThanPieces) {
  OpenMpExecutor executor(4);
  omp_set_dynamic(1);  // a team may be smaller than requested
  for (int round = 0; round < 50; ++round) {
    Ranges ranges(1000, 4);
    EXPECT_EQ(ranges.Run(executor, 1), 248u);
  }
  omp_set_dynamic(0);
}

TEST(OpenMpExecutor, RunsInsideOfARegionOnTheCallingThread) {
  OpenMpExecutor executor(3);
  std::atomic<int> strangers{0}, several{0};
#pragma omp parallel num_threads(3)
  {
    const int self = omp_get_thread_num(), level = omp_get_level();
    struct Seen {
      std::thread::id caller = std::this_thread::get_id();
      bool elsewhere = false;
    } seen;
    Ranges ranges(100, 3);
    if (ranges.Run(executor, 1) != 1) ++several;
    const auto look = [](void* opaque, size_t, size_t, size_t) {
      Seen& s = *static_cast<Seen*>(opaque);
      s.elsewhere |= std::this_thread::get_id() != s.caller;
    };
    EXPECT_OK(executor.ParallelFor(100, 1, look, &seen));
    if (seen.elsewhere || omp_get_thread_num() != self ||
        omp_get_level() != level) {
      ++strangers;
    }
  }
  EXPECT_EQ(several.load(), 0);
  EXPECT_EQ(strangers.load(), 0);
}

TEST(OpenMpExecutor, SeveralCallersGetTheSameBits) {
  OpenMpExecutor executor(3);
  const auto callers = Callers(4);
  std::vector<std::thread> threads;
  for (const auto& caller : callers) {
    threads.emplace_back([&, c = caller.get()] {
      for (int round = 0; round < 5; ++round) c->Call(executor);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& caller : callers) EXPECT_EQ(caller->right, 5u);
}

#endif  // _OPENMP

}  // namespace
}  // namespace switchyard::testing_support
