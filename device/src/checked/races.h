// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Whether two accesses to a word conflict, and what a cell remembers of them.

#ifndef SWITCHYARD_DEVICE_SRC_CHECKED_RACES_H_
#define SWITCHYARD_DEVICE_SRC_CHECKED_RACES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/src/checked/fences.h"
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
constexpr uint64_t kMarks = kOtherThreads | kOtherSimdgroups | kOtherGroups;

// The meetings of a simdgroup's lanes in a phase. Each meeting begins an epoch.
// kernel.h, whose simdgroups all meet at once, has one for all of them.
struct Meetings {
  // A meeting of some lanes only: those are ordered, the others are not.
  struct Partial {
    uint32_t epoch;
    uint32_t lanes;
    bool barrier;
  };
  uint32_t now = 0;
  uint32_t reads = 0;    // reads of epochs before are over
  uint32_t barrier = 0;  // writes, too
  // The last threadgroup_barrier and simdgroup_barrier that was not for this
  // memory: the epoch that began there, and the barrier's flags.
  struct Skipped {
    uint32_t epoch = 0;
    uint32_t flags = 0;
  };
  Skipped skipped[2];
  std::vector<Partial> partial;

  void NewEpoch() { now += now == kLastEpoch ? 0 : 1; }
};

// In the place of Cell::write: since an access touched only one half of the
// word, each has a cell of its own. As a stamp, of other threadgroups in a
// phase that never comes: the common cases of kernel_memory.h do not apply.
constexpr uint64_t kSplit = UINT64_MAX;

// The cells of a word: neighbouring elements of two bytes are touched by
// different threads.
struct WordCells {
  Cell* word;
  Cell* halves;  // the lower one and the upper one
  // So many bytes behind a cell is one with the stamps of others: accesses that
  // the cell's stamps stand for, too, valid where kMarks say so. Twice and
  // three times as many behind it are the addresses of the code, for the first
  // and for the others.
  size_t trails;

  bool split() const { return word->write == kSplit; }
  uint64_t LastWrite() const {
    return split() ? std::max(halves[0].write, halves[1].write) : word->write;
  }
};

// The access that another conflicts with; `last` is 0 if there is none.
struct Conflict {
  uint64_t last = 0;  // as the cell has it
  bool was_read = false;
  uint64_t named = 0;  // one access of those, by another thread if it is known
  const void* where = nullptr;  // of `named`
  size_t at = 0;                // in the word: from this byte on
};

// One access to a word, by the thread of the stamp.
struct WordAccess {
  uint64_t stamp;            // with its bytes, and kAtomic if it is
  uint32_t first;            // phases before are over for everybody
  const Meetings* meetings;  // of the thread's simdgroup
  const Phases& phases;
  Phases::Phase by;
  const void* where;  // null: not known
  bool places;        // whether such addresses are kept
  // Of its threadgroup; null: of none.
  const ThreadgroupFences* fences = nullptr;

  // Notes the access in its cells, in the place of what it conflicts with.
  // Returns whether it does, and with what in *conflict.
  bool Check(const WordCells& cells, bool write, Conflict* conflict) const;

 private:
  enum class Relation { kOver, kSamePhase, kOwnPast, kOthers };
  bool CheckHalves(const WordCells& cells, bool write,
                   Conflict* conflict) const;
  bool CheckCell(Cell& cell, size_t trails, bool write,
                 Conflict* conflict) const;
  void NoteConflict(const uint64_t& last, size_t trails, bool read,
                    Conflict* conflict) const;
  // Whether it conflicts with the last access in a cell, a read or a write.
  bool ConflictsWith(uint64_t last, bool read) const;
  void Replace(uint64_t& last, size_t trails, uint64_t by_this) const;
  void Note(uint64_t& last, size_t trails, bool read) const;
  void Merge(uint64_t& last, size_t trails, Relation relation) const;
  void Copy(const Cell& from, Cell* to, size_t trails) const;
  Relation To(uint64_t last) const;
  // Whether fences order the last access, of another threadgroup, before this.
  bool IsAcquired(uint64_t last) const;
  // Whether the accesses of this phase that `last` stands for are over: all by
  // this simdgroup, and before its last simd function (reads) or barrier
  // (both).
  bool Follows(uint64_t last, bool read) const;
  bool FollowsInPart(uint64_t last, bool read) const;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_RACES_H_
