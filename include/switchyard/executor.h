// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Threads for calls: on the calling thread, oneTBB, or an executor of your own.

#ifndef SWITCHYARD_EXECUTOR_H_
#define SWITCHYARD_EXECUTOR_H_

#include <cstddef>
#include <memory>

#include "switchyard/status.h"

namespace switchyard {

// The only way this library uses threads. Derive from it to lend the library
// your engine's own pool; results do not depend on which executor runs them.
//
// A call that shares work out holds the executor to this contract:
// Concurrency() of 0 is kInvalidArgument, with nothing written. Indices outside
// [0, count), which are not run, indices left out or run more than once, and
// workers that are not below Concurrency() are kInternal, with outputs
// unspecified. A range counts from its end on: one that is still running when
// ParallelFor returns is left out, and may write to outputs later. The library
// does not notice two bodies that run at the same time for the same worker.
class Executor {
 public:
  virtual ~Executor() = default;

  // How many threads may run bodies at the same time, at least 1 and the same
  // for the executor's life: `worker` below is smaller. Results never depend on
  // it.
  virtual size_t Concurrency() const noexcept = 0;

  // The function that it calls, for indices [begin, end) and on behalf of
  // `worker`.
  using Body = void (*)(void* context, size_t worker, size_t begin, size_t end);

  // Calls body(context, worker, begin, end) for ranges that together cover
  // [0, count), each index exactly once, and returns when all are done. Ranges
  // may be split, merged, reordered and run on any thread, the caller's
  // included.
  //
  // Bodies of one call that run at the same time get different `worker`
  // numbers, all < Concurrency(), so that what is kept per worker needs no
  // lock. Two calls may use the same numbers at the same time.
  //
  // `grain` >= 1 is how many indices make ForkNs() of serial work on the ISA in
  // use, even if count is fewer: less than that is not worth a thread. Run the
  // whole of it on the calling thread when count <= grain. Where count is at
  // most Concurrency() and grain is 1, give each index to a thread of its own,
  // if it is free. pieces.h cuts loops so.
  //
  // A body neither throws nor calls ParallelFor. May be called from several
  // threads at once. An error (no memory for tasks, ...) is returned, and the
  // library hands it to its own caller.
  virtual Status ParallelFor(size_t count, size_t grain, Body body,
                             void* context) noexcept = 0;

  // The cost of a fork and join now, in nanoseconds of serial work. It
  // changes where work is shared out, never bits. Asked before each call of 6
  // us of work or more.
  static constexpr size_t kForkNs = 30'000;
  virtual size_t ForkNs() const noexcept { return kForkNs; }
};

// Runs everything on the calling thread. Shared, stateless, never destroyed.
Executor& SerialExecutor() noexcept;

// A pool on oneTBB, in a task arena of its own with `max_concurrency` threads
// counting the caller, or as many as TBB has (its global_control, the cores it
// finds) if those are fewer; -1: as many as TBB has. A fork costs it 30 us, or
// 10 (two threads: 5) if a call of 10 us of work ended within the last 20 us:
// the second of such calls wakes the workers, who are still awake for those
// that follow. Nullptr if max_concurrency is 0 or below -1, if the library was
// built with SWITCHYARD_TBB=OFF, or if memory is out; from then on if that was
// in the first call of the process, which TBB does not get over.
// A caller that waits takes part but never picks up unrelated TBB tasks.
//
// TBB's workers outlive the executor. A shared object that made one may be
// closed (dlclose) only where something else keeps libtbb loaded. In a child
// after fork() they are gone: there, use SerialExecutor() or your own threads.
std::unique_ptr<Executor> MakeTbbExecutor(int max_concurrency = -1) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_EXECUTOR_H_
