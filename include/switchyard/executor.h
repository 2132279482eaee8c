// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Executors, which provide the threads that calls run on: the calling thread,
// oneTBB's threads, or your own.

#ifndef SWITCHYARD_EXECUTOR_H_
#define SWITCHYARD_EXECUTOR_H_

#include <cstddef>
#include <memory>

#include "switchyard/status.h"

namespace switchyard {

// The library uses threads only through this class. To lend it your engine's
// own threads, derive a class from Executor. Results do not depend on the
// executor.
//
// A call that divides its work among threads checks that the executor keeps
// the contract below.
// * If Concurrency() is 0, the call returns kInvalidArgument and writes
//   nothing.
// * The call returns kInternal, and outputs are unspecified, if an index is
//   outside [0, count) (such an index is not run), is left out or is run more
//   than once, or if a worker is not below Concurrency().
// * An index counts as run when its body has returned. A body that is still
//   running when ParallelFor returns counts as left out, and may write to
//   outputs later.
// * The library does not notice two bodies that run at the same time with the
//   same worker.
class Executor {
 public:
  // Destroys the executor. No call of the library may still use it.
  virtual ~Executor() = default;

  // Returns the number of threads that may run bodies at the same time. It is
  // at least 1 and never changes. Workers are numbered from 0 to
  // Concurrency() - 1. Results never depend on this number.
  virtual size_t Concurrency() const noexcept = 0;

  // The function that ParallelFor() calls. It does the work of indices
  // [begin, end). `worker` is the number of the worker that runs it, below
  // Concurrency().
  using Body = void (*)(void* context, size_t worker, size_t begin, size_t end);

  // Calls body(context, worker, begin, end) for ranges that together cover
  // [0, count), each index exactly once, and returns when all are done. An
  // executor may split, merge and reorder ranges, and may run them on any
  // thread, including the caller's.
  //
  // Bodies of one call that run at the same time get different `worker`
  // numbers, all < Concurrency(), so that data kept per worker needs no lock.
  // Two calls may use the same numbers at the same time.
  //
  // `grain` >= 1 is the number of indices whose work takes ForkNs() on one
  // thread, on the ISA in use; grain may be above count. Less work is not
  // worth a thread, so run the whole loop on the calling thread if count <=
  // grain. If grain is 1 and count is at most Concurrency(), give each index
  // to a different thread, as far as threads are free. pieces.h cuts loops by
  // these rules.
  //
  // A body neither throws nor calls ParallelFor. Several threads may call
  // ParallelFor at once. If ParallelFor returns an error (no memory for
  // tasks, ...), the library returns it to its own caller.
  virtual Status ParallelFor(size_t count, size_t grain, Body body,
                             void* context) noexcept = 0;

  // The default of ForkNs(): 30 us.
  static constexpr size_t kForkNs = 30'000;
  // Returns the current cost of a fork and join, in nanoseconds of serial
  // work. This cost decides which loops run on several threads. It never
  // changes results. The library calls ForkNs() before each loop with 6 us of
  // work or more.
  virtual size_t ForkNs() const noexcept { return kForkNs; }
};

// Returns an executor that runs everything on the calling thread. The whole
// process shares it. It has no state and is never destroyed.
Executor& SerialExecutor() noexcept;

// Makes an executor on oneTBB's threads, with its own task arena. The arena
// has `max_concurrency` threads including the caller, or fewer if TBB has
// fewer (because of its global_control or the number of cores that it finds).
// -1 means as many threads as TBB has.
//
// A fork costs 30 us. It costs only 10 us (5 us with two threads) if a call
// with 10 us of work or more ended within the last 20 us, because TBB's
// workers are then still awake. While the caller waits, it runs tasks of its
// own call but never unrelated TBB tasks.
//
// Returns nullptr if max_concurrency is 0 or below -1, if the library was
// built with SWITCHYARD_TBB=OFF, or if memory runs out. If memory runs out in
// the first call of the process, every later call returns nullptr too,
// because TBB does not recover from that.
//
// TBB's workers outlive the executor. A shared object that made an executor
// may be closed (dlclose) only if something else keeps libtbb loaded. After
// fork(), the child process has no workers: use SerialExecutor() or your own
// threads there.
std::unique_ptr<Executor> MakeTbbExecutor(int max_concurrency = -1) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_EXECUTOR_H_
