// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// For engines whose threads are running already, and run one function with
// their number (llama.cpp's ith and nth): the threads of a region, with the
// engine's own barrier, as an Executor. No thread is made and none is woken.
// Only this header, over executor.h and pieces.h.

#ifndef SWITCHYARD_TEAM_EXECUTOR_H_
#define SWITCHYARD_TEAM_EXECUTOR_H_

#include <cstddef>

#include "switchyard/executor.h"
#include "switchyard/pieces.h"
#include "switchyard/status.h"

namespace switchyard {

// One object for all threads of a region:
//
//   switchyard::TeamExecutor team(nth, barrier, context);  // shared
//   ...
//   // in the function that each thread runs, `ith` being its number:
//   team.Run(ith, [&] {
//     status = RouteTopK(inputs, outputs, options, team);
//     ...any of the library's functions, one after the other...
//   });
//
// Thread 0 makes the calls, and the others do their part of each, until it is
// through. Any function will do, a sort as well; a call that is one thread's
// work costs the others nothing but their waiting in the barrier.
class TeamExecutor final : public Executor {
 public:
  // Returns when all threads of the team have called it; what they wrote before
  // is seen by all. May be null for one thread: with more, and with no thread,
  // each call that shares work out is kInvalidArgument, and nothing is written.
  using Barrier = void (*)(void* context);

  TeamExecutor(size_t num_threads, Barrier barrier,
               void* context = nullptr) noexcept
      : num_threads_(num_threads), barrier_(barrier), context_(context) {}
  TeamExecutor(const TeamExecutor&) = delete;
  TeamExecutor& operator=(const TeamExecutor&) = delete;

  // Called by threads 0 to num_threads - 1, each once: thread 0 calls work(),
  // and all return when that has. What it wrote is seen by all. May be called
  // again, and work() may throw: it reaches thread 0's caller.
  template <class Work>
  void Run(size_t thread, const Work& work) {
    if (num_threads_ <= 1) return work();
    if (barrier_ == nullptr) {  // ParallelFor() refuses it
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
    Wait();  // all have seen it before thread 0 begins anew
  }

  size_t Concurrency() const noexcept override { return num_threads_; }

  // Two barriers: 3 us for sixteen threads that spin.
  size_t ForkNs() const noexcept override { return 3000; }

  // From work() only, on thread 0. Outside of Run() all of it is the caller's.
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
  // From where the others wait for thread 0 to where it lets them go.
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
  // Written by thread 0 between barriers, and read by the others behind them.
  SharedLoop* loop_ = nullptr;
  bool through_ = false;
  bool running_ = false;
};

}  // namespace switchyard

#endif  // SWITCHYARD_TEAM_EXECUTOR_H_
