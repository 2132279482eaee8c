// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The only call of Executor::ParallelFor: holds an engine's pool to its
// contract.

#ifndef SWITCHYARD_SRC_PARALLEL_FOR_H_
#define SWITCHYARD_SRC_PARALLEL_FOR_H_

#include <atomic>
#include <cstddef>

#include "switchyard/executor.h"
#include "switchyard/status.h"

namespace switchyard::internal {

// A loop on somebody's pool. A pool that breaks its contract would leave rows
// unwritten, or have two threads use the scratch of one worker, and a caller
// would see wrong values only.
class CheckedLoop {
 public:
  CheckedLoop(size_t count, size_t workers, Executor::Body body, void* context)
      : count_(count), workers_(workers), body_(body), context_(context) {}
  CheckedLoop(const CheckedLoop&) = delete;

  static void Run(void* context, size_t worker, size_t begin, size_t end) {
    auto& self = *static_cast<CheckedLoop*>(context);
    if (begin > end || end > self.count_) {
      self.is_outside_.store(true, std::memory_order_relaxed);
      return;
    }
    if (worker >= self.workers_) {
      self.has_wrong_worker_.store(true, std::memory_order_relaxed);
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
    if (is_outside_.load(std::memory_order_relaxed)) {
      return Status(StatusCode::kInternal,
                    "Executor: ParallelFor ran indices outside [0, count)");
    }
    if (has_wrong_worker_.load(std::memory_order_relaxed)) {
      return Status(StatusCode::kInternal,
                    "Executor: ParallelFor passed a worker that is not below "
                    "Concurrency()");
    }
    const size_t run =
        run_.load(std::memory_order_relaxed) +
        (is_run_at_once_.load(std::memory_order_relaxed) ? count_ : 0);
    if (run == count_) return Status();
    return Status(StatusCode::kInternal,
                  run < count_
                      ? "Executor: ParallelFor left out indices of [0, count)"
                      : "Executor: ParallelFor ran an index more than once");
  }

 private:
  const size_t count_, workers_;
  const Executor::Body body_;
  void* const context_;
  std::atomic<bool> is_outside_{false}, has_wrong_worker_{false},
      is_run_at_once_{false};
  std::atomic<size_t> run_{0};
};

inline Status CheckExecutor(const Executor& executor) {
  if (executor.Concurrency() != 0) return Status();
  return Status(StatusCode::kInvalidArgument,
                "Executor: Concurrency() is 0, and has to be at least 1");
}

inline Status ParallelFor(Executor& executor, size_t count, size_t grain,
                          Executor::Body body, void* context) {
  const size_t workers = executor.Concurrency();
  if (workers == 0) return CheckExecutor(executor);
  CheckedLoop loop(count, workers, body, context);
  const Status status =
      executor.ParallelFor(count, grain, &CheckedLoop::Run, &loop);
  return status.ok() ? loop.Check() : status;
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_PARALLEL_FOR_H_
