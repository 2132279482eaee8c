// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Command queues, which run command buffers in order.

#ifndef SWITCHYARD_DEVICE_COMMAND_QUEUE_H_
#define SWITCHYARD_DEVICE_COMMAND_QUEUE_H_

#include <memory>
#include <string>
#include <thread>

#include "switchyard/device/command_buffer.h"
#include "switchyard/device/foundation.h"

namespace switchyard::device {

class Device;

// Runs command buffers one after the other, on the queue's thread or on a
// thread that waits for them. Command buffers run in the order of their calls
// of enqueue(), or of commit() if enqueue() was not called. Several queues
// run at the same time.
//
// A command buffer keeps its queue and device alive. When the last reference
// to a queue and its command buffers is dropped, the thread that drops it
// waits for committed work.
//
// The thread does not wait if it drops the reference inside the work of a
// queue (in a kernel, a handler or a deallocator), because two queues could
// then wait for each other. In that case committed work still runs, and the
// queue's thread ends by itself. exit() waits for such threads, unless it is
// called inside the work of a queue.
//
// Work runs in the default floating-point environment (threadgroup.h).
// Handlers and deallocators run in the environment of the thread that calls
// them: a thread that waits, or the queue's thread, which has the environment
// of the thread that made the queue.
class CommandQueue : public Referencing<CommandQueue> {
 public:
  ~CommandQueue();

  // Errors show the label.
  void setLabel(const host_internal::Text& label) noexcept;
  std::string label() const;

  const std::shared_ptr<Device>& device() const noexcept { return device_; }
  // Returns nullptr if memory runs out.
  Autoreleased<CommandBuffer> commandBuffer() noexcept;
  // Returns commandBuffer(): here, too, the command buffer keeps the buffers
  // that it uses alive.
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
