// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/device/queue.h"
#include "switchyard/device/device.h"

namespace switchyard::device {

CommandBuffer::CommandBuffer(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
CommandBuffer::~CommandBuffer() = default;

void CommandBuffer::enqueue() noexcept { state_->queue->Enqueue(*state_); }
void CommandBuffer::commit() noexcept { state_->queue->Commit(*state_); }
void CommandBuffer::waitUntilCompleted() noexcept {
  state_->queue->Wait(*state_);
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
  // Until then they belong to the thread that runs the buffer.
  return state_->status < CommandBufferStatusCompleted
             ? std::vector<DispatchTime>()
             : state_->times;
}

}  // namespace switchyard::device
