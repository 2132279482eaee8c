// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/device/command_queue.h"

#include <atomic>
#include <utility>

#include "device/src/core/queue.h"
#include "device/src/core/queue_thread.h"
#include "switchyard/device/device.h"

namespace switchyard::device {

CommandQueue::CommandQueue(std::shared_ptr<Device> device,
                           std::shared_ptr<Queue> queue)
    : device_(std::move(device)),
      queue_(std::move(queue)),
      // The thread shares ownership of the queue, because a detached thread
      // outlives this object.
      thread_([shared = queue_]() mutable {
        Queue::RunThread(std::move(shared));
      }) {}

CommandQueue::~CommandQueue() {
  // While this thread runs work of any queue (see AtWork), it must not join
  // the thread of this queue.
  const bool orphan = AtWork::Here();
  if (orphan) Orphans::Add();
  queue_->Close(orphan);
  if (orphan) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void CommandQueue::setLabel(const host_internal::Text& label) noexcept {
  queue_->SetLabel(label.c_str());
}
std::string CommandQueue::label() const { return queue_->GetLabel(); }

Autoreleased<CommandBuffer> CommandQueue::commandBuffer() noexcept {
  static std::atomic<uint64_t> last_id{0};
  try {
    const std::shared_ptr<CommandBuffer> buffer(
        new CommandBuffer(std::make_unique<CommandBuffer::State>(
            last_id.fetch_add(1, std::memory_order_relaxed) + 1, queue_,
            queue_->NewCommands())));
    const auto handle = std::make_shared<CommandBuffer::Handle>(
        std::static_pointer_cast<CommandQueue>(shared_from_this()), buffer);
    buffer->state_->handle = handle;
    buffer->state_->place.push_back(buffer);
    return std::shared_ptr<CommandBuffer>(handle, buffer.get());
  } catch (...) {
    return nullptr;
  }
}

}  // namespace switchyard::device
