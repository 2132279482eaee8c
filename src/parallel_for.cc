// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/parallel_for.h"

#include <atomic>
#include <cstdint>

#include "src/base/details.h"

namespace switchyard::internal {
namespace {

// Returns a hash of an index, which is 0 for 0. Sums of hashes tell {0, 3} from
// {1, 2}, which have equal sums.
uint64_t PlaceOf(size_t index) {
  uint64_t x = index;
  x *= 0x9E3779B97F4A7C15;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93;
  return x ^ x >> 29;
}

// A loop on a caller's pool. It checks that the pool's ranges cover [0,
// count) exactly once. For this, it adds up the lengths of all ranges, and
// PlaceOf(end) - PlaceOf(begin) of all ranges. If the ranges cover [0, count)
// once, the second sum is PlaceOf(count), because each end except for the
// last is another range's begin. The chance that other ranges give this sum
// is 2^-64.
class CheckedLoop {
 public:
  CheckedLoop(size_t count, size_t workers, Executor::Body body, void* context)
      : count_(count), workers_(workers), body_(body), context_(context) {}
  CheckedLoop(const CheckedLoop&) = delete;

  static void Run(void* context, size_t worker, size_t begin, size_t end) {
    auto& self = *static_cast<CheckedLoop*>(context);
    if (begin > end || end > self.count_) {
      self.outside_.store(end > self.count_ ? end : begin,
                          std::memory_order_relaxed);
      return;
    }
    if (begin == end) return;
    if (worker >= self.workers_) {
      self.wrong_worker_.store(worker, std::memory_order_relaxed);
    }
    if (begin == 0 && end == self.count_) return self.RunAll(worker);
    self.body_(self.context_, worker, begin, end);
    self.run_.fetch_add(end - begin, std::memory_order_relaxed);
    self.places_.fetch_add(PlaceOf(end) - PlaceOf(begin),
                           std::memory_order_relaxed);
  }

  // Checks the ranges. Must be called after ParallelFor.
  Status Check() const {
    const size_t outside = outside_.load(std::memory_order_relaxed);
    const size_t worker = wrong_worker_.load(std::memory_order_relaxed);
    if (outside != kNone) {
      return Refuse(
          StatusCode::kInternal,
          "Executor: ParallelFor ran indices outside [0, count)",
          Details().Put("got ").Put(outside).Put(", count ").Put(count_));
    }
    if (worker != kNone) {
      return Refuse(StatusCode::kInternal,
                    "Executor: ParallelFor passed a worker that is not below "
                    "Concurrency()",
                    Details()
                        .Put("got ")
                        .Put(worker)
                        .Put(", needs below ")
                        .Put(workers_));
    }
    size_t run = run_.load(std::memory_order_relaxed);
    uint64_t places = places_.load(std::memory_order_relaxed);
    if (is_run_at_once_.load(std::memory_order_relaxed)) {
      run += count_;
      places += PlaceOf(count_);
    }
    if (is_whole_again_.load(std::memory_order_relaxed)) run += count_;
    if (run == count_ && places == PlaceOf(count_)) return Status();
    if (run == count_) {
      return Refuse(StatusCode::kInternal,
                    "Executor: ParallelFor ran indices more than once and left "
                    "out as many of [0, count)",
                    Details().Put("count ").Put(count_));
    }
    return Refuse(
        StatusCode::kInternal,
        run < count_ ? "Executor: ParallelFor left out indices of [0, count), "
                       "or returned before they were done"
                     : "Executor: ParallelFor ran an index more than once",
        Details().Put("got ").Put(run).Put(" indices, needs ").Put(count_));
  }

 private:
  // Runs the whole loop as one range. It does not count indices with an atomic
  // addition, which takes 5 ns and matters in calls too small for a fork.
  // Instead it detects a pool that runs the whole loop twice: each run stores a
  // mark, its own address, in whole_. A later run finds a mark when it begins.
  // If two runs overlap, one overwrites the other's mark, which the other
  // notices at its end.
  void RunAll(size_t worker) {
    const char here = 0;
    const auto mark = reinterpret_cast<uintptr_t>(&here);
    if (whole_.load(std::memory_order_relaxed) != 0) {
      is_whole_again_.store(true, std::memory_order_relaxed);
      return;
    }
    whole_.store(mark, std::memory_order_relaxed);
    body_(context_, worker, 0, count_);
    is_run_at_once_.store(true, std::memory_order_relaxed);
    if (whole_.load(std::memory_order_relaxed) != mark) {
      is_whole_again_.store(true, std::memory_order_relaxed);
    }
  }

  const size_t count_, workers_;
  const Executor::Body body_;
  void* const context_;
  static constexpr size_t kNone = static_cast<size_t>(-1);
  std::atomic<size_t> outside_{kNone}, wrong_worker_{kNone}, run_{0};
  std::atomic<uint64_t> places_{0};
  std::atomic<uintptr_t> whole_{0};  // the mark of RunAll(), 0 before it ran
  std::atomic<bool> is_run_at_once_{false}, is_whole_again_{false};
};

}  // namespace

Status CheckExecutor(const Executor& executor) noexcept {
  if (executor.Concurrency() != 0) return Status();
  return Status(StatusCode::kInvalidArgument,
                "Executor: Concurrency() is 0, and has to be at least 1");
}

Status ParallelFor(Executor& executor, size_t count, size_t grain,
                   Executor::Body body, void* context) noexcept {
  const size_t workers = executor.Concurrency();
  if (workers == 0) return CheckExecutor(executor);
  CheckedLoop loop(count, workers, body, context);
  const Status status =
      executor.ParallelFor(count, grain, &CheckedLoop::Run, &loop);
  return status.ok() ? loop.Check() : status;
}

}  // namespace switchyard::internal
