// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// An Executor on threads that the engine already runs. TeamExecutor is for
// engines that call one function on every thread, with the thread's number
// (llama.cpp's ith and nth), and have a barrier. It neither creates nor wakes
// threads. It is header-only and needs only executor.h and pieces.h.

#ifndef SWITCHYARD_TEAM_EXECUTOR_H_
#define SWITCHYARD_TEAM_EXECUTOR_H_

#include <cstddef>

#include "switchyard/executor.h"
#include "switchyard/pieces.h"
#include "switchyard/status.h"

namespace switchyard {

// All threads of a region use one TeamExecutor:
//
//   switchyard::TeamExecutor team(nth, barrier, context);  // shared
//   ...
//   // in the function that each thread runs, `ith` being its number:
//   team.Run(ith, [&] {
//     status = RouteTopK(inputs, outputs, options, team);
//     ...any of the library's functions, one after the other...
//   });
//
// Thread 0 runs work(), which makes the calls. The other threads do their
// share of each call until work() returns. work() may call every function of
// the library. While thread 0 runs a call alone, the others wait in the
// barrier.
class TeamExecutor final : public Executor {
 public:
  // The engine's barrier. It returns when all threads of the team have called
  // it, and each thread then sees everything that the others wrote before.
  // With one thread it may be null. If it is null with more threads, or if
  // there are zero threads, each call that divides its work returns
  // kInvalidArgument and writes nothing.
  using Barrier = void (*)(void* context);

  // Makes an executor on `num_threads` threads of the engine, which all call
  // Run(). The executor synchronises them with barrier(context).
  TeamExecutor(size_t num_threads, Barrier barrier,
               void* context = nullptr) noexcept
      : num_threads_(num_threads), barrier_(barrier), context_(context) {}
  TeamExecutor(const TeamExecutor&) = delete;
  TeamExecutor& operator=(const TeamExecutor&) = delete;

  // Each of the threads 0 to num_threads - 1 must call Run once. On thread 0,
  // Run calls work(). On all threads Run returns after work() has ended, and
  // the threads see everything that work() wrote. They may then call Run
  // again. If work() throws an exception, Run rethrows it on thread 0.
  template <class Work>
  void Run(size_t thread, const Work& work) {
    if (num_threads_ <= 1) return work();
    if (barrier_ == nullptr) {  // ParallelFor() returns an error
      if (thread == 0) work();
      return;
    }
    if (thread == 0) {
      const Leader leader(*this);
      return work();
    }
    for (Wait(); !through_; Wait()) {
      loop_->Run(thread, num_threads_, thread);
      Wait();
    }
    Wait();  // all threads read through_ before thread 0 resets it
  }

  size_t Concurrency() const noexcept override { return num_threads_; }

  // Returns 3 us. A fork takes two barriers, and two barriers of sixteen
  // threads that spin take this time.
  size_t ForkNs() const noexcept override { return 3000; }

  // The library's functions call ParallelFor() on thread 0, inside work().
  // Outside of Run(), the calling thread does all of the work.
  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    if (num_threads_ > 1 && barrier_ == nullptr) {
      return Status(StatusCode::kInvalidArgument,
                    "TeamExecutor: barrier: null, with more than one thread");
    }
    SharedLoop loop(count, grain, running_ ? num_threads_ : 1, body, context);
    if (loop.pieces().workers() <= 1) {
      loop.Run(0, 1, 0);
      return Status();
    }
    loop_ = &loop;
    Wait();
    loop.Run(0, num_threads_, 0);
    Wait();
    return Status();
  }

 private:
  // A Leader exists while the other threads wait for work of thread 0. The
  // destructor lets them return from Run().
  struct Leader {
    TeamExecutor& team;
    explicit Leader(TeamExecutor& t) : team(t) { team.running_ = true; }
    ~Leader() {
      team.running_ = false;
      team.through_ = true;
      team.Wait();
      team.Wait();
      team.through_ = false;
    }
  };

  void Wait() const { barrier_(context_); }

  const size_t num_threads_;
  const Barrier barrier_;
  void* const context_;
  // Thread 0 writes the members below between barriers. The other threads
  // read them after a barrier.
  SharedLoop* loop_ = nullptr;
  bool through_ = false;
  bool running_ = false;
};

}  // namespace switchyard

#endif  // SWITCHYARD_TEAM_EXECUTOR_H_
