// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/parallel_for.h"

#include <atomic>

#include "src/details.h"

namespace switchyard::internal {
namespace {

// A loop on somebody's pool.
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
    if (worker >= self.workers_) {
      self.wrong_worker_.store(worker, std::memory_order_relaxed);
    }
    self.body_(self.context_, worker, begin, end);
    if (begin == 0 && end == self.count_) {  // alone: an atomic add takes 5 ns
      self.is_run_at_once_.store(true, std::memory_order_relaxed);
    } else {
      self.run_.fetch_add(end - begin, std::memory_order_relaxed);
    }
  }

  // Behind ParallelFor.
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
    const size_t run =
        run_.load(std::memory_order_relaxed) +
        (is_run_at_once_.load(std::memory_order_relaxed) ? count_ : 0);
    if (run == count_) return Status();
    return Refuse(
        StatusCode::kInternal,
        run < count_ ? "Executor: ParallelFor left out indices of [0, count)"
                     : "Executor: ParallelFor ran an index more than once",
        Details().Put("got ").Put(run).Put(" indices, needs ").Put(count_));
  }

 private:
  const size_t count_, workers_;
  const Executor::Body body_;
  void* const context_;
  static constexpr size_t kNone = static_cast<size_t>(-1);
  std::atomic<size_t> outside_{kNone}, wrong_worker_{kNone}, run_{0};
  std::atomic<bool> is_run_at_once_{false};
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
