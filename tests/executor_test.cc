// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/executor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "src/bucket_plan.h"
#include "src/parallel_for.h"
#include "src/schedule.h"
#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/pieces.h"
#include "switchyard/quantize.h"
#include "switchyard/route.h"
#include "tests/target_test.h"

#ifdef SWITCHYARD_WITH_TBB
#include <oneapi/tbb/global_control.h>
#endif

namespace switchyard::testing_support {
namespace {

// Records how often each index ran.
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
INSTANTIATE_TEST_SUITE_P(Pools, ExecutorTest, testing::ValuesIn(EveryPool()),
                         testing::PrintToStringParamName());

TEST_P(ExecutorTest, EachIndexOnceForAnyCountAndGrain) {
  const auto executor = MakeExecutor(GetParam());
  for (const size_t count : {0u, 1u, 2u, 7u, 64u, 100u, 1000u}) {
    // A grain of 0 violates the contract, but must not make the call hang.
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

// Each worker number has its own state, in its own cache line, so the states
// need no lock. If two threads had the same number, ThreadSanitizer would
// report a race. (The executors of MakeExecutor() check the worker numbers
// themselves, here and in all other tests.)
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
  // The calls had as many different worker numbers as the executor has threads.
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

// A layer passes one index for each thread, and its bodies take tiles from a
// shared list. So each index needs its own thread. (On two cores, all seven
// threads get an index only because Rendezvous() makes the bodies wait for
// each other.)
TEST(TbbExecutor, GivesEachOfFewIndicesAThread) {
  const auto executor = MakeExecutor(Pool::kTbb7);
  executor->Rendezvous();
  Visits visits(7);
  ASSERT_OK(executor->ParallelFor(7, 1, Visits::Body, &visits));
  visits.ExpectOnceEach();
  EXPECT_EQ(visits.ranges.load(), 7u);
  EXPECT_EQ(executor->DistinctThreads(), 7u);
}

// After a call of at least 10 us, the workers stay awake for 20 us, and the
// next fork costs less. The machine may pause after any call, so the test
// makes up to 1000 calls until ForkNs() falls.
TEST(TbbExecutor, ForksForLessAfterAnotherCall) {
  using Clock = std::chrono::steady_clock;
  for (const int threads : {2, 3}) {
    const auto executor =
        MakeExecutor(threads == 2 ? Pool::kTbb2 : Pool::kTbb7);
    const size_t awake = threads == 2 ? 5000 : 10000;
    const auto cost_after = [&](size_t count) {  // 64 indices count as 30 us
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

    // Calls of 5 us do not keep workers awake, unless the 20 us end between
    // ForkNs() and ParallelFor(). This happened in 62 of 100 cases on two busy
    // cores with sanitizers.
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
    EXPECT_GT(asleep, 10);
  }
}

TEST(TbbExecutor, RefusesSenselessConcurrency) {
  EXPECT_EQ(MakeTbbExecutor(0), nullptr);
  EXPECT_EQ(MakeTbbExecutor(-2), nullptr);
  EXPECT_GE(MakeTbbExecutor()->Concurrency(), 1u);
}

// If the executor asked for more threads than TBB allows, TBB would warn on
// stderr, and would crash when an arena with very many threads is destroyed.
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

// A body must not throw. If it does, the call returns an error and the
// process goes on.
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

// Tests how many pieces and threads a loop gets. A test of times would not
// show this, because two cores cannot show the gain on sixteen.

TEST(Pieces, AreAsManyAsPay) {
  const struct {
    size_t count, grain, threads, number, workers;
  } cases[] = {
      {0, 1, 4, 0, 0},
      {1, 1, 4, 1, 1},
      {3, 1, 16, 3, 3},  // one index for each thread
      {16, 1, 16, 16, 16},
      {100, 100, 4, 1, 1},
      {199, 100, 4, 1, 1},  // less than two grains
      {200, 100, 2, 2, 2},
      {200, 100, 4, 4, 4},  // half a grain for each thread
      {200, 100, 16, 4, 4},
      {799, 100, 16, 14, 14},
      {800, 100, 16, 16, 16},
      {12799, 100, 16, 16, 16},
      {12800, 100, 16, 32, 16},  // eight grains for each thread
      {25600, 100, 16, 64, 16},
      {1 << 20, 1, 16, 1024, 16},
      {1 << 20, 1, 600, 600, 600},
      {1 << 20, 1, 2000, 2000, 2000},
      {1 << 20, 1, 1, 1, 1},
      {1 << 20, 0, 0, 1, 1},
      {7, 0, 4, 4, 4},
      {SIZE_MAX, 1, 3, 1023, 3},
      {SIZE_MAX, 2, SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 1},
  };
  for (const auto& c : cases) {
    const Pieces pieces(c.count, c.grain, c.threads);
    SCOPED_TRACE(testing::Message()
                 << c.count << " by " << c.grain << " on " << c.threads);
    EXPECT_EQ(pieces.number(), c.number);
    EXPECT_EQ(pieces.workers(), c.workers);
  }
}

TEST(Pieces, AreAsLongAsEachOther) {
  for (const auto& [count, grain, threads] : {std::array<size_t, 3>{1000, 1, 7},
                                              {1023, 16, 5},
                                              {5, 2, 3},
                                              {100003, 3, 64},
                                              {SIZE_MAX, 1, 3},
                                              {SIZE_MAX, SIZE_MAX / 5, 4}}) {
    const Pieces pieces(count, grain, threads);
    const size_t number = pieces.number(), shortest = count / number;
    EXPECT_EQ(pieces.Begin(0), 0u);
    EXPECT_EQ(pieces.Begin(number), count);
    for (size_t i = 0; i < number; ++i) {
      const size_t length = pieces.Begin(i + 1) - pieces.Begin(i);
      EXPECT_GE(length, shortest);
      EXPECT_LE(length, shortest + 1);
    }
  }
}

// Records how often each index ran.
struct Runs {
  explicit Runs(size_t count) : times(count) {}
  std::vector<std::atomic<int>> times;

  static void Body(void* opaque, size_t, size_t begin, size_t end) {
    Runs& self = *static_cast<Runs*>(opaque);
    for (size_t i = begin; i < end; ++i) ++self.times[i];
  }
  void ExpectOnceEach() const {
    for (const auto& n : times) ASSERT_EQ(n.load(), 1);
  }
};

// One thread may call Run() for several workers, as in TBB and nested
// regions. A team may also be smaller than requested.
TEST(SharedLoop, RunsEachIndexOnceWhoeverComes) {
  for (const size_t count : {0u, 1u, 5u, 64u, 1000u, 100000u}) {
    for (const size_t threads : {7u, 2000u}) {
      for (const size_t come : {1u, 2u, 7u}) {
        Runs runs(count);
        SharedLoop loop(count, 1, threads, Runs::Body, &runs);
        for (size_t first = come; first-- > 0;) loop.Run(first, come, first);
        runs.ExpectOnceEach();
      }
    }
  }
}

TEST(SharedLoop, RunsEachIndexOnceOnManyThreads) {
  constexpr size_t kThreads = 64, kCount = 4 * 16 * kThreads;
  for (int round = 0; round < 20; ++round) {
    Runs runs(kCount);
    SharedLoop loop(kCount, 1, kThreads, Runs::Body, &runs);
    ASSERT_EQ(loop.pieces().number(), 16 * kThreads);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { loop.Run(i, kThreads, i); });
    }
    for (std::thread& thread : threads) thread.join();
    runs.ExpectOnceEach();
  }
}

// Each thread starts with its own pieces. A thread that has finished its own
// pieces takes pieces of other threads.
TEST(SharedLoop, KeepsRowsOnTheirThreadsAndHelps) {
  struct Order {
    SharedLoop* loop = nullptr;
    std::vector<size_t> of_worker[2];

    static void Body(void* opaque, size_t worker, size_t begin, size_t) {
      Order& self = *static_cast<Order*>(opaque);
      self.of_worker[worker].push_back(begin);
      // Worker 0 is slow in its second piece. Meanwhile worker 1 takes all
      // other pieces.
      if (begin == 4) self.loop->Run(1, 2, 1);
    }
  } order;
  SharedLoop loop(32, 1, 2, Order::Body, &order);
  ASSERT_EQ(loop.pieces().number(), 8u);
  order.loop = &loop;
  loop.Run(0, 2, 0);
  EXPECT_EQ(order.of_worker[0], (std::vector<size_t>{0, 4}));
  EXPECT_EQ(order.of_worker[1], (std::vector<size_t>{16, 20, 24, 28, 8, 12}));
}

// An executor that states the cost of a fork, and runs every loop on the
// calling thread.
class PricedExecutor final : public Executor {
 public:
  PricedExecutor(size_t fork_ns, size_t threads)
      : fork_ns_(fork_ns), threads_(threads) {}
  size_t Concurrency() const noexcept override { return threads_; }
  size_t ForkNs() const noexcept override {
    ++asked;
    return fork_ns_;
  }
  Status ParallelFor(size_t count, size_t, Body body,
                     void* context) noexcept override {
    body(context, 0, 0, count);
    return Status();
  }
  mutable size_t asked = 0;

 private:
  const size_t fork_ns_, threads_;
};

TEST(Grain, FollowsFromTheCostOfAFork) {
  // Returns the grain for rows of 100 ns. Some cases depend on rounding.
  const auto grain = [](size_t fork_ns, size_t count, size_t row_ps = 99999) {
    const PricedExecutor executor(fork_ns, 2);
    return internal::Grain(executor, count, row_ps);
  };
  EXPECT_EQ(grain(30000, 1000), 300u);
  EXPECT_EQ(grain(3000, 1000), 30u);
  EXPECT_EQ(grain(0, 1000), 1u);
  EXPECT_EQ(grain(30000, 2, 40'000'000), 1u);
  EXPECT_GT(grain(SIZE_MAX / 1000 + 2, 1000), size_t{1} << 32);
  EXPECT_EQ(internal::Grain(SerialExecutor(), 1000, 99999), 300u);
  // 6 us of work are too little to share, so ForkNs() is not called.
  const PricedExecutor executor(3000, 2);
  EXPECT_GE(internal::Grain(executor, 60, 99999), 60u);
  EXPECT_EQ(executor.asked, 0u);
  EXPECT_EQ(internal::Grain(executor, 61, 99999), 30u);
  EXPECT_EQ(executor.asked, 1u);
}

// The query for the scratch size and the sort get the same number of blocks,
// even if the cost of a fork changes in between.
TEST(BucketBlocks, DoNotDependOnTheCostOfAFork) {
  const auto blocks = [](size_t pairs, size_t fork_ns, size_t threads) {
    return internal::BucketBlocks(pairs, 1024,
                                  PricedExecutor(fork_ns, threads));
  };
  for (const size_t fork_ns : {0u, 3000u, 30000u}) {
    EXPECT_EQ(blocks(60000, fork_ns, 16), 1u);
    EXPECT_EQ(blocks(61440, fork_ns, 16), 15u);
    EXPECT_EQ(blocks(16384 * 8, fork_ns, 16), 32u);
    EXPECT_EQ(blocks(16384 * 8, fork_ns, 2), 16u);
    EXPECT_EQ(blocks(16384 * 8, fork_ns, 1), 1u);
  }
}

// Times in us, measured on sixteen threads of an Emerald Rapids. `empty` is
// the time of 16 empty pieces. `busy` is the time of 16 pieces of 10 us each,
// minus 10 us.
struct Pool16 {
  const char* name;
  size_t fork_ns;
  double empty, busy;

  double Fork(double piece_us) const {
    return empty + (busy - empty) * std::min(1.0, piece_us / 10);
  }
};
constexpr Pool16 kAwake[] = {
    {"TBB", 10000, 3.4, 17}, {"OpenMP", 6000, 4.8, 7}, {"team", 3000, 2.9, 3}};
// The kernels for 64 tokens of Qwen3-30B-A3B on that machine: the rows, the
// cost per row that the library uses, and the time on one thread. (The
// library's cost is about a quarter of the second kernel's time, and half of
// the third's.)
constexpr struct {
  size_t rows, row_ps;
  double serial_us;
} kOf64Tokens[] = {
    {512, 164'000, 94}, {512, 125'000, 242}, {64, 1'000'000, 118}};

// With a grain of 30 us, the kernels took 247 us in total. At that time,
// TBB halved the range, and the other executors gave each thread one piece.
// With a tenth of that grain, the kernels take about 90 us.
TEST(Model, KernelsOf64TokensTakeHalfTheTime) {
  constexpr size_t kThreads = 16;
  for (const Pool16& pool : kAwake) {
    double before = 0, now = 0;
    for (const auto& kernel : kOf64Tokens) {
      const auto model = [&](size_t pieces) {
        const double piece_us = kernel.serial_us / static_cast<double>(pieces);
        const size_t rounds = (pieces + kThreads - 1) / kThreads;
        return pool.Fork(piece_us) + piece_us * static_cast<double>(rounds);
      };
      const size_t thirty = 30'000'000 / (kernel.row_ps + 1);
      size_t halves = 1;
      while (kernel.rows > thirty * halves) halves *= 2;
      before += model(pool.fork_ns == 10000
                          ? halves
                          : std::min(kThreads, kernel.rows / thirty));
      const PricedExecutor executor(pool.fork_ns, kThreads);
      now += model(Pieces(kernel.rows,
                          internal::Grain(executor, kernel.rows, kernel.row_ps),
                          kThreads)
                       .number());
    }
    SCOPED_TRACE(testing::Message()
                 << pool.name << ": " << now << " us, before " << before);
    EXPECT_LT(now, 100);
    EXPECT_LT(now, before * 0.6);
  }
}

// A gather of 8 tokens took 9 us on one thread. It took 20 us on sixteen
// threads when TBB halved the range.
TEST(Model, EightTokensStayOnOneThreadOfSixteen) {
  const PricedExecutor tbb(10000, 16);
  const size_t grain = internal::Grain(tbb, 64, 164'000);
  EXPECT_EQ(Pieces(64, grain, 16).number(), 1u);
}

// A pool of two threads that violates its contract in one way.
class BrokenExecutor final : public Executor {
 public:
  enum Breaks {
    kNothing,
    kConcurrency,
    kWorker,
    kLeavesOut,
    kRunsNone,
    kRunsTwice,
    kRunsAllTwice,
    kRunsAnother,
    kGoesOn,
    kGoesBack,
    kNumBreaks
  };
  explicit BrokenExecutor(Breaks breaks) : breaks_(breaks) {}

  size_t Concurrency() const noexcept override {
    return breaks_ == kConcurrency ? 0 : 2;
  }
  size_t ForkNs() const noexcept override { return 1; }
  Status ParallelFor(size_t count, size_t, Body body,
                     void* context) noexcept override {
    const size_t half = count / 2;
    if (breaks_ == kRunsNone) return Status();
    if (breaks_ == kRunsAllTwice) {
      body(context, 0, 0, count);
      body(context, 0, 0, count);
      return Status();
    }
    body(context, 0, 0, half);
    if (breaks_ == kRunsTwice) body(context, 1, 0, half);
    if (breaks_ == kGoesBack) body(context, 1, half, 0);
    if (breaks_ == kLeavesOut) return Status();
    if (breaks_ == kRunsAnother) {  // the wrong range, of the right length
      body(context, 1, 0, count - half);
      return Status();
    }
    body(context, breaks_ == kWorker ? 7 : 1, half,
         breaks_ == kGoesOn ? count + 1000 : count);
    return Status();
  }

  // Returns the error of a call that uses more than one thread.
  static const char* Message(Breaks breaks) {
    switch (breaks) {
      case kConcurrency:
        return "Executor: Concurrency() is 0, and has to be at least 1";
      case kWorker:
        return "Executor: ParallelFor passed a worker that is not below "
               "Concurrency()";
      case kLeavesOut:
      case kRunsNone:
        return "Executor: ParallelFor left out indices of [0, count), or "
               "returned before they were done";
      case kRunsAnother:
        return "Executor: ParallelFor ran indices more than once and left out "
               "as many of [0, count)";
      case kRunsTwice:
      case kRunsAllTwice:
        return "Executor: ParallelFor ran an index more than once";
      case kGoesOn:
      case kGoesBack:
        return "Executor: ParallelFor ran indices outside [0, count)";
      default:
        return "";
    }
  }

 private:
  const Breaks breaks_;
};

// Tests whole calls. Before the library checked executors, these calls
// returned kOk, with a correct or a wrong result.
TEST(BrokenExecutor, IsToldByEveryCallThatSharesWork) {
  constexpr size_t kTokens = 40000, kTopK = 2, kExperts = 8;
  std::vector<float> rows(kTokens * kExperts, 1.0f), out(rows.size());
  std::vector<float> weights(kTokens * kTopK);
  std::vector<int32_t> ids(kTokens * kTopK), counts(kExperts),
      offsets(kExperts + 1), pairs(ids.size());
  const ConstAnyMatrix logits = {rows.data(), kTokens, kExperts};
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i % 8);
  for (int i = 0; i < BrokenExecutor::kNumBreaks; ++i) {
    const auto breaks = static_cast<BrokenExecutor::Breaks>(i);
    BrokenExecutor executor(breaks);
    const StatusCode code = breaks == BrokenExecutor::kNothing ? StatusCode::kOk
                            : breaks == BrokenExecutor::kConcurrency
                                ? StatusCode::kInvalidArgument
                                : StatusCode::kInternal;
    const auto expect = [&](const char* call, const Status& status) {
      EXPECT_EQ(status.code(), code) << call << " " << i;
      EXPECT_STREQ(status.message(), BrokenExecutor::Message(breaks))
          << call << " " << i;
      EXPECT_EQ(*status.details() != '\0', code == StatusCode::kInternal)
          << status.details();
      if (breaks == BrokenExecutor::kWorker) {
        EXPECT_STREQ(status.details(), "got 7, needs below 2");
      }
    };
    std::vector<int32_t> routed(ids.size());
    expect("RouteTopK", RouteTopK({logits},
                                  {{routed.data(), kTokens, kTopK},
                                   {weights.data(), kTokens, kTopK}},
                                  {}, executor));
    expect("Activate",
           Activate({logits, logits}, {{out.data(), kTokens, kExperts}}, {},
                    executor));
    expect("Quantize",
           Quantize({logits}, {AnyMatrix(out.data(), kTokens, kExperts)}, {},
                    executor));
    for (const BucketOrder order :
         {BucketOrder::kAscending, BucketOrder::kClaim}) {
      std::vector<int32_t> scratch(16 * kExperts);
      counts.assign(counts.size(), -7);
      expect("BucketPacked", BucketPacked({{ids.data(), kTokens, kTopK},
                                           {scratch.data(), scratch.size()}},
                                          {{counts.data(), counts.size()},
                                           {offsets.data(), offsets.size()},
                                           {pairs.data(), pairs.size()}},
                                          {order}, executor));
      if (breaks == BrokenExecutor::kConcurrency) {
        EXPECT_EQ(counts, std::vector<int32_t>(kExperts, -7)) << "written";
      }
    }
  }
}

// Runs the given ranges. If they have to run at the same time, each has its
// own thread.
class ListedExecutor final : public Executor {
 public:
  using Ranges = std::vector<std::pair<size_t, size_t>>;
  explicit ListedExecutor(Ranges ranges, bool at_once = false)
      : ranges_(std::move(ranges)), at_once_(at_once) {}

  size_t Concurrency() const noexcept override { return 2; }
  Status ParallelFor(size_t, size_t, Body body,
                     void* context) noexcept override {
    std::vector<std::thread> threads;
    for (const auto& [begin, end] : ranges_) {
      if (at_once_) {
        threads.emplace_back(body, context, 0, begin, end);
      } else {
        body(context, 0, begin, end);
      }
    }
    for (std::thread& thread : threads) thread.join();
    return Status();
  }

 private:
  const Ranges ranges_;
  const bool at_once_;
};

// Every partition of [0, count) is accepted. Other sets of ranges are
// refused, even with the same total length.
TEST(BrokenExecutor, RunsEachIndexOnceOrIsTold) {
  std::mt19937 random(7);
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const size_t count = random() % 12;
    ListedExecutor::Ranges ranges;
    for (size_t begin = 0; begin < count;) {
      const size_t end = begin + 1 + random() % (count - begin);
      ranges.emplace_back(begin, end);
      begin = end;
    }
    // Keeps the ranges as they are, or removes, repeats, replaces or moves one
    // range.
    const size_t at = ranges.empty() ? 0 : random() % ranges.size();
    switch (ranges.empty() ? 0 : random() % 5) {
      case 1:
        ranges.erase(ranges.begin() + static_cast<ptrdiff_t>(at));
        break;
      case 2:
        ranges.push_back(ranges[at]);
        break;
      case 3:
        ranges[at] = ranges[random() % ranges.size()];
        break;
      case 4: {  // moves a range, and keeps its length
        const size_t length = ranges[at].second - ranges[at].first;
        ranges[at].first = random() % (count - length + 1);
        ranges[at].second = ranges[at].first + length;
        break;
      }
      default:
        break;
    }
    ranges.emplace_back(count / 2, count / 2);  // an empty range is valid
    std::shuffle(ranges.begin(), ranges.end(), random);
    std::vector<int> times(count);
    for (const auto& [begin, end] : ranges) {
      for (size_t i = begin; i < end; ++i) ++times[i];
    }
    const bool is_right =
        std::count(times.begin(), times.end(), 1) == std::ptrdiff_t(count);
    ListedExecutor executor(ranges);
    Visits visits(count);
    const Status status =
        internal::ParallelFor(executor, count, 1, Visits::Body, &visits);
    ASSERT_EQ(status.code(), is_right ? StatusCode::kOk : StatusCode::kInternal)
        << testing::PrintToString(ranges) << " of " << count << ": "
        << status.message();
    refused += !is_right;
  }
  EXPECT_GT(refused, 5000u);
}

// Each thread wrongly runs the whole loop, not its share.
TEST(BrokenExecutor, IsToldOfThreadsThatDoNotShare) {
  for (int round = 0; round < 100; ++round) {
    ListedExecutor executor({{0, 64}, {0, 64}, {0, 64}}, true);
    const auto work = [](void*, size_t, size_t, size_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    };
    const Status status = internal::ParallelFor(executor, 64, 1, work, nullptr);
    EXPECT_STREQ(status.message(),
                 "Executor: ParallelFor ran an index more than once");
  }
}

}  // namespace
}  // namespace switchyard::testing_support
