// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// An executor on TBB. Only this file uses TBB.

#include <new>

#include "switchyard/executor.h"
#include "switchyard/pieces.h"

#ifdef SWITCHYARD_WITH_TBB
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#endif

namespace switchyard {

#ifdef SWITCHYARD_WITH_TBB
namespace {

class Tbb final : public Executor {
 public:
  explicit Tbb(int max_concurrency) { Initialize(max_concurrency); }

  size_t Concurrency() const noexcept override {
    return static_cast<size_t>(arena_.max_concurrency());
  }

  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    SharedLoop loop(count, grain, Concurrency(), body, context);
    const size_t workers = loop.pieces().workers();
    if (workers <= 1) {
      // More than grain / 3 rows are more than 10 us of work, because `grain`
      // rows are worth a fork of 30 us.
      const bool is_long = count > grain / 3 && !InQuickSuccession();
      loop.Run(0, 1, 0);
      if (is_long) last_end_.store(Now(), std::memory_order_relaxed);
      return Status();
    }
    try {
      arena_.execute([&] {
        // Isolates the loop: a caller that is itself a TBB task must not pick
        // up unrelated work while it waits for the loop.
        tbb::this_task_arena::isolate([&] {
          // Each thread has one task, which the static partitioner leaves to
          // the thread while it is awake. When ranges were halved down to the
          // grain instead, a row moved to another core in each call: 8
          // gathered tokens took 20 us on sixteen threads, and 9 us on one.
          tbb::parallel_for(
              size_t{0}, workers,
              [&](size_t first) {
                // The thread's slot in the arena, until it leaves the arena.
                const int slot = tbb::this_task_arena::current_thread_index();
                loop.Run(first, workers, static_cast<size_t>(slot));
              },
              tbb::static_partitioner());
        });
      });
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::kOutOfMemory,
                    "TbbExecutor: out of memory for tasks");
    } catch (...) {
      return Status(StatusCode::kInternal, "TbbExecutor: TBB failed");
    }
    last_end_.store(Now(), std::memory_order_relaxed);
    return Status();
  }

  // If workers are awake, work of 3 us or more is faster on two threads. On
  // sixteen cores, data in other caches costs more: pieces of 10 us take 27 us.
  size_t ForkNs() const noexcept override {
    if (!InQuickSuccession()) return kForkNs;
    return Concurrency() <= 2 ? 5000 : 10'000;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::rep Now() { return Clock::now().time_since_epoch().count(); }
  // Waking a sleeping worker takes up to 90 us. A worker looks for work for 50
  // us after its last piece, and handing it work then takes 2 us. So if calls
  // with 10 us of work follow each other, the second has a cheap fork.
  bool InQuickSuccession() const {
    constexpr Clock::duration kSuccession = std::chrono::microseconds(20);
    return Now() - last_end_.load(std::memory_order_relaxed) <
           kSuccession.count();
  }

  // If memory runs out in the first use of TBB in a process, TBB never releases
  // a lock that it has taken (seen with 2021.8), and the next use would hang.
  // So no later use is tried.
  //
  // Asks for no more threads than TBB gives, because otherwise TBB would warn
  // on stderr and, for very many threads, fail when the arena is destroyed.
  void Initialize(int max_concurrency) {
    enum class Is { kUntried, kInitialized, kStuck };
    static std::mutex mutex;
    static Is it = Is::kUntried;
    const std::lock_guard<std::mutex> lock(mutex);
    if (it == Is::kStuck) throw std::bad_alloc();
    try {
      arena_.initialize(max_concurrency == -1
                            ? tbb::task_arena::automatic
                            : std::min(max_concurrency, MostThreads()));
    } catch (...) {
      if (it == Is::kUntried) it = Is::kStuck;
      throw;
    }
    it = Is::kInitialized;
  }
  static int MostThreads() {
    return static_cast<int>(tbb::global_control::active_value(
        tbb::global_control::max_allowed_parallelism));
  }

  tbb::task_arena arena_;
  // The end of the last call that forked or had more than 10 us of work.
  std::atomic<Clock::rep> last_end_{Clock::duration::min().count() / 2};
};

}  // namespace

std::unique_ptr<Executor> MakeTbbExecutor(int max_concurrency) noexcept {
  if (max_concurrency == 0 || max_concurrency < -1) return nullptr;
  try {
    return std::make_unique<Tbb>(max_concurrency);
  } catch (...) {
    return nullptr;
  }
}

#else  // SWITCHYARD_WITH_TBB

std::unique_ptr<Executor> MakeTbbExecutor(int) noexcept { return nullptr; }

#endif  // SWITCHYARD_WITH_TBB

}  // namespace switchyard
