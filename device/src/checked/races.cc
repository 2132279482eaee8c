// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/checked/races.h"

#include "switchyard/device/kernel_threads.h"

namespace switchyard::device::kernel_internal {
namespace {

// Returns a trail (see WordCells::trails) of a cell's stamp. It lies `trails`
// bytes behind the stamp.
uint64_t& Trail(uint64_t& last, size_t trails) {
  return *reinterpret_cast<uint64_t*>(reinterpret_cast<uintptr_t>(&last) +
                                      trails);
}
const uint64_t& Trail(const uint64_t& last, size_t trails) {
  return *reinterpret_cast<const uint64_t*>(reinterpret_cast<uintptr_t>(&last) +
                                            trails);
}
uint64_t AsBits(const void* where) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(where));
}

}  // namespace

// Every access runs this function and the next few functions; few accesses
// need the functions after them.
WordAccess::Relation WordAccess::To(uint64_t last) const {
  const uint32_t phase = PhaseOf(last);
  if (phase < first) return Relation::kOver;
  if (phase == PhaseOf(stamp)) return Relation::kSamePhase;
  const Phases::Phase& other = phases[phase];
  return other.dispatch == by.dispatch && other.threadgroup == by.threadgroup
             ? Relation::kOwnPast
             : Relation::kOthers;
}

inline bool WordAccess::Follows(uint64_t last, bool read) const {
  if ((last & kOtherSimdgroups) != 0 ||
      ThreadOf(last) / kSimdWidth != ThreadOf(stamp) / kSimdWidth) {
    return false;
  }
  const uint32_t epoch = EpochOf(last);
  return epoch < meetings->barrier ||
         (read && (epoch < meetings->reads || epoch == kLastEpoch)) ||
         (!meetings->partial.empty() && FollowsInPart(last, read));
}

bool WordAccess::IsAcquired(uint64_t last) const {
  if (fences == nullptr || (last & kOtherGroups) != 0) return false;
  const Phases::Phase& other = phases[PhaseOf(last)];
  return other.dispatch == by.dispatch &&
         fences->Orders(ThreadOf(stamp), other.threadgroup, PhaseOf(last),
                        ThreadOf(last),
                        (last & (kOtherThreads | kOtherSimdgroups)) != 0);
}

inline bool WordAccess::ConflictsWith(uint64_t last, bool read) const {
  const Relation relation = To(last);
  if (relation == Relation::kOver || (last & stamp & kAllBytes) == 0 ||
      (last & stamp & kAtomic) != 0) {
    return false;
  }
  if ((last & kOtherGroups) != 0) return true;
  if (relation == Relation::kOthers) return !IsAcquired(last);
  if (relation == Relation::kOwnPast || Follows(last, read)) return false;
  return (last & (kOtherThreads | kOtherSimdgroups)) != 0 ||
         ThreadOf(last) != ThreadOf(stamp);
}

inline void WordAccess::Replace(uint64_t& last, size_t trails,
                                uint64_t by_this) const {
  last = by_this;
  if (places) Trail(last, 2 * trails) = AsBits(where);
}

inline void WordAccess::Note(uint64_t& last, size_t trails, bool read) const {
  const Relation relation = To(last);
  // If the two accesses touch different bytes of the half, the cell keeps
  // only the later one.
  if (relation == Relation::kOver || (last & stamp & kAllBytes) == 0 ||
      (relation == Relation::kOthers && IsAcquired(last))) {
    Replace(last, trails, stamp);
  } else if (relation == Relation::kOwnPast ||
             (relation == Relation::kSamePhase && Follows(last, read))) {
    Replace(last, trails, stamp | (last & kOtherGroups));
  } else {
    Merge(last, trails, relation);
  }
}

inline bool WordAccess::CheckCell(Cell& cell, size_t trails, bool write,
                                  Conflict* conflict) const {
  uint64_t& last = write ? cell.write : cell.read;
  const bool with_write = ConflictsWith(cell.write, false);
  if (with_write || (write && ConflictsWith(cell.read, true))) {
    NoteConflict(with_write ? cell.write : cell.read, trails, !with_write,
                 conflict);
    Replace(last, trails, stamp);
    return true;
  }
  Note(last, trails, !write);
  return false;
}

bool WordAccess::Check(const WordCells& cells, bool write,
                       Conflict* conflict) const {
  constexpr uint64_t kHalf = uint64_t{3} << kBytesShift;
  const bool both = (stamp & kHalf) != 0 && (stamp & kHalf << 2) != 0;
  return both && !cells.split()
             ? CheckCell(*cells.word, cells.trails, write, conflict)
             : CheckHalves(cells, write, conflict);
}

bool WordAccess::CheckHalves(const WordCells& cells, bool write,
                             Conflict* conflict) const {
  constexpr uint64_t kHalves[] = {uint64_t{3} << kBytesShift,
                                  uint64_t{12} << kBytesShift};
  if (!cells.split()) {
    Copy(*cells.word, &cells.halves[0], cells.trails);
    Copy(*cells.word, &cells.halves[1], cells.trails);
    cells.word->write = kSplit;
  }
  if ((stamp & kHalves[1]) == 0) {
    return CheckCell(cells.halves[0], cells.trails, write, conflict);
  }
  if ((stamp & kHalves[0]) == 0) {
    const bool found =
        CheckCell(cells.halves[1], cells.trails, write, conflict);
    conflict->at = 2;
    return found;
  }
  bool found = CheckCell(cells.halves[1], cells.trails, write, conflict);
  conflict->at = 2;
  if (CheckCell(cells.halves[0], cells.trails, write, conflict)) {
    conflict->at = 0;
    found = true;
  }
  // If the cells of both halves agree, one cell for the whole word is enough
  // again. It keeps the phase and the bytes of the last write, because they
  // show which bytes were written.
  const Cell &low = cells.halves[0], &high = cells.halves[1];
  const auto over = [this](uint64_t a, uint64_t b) {
    return To(a) == Relation::kOver && To(b) == Relation::kOver;
  };
  if ((low.write == high.write ||
       (over(low.write, high.write) &&
        PhaseOf(low.write) == PhaseOf(high.write))) &&
      (low.read == high.read || over(low.read, high.read))) {
    Copy(low, cells.word, cells.trails);
    cells.word->write |= high.write & kAllBytes;
  }
  return found;
}

inline void WordAccess::Copy(const Cell& from, Cell* to, size_t trails) const {
  *to = from;
  const bool others = ((from.write | from.read) & kMarks) != 0;
  for (size_t trail = 1; trail < 4; ++trail) {
    if (((trail & 1) != 0 && !others) || (trail > 1 && !places)) continue;
    Trail(to->write, trail * trails) = Trail(from.write, trail * trails);
    Trail(to->read, trail * trails) = Trail(from.read, trail * trails);
  }
}

void WordAccess::NoteConflict(const uint64_t& last, size_t trails, bool read,
                              Conflict* conflict) const {
  *conflict = Conflict();
  conflict->last = conflict->named = last;
  conflict->was_read = read;
  size_t trail = 2 * trails;
  if ((last & kMarks) != 0 && !ConflictsWith(last & ~kMarks, read)) {
    const uint64_t other = Trail(last, trails);
    if (ConflictsWith(other & ~kMarks, read)) {
      conflict->named = other;
      trail = 3 * trails;
    }
  }
  if (places) {
    conflict->where = reinterpret_cast<const void*>(
        static_cast<uintptr_t>(Trail(last, trail)));
  }
}

bool WordAccess::FollowsInPart(uint64_t last, bool read) const {
  if ((last & kOtherThreads) != 0) return false;
  const uint32_t lanes = uint32_t{1} << ThreadOf(last) % kSimdWidth |
                         uint32_t{1} << ThreadOf(stamp) % kSimdWidth;
  for (const Meetings::Partial& partial : meetings->partial) {
    if (partial.epoch > EpochOf(last) && (partial.lanes & lanes) == lanes &&
        (read || partial.barrier)) {
      return true;
    }
  }
  return false;
}

// Merges this access into the cell's stamp. The stamp goes on standing for
// earlier accesses, because later accesses may still conflict with them.
void WordAccess::Merge(uint64_t& last, size_t trails, Relation relation) const {
  const bool same_thread = ThreadOf(last) == ThreadOf(stamp);
  uint64_t marks = last & kMarks;
  if (relation == Relation::kOthers) {
    marks |= kOtherGroups;
  } else if (!same_thread) {
    marks |= ThreadOf(last) / kSimdWidth == ThreadOf(stamp) / kSimdWidth
                 ? kOtherThreads
                 : kOtherSimdgroups;
  }
  // A cell can name only one access, and keeps the name of the first. There
  // is one exception: if the first was atomic and this access is not, the
  // cell names this access, because later atomic accesses conflict only with
  // this one.
  const bool rename = (last & kAtomic) != 0 && (stamp & kAtomic) == 0;
  const bool is_named =
      rename || (same_thread && relation == Relation::kSamePhase);
  const uint64_t before = last;
  constexpr uint64_t kNamed = ~(kAtomic | kAllBytes | kMarks);
  last = ((is_named ? stamp : before) & kNamed) | marks |
         (before & stamp & kAtomic) | ((before | stamp) & kAllBytes);
  // A cell gets a new mark at the first access by another thread, simdgroup or
  // threadgroup. The cell names either the earlier access or this access, so
  // the first trail stores the stamp of the other access. NoteConflict()
  // reports the access in the trail if the access that the cell names does not
  // conflict, for example because the same thread made it.
  if ((marks & ~before) != 0) {
    Trail(last, trails) = is_named ? before : stamp;
    if (places) {
      Trail(last, 3 * trails) =
          is_named ? Trail(last, 2 * trails) : AsBits(where);
    }
  }
  if (places && is_named) Trail(last, 2 * trails) = AsBits(where);
}

}  // namespace switchyard::device::kernel_internal
