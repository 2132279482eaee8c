// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Command buffers: work for a queue, and its results.

#ifndef SWITCHYARD_DEVICE_COMMAND_BUFFER_H_
#define SWITCHYARD_DEVICE_COMMAND_BUFFER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "switchyard/device/command_encoder.h"
#include "switchyard/device/findings.h"
#include "switchyard/device/threadgroup.h"

namespace switchyard::device {

enum CommandBufferStatus : uint32_t {
  CommandBufferStatusNotEnqueued = 0,
  CommandBufferStatusEnqueued = 1,
  CommandBufferStatusCommitted = 2,
  CommandBufferStatusScheduled = 3,  // running
  CommandBufferStatusCompleted = 4,
  CommandBufferStatusError = 5,
};

class CommandQueue;
class Queue;  // device/src/core

// When a dispatch ran, in seconds of std::chrono::steady_clock.
struct DispatchTime {
  std::string kernel;
  Size threadgroups;  // of an indirect dispatch: the size read
  double start;
  double end;
  std::string encoder;   // its label
  std::string group;     // the debug groups that were open: "outer/inner"
  std::string signpost;  // the last one in them
};

class CommandBuffer : public Referencing<CommandBuffer> {
 public:
  using CompletedHandler = std::function<void(CommandBuffer* buffer)>;
  using ScheduledHandler = CompletedHandler;

  ~CommandBuffer();
  CommandBuffer* retain() noexcept;
  CommandBuffer* autorelease() noexcept;

  // Shown in errors.
  void setLabel(const host_internal::Text& label) noexcept;
  std::string label() const;
  // Encloses the encoders made between the two calls. See CommandEncoder.
  void pushDebugGroup(const host_internal::Text& name) noexcept;
  void popDebugGroup() noexcept;

  // One encoder at a time: end it before the next, and before commit().
  // nullptr if memory is out.
  Autoreleased<ComputeCommandEncoder> computeCommandEncoder(
      DispatchType type = DispatchTypeSerial) noexcept;
  Autoreleased<BlitCommandEncoder> blitCommandEncoder() noexcept;

  // Called between encoders; see event.h.
  void encodeSignalEvent(host_internal::Arg<Event> event,
                         uint64_t value) noexcept;
  void encodeWait(host_internal::Arg<Event> event, uint64_t value) noexcept;

  // Takes the next place in the queue, for work that is still being encoded.
  // The queue waits until the buffer is committed or dropped. Call it once
  // only, and before commit().
  void enqueue() noexcept;
  // Hands the work to the queue and returns. All encoders must have ended: an
  // encoder that was dropped without endEncoding() makes this an error.
  void commit() noexcept;
  // Returns when the work is done and the handlers have returned. Work that
  // the queue has not started yet (this buffer and earlier ones, with their
  // handlers) may run on this thread. Called before commit(), it returns at
  // once, and the mistake keeps the work from running.
  //
  // Called in a handler of this buffer, it returns at once. A handler may
  // wait for later buffers, and for buffers of other queues if their handlers
  // do not wait for buffers of this queue. Handlers that run in the waits of
  // other handlers may wait 256 deep, because each takes stack. Deeper, the
  // wait returns at once, and its command buffer, which runs later, is an
  // error.
  void waitUntilCompleted() noexcept;
  // Returns when the work has begun and the scheduled handlers have returned;
  // otherwise like waitUntilCompleted().
  void waitUntilScheduled() noexcept;
  // Called before the work, on the thread that will run it; must be added
  // before commit(), and must not wait for command buffers. A handler that
  // throws makes the buffer an error.
  void addScheduledHandler(ScheduledHandler handler) noexcept;
  // Called after the work, in the order added, before waitUntilCompleted
  // returns; must be added before commit(). A handler that throws makes the
  // buffer an error.
  void addCompletedHandler(CompletedHandler handler) noexcept;

  // Completed turns into Error on misuse after the work, such as a second
  // commit().
  CommandBufferStatus status() const noexcept;
  // "kernel: argument: problem", empty without an error. Known before
  // commit() for mistakes in the encoding.
  std::string error() const;
  // When the work started and ended, in seconds of std::chrono::steady_clock;
  // both 0 until it has ended.
  double GPUStartTime() const noexcept;
  double GPUEndTime() const noexcept;
  // One per dispatch that ran, in order, once the buffer has completed; empty
  // without DeviceOptions::time_dispatches.
  std::vector<DispatchTime> dispatchTimes() const;
  // Probable mistakes in work that ran: known once the buffer has completed,
  // with DeviceOptions::check_kernels.
  std::vector<std::string> warnings() const;
  // The findings of checked mode in order, once the buffer has completed.
  // error() begins with the text of the first one, unless it had another
  // error before.
  std::vector<Finding> findings() const;
  // The buffers that were bound for writing and that kernels have not written
  // in full, once the command buffer has completed; in checked mode and with
  // DeviceOptions::track_never_written. Exact to two bytes.
  std::vector<NeverWritten> neverWritten() const;

 private:
  friend class BlitCommandEncoder;
  friend class CommandEncoder;
  friend class CommandQueue;
  friend class ComputeCommandEncoder;
  friend class Queue;
  struct State;
  // The user's references share this, which keeps the queue alive.
  struct Handle;
  explicit CommandBuffer(std::unique_ptr<State> state);
  template <class E, class Make>
  std::shared_ptr<E> NewEncoder(const char* call, const Make& make) noexcept;
  void EncodeEvent(const char* call, const Event* event, uint64_t value,
                   bool wait) noexcept;

  const std::unique_ptr<State> state_;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_COMMAND_BUFFER_H_
