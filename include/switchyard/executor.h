// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The threads that run calls: the calling thread, oneTBB's threads, or an
// executor that you write.

#ifndef SWITCHYARD_EXECUTOR_H_
#define SWITCHYARD_EXECUTOR_H_

#include <cstddef>
#include <memory>

#include "switchyard/status.h"

namespace switchyard {

// The only way this library uses threads. Derive from it to lend the library
// your engine's own pool; results do not depend on which executor runs them.
//
// A call that shares work out checks that the executor keeps this contract.
// Concurrency() of 0 is kInvalidArgument, with nothing written. These are
// kInternal, with outputs unspecified: indices outside [0, count), which are
// not run; indices left out or run more than once; workers that are not below
// Concurrency(). A range counts once its body has returned: one that is still
// running when ParallelFor returns counts as left out, and may write to
// outputs later. The library does not notice two bodies that run at the same
// time for the same worker.
class Executor {
 public:
  virtual ~Executor() = default;

  // How many threads may run bodies at the same time, at least 1 and the same
  // for the executor's life: `worker` below is smaller. Results never depend on
  // it.
  virtual size_t Concurrency() const noexcept = 0;

  // The function that ParallelFor calls, for indices [begin, end) and on
  // behalf of `worker`.
  using Body = void (*)(void* context, size_t worker, size_t begin, size_t end);

  // Calls body(context, worker, begin, end) for ranges that together cover
  // [0, count), each index exactly once, and returns when all are done. Ranges
  // may be split, merged, reordered and run on any thread, the caller's
  // included.
  //
  // Bodies of one call that run at the same time get different `worker`
  // numbers, all < Concurrency(), so that data kept per worker needs no lock.
  // Two calls may use the same numbers at the same time.
  //
  // `grain` >= 1 is the number of indices that make ForkNs() of serial work
  // on the ISA in use, even if count is smaller: less work than that is not
  // worth a thread. Run the whole loop on the calling thread when count <=
  // grain. Where count is at most Concurrency() and grain is 1, give each
  // index to a different thread, if one is free. pieces.h cuts loops by these
  // rules.
  //
  // A body neither throws nor calls ParallelFor. May be called from several
  // threads at once. An error (no memory for tasks, ...) is returned, and the
  // library hands it to its own caller.
  virtual Status ParallelFor(size_t count, size_t grain, Body body,
                             void* context) noexcept = 0;

  // The present cost of a fork and join, in nanoseconds of serial work. It
  // decides which loops are shared out, never bits. The library asks before
  // each loop of 6 us of work or more.
  static constexpr size_t kForkNs = 30'000;
  virtual size_t ForkNs() const noexcept { return kForkNs; }
};

// Runs everything on the calling thread. Shared, stateless, never destroyed.
Executor& SerialExecutor() noexcept;

// A pool on oneTBB, in a separate task arena with `max_concurrency` threads
// counting the caller, or as many as TBB has (its global_control, the cores
// it finds) if TBB has fewer; -1: as many as TBB has. A fork costs 30 us, or
// 10 (two threads: 5) if a call of 10 us of work ended within the last 20 us:
// the second of such calls wakes the workers, which are still awake for the
// calls that follow. While it waits, the caller takes part but never picks up
// unrelated TBB tasks.
//
// Returns nullptr if max_concurrency is 0 or below -1, if the library was
// built with SWITCHYARD_TBB=OFF, or if memory is out. If memory runs out in
// the first call of the process, every later call returns nullptr too,
// because TBB does not recover from that.
//
// TBB's workers outlive the executor. A shared object that made an executor
// may be closed (dlclose) only where something else keeps libtbb loaded. In a
// child after fork() the workers are gone: there, use SerialExecutor() or
// your own threads.
std::unique_ptr<Executor> MakeTbbExecutor(int max_concurrency = -1) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_EXECUTOR_H_
