// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Events, which order the work of different queues, and of queues and host.

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

// A number that grows. A command buffer sets it at its encodeSignalEvent(),
// even if its work before that has failed. Other command buffers stop at
// their encodeWait() until the number is large enough.
//
// The thread that runs the command buffer stops with it, even if that is a
// thread in waitUntilCompleted(). So it cannot wait for work that this thread
// would commit afterwards, nor, in a handler, for later command buffers of
// the handler's queue. After DeviceOptions::event_timeout_ms the wait is an
// error of the command buffer.
class Event : public Referencing<Event> {
 public:
  ~Event();

  // Shown in errors.
  void setLabel(const host_internal::Text& label) noexcept {
    label_.Set(label);
  }
  std::string label() const { return label_.Get(); }

 protected:
  friend class Device;
  friend struct EventCommand;  // device/src/core
  Event() = default;

  using Function = std::function<void(uint64_t value)>;
  // A value smaller than the present one changes nothing.
  void Signal(uint64_t value) noexcept;
  // False if the value was not reached in time.
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
  // Guarded by mutex_.
  uint64_t value_ = 0;
  std::vector<Listener> listeners_;
  host_internal::Label label_;
};

// Has no settings, because the thread that signals calls the functions.
class SharedEventListener : public Referencing<SharedEventListener> {
 public:
  static Ref<SharedEventListener> alloc() noexcept;
  Ref<SharedEventListener> init() noexcept;
};

// An event that the host can read, set and wait for, too.
class SharedEvent : public Referencing<SharedEvent, Event> {
 public:
  using Notification = std::function<void(SharedEvent* event, uint64_t value)>;

  uint64_t signaledValue() const noexcept { return Value(); }
  void setSignaledValue(uint64_t value) noexcept { Signal(value); }
  // False if the value was not reached in time. Kernels must not call this.
  bool waitUntilSignaledValue(uint64_t value, uint64_t milliseconds) noexcept {
    return Wait(value, milliseconds);
  }
  // Calls `notification`, once, when the value is reached, which may be now:
  // on the thread that signals, possibly in the middle of a command buffer.
  // It must not wait for command buffers; an exception that it throws is
  // lost.
  void notifyListener(const SharedEventListener* listener, uint64_t value,
                      Notification notification) noexcept;

 private:
  friend class Device;
  SharedEvent() = default;
};

// Orders encoders, which run in order here anyway.
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
