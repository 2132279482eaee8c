// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The order of command buffers.

#ifndef SWITCHYARD_DEVICE_COMMAND_QUEUE_H_
#define SWITCHYARD_DEVICE_COMMAND_QUEUE_H_

#include <memory>
#include <string>
#include <thread>

#include "switchyard/device/command_buffer.h"
#include "switchyard/device/foundation.h"

namespace switchyard::device {

class Device;

// Runs command buffers one after the other, in the order in which they were
// enqueued (or else committed), on a thread of its own or on a thread that
// waits for them. Several queues run at the same time.
//
// Queue and device live on while one of their command buffers does. Dropping
// the last reference to a queue and its command buffers waits for what was
// committed, but never inside the work of this queue or another (kernels,
// handlers, deallocators that it calls), where two queues could wait for each
// other: there it returns at once, what was committed still runs, and the
// queue's thread ends by itself. exit() waits for such threads, unless work
// calls it.
//
// Work runs in the default floating-point environment (threadgroup.h), handlers
// and deallocators in that of the thread they are called on: one that waits, or
// the queue's, which has that of the thread which made the queue.
class CommandQueue : public Referencing<CommandQueue> {
 public:
  ~CommandQueue();

  // Shown in errors.
  void setLabel(const host_internal::Text& label) noexcept;
  std::string label() const;

  const std::shared_ptr<Device>& device() const noexcept { return device_; }
  // nullptr if memory is out.
  Autoreleased<CommandBuffer> commandBuffer() noexcept;
  // The same: it keeps what it uses all the same.
  Autoreleased<CommandBuffer> commandBufferWithUnretainedReferences() noexcept {
    return commandBuffer();
  }

 private:
  friend class Device;
  CommandQueue(std::shared_ptr<Device> device, std::shared_ptr<Queue> queue);

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_COMMAND_QUEUE_H_
