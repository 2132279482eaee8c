// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/core/queue.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "device/src/core/grid_runner.h"
#include "device/src/core/queue_thread.h"
#include "src/base/fp_env.h"

namespace switchyard::device {
namespace {

// How long a thread polls for work before it sleeps. The thread that commits
// work needs 12 us to wake a sleeping thread.
constexpr std::chrono::microseconds kSpin{50};

// For this time, the queue's thread leaves new work to the thread that
// committed it. If that thread waits for the work, it runs the work itself,
// because its cache holds the data: on another core, one token's chain of
// dispatches takes 14 us instead of 3.
constexpr std::chrono::microseconds kLeave{1};

// Returns true if the condition became true in time.
template <class Condition>
bool SpinUntil(Condition condition, std::chrono::microseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Limits nested waits, because each level needs stack frames: 12,000 handlers
// that each committed a command buffer and waited for it took more than 8 MB.
constexpr size_t kMostNested = 256;
// The number of completed handlers that this thread is running, nested in
// each other.
thread_local size_t t_nested = 0;

}  // namespace

Queue::Queue(const DeviceOptions& options)
    : executor_(options.executor),
      time_dispatches_(options.time_dispatches),
      event_timeout_ms_(options.event_timeout_ms),
      checked_(options.check_kernels ? MakeCheckedMode(options) : nullptr) {
  spare_.reserve(kMaxSpare);
}
Queue::~Queue() = default;

CommandBuffer::Handle::~Handle() {
  buffer->state_->queue->Abandon(*buffer->state_);
}

bool Queue::FrontIsCommitted() const {
  return !order_.empty() && order_.front()->state_->committed;
}

bool Queue::MayRun() const {
  return FrontIsCommitted() &&
         (runner_ == std::thread::id() ||
          (in_handler_ && runner_ == std::this_thread::get_id()));
}

void Queue::Offer() {
  const bool committed = FrontIsCommitted();
  const bool idle = runner_ == std::thread::id();
  runnable_.store(committed && idle, std::memory_order_release);
  if (!committed) return;
  if (idle && thread_sleeps_) work_.notify_one();
  // While a handler runs, also wake the threads in Wait(): the handler itself
  // may be in Wait(), and its thread then runs the buffer.
  if ((idle || in_handler_) && waiters_asleep_ != 0) done_.notify_all();
}

void Queue::RunThread(std::shared_ptr<Queue> queue) {
  // This thread counts as at work until it has released the executor, because
  // the executor may own a queue.
  const AtWork at_work;
  const bool orphan = queue->RunUntilClosed();
  queue.reset();
  if (orphan) Orphans::Remove();
}

bool Queue::RunUntilClosed() {
  Lock lock(mutex_);
  for (;;) {
    if (MayRun()) {
      RunFront(lock);
      continue;
    }
    // The thread can end here, because nothing is committed after Close().
    if (closed_ && runner_ == std::thread::id()) return orphan_;
    const auto runnable = [this] {
      return runnable_.load(std::memory_order_acquire);
    };
    lock.unlock();
    const bool warm = SpinUntil(runnable, kSpin);
    lock.lock();
    if (!warm) {
      thread_sleeps_ = true;
      work_.wait(lock, [this] {
        return MayRun() || (closed_ && runner_ == std::thread::id());
      });
      thread_sleeps_ = false;
    }
    lock.unlock();
    SpinUntil([&] { return !runnable(); }, kLeave);
    lock.lock();
  }
}

void Queue::Close(bool orphan) {
  const Lock lock(mutex_);
  closed_ = true;
  orphan_ = orphan;
  if (thread_sleeps_) work_.notify_one();
}

bool Queue::EnqueueLocked(State& state) {
  if (state.status != CommandBufferStatusNotEnqueued) return false;
  order_.splice(order_.end(), state.place);
  state.status = CommandBufferStatusEnqueued;
  return true;
}

Commands Queue::NewCommands() {
  const Lock lock(mutex_);
  if (spare_.empty()) return Commands();
  Commands commands = std::move(spare_.back());
  spare_.pop_back();
  return commands;
}

void Queue::Recycle(Commands& commands) {
  if (spare_.size() < kMaxSpare && commands.Capacity() <= kMaxSpareBytes) {
    spare_.push_back(std::move(commands));
  }
}

void Queue::Enqueue(State& state) {
  const Lock lock(mutex_);
  if (!EnqueueLocked(state)) {
    FailLocked(state, "enqueue: the command buffer is enqueued already");
  }
}

void Queue::Commit(State& state) {
  const Lock lock(mutex_);
  if (state.committed) {
    FailLocked(state, "commit: the command buffer is committed already");
    return;
  }
  if (state.encoder_open) {
    FailLocked(state, "commit: an encoder is open: endEncoding is missing");
  }
  EnqueueLocked(state);
  state.closed = true;
  state.rejected = state.failed;
  state.committed = true;
  state.status = CommandBufferStatusCommitted;
  Offer();
}

void Queue::SetLabel(const char* label) noexcept {
  const Lock lock(mutex_);
  try {
    label_ = label;
  } catch (...) {
    label_.clear();
  }
}

std::string Queue::GetLabel() {
  const Lock lock(mutex_);
  return label_;
}

void Queue::Wait(State& state, bool until_scheduled) {
  const char* const call =
      until_scheduled ? "waitUntilScheduled" : "waitUntilCompleted";
  if (state.done.load(std::memory_order_acquire)) return;
  // `keep` holds a reference, because a handler may release the last other
  // reference during the wait. `keep` is declared before the lock, so that the
  // mutex is unlocked before the reference is released.
  const std::shared_ptr<CommandBuffer::Handle> keep = state.handle.lock();
  Lock lock(mutex_);
  if (InKernel::Here()) {
    FailLocked(state, call, ": called by a kernel");
    return;
  }
  if (!state.committed) {
    FailLocked(state, call, ": the command buffer is not committed");
    return;
  }
  const auto is_done = [&state] {
    return state.done.load(std::memory_order_acquire);
  };
  // The mutex must be locked when this is called.
  const auto is_over = [&] {
    return is_done() || (until_scheduled && state.scheduled);
  };
  while (!is_over()) {
    if (t_nested >= kMostNested &&
        state.status == CommandBufferStatusCommitted) {
      FailLocked(state, call,
                 ": called by a handler, which runs in a wait of another one, "
                 "and so on 256 deep");
      return;
    }
    if (MayRun()) {
      RunFront(lock);
      continue;
    }
    if (runner_ == std::this_thread::get_id()) {
      // The wait would never end: the caller is a deallocator, or a handler
      // of this buffer.
      if (!in_handler_) {
        FailLocked(state, call,
                   in_scheduled_handler_ ? ": called by a scheduled handler"
                                         : ": called by a deallocator");
        return;
      }
      if (state.status != CommandBufferStatusCommitted) return;
    }
    lock.unlock();
    SpinUntil(is_done, kSpin);
    lock.lock();
    ++waiters_asleep_;
    if (until_scheduled) ++scheduled_waiters_asleep_;
    done_.wait(lock, [&] { return is_over() || MayRun(); });
    if (until_scheduled) --scheduled_waiters_asleep_;
    --waiters_asleep_;
  }
}

void Queue::AddHandler(State& state, CommandBuffer::CompletedHandler handler,
                       bool when_scheduled) {
  const char* const call =
      when_scheduled ? "addScheduledHandler" : "addCompletedHandler";
  const Lock lock(mutex_);
  if (state.committed) {
    FailLocked(state, call, ": the command buffer is committed");
  } else if (handler == nullptr) {
    FailLocked(state, call, ": the handler is empty");
  } else {
    try {
      (when_scheduled ? state.scheduled_handlers : state.handlers)
          .push_back(std::move(handler));
    } catch (...) {
      FailLocked(state, call, ": out of memory");
    }
  }
}

void Queue::Abandon(State& state) {
  // `place` is declared before the lock, so it is destroyed after the mutex
  // is unlocked.
  std::list<std::shared_ptr<CommandBuffer>> place;
  const Lock lock(mutex_);
  if (state.committed) return;
  if (state.status == CommandBufferStatusNotEnqueued) {
    place.swap(state.place);
    return;
  }
  place.splice(
      place.begin(), order_,
      std::find_if(order_.begin(), order_.end(), [&state](const auto& buffer) {
        return buffer->state_.get() == &state;
      }));
  Offer();
}

void Queue::Fail(State& state, const char* error, const char* what,
                 const char* why) noexcept {
  const Lock lock(mutex_);
  FailLocked(state, error, what, why);
}

void Queue::FailLocked(State& state, const char* error, const char* what,
                       const char* why) noexcept {
  if (state.failed) return;
  state.failed = true;
  try {
    state.error = error;
    state.error += what;
    state.error += why;
    const std::string& queue = state.queue->label_;
    if (!state.label.empty() || !queue.empty()) {
      state.error += " [";
      if (!state.label.empty()) {
        state.error += "command buffer \"" + state.label + "\"";
        if (!queue.empty()) state.error += ", ";
      }
      if (!queue.empty()) state.error += "queue \"" + queue + "\"";
      state.error += "]";
    }
  } catch (...) {  // out of memory: keep the text so far
  }
  if (state.status == CommandBufferStatusCompleted) {
    state.status = CommandBufferStatusError;
  }
}

void Queue::RunFront(Lock& lock) {
  const AtWork at_work;
  // The buffer is destroyed while the mutex is locked. This is harmless,
  // because its commands and handlers are already gone.
  const std::shared_ptr<CommandBuffer> buffer = std::move(order_.front());
  order_.pop_front();
  State& state = *buffer->state_;
  // The runner is restored at the end, because this call may be inside a
  // handler of an earlier buffer.
  const std::thread::id outer_runner = runner_;
  const bool outer_in_handler = in_handler_;
  runner_ = std::this_thread::get_id();
  in_handler_ = false;
  runnable_.store(false, std::memory_order_relaxed);
  state.status = CommandBufferStatusScheduled;
  if (!state.scheduled_handlers.empty()) CallScheduledHandlers(*buffer, lock);
  state.scheduled = true;
  if (scheduled_waiters_asleep_ != 0) done_.notify_all();

  lock.unlock();
  std::string error;
  bool out_of_memory = false;
  double start, end;
  {
    // The timestamps are also computed in the default floating-point state,
    // because the waiting thread may trap floating-point exceptions.
    const internal::DefaultFpEnv fp_env;
    start = Now();
    try {
      if (!state.rejected) {
        error = Execute(
            state.commands,
            {*executor_, scratch_, time_dispatches_ ? &state.times : nullptr,
             checked_.get(), state.warnings, event_timeout_ms_});
      }
    } catch (...) {
      out_of_memory = true;
    }
    end = Now();
  }
  if (checked_ != nullptr) {
    state.findings = checked_->TakeFindings();
    state.never_written = checked_->TakeNeverWritten();
  }
  // Events are also signalled for dispatches that did not run, because other
  // buffers would otherwise wait for them in vain.
  for (const EventCommand& event : state.commands.events) event.Signal();
  state.commands.Clear();
  lock.lock();
  Recycle(state.commands);

  state.start = start;
  state.end = end;
  if (out_of_memory) FailLocked(state, "command buffer: out of memory");
  if (!error.empty()) FailLocked(state, error.c_str());
  state.status =
      state.failed ? CommandBufferStatusError : CommandBufferStatusCompleted;
  if (!state.handlers.empty()) CallHandlers(*buffer, lock);
  state.done.store(true, std::memory_order_release);
  in_handler_ = outer_in_handler;
  runner_ = outer_runner;
  if (waiters_asleep_ != 0) done_.notify_all();
  if (closed_ && thread_sleeps_) work_.notify_one();
  Offer();
}

void Queue::CallHandlers(CommandBuffer& buffer, Lock& lock) {
  State& state = *buffer.state_;
  std::vector<CommandBuffer::CompletedHandler> handlers;
  handlers.swap(state.handlers);
  in_handler_ = true;
  lock.unlock();
  ++t_nested;
  Call("addCompletedHandler", buffer, handlers);
  --t_nested;
  lock.lock();
}

void Queue::CallScheduledHandlers(CommandBuffer& buffer, Lock& lock) {
  std::vector<CommandBuffer::ScheduledHandler> handlers;
  handlers.swap(buffer.state_->scheduled_handlers);
  in_scheduled_handler_ = true;
  lock.unlock();
  Call("addScheduledHandler", buffer, handlers);
  lock.lock();
  in_scheduled_handler_ = false;
}

void Queue::Call(const char* added_by, CommandBuffer& buffer,
                 std::vector<CommandBuffer::CompletedHandler>& handlers) {
  for (CommandBuffer::CompletedHandler& handler : handlers) {
    try {
      handler(&buffer);
    } catch (const std::exception& e) {
      Fail(*buffer.state_, added_by, ": a handler threw: ", e.what());
    } catch (...) {
      Fail(*buffer.state_, added_by, ": a handler threw");
    }
    handler = nullptr;  // releases the captured objects
  }
}

}  // namespace switchyard::device
