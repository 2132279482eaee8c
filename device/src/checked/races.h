// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Decides whether two accesses to a word conflict, and defines the cells'
// contents.

#ifndef SWITCHYARD_DEVICE_SRC_CHECKED_RACES_H_
#define SWITCHYARD_DEVICE_SRC_CHECKED_RACES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/src/checked/fences.h"
#include "switchyard/device/kernel_memory.h"

namespace switchyard::device::kernel_internal {

// Each stretch of a threadgroup between barriers has a phase number, and so
// has each dispatch of a built-in kernel. `log` describes the phases back to
// `first`, the oldest phase that can still conflict.
struct Phases {
  struct Phase {
    uint32_t dispatch;
    size_t threadgroup;  // in the order of the grid; SIZE_MAX: all of them
  };
  uint32_t first = 1;
  uint32_t next = 1;
  std::vector<Phase> log;  // starts at phase `first`

  const Phase& operator[](uint32_t phase) const { return log[phase - first]; }
  uint32_t New(uint32_t dispatch, size_t threadgroup) {
    log.push_back({dispatch, threadgroup});
    return next++;
  }
  // Later dispatches wait for all earlier work: it cannot conflict any more.
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
constexpr uint32_t kLastEpoch = 0xFFF;  // the counter stops here
constexpr uint64_t kMarks = kOtherThreads | kOtherSimdgroups | kOtherGroups;

// The meetings of a simdgroup's lanes in one phase. Each meeting begins an
// epoch. In kernel.h all simdgroups meet together, so it uses one object for
// all of them.
struct Meetings {
  // A meeting of some lanes: it orders only these lanes.
  struct Partial {
    uint32_t epoch;
    uint32_t lanes;
    bool barrier;
  };
  uint32_t now = 0;
  uint32_t reads = 0;    // reads in earlier epochs are over
  uint32_t barrier = 0;  // reads and writes in earlier epochs are over
  // The last threadgroup_barrier and simdgroup_barrier without the flag for
  // this memory: the epoch that began there, and the barrier's flags.
  struct Skipped {
    uint32_t epoch = 0;
    uint32_t flags = 0;
  };
  Skipped skipped[2];
  std::vector<Partial> partial;

  void NewEpoch() { now += now == kLastEpoch ? 0 : 1; }
};

// A special value of Cell::write: an access has touched only one half of the
// word, so each half now has a cell. As a stamp, it means other threadgroups
// in a phase that never comes, so the fast paths of kernel_memory.h do not
// apply.
constexpr uint64_t kSplit = UINT64_MAX;

// The cells of a word. Each half can have a cell, because different threads
// access neighbouring elements of two bytes.
struct WordCells {
  Cell* word;
  Cell* halves;  // the lower one and the upper one
  // The distance in bytes from a cell to its trails. The first trail has the
  // stamps of other accesses that the cell stands for; it is valid if kMarks
  // are set. At twice and three times the distance are the code addresses, of
  // the cell's accesses and of these other accesses.
  size_t trails;

  bool split() const { return word->write == kSplit; }
  uint64_t LastWrite() const {
    return split() ? std::max(halves[0].write, halves[1].write) : word->write;
  }
};

// The earlier access that an access conflicts with; `last` is 0 for no
// conflict.
struct Conflict {
  uint64_t last = 0;  // the cell's stamp
  bool was_read = false;
  uint64_t named = 0;  // one of its accesses, by another thread if possible
  const void* where = nullptr;  // the code of `named`
  size_t at = 0;                // first byte of the conflict in the word
};

// One access to a word, by the thread in the stamp.
struct WordAccess {
  uint64_t stamp;            // includes the bytes, and kAtomic for atomics
  uint32_t first;            // earlier phases are over for all threads
  const Meetings* meetings;  // of the thread's simdgroup
  const Phases& phases;
  Phases::Phase by;
  const void* where;  // null: not known
  bool places;        // true if cells keep code addresses
  // The fences of its threadgroup; null if it has none.
  const ThreadgroupFences* fences = nullptr;

  // Notes the access in its cells. If it conflicts with the access noted
  // there, replaces that one, describes it in *conflict and returns true.
  bool Check(const WordCells& cells, bool write, Conflict* conflict) const;

 private:
  enum class Relation { kOver, kSamePhase, kOwnPast, kOthers };
  bool CheckHalves(const WordCells& cells, bool write,
                   Conflict* conflict) const;
  bool CheckCell(Cell& cell, size_t trails, bool write,
                 Conflict* conflict) const;
  void NoteConflict(const uint64_t& last, size_t trails, bool read,
                    Conflict* conflict) const;
  // True if it conflicts with the last access in a cell, a read or a write.
  bool ConflictsWith(uint64_t last, bool read) const;
  void Replace(uint64_t& last, size_t trails, uint64_t by_this) const;
  void Note(uint64_t& last, size_t trails, bool read) const;
  void Merge(uint64_t& last, size_t trails, Relation relation) const;
  void Copy(const Cell& from, Cell* to, size_t trails) const;
  Relation To(uint64_t last) const;
  // True if fences order the last access, by another threadgroup, before this
  // one.
  bool IsAcquired(uint64_t last) const;
  // True if the accesses of this phase that `last` stands for are over: this
  // simdgroup made all of them, before its last barrier, or, for reads,
  // before its last simd function.
  bool Follows(uint64_t last, bool read) const;
  bool FollowsInPart(uint64_t last, bool read) const;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_RACES_H_
