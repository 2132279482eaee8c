// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The only file that knows TBB.

#include <new>

#include "switchyard/executor.h"

#ifdef SWITCHYARD_WITH_TBB
#include <oneapi/tbb/blocked_range.h>
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
    if (count == 0) return Status();
    if (grain == 0) grain = 1;
    if (count <= grain / 3 || count == 1 || arena_.max_concurrency() == 1) {
      body(context, 0, 0, count);
      return Status();
    }
    if (count <= grain) {
      if (!InQuickSuccession()) {
        body(context, 0, 0, count);
        last_end_.store(Now(), std::memory_order_relaxed);
        return Status();
      }
      grain = (count + 1) / 2;
    }
    try {
      arena_.execute([&] {
        // Isolated: a caller that is itself a TBB task must not pick up
        // unrelated work while it waits for this loop.
        tbb::this_task_arena::isolate([&] {
          tbb::parallel_for(
              tbb::blocked_range<size_t>(0, count, grain),
              [&](const tbb::blocked_range<size_t>& range) {
                // A slot of the arena, held for as long as the thread is in it.
                const int slot = tbb::this_task_arena::current_thread_index();
                body(context, static_cast<size_t>(slot), range.begin(),
                     range.end());
              },
              tbb::simple_partitioner());
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

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::rep Now() { return Clock::now().time_since_epoch().count(); }
  // To wake a sleeping worker takes up to 90 us, to hand over to one that looks
  // for work, as it does for some 50 us after the last, takes 2. So between a
  // third of a grain and a grain, which is 10 to 30 us of work, a call on its
  // own is not shared out, and the second of calls that follow each other is.
  bool InQuickSuccession() const {
    constexpr Clock::duration kSuccession = std::chrono::microseconds(20);
    return Now() - last_end_.load(std::memory_order_relaxed) <
           kSuccession.count();
  }

  // The first use of TBB in a process takes a lock which is never given back if
  // memory runs out meanwhile (seen with 2021.8): the next one would hang.
  //
  // No more threads than TBB will give: it would say so on stderr, and for very
  // many fail when the arena is destroyed.
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
  // The end of the last call of that size or larger.
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
