// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Command buffers, which hold work for a queue and report its results.

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
  CommandBufferStatusScheduled = 3,  // the work is running
  CommandBufferStatusCompleted = 4,
  CommandBufferStatusError = 5,
};

class CommandQueue;
class Queue;  // device/src/core

// Tells when a dispatch ran, in seconds of std::chrono::steady_clock.
struct DispatchTime {
  std::string kernel;  // the kernel's name
  // The grid in threadgroups. For an indirect dispatch, this is the grid that
  // the dispatch read from its buffer.
  Size threadgroups;
  double start;          // start of the dispatch
  double end;            // end of the dispatch
  std::string encoder;   // the encoder's label
  std::string group;     // the debug groups that were open: "outer/inner"
  std::string signpost;  // the last signpost before the dispatch
};

// A list of work for a queue: encoders fill it, commit() hands it over, and
// its handlers and status report the result.
class CommandBuffer : public Referencing<CommandBuffer> {
 public:
  using CompletedHandler = std::function<void(CommandBuffer* buffer)>;
  using ScheduledHandler = CompletedHandler;

  ~CommandBuffer();
  CommandBuffer* retain() noexcept;
  CommandBuffer* autorelease() noexcept;

  // Errors show the label.
  void setLabel(const host_internal::Text& label) noexcept;
  std::string label() const;
  // A debug group encloses the encoders that are made between
  // pushDebugGroup() and popDebugGroup(). See CommandEncoder.
  void pushDebugGroup(const host_internal::Text& name) noexcept;
  void popDebugGroup() noexcept;

  // These functions make an encoder, or return nullptr if memory runs out. Make
  // one encoder at a time: end it before you make the next one, and before
  // commit().
  Autoreleased<ComputeCommandEncoder> computeCommandEncoder(
      DispatchType type = DispatchTypeSerial) noexcept;
  Autoreleased<BlitCommandEncoder> blitCommandEncoder() noexcept;

  // encodeSignalEvent() sets the event's number to `value` after the work
  // encoded so far, and encodeWait() waits until the number is at least
  // `value` (event.h). Call them only between encoders.
  void encodeSignalEvent(host_internal::Arg<Event> event,
                         uint64_t value) noexcept;
  void encodeWait(host_internal::Arg<Event> event, uint64_t value) noexcept;

  // Takes the next place in the queue, before the work is encoded in full.
  // The queue waits at this place until the buffer is committed or dropped.
  // Call it only once, and before commit().
  void enqueue() noexcept;
  // Hands the work to the queue and returns. All encoders must have ended: if
  // an encoder was dropped without endEncoding(), the call is an error.
  void commit() noexcept;
  // Returns when the work is done and the handlers have returned. Work that
  // the queue has not started yet (this buffer and earlier ones, with their
  // handlers) may run on the calling thread. A call before commit() is a
  // mistake: it returns at once, and the work will not run.
  //
  // A call from a handler of this buffer returns at once. A handler may wait
  // for later buffers, and for buffers of other queues if their handlers do
  // not wait for buffers of this queue. During such a wait, other handlers
  // may run on the same thread and call this function, too. Up to 256 calls
  // may be nested in this way; the limit exists because each call takes
  // stack. A call beyond the limit returns at once, and the command buffer
  // that it should have waited for runs later and ends with an error.
  void waitUntilCompleted() noexcept;
  // Returns when the work has begun and the scheduled handlers have returned.
  // All other rules of waitUntilCompleted() hold here too.
  void waitUntilScheduled() noexcept;
  // Adds a handler that is called before the work, on the thread that will
  // run the work. Add it before commit(). The handler must not wait for
  // command buffers. If it throws, the buffer ends with an error.
  void addScheduledHandler(ScheduledHandler handler) noexcept;
  // Adds a handler that is called after the work and before
  // waitUntilCompleted() returns. Handlers run in the order in which they
  // were added. Add them before commit(). If a handler throws, the buffer
  // ends with an error.
  void addCompletedHandler(CompletedHandler handler) noexcept;

  // Returns the state of the buffer. After misuse, such as a second commit(),
  // the state is Error instead of Completed, even if the work is done.
  CommandBufferStatus status() const noexcept;
  // Returns "kernel: argument: problem", or an empty text if there is no
  // error. Mistakes in the encoding are known before commit().
  std::string error() const;
  // These functions return when the work started and when it ended, in
  // seconds of std::chrono::steady_clock. Both return 0 until the work has
  // ended.
  double GPUStartTime() const noexcept;
  double GPUEndTime() const noexcept;
  // Once the buffer has completed, returns the times of all dispatches that
  // ran, in order. The list is empty without DeviceOptions::time_dispatches.
  std::vector<DispatchTime> dispatchTimes() const;
  // Once the buffer has completed, returns probable mistakes in its work. The
  // list is empty without DeviceOptions::check_kernels.
  std::vector<std::string> warnings() const;
  // Once the buffer has completed, returns the findings of checked mode in
  // order. error() begins with the text of the first finding, unless there
  // was another error before.
  std::vector<Finding> findings() const;
  // Once the command buffer has completed, returns the buffers that were
  // bound for writing but that kernels have not written in full. The list is
  // empty without checked mode and DeviceOptions::track_never_written. Ranges
  // are exact to two bytes.
  std::vector<NeverWritten> neverWritten() const;

 private:
  friend class BlitCommandEncoder;
  friend class CommandEncoder;
  friend class CommandQueue;
  friend class ComputeCommandEncoder;
  friend class Queue;
  struct State;
  // All references that the user holds share a Handle, which keeps the queue
  // alive.
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
