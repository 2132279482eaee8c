// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Keeps the order of a queue's command buffers, and runs them on threads.

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
  // The encoding thread uses the commands until commit(). After that the
  // thread that runs the buffer uses them.
  Commands commands;
  bool encoder_open = false;
  // Debug groups opened outside of any encoder.
  std::vector<std::string> groups;
  // True after commit(); encoders read it without the mutex.
  bool closed = false;
  // Marks retained objects, so that each is usually stored only once.
  const uint64_t id;
  const std::shared_ptr<Queue> queue;
  // Encoders hold this handle. So an open encoder keeps the command buffer
  // alive, just as the user's reference does.
  std::weak_ptr<Handle> handle;

  // The queue's mutex guards all members from here on.
  CommandBufferStatus status = CommandBufferStatusNotEnqueued;
  bool committed = false;
  bool failed = false;
  // True if the buffer failed before commit(), so it does not run.
  bool rejected = false;
  std::string error;  // the first error; empty if memory ran out
  // A list that has only this buffer. enqueue() or commit() moves the list's
  // node into Queue::order_, so that no memory has to be allocated.
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

  // True when the buffer's work and all its handlers have ended. Written
  // while the mutex is locked.
  std::atomic<bool> done{false};

  State(uint64_t buffer_id, std::shared_ptr<Queue> q, Commands empty)
      : commands(std::move(empty)), id(buffer_id), queue(std::move(q)) {}
};

// All of the user's references to a command buffer share one Handle.
struct CommandBuffer::Handle {
  // Members are destroyed in reverse order. The queue must be destroyed last,
  // because its destructor may wait for its thread.
  std::shared_ptr<CommandQueue> queue;
  std::shared_ptr<CommandBuffer> buffer;

  Handle(std::shared_ptr<CommandQueue> q, std::shared_ptr<CommandBuffer> b)
      : queue(std::move(q)), buffer(std::move(b)) {}
  ~Handle();
};

// Runs command buffers. Only one thread at a time executes them, the runner:
// the queue's own thread, or a thread in Wait(). The runner also calls the
// handlers. A handler may wait for later buffers, which then run nested
// inside it.
class Queue {
 public:
  using State = CommandBuffer::State;
  // Limits for the Commands that are kept for reuse. A thousand dispatches
  // take 200 KB; to allocate that memory anew would double the time to encode
  // them.
  static constexpr size_t kMaxSpare = 4;
  static constexpr size_t kMaxSpareBytes = size_t{4} << 20;

  explicit Queue(const DeviceOptions& options);
  ~Queue();

  // The main function of the queue's thread. Releases the queue after
  // Close().
  static void RunThread(std::shared_ptr<Queue> queue);
  // Call this when no more commits follow. The thread ends after all
  // committed buffers have run. `orphan` says that the thread was added to
  // Orphans.
  void Close(bool orphan);

  // Returns empty Commands that reuse the memory of earlier buffers.
  Commands NewCommands();

  void Enqueue(State& state);
  void Commit(State& state);
  // Waits until the buffer's work and its handlers have ended. With
  // `until_scheduled`, waits only until the work is scheduled.
  void Wait(State& state, bool until_scheduled = false);
  void AddHandler(State& state, CommandBuffer::CompletedHandler handler,
                  bool when_scheduled = false);
  void SetLabel(const char* label) noexcept;
  std::string GetLabel();
  // Call this when the last user of the buffer is gone. If the buffer was not
  // committed, it is removed from the queue.
  void Abandon(State& state);
  // Stores a buffer's error, unless it already has one. The text is `error`,
  // `what` and `why` in sequence.
  void Fail(State& state, const char* error, const char* what = "",
            const char* why = "") noexcept;

  std::mutex& mutex() { return mutex_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  static void FailLocked(State& state, const char* error, const char* what = "",
                         const char* why = "") noexcept;
  // Runs buffers until the queue is closed. Returns the `orphan` that was
  // passed to Close().
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
  std::vector<int32_t> scratch_;  // used by the runner
  // Used by the runner; null outside of checked mode.
  const std::unique_ptr<CheckedMode> checked_;

  std::mutex mutex_;
  // Wakes the queue's thread when there is work.
  std::condition_variable work_;
  std::condition_variable done_;  // wakes threads in Wait()
  // mutex_ guards the members from here to in_scheduled_handler_. order_ has
  // the enqueued buffers that have not started.
  std::list<std::shared_ptr<CommandBuffer>> order_;
  std::vector<Commands> spare_;
  std::string label_;
  bool closed_ = false;
  bool orphan_ = false;
  bool thread_sleeps_ = false;
  size_t waiters_asleep_ = 0;  // the number of threads asleep in Wait()
  // The number of threads asleep in Wait() until a buffer is scheduled.
  size_t scheduled_waiters_asleep_ = 0;
  std::thread::id runner_;   // the default value if no thread runs a buffer
  bool in_handler_ = false;  // true while the runner is in a completed handler
  bool in_scheduled_handler_ = false;

  // Written under mutex_; the queue's thread polls it before it sleeps.
  std::atomic<bool> runnable_{false};
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_QUEUE_H_
