// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/core/grid_runner.h"

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "device/src/core/pipeline.h"
#include "src/base/fp_env.h"
#include "switchyard/device/kernel_threads.h"
#include "switchyard/pieces.h"

namespace switchyard::device {

namespace {

// Returns the number of threads along one dimension of the threadgroup at
// `position`. It is `per`, or less at the edge of the grid.
size_t AtEdge(size_t position, size_t per, size_t threads) {
  return std::min(per, threads - position * per);
}

// Returns the number of threadgroups that together take as long as one fork
// of the executor. threadgroup_ns comes from the user and can be any double.
size_t Grain(size_t fork_ns, double threadgroup_ns) {
  constexpr double kMost = 0x1p40;
  const double fork = static_cast<double>(fork_ns);
  const double grain = threadgroup_ns > 0.0 ? fork / threadgroup_ns : fork;
  return static_cast<size_t>(std::min(std::max(grain, 1.0), kMost));
}

}  // namespace

bool& InKernel::Here() {
  thread_local bool here = false;
  return here;
}

void GridRunner::Run(RunningDispatch& running) {
  const Size& grid = running.threadgroups;
  size_t count = 0;
  if (__builtin_mul_overflow(grid.width, grid.height, &count) ||
      __builtin_mul_overflow(count, grid.depth, &count)) {
    running.GridOverflows();
    return;
  }
  GridRunner runner(running);
  if (running.checked != nullptr) {
    running.checked->RunThreadgroups(runner, count);
  } else {
    const Status status = runner.RunAll(count);
    if (!status.ok()) running.Fail(status);
  }
  if (runner.failed()) running.Fail(runner.error_);
}

Size GridRunner::PositionOf(size_t index) const {
  const Size& grid = running_.threadgroups;
  return Size(index % grid.width, index / grid.width % grid.height,
              index / grid.width / grid.height);
}

// Gives the executor one index per worker. Each worker takes threadgroups
// until the grid is finished, so that it can skip the rest of the grid after
// a failure.
Status GridRunner::RunAll(size_t count) {
  count_ = count;
  taken_at_once_ = count;
  Executor& executor = running_.executor;
  const size_t grain =
      count == 1 ? 1
                 : Grain(executor.ForkNs(),
                         running_.dispatch.pipeline->kernel.threadgroup_ns);
  const size_t workers = Pieces(count, grain, executor.Concurrency()).workers();
  if (workers <= 1) {
    RunWorker();
    return Status();
  }
  // A worker takes several threadgroups at once, because taking them costs 10
  // ns each time. The number is an eighth of `grain`: then this cost is small,
  // and all workers finish at about the same time.
  taken_at_once_ = std::max<size_t>(1, grain / 8);
  return executor.ParallelFor(
      workers, 1,
      [](void* runner, size_t /*worker*/, size_t /*begin*/, size_t /*end*/) {
        static_cast<GridRunner*>(runner)->RunWorker();
      },
      this);
}

void GridRunner::RunWorker() {
  const InKernel in_kernel;
  const internal::DefaultFpEnv fp_env;
  alignas(kLocalAlignment) unsigned char local[kLocalBytes];
  for (size_t end = 0; end != count_ && !failed();) {
    const size_t begin =
        next_.fetch_add(taken_at_once_, std::memory_order_relaxed);
    if (begin >= count_) return;
    end = begin + std::min(taken_at_once_, count_ - begin);
    RunRange(begin, end, local);
  }
}

void GridRunner::RunRange(size_t begin, size_t end, void* local) {
  const Size& grid = running_.threadgroups;
  // The position is computed by division only once and then incremented,
  // because a division takes as long as all other work of an empty
  // threadgroup.
  Size position;
  if (begin != 0) position = PositionOf(begin);
  for (size_t i = begin; i < end; ++i) {
    if (failed()) return;
    RunOne(position, local, nullptr);
    if (++position.width == grid.width) {
      position.width = 0;
      if (++position.height == grid.height) {
        position.height = 0;
        ++position.depth;
      }
    }
  }
}

void GridRunner::RunOne(const Size& position, void* local,
                        kernel_internal::RunningThread* thread) {
  const Size dispatched = running_.dispatch.ThreadsPerThreadgroup();
  Size threads = dispatched;
  if (running_.dispatch.in_threads) {
    const Size& all = running_.threads;
    threads = Size(AtEdge(position.width, threads.width, all.width),
                   AtEdge(position.height, threads.height, all.height),
                   AtEdge(position.depth, threads.depth, all.depth));
  }
  const ThreadgroupContext context(position, threads, dispatched, running_,
                                   local, thread);
  const KernelFunction& kernel = running_.dispatch.pipeline->kernel;
  try {
    if (thread != nullptr && kernel.checked != nullptr) {
      kernel.checked(context);
    } else {
      kernel.threadgroup(context);
    }
  } catch (const kernel_internal::AllReturned&) {
    // All threads of the threadgroup have returned early.
  } catch (const kernel_internal::EndsThreadgroup&) {
    // The finding is recorded already.
  } catch (const std::exception& e) {
    Fail(e.what());
  } catch (...) {
    Fail("the kernel threw something that is not a std::exception");
  }
}

void GridRunner::Fail(const char* what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed()) {
    try {
      error_ = what;
    } catch (...) {  // out of memory: fail without a message
    }
  }
  failed_.store(true, std::memory_order_relaxed);
}

}  // namespace switchyard::device
