// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Whether two accesses to a word conflict, and what a cell remembers of them.

#ifndef SWITCHYARD_SRC_DEVICE_CHECKED_RACES_H_
#define SWITCHYARD_SRC_DEVICE_CHECKED_RACES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "switchyard/device/kernel_memory.h"

namespace switchyard::device::kernel_internal {

// Every stretch of a threadgroup between barriers, and every built-in kernel's
// dispatch, has a number of its own. What it was is remembered back to `first`,
// the oldest that can still conflict.
struct Phases {
  struct Phase {
    uint32_t dispatch;
    size_t threadgroup;  // in the order of the grid; SIZE_MAX: all of them
  };
  uint32_t first = 1;
  uint32_t next = 1;
  std::vector<Phase> log;  // from `first` on

  const Phase& operator[](uint32_t phase) const { return log[phase - first]; }
  uint32_t New(uint32_t dispatch, size_t threadgroup) {
    log.push_back({dispatch, threadgroup});
    return next++;
  }
  // Dispatches from now on follow all that was.
  void NewScope() {
    log.clear();
    first = next;
  }
};

inline uint32_t PhaseOf(uint64_t stamp) {
  return static_cast<uint32_t>(stamp >> kPhaseShift);
}
inline size_t ThreadOf(uint64_t stamp) {
  return static_cast<size_t>((stamp & kThread) >> kThreadShift);
}
inline uint32_t EpochOf(uint64_t stamp) {
  return static_cast<uint32_t>((stamp & kEpoch) >> kEpochShift);
}
constexpr uint32_t kLastEpoch = 0xFFF;  // the counter stays there

// One access to a word, by the thread of the stamp.
struct WordAccess {
  uint64_t stamp;          // with its bytes, and kAtomic if it is
  uint32_t first;          // phases before are over for everybody
  uint32_t barrier_epoch;  // of the last simdgroup_barrier()
  const Phases& phases;
  Phases::Phase by;

  // With the last access in a cell, which was a read or a write.
  bool ConflictsWith(uint64_t last, bool read) const;
  void Note(uint64_t& last, bool read) const;

 private:
  enum class Relation { kOver, kSamePhase, kOwnPast, kOthers };
  Relation To(uint64_t last) const;
  // Whether the accesses of this phase that `last` stands for are over: all by
  // this simdgroup, and before its last simd function (reads) or barrier
  // (both).
  bool Follows(uint64_t last, bool read) const;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_SRC_DEVICE_CHECKED_RACES_H_
