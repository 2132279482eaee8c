// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The order of a queue's command buffers and the threads that run them.

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
  // The encoding thread's until commit(), then the one's that runs it.
  Commands commands;
  bool encoder_open = false;
  std::vector<std::string> groups;  // that are open around encoders
  bool closed = false;  // committed, as far as encoders are concerned
  const uint64_t id;    // for retaining once
  const std::shared_ptr<Queue> queue;
  // For encoders, which keep the buffer as its user does.
  std::weak_ptr<Handle> handle;

  // From here on guarded by the queue's mutex.
  CommandBufferStatus status = CommandBufferStatusNotEnqueued;
  bool committed = false;
  bool failed = false;
  bool rejected = false;  // had failed when committed: is not to run
  std::string error;      // the first; empty if there was no memory for it
  std::list<std::shared_ptr<CommandBuffer>> place;  // in the queue, until then
  std::string label;
  std::vector<ScheduledHandler> scheduled_handlers;
  bool scheduled = false;  // and these have returned
  std::vector<CompletedHandler> handlers;
  double start = 0.0;
  double end = 0.0;
  std::vector<DispatchTime> times;
  std::vector<std::string> warnings;
  std::vector<Finding> findings;
  std::vector<NeverWritten> never_written;

  // Everything has happened, handlers included. Set under the mutex.
  std::atomic<bool> done{false};

  State(uint64_t buffer_id, std::shared_ptr<Queue> q, Commands empty)
      : commands(std::move(empty)), id(buffer_id), queue(std::move(q)) {}
};

// The handle that the references of a command buffer's user share.
struct CommandBuffer::Handle {
  // In this order: the queue, which may wait for its thread, goes last.
  std::shared_ptr<CommandQueue> queue;
  std::shared_ptr<CommandBuffer> buffer;

  Handle(std::shared_ptr<CommandQueue> q, std::shared_ptr<CommandBuffer> b)
      : queue(std::move(q)), buffer(std::move(b)) {}
  ~Handle();
};

// At most one thread at a time, the runner, executes command buffers: the
// queue's own, or one in Wait(). A handler runs on the runner and may wait for
// later buffers, which then run nested.
class Queue {
 public:
  using State = CommandBuffer::State;
  // A thousand dispatches take 200 KB; fresh memory for them would double the
  // time to encode them.
  static constexpr size_t kMaxSpare = 4;
  static constexpr size_t kMaxSpareBytes = size_t{4} << 20;

  explicit Queue(const DeviceOptions& options);
  ~Queue();

  // The body of the queue's thread. Lets go of the queue after Close().
  static void RunThread(std::shared_ptr<Queue> queue);
  // No more commits. The thread ends when all that was committed is done;
  // `orphan`: it has been added to Orphans.
  void Close(bool orphan);

  // Empty, with memory from buffers that have run.
  Commands NewCommands();

  void Enqueue(State& state);
  void Commit(State& state);
  // For the end of the work and of the handlers, or for its beginning.
  void Wait(State& state, bool until_scheduled = false);
  void AddHandler(State& state, CommandBuffer::CompletedHandler handler,
                  bool when_scheduled = false);
  void SetLabel(const char* label) noexcept;
  std::string GetLabel();
  // Its last user is gone: if it was not committed, it never will be.
  void Abandon(State& state);
  // Keeps the first error of a buffer, followed by `what` and `why`.
  void Fail(State& state, const char* error, const char* what = "",
            const char* why = "") noexcept;

  std::mutex& mutex() { return mutex_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  static void FailLocked(State& state, const char* error, const char* what = "",
                         const char* why = "") noexcept;
  // Returns when closed: whether as an orphan.
  bool RunUntilClosed();
  bool EnqueueLocked(State& state);
  bool FrontIsCommitted() const;
  void Recycle(Commands& commands);
  // Whether the calling thread may run the first buffer of order_.
  bool MayRun() const;
  void RunFront(Lock& lock);
  void CallScheduledHandlers(CommandBuffer& buffer, Lock& lock);
  void CallHandlers(CommandBuffer& buffer, Lock& lock);
  void Call(const char* added_by, CommandBuffer& buffer,
            std::vector<CommandBuffer::CompletedHandler>& handlers);
  // If the first buffer can run now, wakes those who could run it.
  void Offer();

  const std::shared_ptr<Executor> executor_;
  const bool time_dispatches_;
  const uint64_t event_timeout_ms_;
  std::vector<int32_t> scratch_;  // the runner's
  // The runner's; null where nothing is checked.
  const std::unique_ptr<CheckedMode> checked_;

  std::mutex mutex_;
  std::condition_variable work_;  // for the queue's thread
  std::condition_variable done_;  // for those that wait
  // Guarded by mutex_.
  std::list<std::shared_ptr<CommandBuffer>> order_;  // enqueued, not started
  std::vector<Commands> spare_;
  std::string label_;
  bool closed_ = false;
  bool orphan_ = false;
  bool thread_sleeps_ = false;
  size_t waiters_asleep_ = 0;
  size_t scheduled_waiters_asleep_ = 0;  // of them
  std::thread::id runner_;               // no thread: nobody runs
  bool in_handler_ = false;              // the runner is
  bool in_scheduled_handler_ = false;

  // Written under mutex_, read by the queue's thread before it goes to sleep.
  std::atomic<bool> runnable_{false};
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_QUEUE_H_
