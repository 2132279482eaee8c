// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// An executor on OpenMP's threads, for engines that have them anyway: torch,
// oneDNN and ggml run on libgomp, and a second pool on the same cores costs
// twice. Header-only: whichever OpenMP runtime the including file is compiled
// for (-fopenmp) is the one that it runs on. Elsewhere there is no such class.

#ifndef SWITCHYARD_OPENMP_EXECUTOR_H_
#define SWITCHYARD_OPENMP_EXECUTOR_H_

#ifdef _OPENMP

#include <omp.h>

#include <algorithm>
#include <cstddef>

#include "switchyard/executor.h"

namespace switchyard {

// Stateless but for its size: make one per thread, per call or per process. A
// call from inside of a parallel region runs on the calling thread, as worker
// 0; so does work of less than two grains. Fork and join take about 1 us while
// OpenMP's threads spin, more where OMP_WAIT_POLICY or a busy machine put them
// to sleep.
//
// OpenMP reports no errors: where it cannot start a thread, libgomp ends the
// process. In a child after fork() libgomp's threads are gone once the parent
// had any: there, use SerialExecutor().
class OpenMpExecutor final : public Executor {
 public:
  // `threads` at the same time, counting the caller; 0: as many as a parallel
  // region has by default (OMP_NUM_THREADS, omp_set_num_threads) when this is
  // made.
  explicit OpenMpExecutor(size_t threads = 0) noexcept
      : threads_(threads != 0 ? std::min(threads, kMost)
                              : static_cast<size_t>(
                                    std::max(1, omp_get_max_threads()))) {}

  size_t Concurrency() const noexcept override { return threads_; }

  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    const size_t pieces =
        std::min(threads_, count / std::max(size_t{1}, grain));
    if (pieces <= 1 || omp_in_parallel() != 0) {
      if (count > 0) body(context, 0, 0, count);
      return Status();
    }
    const size_t size = count / pieces, longer = count % pieces;
#pragma omp parallel num_threads(static_cast <int>(pieces))
    {
      // There may be fewer threads than asked for.
      const size_t team = static_cast<size_t>(omp_get_num_threads());
      const size_t worker = static_cast<size_t>(omp_get_thread_num());
      for (size_t i = worker; i < pieces; i += team) {
        const size_t begin = size * i + std::min(i, longer);
        body(context, worker, begin, begin + size + (i < longer ? 1 : 0));
      }
    }
    return Status();
  }

 private:
  static constexpr size_t kMost = 1 << 16;  // fits an int

  size_t threads_;
};

}  // namespace switchyard

#endif  // _OPENMP

#endif  // SWITCHYARD_OPENMP_EXECUTOR_H_
