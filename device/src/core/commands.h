// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The records that an encoder leaves for the queue: plain ones, so that a
// dispatch costs a few tens of nanoseconds to encode and nothing to free.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_COMMANDS_H_
#define SWITCHYARD_DEVICE_SRC_CORE_COMMANDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "switchyard/device/device.h"

namespace switchyard::device {

class CheckedMode;

// A binding: `length` bytes from its offset on.
struct Binding {
  unsigned char* data = nullptr;  // null: nothing is bound
  size_t length = 0;
  bool read_only = false;
  bool fresh = false;              // from newBuffer(), in checked mode
  const Buffer* buffer = nullptr;  // null: of setBytes
};

// The labels and debug groups around a dispatch.
struct EncodedPlace {
  std::string encoder;
  std::string group;  // "outer/inner"
  std::string signpost;

  bool empty() const {
    return encoder.empty() && group.empty() && signpost.empty();
  }
  // Behind an error.
  std::string Text() const;
};

// encodeWait() or encodeSignalEvent().
struct EventCommand {
  size_t before_dispatch;
  Event* event;
  uint64_t value;
  bool wait;

  void Signal() const noexcept {
    if (!wait) event->Signal(value);
  }
  // Returns an error or an empty text.
  std::string Run(uint64_t timeout_ms) const;
};

// The lengths that setThreadgroupMemoryLength has set.
struct ThreadgroupLengths {
  size_t bytes[kMaxThreadgroupMemoryBindings] = {};
  uint32_t set = 0;  // by index: to 0 bytes it may be
};
static_assert(kMaxThreadgroupMemoryBindings <= 32);

struct Dispatch {
  const Pipeline* pipeline = nullptr;
  Size grid;  // threadgroups, or threads if in_threads
  const unsigned char* indirect = nullptr;  // where the grid is read instead
  const ThreadgroupLengths* local_lengths = nullptr;  // null: none is set
  uint32_t first_binding = 0;                         // in Commands::bindings
  uint8_t num_bindings = 0;
  bool in_threads = false;
  bool new_scope = true;        // after all dispatches before
  bool indirect_fresh = false;  // as Binding's
  uint32_t place = 0;           // in Commands::places; 0: none
  uint16_t threads_per_threadgroup[3] = {};

  Size ThreadsPerThreadgroup() const {
    return Size(threads_per_threadgroup[0], threads_per_threadgroup[1],
                threads_per_threadgroup[2]);
  }
};

// memoryBarrier(resources) of a concurrent encoder.
struct MemoryBarrier {
  size_t before_dispatch;
  const void* data;
  size_t length;
};

// Memory that does not move, for setBytes and the like.
class Arena {
 public:
  // 16-byte aligned; size <= kMaxSetBytesLength.
  unsigned char* Allocate(size_t size) {
    size = (size + 15) & ~size_t{15};
    if (used_ == blocks_.size() || size > sizeof(Block) - offset_) {
      if (used_ != blocks_.size()) ++used_;
      if (used_ == blocks_.size()) blocks_.push_back(std::make_unique<Block>());
      offset_ = 0;
    }
    unsigned char* const result = blocks_[used_]->bytes + offset_;
    offset_ += size;
    return result;
  }
  // Forgets all, and keeps the memory.
  void Clear() {
    used_ = 0;
    offset_ = 0;
  }
  size_t Capacity() const { return blocks_.size() * sizeof(Block); }

 private:
  struct Block {
    alignas(16) unsigned char bytes[4 * kMaxSetBytesLength];
  };
  std::vector<std::unique_ptr<Block>> blocks_;
  size_t used_ = 0;    // full ones before the current one
  size_t offset_ = 0;  // in the current one
};

// Memory that dispatches may reach through pointers, bound or not: what
// useResource() and useHeap() name.
struct Resident {
  const void* data;
  size_t length;
  size_t first_dispatch;
};

struct Commands {
  std::vector<Dispatch> dispatches;
  std::vector<Binding> bindings;
  std::vector<MemoryBarrier> barriers;
  std::vector<Resident> residents;
  std::vector<EventCommand> events;
  std::vector<EncodedPlace> places;  // the first is of those without any
  Arena arena;
  // Buffers and pipelines, each once: see Buffer::retained_by_.
  std::vector<std::shared_ptr<const void>> retained;

  // Forgets all, lets go of the retained, and keeps the memory.
  void Clear() {
    dispatches.clear();
    bindings.clear();
    barriers.clear();
    residents.clear();
    events.clear();
    places.clear();
    arena.Clear();
    retained.clear();
  }
  size_t Capacity() const {
    return dispatches.capacity() * sizeof(Dispatch) +
           bindings.capacity() * sizeof(Binding) +
           barriers.capacity() * sizeof(MemoryBarrier) +
           residents.capacity() * sizeof(Resident) +
           events.capacity() * sizeof(EventCommand) +
           places.capacity() * sizeof(EncodedPlace) + arena.Capacity() +
           retained.capacity() * sizeof(retained[0]);
  }
};

// The means to run a command buffer, and the places for its results.
struct Execution {
  Executor& executor;
  std::vector<int32_t>& scratch;     // the queue's, reused
  std::vector<DispatchTime>* times;  // may be null
  CheckedMode* checked;              // the queue's; null: nothing is checked
  std::vector<std::string>& warnings;
  uint64_t event_timeout_ms;
};

// Runs the dispatches in order, up to the first that fails; returns its error
// or an empty text. Throws when memory is out.
std::string Execute(const Commands& commands, const Execution& execution);

// In seconds of the steady clock.
double Now() noexcept;

// printf to a string.
[[gnu::format(printf, 1, 2)]] std::string Format(const char* format, ...);

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_COMMANDS_H_
