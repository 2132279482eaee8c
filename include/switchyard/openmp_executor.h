// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// An executor on OpenMP's threads, for engines that already use OpenMP, as
// torch, oneDNN and ggml do with libgomp. OpenMpExecutor avoids a second pool
// of threads on the same cores. It is header-only, so that it runs on the
// OpenMP runtime for which the including file is compiled (-fopenmp). Without
// OpenMP this header declares nothing.

#ifndef SWITCHYARD_OPENMP_EXECUTOR_H_
#define SWITCHYARD_OPENMP_EXECUTOR_H_

#ifdef _OPENMP

#include <omp.h>

#include <algorithm>
#include <cstddef>

#include "switchyard/executor.h"
#include "switchyard/pieces.h"

namespace switchyard {

// The executor's only state is its number of threads and the cost of a fork,
// so you may make an executor per thread, per call or per process. A loop runs
// on the calling thread alone, as worker 0, inside a parallel region or if it
// has less than two grains. Every other loop starts a region of all threads,
// even if it has work for only two, because libgomp ends and restarts threads
// whenever their number changes.
//
// OpenMP reports no errors: if libgomp cannot start a thread, it ends the
// process. After fork(), the child process has none of libgomp's threads, so
// use SerialExecutor() there if the parent used OpenMP.
class OpenMpExecutor final : public Executor {
 public:
  // Runs `threads` threads including the caller. 0 means as many as a
  // parallel region has by default (OMP_NUM_THREADS, omp_set_num_threads) at
  // the time of this call.
  explicit OpenMpExecutor(size_t threads = 0) noexcept
      : threads_(threads != 0
                     ? std::min(threads, kMost)
                     : static_cast<size_t>(std::max(1, omp_get_max_threads()))),
        fork_ns_(threads_ <= static_cast<size_t>(omp_get_num_procs())
                     ? 6000
                     : kForkNs) {}

  // Returns the number of threads that the constructor chose.
  size_t Concurrency() const noexcept override { return threads_; }

  // Returns 6 us if the threads spin, and 30 us if they do not, because there
  // are more threads than cores. Spinning threads wait for work for some
  // milliseconds after each region, also after the engine's own regions. A
  // fork of sixteen such threads takes 5 us, or 7 us if the pieces take 10
  // us.
  size_t ForkNs() const noexcept override { return fork_ns_; }

  // Runs the loop in a parallel region, or on the calling thread alone.
  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    SharedLoop loop(count, grain, omp_in_parallel() != 0 ? 1 : threads_, body,
                    context);
    if (loop.pieces().workers() <= 1) {
      loop.Run(0, 1, 0);
      return Status();
    }
#pragma omp parallel num_threads(static_cast <int>(threads_))
    {
      // OpenMP may start fewer threads than requested.
      const size_t worker = static_cast<size_t>(omp_get_thread_num());
      loop.Run(worker, static_cast<size_t>(omp_get_num_threads()), worker);
    }
    return Status();
  }

 private:
  static constexpr size_t kMost = 1 << 16;  // because OpenMP takes an int

  size_t threads_, fork_ns_;
};

}  // namespace switchyard

#endif  // _OPENMP

#endif  // SWITCHYARD_OPENMP_EXECUTOR_H_
