// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/device/checked/races.h"

#include "switchyard/device/kernel_threads.h"

namespace switchyard::device::kernel_internal {

WordAccess::Relation WordAccess::To(uint64_t last) const {
  const uint32_t phase = PhaseOf(last);
  if (phase < first) return Relation::kOver;
  if (phase == PhaseOf(stamp)) return Relation::kSamePhase;
  const Phases::Phase& other = phases[phase];
  return other.dispatch == by.dispatch && other.threadgroup == by.threadgroup
             ? Relation::kOwnPast
             : Relation::kOthers;
}

bool WordAccess::Follows(uint64_t last, bool read) const {
  if ((last & kOtherSimdgroups) != 0 ||
      ThreadOf(last) / kSimdWidth != ThreadOf(stamp) / kSimdWidth) {
    return false;
  }
  const uint32_t epoch = EpochOf(last);
  return epoch < barrier_epoch ||
         (read && (epoch < EpochOf(stamp) || epoch == kLastEpoch));
}

bool WordAccess::ConflictsWith(uint64_t last, bool read) const {
  const Relation relation = To(last);
  if (relation == Relation::kOver || (last & stamp & kAllBytes) == 0 ||
      (last & stamp & kAtomic) != 0) {
    return false;
  }
  if ((last & kOtherGroups) != 0 || relation == Relation::kOthers) return true;
  if (relation == Relation::kOwnPast || Follows(last, read)) return false;
  return (last & (kOtherThreads | kOtherSimdgroups)) != 0 ||
         ThreadOf(last) != ThreadOf(stamp);
}

void WordAccess::Note(uint64_t& last, bool read) const {
  const Relation relation = To(last);
  if (relation == Relation::kOver) {
    last = stamp;
    return;
  }
  if ((last & stamp & kAllBytes) == 0) {
    // Other bytes of the same word: only the later access is remembered.
    last = stamp;
    return;
  }
  if (relation == Relation::kOwnPast ||
      (relation == Relation::kSamePhase && Follows(last, read))) {
    last = stamp | (last & kOtherGroups);
    return;
  }
  const bool same_thread = ThreadOf(last) == ThreadOf(stamp);
  uint64_t marks = last & (kOtherThreads | kOtherSimdgroups | kOtherGroups);
  if (relation == Relation::kOthers) {
    marks |= kOtherGroups;
  } else if (!same_thread) {
    marks |= ThreadOf(last) / kSimdWidth == ThreadOf(stamp) / kSimdWidth
                 ? kOtherThreads
                 : kOtherSimdgroups;
  }
  // A cell has room to name one access and keeps the first; unless that was
  // atomic and this is not, so that later atomics conflict with this one only.
  const bool rename = (last & kAtomic) != 0 && (stamp & kAtomic) == 0;
  const uint64_t named =
      rename || (same_thread && relation == Relation::kSamePhase) ? stamp
                                                                  : last;
  const uint64_t kNamed =
      ~(kAtomic | kAllBytes | kOtherThreads | kOtherSimdgroups | kOtherGroups);
  last = (named & kNamed) | marks | (last & stamp & kAtomic) |
         ((last | stamp) & kAllBytes);
}

}  // namespace switchyard::device::kernel_internal
