// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Implements CheckedFibers (checked_fibers.h) for a threadgroup that runs its
// threads on fibers.

#include <cstring>

#include "device/src/checked/checked_threadgroup.h"

namespace switchyard::device {

CheckedFibers& CheckedFibers::From(const ThreadgroupContext& context) {
  return kernel_internal::CheckedThreadgroup::From(context);
}

namespace kernel_internal {

void CheckedThreadgroup::Begin(size_t threads, const Places* places) {
  fibers_ = threads;
  for (size_t i = 0; i < Simdgroups(); ++i) {
    device_meetings_[i] = local_meetings_[i] = Meetings();
  }
  checker_.SetPlaces(places);
  SwitchTo(0);
}

const uint16_t* CheckedThreadgroup::Order() { return OrderOfThreads(fibers_); }

void CheckedThreadgroup::SwitchTo(size_t thread) {
  SetThread(thread);
  SetEpoch(device, device_meetings_[thread / kSimdWidth]);
  SetEpoch(local, local_meetings_[thread / kSimdWidth]);
}

void CheckedThreadgroup::Describe(const View& view, const char* name,
                                  size_t element_bytes) {
  // This const_cast is allowed, because the view belongs to this threadgroup.
  View& own = const_cast<View&>(view);
  own.name = name;
  own.element = element_bytes;
}

void CheckedThreadgroup::Access(const View& view, ptrdiff_t offset, size_t size,
                                uint32_t kind, const void* code) {
  if (TryFastAccess(view, offset, size, kind, code)) return;
  where = code;
  Check(view, offset, size, kind);
  if ((kind & kAtomically) != 0 && view.kind == kBufferView) {
    fences_.Atomic(checker_.fences(),
                   reinterpret_cast<uintptr_t>(view.data + offset), kind,
                   ThreadOf(device.stamp), fibers_);
  }
}

void CheckedThreadgroup::Fence(uint32_t kind) {
  fences_.Fence(kind, ThreadOf(device.stamp), PhaseOf(device.stamp));
}

// The fast path of Access() for accesses that are not atomic, and that touch
// only whole words or one half of a word. Always notes the code's address,
// although only kernels with source places need it. Returns false if a part of
// the access needs the slow path. Earlier parts are then already noted.
bool CheckedThreadgroup::TryFastAccess(const View& view, ptrdiff_t offset,
                                       size_t size, uint32_t kind,
                                       const void* code) {
  const uintptr_t begin =
      reinterpret_cast<uintptr_t>(view.data) + static_cast<uintptr_t>(offset);
  if (offset < 0 || size > view.length ||
      static_cast<size_t>(offset) > view.length - size ||
      (kind & kAtomically) != 0 || pending_.view != nullptr ||
      checker_.list_is_full()) {
    return false;
  }
  if (size == 2 && begin % 2 == 0) {
    return TryFastAccessOfHalf(view, begin, kind, code);
  }
  if ((begin | size) % 4 != 0) return false;
  for (uintptr_t address = begin; address < begin + size; address += 4) {
    uint32_t value;
    std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof(value));
    if (((kind & kReads) != 0 && value == kNeverWritten) ||
        !TryFastNote(view, &view.CellAt(address), kAllBytes, kind, code)) {
      return false;
    }
  }
  return true;
}

bool CheckedThreadgroup::TryFastAccessOfHalf(const View& view,
                                             uintptr_t address, uint32_t kind,
                                             const void* code) {
  if (view.CellAt(address).write != kSplit) return false;
  const uint64_t bytes = uint64_t{3} << (kBytesShift + address % 4);
  Cell* const cell =
      reinterpret_cast<Cell*>(view.halves + address / 2 * sizeof(Cell));
  if ((kind & kReads) != 0 && view.fresh) {
    if (view.kind == kBufferView) {
      uint32_t word;
      std::memcpy(&word, reinterpret_cast<const void*>(address & ~uintptr_t{3}),
                  sizeof(word));
      if (word == kNeverWritten) return false;
    } else if (PhaseOf(cell->write) < first_phase_ ||
               (cell->write & bytes) != bytes) {
      return false;
    }
  }
  return TryFastNote(view, cell, bytes, kind, code);
}

inline bool CheckedThreadgroup::TryFastNote(const View& view, Cell* cell,
                                            uint64_t bytes, uint32_t kind,
                                            const void* code) {
  const Space& space = *view.space;
  const uint64_t stamp = (space.stamp & ~kAllBytes) | bytes;
  if (!IsBehind(cell->write, space)) return false;
  uint64_t* last = &cell->write;
  if ((kind & kWrites) != 0) {
    if (!IsBehind(cell->read, space)) return false;
  } else {
    last = &cell->read;
    if (*last != stamp && *last >= space.first) {
      // True if the cell need not change, because *last covers the bytes of
      // this read and has the mark `others`. The mark says that *last stands
      // for reads by several threads.
      const auto stand_for = [&](uint64_t others) {
        return (*last & (others | kAtomic)) == others && (~*last & bytes) == 0;
      };
      if (stand_for(kOtherGroups)) return true;
      const uint64_t change = *last ^ stamp;
      if ((change >> kPhaseShift) == 0) {
        constexpr uint64_t kSimdgroup = uint64_t{0x3E0} << kThreadShift;
        return stand_for(kOtherSimdgroups) ||
               (stand_for(kOtherThreads) &&
                (change & (kSimdgroup | kEpoch)) == 0);
      }
      if (*last < space.others || (*last & kOtherGroups) != 0) return false;
    }
  }
  *last = stamp;
  *reinterpret_cast<uint64_t*>(reinterpret_cast<uintptr_t>(last) +
                               2 * view.trails) =
      reinterpret_cast<uintptr_t>(code);
  return true;
}

void CheckedThreadgroup::ThreadgroupBarrier(uint32_t flags) {
  SettleOrEnd();
  TakeTurns();
  all_waits_ = 0;
  NewPhase(flags);
  fences_.Barrier();
}

bool CheckedThreadgroup::GiveWay(size_t accesses) {
  SettleOrEnd();
  if (checker_.seed() == 0) return (all_waits_ += accesses) < kMostWaits;
  waits_ = accesses;
  TakeTurns();
  return !waits_ended_;
}

void CheckedThreadgroup::SimdgroupBarrier(size_t simdgroup, uint32_t lanes,
                                          uint32_t flags) {
  Settle();
  Meet(simdgroup, lanes, true, flags);
  if (lanes == UINT32_MAX) fences_.Meet(simdgroup);
}

void CheckedThreadgroup::SimdFunction(size_t simdgroup, uint32_t lanes) {
  Settle();
  Meet(simdgroup, lanes, false, 0);
  if (lanes == UINT32_MAX) fences_.Meet(simdgroup);
}

void CheckedThreadgroup::Report(FindingKind kind, size_t thread,
                                const void* code, const void* other,
                                const std::string& text,
                                const std::string& help) {
  Settle();
  Finding finding;
  finding.kind = kind;
  finding.thread = thread;
  const FindingList::Key key = checker_.KeyOf(kind, code, 0);
  if (checker_.list().Seen(key, other)) {
    if (checker_.list_is_full()) ThrowEnd();
    return;
  }
  const Checker::Other there = {checker_.dispatch(), other};
  finding.where = checker_.PlaceOf(checker_.dispatch(), code);
  finding.other = checker_.PlaceOf(there);
  finding.text = Who(thread) + ": " + text;
  finding.help = help;
  Note(key, there, std::move(finding), true);
}

void CheckedThreadgroup::EndThreadgroup(FindingKind kind, size_t thread,
                                        const void* code, const void* other,
                                        const std::string& text,
                                        const std::string& help) {
  Report(kind, thread, code, other, text, help);
  checker_.NoteEnd();
  ThrowEnd();
}

}  // namespace kernel_internal
}  // namespace switchyard::device
