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

// Runs command buffers one after the other, in the order they were enqueued
// (if not, committed), on the queue's thread or on a thread that waits for
// them. Several queues run at the same time.
//
// A command buffer keeps its queue and device alive. Dropping the last
// reference to a queue and its command buffers waits for committed work.
// Inside the work of this queue or another (kernels, handlers, deallocators
// that it calls) it never waits, because two queues could wait for each
// other: it returns at once, committed work still runs, and the queue's
// thread ends by itself. exit() waits for such threads, unless work calls it.
//
// Work runs in the default floating-point environment (threadgroup.h).
// Handlers and deallocators run in the environment of the thread that calls
// them. That is a thread that waits, or the queue's thread, which has the
// environment of the thread that made the queue.
class CommandQueue : public Referencing<CommandQueue> {
 public:
  ~CommandQueue();

  // Shown in errors.
  void setLabel(const host_internal::Text& label) noexcept;
  std::string label() const;

  const std::shared_ptr<Device>& device() const noexcept { return device_; }
  // nullptr if memory is out.
  Autoreleased<CommandBuffer> commandBuffer() noexcept;
  // The same as commandBuffer(): it retains its buffers too.
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
