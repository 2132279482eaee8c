// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The order of a queue's command buffers, and the threads that run them.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_QUEUE_H_
#define SWITCHYARD_DEVICE_SRC_CORE_QUEUE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/src/core/checked_mode.h"
#include "device/src/core/commands.h"
#include "switchyard/device/device.h"

namespace switchyard::device {

class Queue;

struct CommandBuffer::State {
  // Used by the encoding thread until commit(), then by the thread that runs
  // the buffer.
  Commands commands;
  bool encoder_open = false;
  std::vector<std::string> groups;  // open debug groups around encoders
  bool closed = false;  // committed; read by encoders without the mutex
  const uint64_t id;    // so that each object is retained only once
  const std::shared_ptr<Queue> queue;
  // Encoders hold this handle, so they keep the buffer alive as its user
  // does.
  std::weak_ptr<Handle> handle;

  // The members from here on are guarded by the queue's mutex.
  CommandBufferStatus status = CommandBufferStatusNotEnqueued;
  bool committed = false;
  bool failed = false;
  bool rejected = false;  // had failed before commit(), so it does not run
  std::string error;      // the first one; empty if out of memory
  // The list node, which moves into Queue::order_.
  std::list<std::shared_ptr<CommandBuffer>> place;
  std::string label;
  std::vector<ScheduledHandler> scheduled_handlers;
  bool scheduled = false;  // true after the scheduled handlers have returned
  std::vector<CompletedHandler> handlers;
  double start = 0.0;
  double end = 0.0;
  std::vector<DispatchTime> times;
  std::vector<std::string> warnings;
  std::vector<Finding> findings;
  std::vector<NeverWritten> never_written;

  // True when all is done, including the handlers. Set under the mutex.
  std::atomic<bool> done{false};

  State(uint64_t buffer_id, std::shared_ptr<Queue> q, Commands empty)
      : commands(std::move(empty)), id(buffer_id), queue(std::move(q)) {}
};

// The user's references to a command buffer share this handle.
struct CommandBuffer::Handle {
  // The order matters: the queue is destroyed last, because its destructor
  // may wait for its thread.
  std::shared_ptr<CommandQueue> queue;
  std::shared_ptr<CommandBuffer> buffer;

  Handle(std::shared_ptr<CommandQueue> q, std::shared_ptr<CommandBuffer> b)
      : queue(std::move(q)), buffer(std::move(b)) {}
  ~Handle();
};

// Only one thread at a time, the runner, executes command buffers. It is the
// queue's own thread or a thread in Wait(). Handlers run on the runner. A
// handler may wait for later buffers, which then run nested inside it.
class Queue {
 public:
  using State = CommandBuffer::State;
  // Limits for recycled Commands. A thousand dispatches take 200 KB;
  // allocating that memory anew would double the time to encode them.
  static constexpr size_t kMaxSpare = 4;
  static constexpr size_t kMaxSpareBytes = size_t{4} << 20;

  explicit Queue(const DeviceOptions& options);
  ~Queue();

  // The main function of the queue's thread. Releases the queue after
  // Close().
  static void RunThread(std::shared_ptr<Queue> queue);
  // No more commits follow. The thread ends after all committed buffers have
  // run. `orphan`: the thread was added to Orphans.
  void Close(bool orphan);

  // Returns empty Commands that reuse the memory of earlier buffers.
  Commands NewCommands();

  void Enqueue(State& state);
  void Commit(State& state);
  // Waits until the work and its handlers have ended, or until the work is
  // scheduled.
  void Wait(State& state, bool until_scheduled = false);
  void AddHandler(State& state, CommandBuffer::CompletedHandler handler,
                  bool when_scheduled = false);
  void SetLabel(const char* label) noexcept;
  std::string GetLabel();
  // The buffer's last user is gone. If it was not committed, it never will
  // be.
  void Abandon(State& state);
  // Stores the first error of a buffer: `error`, `what` and `why` in
  // sequence.
  void Fail(State& state, const char* error, const char* what = "",
            const char* why = "") noexcept;

  std::mutex& mutex() { return mutex_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  static void FailLocked(State& state, const char* error, const char* what = "",
                         const char* why = "") noexcept;
  // Returns when the queue is closed; the result is `orphan` of Close().
  bool RunUntilClosed();
  bool EnqueueLocked(State& state);
  bool FrontIsCommitted() const;
  void Recycle(Commands& commands);
  // True if the calling thread may run the first buffer of order_.
  bool MayRun() const;
  void RunFront(Lock& lock);
  void CallScheduledHandlers(CommandBuffer& buffer, Lock& lock);
  void CallHandlers(CommandBuffer& buffer, Lock& lock);
  void Call(const char* added_by, CommandBuffer& buffer,
            std::vector<CommandBuffer::CompletedHandler>& handlers);
  // If the first buffer can run now, wakes the threads that could run it.
  void Offer();

  const std::shared_ptr<Executor> executor_;
  const bool time_dispatches_;
  const uint64_t event_timeout_ms_;
  std::vector<int32_t> scratch_;  // the runner's
  // Used by the runner; null outside of checked mode.
  const std::unique_ptr<CheckedMode> checked_;

  std::mutex mutex_;
  std::condition_variable work_;  // wakes the queue's thread
  std::condition_variable done_;  // wakes waiting threads
  // Guarded by mutex_.
  std::list<std::shared_ptr<CommandBuffer>> order_;  // enqueued, not started
  std::vector<Commands> spare_;
  std::string label_;
  bool closed_ = false;
  bool orphan_ = false;
  bool thread_sleeps_ = false;
  size_t waiters_asleep_ = 0;
  size_t scheduled_waiters_asleep_ = 0;  // included in waiters_asleep_
  std::thread::id runner_;   // the default value: no thread runs a buffer
  bool in_handler_ = false;  // the runner is in a completed handler
  bool in_scheduled_handler_ = false;

  // Written under mutex_; the queue's thread polls it before it sleeps.
  std::atomic<bool> runnable_{false};
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_QUEUE_H_
