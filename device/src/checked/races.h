// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Decides whether two accesses to a word conflict, and defines the contents
// of the cells that record accesses.

#ifndef SWITCHYARD_DEVICE_SRC_CHECKED_RACES_H_
#define SWITCHYARD_DEVICE_SRC_CHECKED_RACES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/src/checked/fences.h"
#include "switchyard/device/kernel_memory.h"

namespace switchyard::device::kernel_internal {

// Numbers the phases. A phase is the work of a threadgroup from one barrier
// to the next, or a dispatch of a built-in kernel. `log` describes the phases
// that can still conflict; the oldest of these is `first`.
struct Phases {
  struct Phase {
    uint32_t dispatch;
    size_t threadgroup;  // index in the grid; SIZE_MAX for all threadgroups
  };
  uint32_t first = 1;
  uint32_t next = 1;
  std::vector<Phase> log;  // log[0] is phase `first`

  const Phase& operator[](uint32_t phase) const { return log[phase - first]; }
  uint32_t New(uint32_t dispatch, size_t threadgroup) {
    log.push_back({dispatch, threadgroup});
    return next++;
  }
  // Call this when later dispatches wait for all earlier work, so that no
  // earlier phase can conflict any more.
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
constexpr uint32_t kLastEpoch = 0xFFF;  // epochs are counted up to this value
constexpr uint64_t kMarks = kOtherThreads | kOtherSimdgroups | kOtherGroups;

// The meetings of a simdgroup's lanes in one phase. Each meeting begins an
// epoch. In kernels of kernel.h all simdgroups meet together, so they share
// one object.
struct Meetings {
  // A meeting of some of the lanes. It orders only the accesses of these
  // lanes.
  struct Partial {
    uint32_t epoch;
    uint32_t lanes;
    bool barrier;
  };
  uint32_t now = 0;  // the current epoch
  // The simdgroup's next accesses cannot conflict with its own reads in epochs
  // below `reads`, nor with any of its own accesses in epochs below `barrier`.
  uint32_t reads = 0;
  uint32_t barrier = 0;
  // A barrier without the flag for this memory: the epoch that began at the
  // barrier, and the barrier's flags. skipped[0] is the last
  // threadgroup_barrier of this kind, skipped[1] the last simdgroup_barrier.
  struct Skipped {
    uint32_t epoch = 0;
    uint32_t flags = 0;
  };
  Skipped skipped[2];
  std::vector<Partial> partial;

  void NewEpoch() { now += now == kLastEpoch ? 0 : 1; }
};

// A special value of Cell::write. It says that an access has touched only one
// half of the word, so each half now has its own cell. For the fast paths of
// kernel_memory.h, the value looks like an access by another threadgroup in a
// phase that never comes. So they leave the word to the slow path.
constexpr uint64_t kSplit = UINT64_MAX;

// The cells of a word. Each half can have its own cell, because different
// threads access neighbouring elements of two bytes.
struct WordCells {
  Cell* word;
  Cell* halves;  // the cell of the lower half, then of the upper half
  // The distance in bytes from a cell to its first trail. Trails record more
  // about the accesses of the cell:
  // * The first has the stamps of other accesses that the cell stands for. It
  //   is valid if one of kMarks is set.
  // * The second, at twice the distance, has the code addresses of the accesses
  //   that the cell names.
  // * The third, at three times the distance, has the code addresses of the
  //   accesses in the first trail.
  size_t trails;

  bool split() const { return word->write == kSplit; }
  uint64_t LastWrite() const {
    return split() ? std::max(halves[0].write, halves[1].write) : word->write;
  }
};

// Describes a conflict of an access with an earlier access. `last` is 0 if no
// earlier access conflicts.
struct Conflict {
  uint64_t last = 0;  // the stamp in the cell
  bool was_read = false;
  // The stamp of the access that the report names. The cell may stand for
  // several accesses; an access by another thread is preferred.
  uint64_t named = 0;
  const void* where = nullptr;  // the code address of the access `named`
  size_t at = 0;                // the first byte in the word that conflicts
};

// One access to a word. The stamp names the thread.
struct WordAccess {
  uint64_t stamp;  // includes the bytes, and kAtomic for an atomic access
  uint32_t first;  // phases before this one are over for all threads
  const Meetings* meetings;  // the meetings of the thread's simdgroup
  const Phases& phases;
  Phases::Phase by;
  const void* where;  // the address of the code; null if not known
  bool places;        // true if cells keep code addresses
  // The fences of the thread's threadgroup; null if it has none.
  const ThreadgroupFences* fences = nullptr;

  // Notes the access in the word's cells. If it conflicts with an earlier
  // access in a cell, describes the conflict in *conflict, replaces the
  // earlier access, and returns true.
  bool Check(const WordCells& cells, bool write, Conflict* conflict) const;

 private:
  enum class Relation { kOver, kSamePhase, kOwnPast, kOthers };
  bool CheckHalves(const WordCells& cells, bool write,
                   Conflict* conflict) const;
  bool CheckCell(Cell& cell, size_t trails, bool write,
                 Conflict* conflict) const;
  void NoteConflict(const uint64_t& last, size_t trails, bool read,
                    Conflict* conflict) const;
  // True if this access conflicts with the last access in a cell. `read` says
  // whether that last access was a read.
  bool ConflictsWith(uint64_t last, bool read) const;
  void Replace(uint64_t& last, size_t trails, uint64_t by_this) const;
  void Note(uint64_t& last, size_t trails, bool read) const;
  void Merge(uint64_t& last, size_t trails, Relation relation) const;
  void Copy(const Cell& from, Cell* to, size_t trails) const;
  Relation To(uint64_t last) const;
  // True if fences order the last access, which another threadgroup made,
  // before this access.
  bool IsAcquired(uint64_t last) const;
  // True if this access comes after all accesses that `last` stands for. `last`
  // must be in this phase. The result is true if this simdgroup made these
  // accesses before its last barrier. For reads it is also true if they were
  // made before the last simd function.
  bool Follows(uint64_t last, bool read) const;
  bool FollowsInPart(uint64_t last, bool read) const;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_RACES_H_
