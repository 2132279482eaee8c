// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The records that an encoder leaves for the queue. They are plain data, so
// an encoder needs only a few tens of nanoseconds for a dispatch, and nothing
// has to be freed afterwards.

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

// A bound piece of memory. It begins at the binding's offset in the buffer
// and is `length` bytes long.
struct Binding {
  unsigned char* data = nullptr;  // null if nothing is bound
  size_t length = 0;
  bool read_only = false;
  bool fresh = false;  // true for memory of newBuffer() in checked mode
  const Buffer* buffer = nullptr;  // null for memory of setBytes()
};

// The labels and debug groups around a dispatch.
struct EncodedPlace {
  std::string encoder;
  std::string group;  // "outer/inner"
  std::string signpost;

  bool empty() const {
    return encoder.empty() && group.empty() && signpost.empty();
  }
  // Returns the labels as text to append to an error message.
  std::string Text() const;
};

// A call of encodeWait() or encodeSignalEvent().
struct EventCommand {
  size_t before_dispatch;
  Event* event;
  uint64_t value;
  bool wait;

  void Signal() const noexcept {
    if (!wait) event->Signal(value);
  }
  // Signals the event, or waits for it if `wait` is set. Returns an error or
  // an empty string.
  std::string Run(uint64_t timeout_ms) const;
};

// The lengths given to setThreadgroupMemoryLength.
struct ThreadgroupLengths {
  size_t bytes[kMaxThreadgroupMemoryBindings] = {};
  uint32_t set = 0;  // bit i is set if index i was set, even to 0 bytes
};
static_assert(kMaxThreadgroupMemoryBindings <= 32);

struct Dispatch {
  const Pipeline* pipeline = nullptr;
  Size grid;  // counts threads if in_threads, else threadgroups
  // If this is not null, the dispatch reads its grid from here when it runs.
  const unsigned char* indirect = nullptr;
  // Null if no threadgroup memory length is set.
  const ThreadgroupLengths* local_lengths = nullptr;
  uint32_t first_binding = 0;  // an index into Commands::bindings
  uint8_t num_bindings = 0;
  bool in_threads = false;
  bool new_scope = true;  // true if the dispatch waits for all earlier ones
  bool indirect_fresh = false;  // Binding::fresh of the memory at `indirect`
  // An index into Commands::places; 0 without labels.
  uint32_t place = 0;
  uint16_t threads_per_threadgroup[3] = {};

  Size ThreadsPerThreadgroup() const {
    return Size(threads_per_threadgroup[0], threads_per_threadgroup[1],
                threads_per_threadgroup[2]);
  }
};

// A call of memoryBarrier(resources) on a concurrent encoder.
struct MemoryBarrier {
  size_t before_dispatch;
  const void* data;
  size_t length;
};

// Allocates memory that never moves, for example for the copies that
// setBytes() makes.
class Arena {
 public:
  // Returns 16-byte aligned memory; size <= kMaxSetBytesLength.
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
  // Frees all allocations but keeps the memory for reuse.
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
  size_t used_ = 0;    // number of full blocks before the current one
  size_t offset_ = 0;  // the number of bytes used in the current block
};

// Memory that useResource() or useHeap() has made reachable. Kernels may
// access it through pointers, even if it is not bound.
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
  // The first place is empty; dispatches without labels use it.
  std::vector<EncodedPlace> places;
  Arena arena;
  // The buffers and pipelines that the commands use. Each is usually stored
  // only once (see Buffer::retained_by_).
  std::vector<std::shared_ptr<const void>> retained;

  // Removes all records, releases the retained objects, and keeps the memory.
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

// Everything that Execute() needs to run a command buffer, and its outputs.
struct Execution {
  Executor& executor;
  std::vector<int32_t>& scratch;     // belongs to the queue, which reuses it
  std::vector<DispatchTime>* times;  // may be null
  CheckedMode* checked;  // belongs to the queue; null if not in checked mode
  std::vector<std::string>& warnings;
  uint64_t event_timeout_ms;
};

// Runs the dispatches in order until one fails. Returns the error or an empty
// string. Throws if memory runs out.
std::string Execute(const Commands& commands, const Execution& execution);

// The steady clock in seconds.
double Now() noexcept;

// Like printf, but returns a string.
[[gnu::format(printf, 1, 2)]] std::string Format(const char* format, ...);

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_COMMANDS_H_
