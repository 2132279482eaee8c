// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The records that an encoder leaves for the queue. They are plain data, so
// that a dispatch costs a few tens of nanoseconds to encode and nothing to
// free.

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

// A bound piece of memory: `length` bytes from the binding's offset on.
struct Binding {
  unsigned char* data = nullptr;  // null: nothing is bound
  size_t length = 0;
  bool read_only = false;
  bool fresh = false;              // memory of newBuffer() in checked mode
  const Buffer* buffer = nullptr;  // null: memory of setBytes()
};

// The labels and debug groups around a dispatch.
struct EncodedPlace {
  std::string encoder;
  std::string group;  // "outer/inner"
  std::string signpost;

  bool empty() const {
    return encoder.empty() && group.empty() && signpost.empty();
  }
  // The labels as text, to append to an error message.
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
  // Returns an error or an empty string.
  std::string Run(uint64_t timeout_ms) const;
};

// The lengths given to setThreadgroupMemoryLength.
struct ThreadgroupLengths {
  size_t bytes[kMaxThreadgroupMemoryBindings] = {};
  uint32_t set = 0;  // a bit for each index that was set, even to 0 bytes
};
static_assert(kMaxThreadgroupMemoryBindings <= 32);

struct Dispatch {
  const Pipeline* pipeline = nullptr;
  Size grid;  // threadgroups, or threads if in_threads
  // If not null, the grid is read from here.
  const unsigned char* indirect = nullptr;
  const ThreadgroupLengths* local_lengths = nullptr;  // null: no length is set
  uint32_t first_binding = 0;  // an index into Commands::bindings
  uint8_t num_bindings = 0;
  bool in_threads = false;
  bool new_scope = true;        // waits for all earlier dispatches
  bool indirect_fresh = false;  // like Binding::fresh
  uint32_t place = 0;           // an index into Commands::places; 0: no labels
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

// Memory that does not move, for example for the copies of setBytes().
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
  size_t offset_ = 0;  // in the current one
};

// Memory that useResource() or useHeap() has made reachable: dispatches may
// access it through pointers, bound or not.
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
  // The first is empty: for dispatches without labels.
  std::vector<EncodedPlace> places;
  Arena arena;
  // Buffers and pipelines, each only once: see Buffer::retained_by_.
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
  std::vector<int32_t>& scratch;     // the queue's, reused
  std::vector<DispatchTime>* times;  // may be null
  CheckedMode* checked;              // the queue's; null: not in checked mode
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
