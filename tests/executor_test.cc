// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/target_test.h"
#ifdef SWITCHYARD_WITH_TBB
#include <oneapi/tbb/global_control.h>
#endif

namespace switchyard::testing_support {
namespace {

// How often each index ran.
struct Visits {
  explicit Visits(size_t n) : counts(n) {}
  std::vector<std::atomic<int>> counts;
  std::atomic<size_t> ranges{0};
  std::atomic<size_t> longest{0};

  static void Body(void* opaque, size_t /*worker*/, size_t begin, size_t end) {
    Visits& self = *static_cast<Visits*>(opaque);
    for (size_t i = begin; i < end; ++i) self.counts[i].fetch_add(1);
    self.ranges.fetch_add(1);
    size_t seen = self.longest.load();
    while (end - begin > seen &&
           !self.longest.compare_exchange_weak(seen, end - begin)) {
    }
  }
  void ExpectOnceEach() const {
    for (size_t i = 0; i < counts.size(); ++i) {
      ASSERT_EQ(counts[i].load(), 1) << "index " << i;
    }
  }
};

class ExecutorTest : public testing::TestWithParam<Pool> {};
INSTANTIATE_TEST_SUITE_P(Pools, ExecutorTest, testing::ValuesIn(EveryPool()));

TEST_P(ExecutorTest, EachIndexOnceForAnyCountAndGrain) {
  const auto executor = MakeExecutor(GetParam());
  for (const size_t count : {0u, 1u, 2u, 7u, 64u, 100u, 1000u}) {
    // No grain at all is against the contract, and no reason to hang.
    for (const size_t grain : {0u, 1u, 2u, 64u, 999u, 100000u}) {
      Visits visits(count);
      ASSERT_OK(executor->ParallelFor(count, grain, Visits::Body, &visits));
      visits.ExpectOnceEach();
      if (count == 0) {
        EXPECT_EQ(visits.ranges.load(), 0u);
      }
    }
  }
}

TEST_P(ExecutorTest, SeveralCallersAtOnce) {
  const auto executor = MakeExecutor(GetParam());
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        Visits visits(200);
        EXPECT_OK(executor->ParallelFor(200, 3, Visits::Body, &visits));
        visits.ExpectOnceEach();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// Per-worker state needs no lock: each has a line of its own, which
// ThreadSanitizer would see two threads at. (MakeExecutor's see to the numbers
// themselves, here and in every other test.)
TEST_P(ExecutorTest, ScratchPerWorkerNeedsNoLock) {
  const auto executor = MakeExecutor(GetParam());
  struct alignas(64) Scratch {
    size_t calls = 0;
    uint64_t sum = 0;
  };
  executor->Rendezvous();
  std::vector<Scratch> scratch(executor->Concurrency());
  const auto add = [](void* all, size_t worker, size_t begin, size_t end) {
    Scratch& own = static_cast<std::vector<Scratch>*>(all)->at(worker);
    ++own.calls;
    for (size_t i = begin; i < end; ++i) own.sum += i;
  };
  ASSERT_OK(executor->ParallelFor(1000, 1, add, &scratch));
  uint64_t sum = 0;
  size_t workers = 0;
  for (const Scratch& s : scratch) {
    sum += s.sum;
    workers += s.calls != 0;
  }
  EXPECT_EQ(sum, 1000u * 999 / 2);
  // The numbers in use are as many as the threads that were inside at the same
  // time.
  EXPECT_EQ(workers, executor->ExpectedThreads());
}

TEST(SerialExecutor, IsWorkerZeroInOnePiece) {
  EXPECT_EQ(SerialExecutor().Concurrency(), 1u);
  std::vector<size_t> call;
  const auto note = [](void* c, size_t worker, size_t begin, size_t end) {
    *static_cast<std::vector<size_t>*>(c) = {worker, begin, end};
  };
  ASSERT_OK(SerialExecutor().ParallelFor(100, 1, note, &call));
  EXPECT_EQ(call, (std::vector<size_t>{0, 0, 100}));
}

#ifdef SWITCHYARD_WITH_TBB

TEST(TbbExecutor, KeepsToTheGrainAndRunsSmallWorkInline) {
  const auto executor = MakeTbbExecutor(2);
  ASSERT_NE(executor, nullptr);
  EXPECT_EQ(executor->Concurrency(), 2u);
  Visits visits(128);
  ASSERT_OK(executor->ParallelFor(128, 64, Visits::Body, &visits));
  EXPECT_EQ(visits.ranges.load(), 2u);
  EXPECT_EQ(visits.longest.load(), 64u);
  std::thread::id where;
  const auto note = [](void* id, size_t worker, size_t, size_t) {
    EXPECT_EQ(worker, 0u);
    *static_cast<std::thread::id*>(id) = std::this_thread::get_id();
  };
  ASSERT_OK(executor->ParallelFor(127, 64, note, &where));
  EXPECT_EQ(where, std::this_thread::get_id());
}

// Layers need that: they claim their work in the body. (On two cores all
// threads come together only because bodies wait for each other.)
TEST(TbbExecutor, GivesEachOfFewIndicesAThread) {
  const auto executor = MakeExecutor(Pool::kTbb7);
  executor->Rendezvous();
  Visits visits(7);
  ASSERT_OK(executor->ParallelFor(7, 1, Visits::Body, &visits));
  visits.ExpectOnceEach();
  EXPECT_EQ(visits.ranges.load(), 7u);
  EXPECT_EQ(executor->DistinctThreads(), 7u);
}

// The workers are awake within 20 us of a call of 10 us. That no longer pause
// comes after a call cannot be had for certain: one of many has to show it.
TEST(TbbExecutor, ForksForLessAfterAnotherCall) {
  using Clock = std::chrono::steady_clock;
  for (const int threads : {2, 3}) {
    const auto executor =
        MakeExecutor(threads == 2 ? Pool::kTbb2 : Pool::kTbb7);
    const size_t awake = threads == 2 ? 5000 : 10000;
    const auto cost_after = [&](size_t count) {  // of 64 that are 30 us
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(executor->ForkNs(), 30000u);
      Visits visits(count);
      EXPECT_OK(executor->ParallelFor(count, 64, Visits::Body, &visits));
      return executor->ForkNs();
    };
    size_t after_10_us = 0, after_60_us = 0;
    for (int i = 0; i < 1000 && after_10_us != awake; ++i) {
      after_10_us = cost_after(22);
    }
    EXPECT_EQ(after_10_us, awake);
    for (int i = 0; i < 1000 && after_60_us != awake; ++i) {
      after_60_us = cost_after(128);
    }
    EXPECT_EQ(after_60_us, awake);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(cost_after(21), 30000u);

    // Calls of 5 us keep nobody awake, unless the 20 us are over between the
    // question and the call.
    const auto work = [](void* calls, size_t, size_t, size_t) {
      ++*static_cast<int*>(calls);
      const Clock::time_point start = Clock::now();
      while (Clock::now() - start < std::chrono::microseconds(2)) {
      }
    };
    int asleep = 0;
    for (int i = 0; i < 100; ++i) {
      Visits first(128);
      EXPECT_OK(executor->ParallelFor(128, 64, Visits::Body, &first));
      const Clock::time_point end = Clock::now();
      while (Clock::now() - end < std::chrono::microseconds(30)) {
        int calls = 0;
        const size_t grain = executor->ForkNs() * 64 / 30000;
        EXPECT_OK(executor->ParallelFor(11, grain, work, &calls));
        EXPECT_EQ(calls, 1);
      }
      if (executor->ForkNs() == 30000) ++asleep;
    }
    EXPECT_GT(asleep, 50);
  }
}

TEST(TbbExecutor, RefusesSenselessConcurrency) {
  EXPECT_EQ(MakeTbbExecutor(0), nullptr);
  EXPECT_EQ(MakeTbbExecutor(-2), nullptr);
  EXPECT_GE(MakeTbbExecutor()->Concurrency(), 1u);
}

// TBB would warn on stderr, and crash when the arena of very many is destroyed.
TEST(TbbExecutor, HasNoMoreThreadsThanTbb) {
  testing::internal::CaptureStderr();
  {
    const tbb::global_control three(
        tbb::global_control::max_allowed_parallelism, 3);
    for (const auto& [wanted, given] :
         std::map<int, size_t>{{1, 1}, {2, 2}, {3, 3}, {4, 3}, {131072, 3}}) {
      const auto executor = MakeTbbExecutor(wanted);
      EXPECT_EQ(executor->Concurrency(), given);
      Visits visits(1000);
      EXPECT_OK(executor->ParallelFor(1000, 1, Visits::Body, &visits));
      visits.ExpectOnceEach();
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// A body must not throw; one that does is reported instead of ending the
// process.
TEST(TbbExecutor, ExceptionsBecomeAStatus) {
  const auto executor = MakeTbbExecutor(2);
  Status status = executor->ParallelFor(
      100, 1, [](void*, size_t, size_t, size_t) { throw std::bad_alloc(); },
      nullptr);
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_STREQ(status.message(), "TbbExecutor: out of memory for tasks");
  status = executor->ParallelFor(
      100, 1,
      [](void*, size_t, size_t, size_t) { throw std::runtime_error("x"); },
      nullptr);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_STREQ(status.message(), "TbbExecutor: TBB failed");
}

#else

TEST(TbbExecutor, IsNullWithoutTbb) { EXPECT_EQ(MakeTbbExecutor(2), nullptr); }

#endif  // SWITCHYARD_WITH_TBB

}  // namespace
}  // namespace switchyard::testing_support
