// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Events. A command buffer can wait for work of other queues or of the host,
// and the host can wait for work of command buffers.

#ifndef SWITCHYARD_DEVICE_EVENT_H_
#define SWITCHYARD_DEVICE_EVENT_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "switchyard/device/foundation.h"

namespace switchyard::device {

class Device;

// An event holds a number that only grows. A command buffer sets the number
// at its encodeSignalEvent(), even if its earlier work has failed. Other
// command buffers wait at their encodeWait() until the number is large
// enough.
//
// While a command buffer waits, the thread that runs it waits too, even if
// that thread is in waitUntilCompleted(). So a command buffer cannot wait for
// work that the same thread would commit afterwards. If the thread is in a
// handler, the command buffer cannot wait for later command buffers of the
// handler's queue either. After DeviceOptions::event_timeout_ms the wait
// ends, and the command buffer has an error.
class Event : public Referencing<Event> {
 public:
  ~Event();

  // Errors show the label.
  void setLabel(const host_internal::Text& label) noexcept {
    label_.Set(label);
  }
  std::string label() const { return label_.Get(); }

 protected:
  friend class Device;
  friend struct EventCommand;  // device/src/core
  Event() = default;

  using Function = std::function<void(uint64_t value)>;
  // Sets the value, unless it is smaller than the current one.
  void Signal(uint64_t value) noexcept;
  // Waits until the event has the value. Returns false if `milliseconds` pass
  // first.
  bool Wait(uint64_t value, uint64_t milliseconds) noexcept;
  uint64_t Value() const noexcept;
  void Notify(uint64_t value, Function function) noexcept;

 private:
  struct Listener {
    uint64_t value;
    Function function;
  };
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // mutex_ guards value_ and listeners_.
  uint64_t value_ = 0;
  std::vector<Listener> listeners_;
  host_internal::Label label_;
};

// A listener has no settings, because notifications run on the thread that
// signals.
class SharedEventListener : public Referencing<SharedEventListener> {
 public:
  static Ref<SharedEventListener> alloc() noexcept;
  Ref<SharedEventListener> init() noexcept;
};

// An event that the host, too, can read, set and wait for.
class SharedEvent : public Referencing<SharedEvent, Event> {
 public:
  using Notification = std::function<void(SharedEvent* event, uint64_t value)>;

  uint64_t signaledValue() const noexcept { return Value(); }
  void setSignaledValue(uint64_t value) noexcept { Signal(value); }
  // Waits until the event has the value. Returns false if `milliseconds` pass
  // first. Kernels must not call this function.
  bool waitUntilSignaledValue(uint64_t value, uint64_t milliseconds) noexcept {
    return Wait(value, milliseconds);
  }
  // Calls `notification` once when the event reaches the value, or now if it
  // already has. The thread that signals makes the call, possibly in the
  // middle of a command buffer. `notification` must not wait for command
  // buffers. An exception that it throws is lost.
  void notifyListener(const SharedEventListener* listener, uint64_t value,
                      Notification notification) noexcept;

 private:
  friend class Device;
  SharedEvent() = default;
};

// On Metal, a fence orders encoders. Here a fence has no effect, because
// encoders run in order.
class Fence : public Referencing<Fence> {
 public:
  void setLabel(const host_internal::Text& label) noexcept {
    label_.Set(label);
  }
  std::string label() const { return label_.Get(); }

 private:
  friend class Device;
  Fence() = default;
  host_internal::Label label_;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_EVENT_H_
