// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Barriers and simd functions: threads of a threadgroup meet in them.

#include <algorithm>

#include "device/src/checked/checked_threadgroup.h"

namespace switchyard::device::kernel_internal {
namespace {

// An exception that unwinds the stack of a cancelled threadgroup.
struct Cancelled {};

constexpr uint32_t kDevice = static_cast<uint32_t>(mem_flags::mem_device);
constexpr uint32_t kLocal = static_cast<uint32_t>(mem_flags::mem_threadgroup);

}  // namespace

void CheckedThreadgroup::NewPhase(uint32_t flags) {
  const uint64_t stamp =
      uint64_t{checker_.phases().New(checker_.dispatch(), index_)}
          << kPhaseShift |
      kAllBytes;
  const size_t count = fibers_ == 0 ? 1 : Simdgroups();
  const auto meet = [&](Space& space, Meetings* meetings, uint32_t flag) {
    for (size_t i = 0; i < count; ++i) {
      Meetings& m = meetings[i];
      if ((flags & flag) != 0) {
        m = Meetings();
      } else {
        m.NewEpoch();
        m.skipped[0] = {m.now, flags};
      }
    }
    if ((flags & flag) != 0) {
      space.stamp = stamp;
    } else {
      SetEpoch(space, meetings[0]);
    }
  };
  meet(device, device_meetings_, kDevice);
  meet(local, local_meetings_, kLocal);
  if ((flags & kLocal) != 0) {
    // No other threadgroup uses threadgroup memory, so all its earlier phases
    // are over.
    local.first = local.others = uint64_t{PhaseOf(stamp)} << kPhaseShift;
  }
  SetThread(0);
}

void CheckedThreadgroup::Meet(size_t meetings, uint32_t lanes, bool barrier,
                              uint32_t flags) {
  const auto meet = [&](Space& space, Meetings& m, uint32_t flag) {
    m.NewEpoch();
    const bool is_barrier = barrier && (flags & flag) != 0;
    if (lanes != UINT32_MAX) {
      m.partial.push_back({m.now, lanes, is_barrier});
    } else {
      m.reads = m.now;
      if (is_barrier) m.barrier = m.now;
    }
    if (barrier && !is_barrier) m.skipped[1] = {m.now, flags};
    SetEpoch(space, m);
  };
  meet(device, device_meetings_[meetings], kDevice);
  meet(local, local_meetings_[meetings], kLocal);
}

void CheckedThreadgroup::SimdFunction() { Meet(0, UINT32_MAX, false, 0); }

void CheckedThreadgroup::Barrier(const Threads& threads, bool simdgroup,
                                 uint32_t flags) {
  if (threads.some_gone) {
    for (size_t begin = 0; begin < threads.count;) {
      const size_t end = simdgroup ? std::min(threads.count, begin + kSimdWidth)
                                   : threads.count;
      size_t waits = end, gone = end;
      for (size_t i = end; i-- > begin;) {
        (threads.IsLeft(i) ? waits : gone) = i;
      }
      if (waits != end && gone != end) {
        Fail(FindingKind::kDivergentBarrier,
             "thread " + std::to_string(waits) + " waits at a " +
                 (simdgroup ? "simdgroup" : "threadgroup") +
                 "_barrier, thread " + std::to_string(gone) + " has returned");
      }
      begin = end;
    }
  }
  SettleOrEnd();
  if (simdgroup) {
    Meet(0, UINT32_MAX, true, flags);
    return;
  }
  TakeTurns();
  NewPhase(flags);
}

void CheckedThreadgroup::TakeTurns() {
  if (fiber_ != nullptr && fiber_->running()) {
    fiber_->Suspend();
    if (cancelled_) throw Cancelled();
  }
}

const uint16_t* CheckedThreadgroup::OrderOfThreads(size_t count) {
  if (checker_.seed() == 0) return nullptr;
  order_.resize(count);
  for (size_t i = 0; i < count; ++i) order_[i] = static_cast<uint16_t>(i);
  checker_.random().Shuffle(order_.data(), count);
  return order_.data();
}

}  // namespace switchyard::device::kernel_internal
