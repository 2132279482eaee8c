// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// An executor on OpenMP's threads, for engines that use OpenMP already:
// torch, oneDNN and ggml run on libgomp, and a second pool on the same cores
// costs twice. It is header-only, so that it runs on the OpenMP runtime for
// which the including file is compiled (-fopenmp). Without OpenMP this header
// declares nothing.

#ifndef SWITCHYARD_OPENMP_EXECUTOR_H_
#define SWITCHYARD_OPENMP_EXECUTOR_H_

#ifdef _OPENMP

#include <omp.h>

#include <algorithm>
#include <cstddef>

#include "switchyard/executor.h"
#include "switchyard/pieces.h"

namespace switchyard {

// Its only state is its size, so make one per thread, per call or per
// process. A call from inside a parallel region runs on the calling thread,
// as worker 0; so does work of less than two grains. Every other call is a
// region of all threads, even if it has work for two only, because libgomp
// ends and restarts threads whenever their number changes.
//
// OpenMP reports no errors: where it cannot start a thread, libgomp ends the
// process. In a child after fork(), libgomp's threads are gone if the parent
// had any: there, use SerialExecutor().
class OpenMpExecutor final : public Executor {
 public:
  // Runs `threads` threads, counting the caller. 0: as many as a parallel
  // region has by default (OMP_NUM_THREADS, omp_set_num_threads) when the
  // executor is made.
  explicit OpenMpExecutor(size_t threads = 0) noexcept
      : threads_(threads != 0
                     ? std::min(threads, kMost)
                     : static_cast<size_t>(std::max(1, omp_get_max_threads()))),
        fork_ns_(threads_ <= static_cast<size_t>(omp_get_num_procs())
                     ? 6000
                     : kForkNs) {}

  size_t Concurrency() const noexcept override { return threads_; }

  // A fork of sixteen threads takes 5 us, and 7 more for pieces of 10 us,
  // while the threads spin. They spin for some milliseconds after a region,
  // the engine's regions included, except with more threads than cores.
  size_t ForkNs() const noexcept override { return fork_ns_; }

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
  static constexpr size_t kMost = 1 << 16;  // fits an int

  size_t threads_, fork_ns_;
};

}  // namespace switchyard

#endif  // _OPENMP

#endif  // SWITCHYARD_OPENMP_EXECUTOR_H_
