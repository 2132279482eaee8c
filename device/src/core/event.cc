// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/device/event.h"

#include <algorithm>
#include <chrono>

#include "device/src/core/queue_thread.h"

namespace switchyard::device {

Event::~Event() = default;

void Event::Signal(uint64_t value) noexcept {
  std::vector<Listener> reached;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (value <= value_) return;
    value_ = value;
    changed_.notify_all();
    // Moves the listeners that wait for higher values to the front and keeps
    // their order.
    const auto later = [value](const Listener& l) { return l.value > value; };
    const auto first =
        std::stable_partition(listeners_.begin(), listeners_.end(), later);
    try {
      reached.assign(std::make_move_iterator(first),
                     std::make_move_iterator(listeners_.end()));
      listeners_.erase(first, listeners_.end());
    } catch (...) {
      reached.clear();  // out of memory: the next signal calls the listeners
    }
  }
  const AtWork at_work;
  for (const Listener& listener : reached) {
    try {
      listener.function(value);
    } catch (...) {
      // A listener's exception cannot be reported.
    }
  }
}

bool Event::Wait(uint64_t value, uint64_t milliseconds) noexcept {
  // The longest timeout. With a longer timeout some clocks would overflow, and
  // the wait would end at once.
  constexpr uint64_t kForever = uint64_t{1} << 40;
  std::unique_lock<std::mutex> lock(mutex_);
  const std::chrono::milliseconds most(
      static_cast<int64_t>(std::min(milliseconds, kForever)));
  return changed_.wait_for(lock, most, [&] { return value_ >= value; });
}

uint64_t Event::Value() const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return value_;
}

void Event::Notify(uint64_t value, Function function) noexcept {
  uint64_t now;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    now = value_;
    if (now < value) {
      try {
        listeners_.push_back({value, std::move(function)});
      } catch (...) {
      }
      return;
    }
  }
  const AtWork at_work;
  try {
    function(now);
  } catch (...) {
  }
}

Ref<SharedEventListener> SharedEventListener::alloc() noexcept {
  try {
    return std::make_shared<SharedEventListener>();
  } catch (...) {
    return nullptr;
  }
}
Ref<SharedEventListener> SharedEventListener::init() noexcept {
  return std::static_pointer_cast<SharedEventListener>(shared_from_this());
}

void SharedEvent::notifyListener(const SharedEventListener*, uint64_t value,
                                 Notification notification) noexcept {
  if (notification == nullptr) return;
  // The captured `this` is valid: whoever signals the event keeps it alive,
  // and the listeners are destroyed with it.
  try {
    Notify(value, [this, function = std::move(notification)](uint64_t now) {
      function(this, now);
    });
  } catch (...) {
  }
}

}  // namespace switchyard::device
