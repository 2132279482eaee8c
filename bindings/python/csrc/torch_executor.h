// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The threads that torch has, whichever OpenMP it was built with: a second pool
// on the same cores would cost twice.

#ifndef SWITCHYARD_PYTHON_TORCH_EXECUTOR_H_
#define SWITCHYARD_PYTHON_TORCH_EXECUTOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
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

  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    const size_t pieces =
        std::min(threads_, count / std::max<size_t>(1, grain));
    if (pieces <= 1) {
      if (count > 0) body(context, 0, 0, count);
      return Status();
    }
    Call call = {count, pieces, body, context};
    // A piece is a worker: no more of them than threads, so torch gives each
    // thread one, or, inside of another parallel region, all to this one.
    const AOTITorchError error = torch_parallel_for(
        0, static_cast<int64_t>(pieces), 1, &Call::Run, &call);
    return error == TORCH_SUCCESS
               ? Status()
               : Status(StatusCode::kInternal, "torch_parallel_for failed");
  }

 private:
  struct Call {
    size_t count, pieces;
    Body body;
    void* context;

    static void Run(int64_t begin, int64_t end, void* self) {
      const Call& c = *static_cast<Call*>(self);
      for (size_t i = static_cast<size_t>(begin); i < static_cast<size_t>(end);
           ++i) {
        c.body(
            c.context, i,
            c.count / c.pieces * i + std::min(i, c.count % c.pieces),
            c.count / c.pieces * (i + 1) + std::min(i + 1, c.count % c.pieces));
      }
    }
  };

  size_t threads_;
};

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_TORCH_EXECUTOR_H_
