// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// An executor on torch's own threads, because a second pool would compete with
// torch's pool for the cores. It works with any OpenMP that torch was built
// with.

#ifndef SWITCHYARD_PYTHON_TORCH_EXECUTOR_H_
#define SWITCHYARD_PYTHON_TORCH_EXECUTOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/pieces.h"
#include "tensors.h"

namespace switchyard {
namespace python {

inline size_t TorchThreads() {
  uint32_t threads = 1;
  SWITCHYARD_CHECK_TORCH(torch_get_num_threads(&threads));
  return std::max<uint32_t>(1, threads);
}

class TorchExecutor final : public Executor {
 public:
  explicit TorchExecutor(size_t threads) : threads_(threads) {}

  size_t Concurrency() const noexcept override { return threads_; }
  // Returns the cost of a fork, 6 us. A fork is cheap, because OpenMP's threads
  // spin between torch's regions.
  size_t ForkNs() const noexcept override { return 6000; }

  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    SharedLoop loop(count, grain, threads_, body, context);
    if (loop.pieces().workers() <= 1) {
      loop.Run(0, 1, 0);
      return Status();
    }
    // The loop has at most as many workers as torch has threads, so torch
    // runs one worker on each thread. Inside another parallel region, the
    // calling thread runs all workers.
    const AOTITorchError error = torch_parallel_for(
        0, static_cast<int64_t>(loop.pieces().workers()), 1, &Run, &loop);
    return error == TORCH_SUCCESS
               ? Status()
               : Status(StatusCode::kInternal, "torch_parallel_for failed");
  }

 private:
  static void Run(int64_t begin, int64_t end, void* self) {
    SharedLoop& loop = *static_cast<SharedLoop*>(self);
    for (int64_t i = begin; i < end; ++i) {
      const size_t worker = static_cast<size_t>(i);
      loop.Run(worker, loop.pieces().workers(), worker);
    }
  }

  size_t threads_;
};

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_TORCH_EXECUTOR_H_
