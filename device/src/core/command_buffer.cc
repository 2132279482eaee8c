// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/core/encoder_state.h"
#include "device/src/core/queue.h"
#include "switchyard/device/device.h"

namespace switchyard::device {

CommandBuffer::CommandBuffer(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
CommandBuffer::~CommandBuffer() = default;

// Retains the Handle, because it also keeps the queue alive. All of the
// user's references share the Handle. While a handler runs, the user may have
// released all references. Then the Handle is gone, and retain() retains only
// the buffer.
CommandBuffer* CommandBuffer::retain() noexcept {
  if (auto handle = state_->handle.lock()) {
    Keep(std::move(handle));
  } else {
    Keep(shared_from_this());
  }
  return this;
}
CommandBuffer* CommandBuffer::autorelease() noexcept {
  Pool(state_->handle.lock());
  release();
  return this;
}

void CommandBuffer::setLabel(const host_internal::Text& label) noexcept {
  const std::lock_guard<std::mutex> lock(state_->queue->mutex());
  try {
    state_->label = label.c_str();
  } catch (...) {
    state_->label.clear();
  }
}

std::string CommandBuffer::label() const {
  const std::lock_guard<std::mutex> lock(state_->queue->mutex());
  return state_->label;
}

void CommandBuffer::pushDebugGroup(const host_internal::Text& name) noexcept {
  try {
    state_->groups.emplace_back(name.c_str());
  } catch (...) {
    state_->queue->Fail(*state_, "pushDebugGroup: out of memory");
  }
}

void CommandBuffer::popDebugGroup() noexcept {
  if (state_->groups.empty()) {
    state_->queue->Fail(
        *state_, "popDebugGroup: no group is open: pushDebugGroup is missing");
  } else {
    state_->groups.pop_back();
  }
}

// Returns the encoder that make(self) makes. If the command buffer is
// committed or has another open encoder, the returned encoder has already
// ended, so it encodes nothing.
template <class E, class Make>
std::shared_ptr<E> CommandBuffer::NewEncoder(const char* call,
                                             const Make& make) noexcept {
  const auto fail = [&](const char* error) {
    state_->queue->Fail(*state_, call, error);
  };
  try {
    const std::shared_ptr<Handle> handle = state_->handle.lock();
    std::shared_ptr<CommandBuffer> self;
    if (handle != nullptr) self = std::shared_ptr<CommandBuffer>(handle, this);
    std::shared_ptr<E> encoder(make(std::move(self)));
    CommandEncoder& made = *encoder;
    if (state_->closed) {
      fail(": the command buffer is committed");
      made.base_->ended = true;
    } else if (state_->encoder_open) {
      fail(": another encoder is open");
      made.base_->ended = true;
    } else {
      state_->encoder_open = true;
    }
    return encoder;
  } catch (...) {
    fail(": out of memory");
    return nullptr;
  }
}

Autoreleased<ComputeCommandEncoder> CommandBuffer::computeCommandEncoder(
    DispatchType type) noexcept {
  return NewEncoder<ComputeCommandEncoder>(
      "computeCommandEncoder", [type](std::shared_ptr<CommandBuffer> self) {
        return new ComputeCommandEncoder(std::move(self), type);
      });
}

Autoreleased<BlitCommandEncoder> CommandBuffer::blitCommandEncoder() noexcept {
  return NewEncoder<BlitCommandEncoder>(
      "blitCommandEncoder", [](std::shared_ptr<CommandBuffer> self) {
        return new BlitCommandEncoder(std::move(self));
      });
}

void CommandBuffer::encodeSignalEvent(host_internal::Arg<Event> event,
                                      uint64_t value) noexcept {
  EncodeEvent("encodeSignalEvent", event.get(), value, false);
}
void CommandBuffer::encodeWait(host_internal::Arg<Event> event,
                               uint64_t value) noexcept {
  EncodeEvent("encodeWait", event.get(), value, true);
}

void CommandBuffer::EncodeEvent(const char* call, const Event* event,
                                uint64_t value, bool wait) noexcept {
  const auto fail = [&](const char* error) {
    state_->queue->Fail(*state_, call, error);
  };
  if (event == nullptr) return fail(": event is null");
  if (state_->closed) return fail(": the command buffer is committed");
  if (state_->encoder_open) {
    return fail(": an encoder is open: endEncoding is missing");
  }
  Commands& to = state_->commands;
  try {
    to.retained.push_back(event->shared_from_this());
    to.events.push_back(
        {to.dispatches.size(), const_cast<Event*>(event), value, wait});
  } catch (...) {
    fail(": out of memory");
  }
}

void CommandBuffer::enqueue() noexcept { state_->queue->Enqueue(*state_); }
void CommandBuffer::commit() noexcept { state_->queue->Commit(*state_); }
void CommandBuffer::waitUntilCompleted() noexcept {
  state_->queue->Wait(*state_);
}
void CommandBuffer::waitUntilScheduled() noexcept {
  state_->queue->Wait(*state_, true);
}
void CommandBuffer::addScheduledHandler(ScheduledHandler handler) noexcept {
  state_->queue->AddHandler(*state_, std::move(handler), true);
}
void CommandBuffer::addCompletedHandler(CompletedHandler handler) noexcept {
  state_->queue->AddHandler(*state_, std::move(handler));
}

CommandBufferStatus CommandBuffer::status() const noexcept {
  const std::lock_guard<std::mutex> lock(state_->queue->mutex());
  return state_->status;
}

std::string CommandBuffer::error() const {
  const std::lock_guard<std::mutex> lock(state_->queue->mutex());
  return state_->failed && state_->error.empty() ? "out of memory"
                                                 : state_->error;
}

double CommandBuffer::GPUStartTime() const noexcept {
  const std::lock_guard<std::mutex> lock(state_->queue->mutex());
  return state_->start;
}
double CommandBuffer::GPUEndTime() const noexcept {
  const std::lock_guard<std::mutex> lock(state_->queue->mutex());
  return state_->end;
}

std::vector<DispatchTime> CommandBuffer::dispatchTimes() const {
  const std::lock_guard<std::mutex> lock(state_->queue->mutex());
  // While the buffer runs, the thread that runs it writes the times, so they
  // must not be read here.
  return state_->status < CommandBufferStatusCompleted
             ? std::vector<DispatchTime>()
             : state_->times;
}

std::vector<std::string> CommandBuffer::warnings() const {
  const std::lock_guard<std::mutex> lock(state_->queue->mutex());
  return state_->status < CommandBufferStatusCompleted
             ? std::vector<std::string>()
             : state_->warnings;
}

std::vector<Finding> CommandBuffer::findings() const {
  const std::lock_guard<std::mutex> lock(state_->queue->mutex());
  return state_->status < CommandBufferStatusCompleted ? std::vector<Finding>()
                                                       : state_->findings;
}

std::vector<NeverWritten> CommandBuffer::neverWritten() const {
  const std::lock_guard<std::mutex> lock(state_->queue->mutex());
  return state_->status < CommandBufferStatusCompleted
             ? std::vector<NeverWritten>()
             : state_->never_written;
}

}  // namespace switchyard::device
