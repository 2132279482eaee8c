// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The checks of checked mode when a kernel touches memory. Included by
// kernel.h, which explains the model.

#ifndef SWITCHYARD_DEVICE_KERNEL_MEMORY_H_
#define SWITCHYARD_DEVICE_KERNEL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "switchyard/language.h"

namespace switchyard::device {

namespace kernel_internal {

// In checked mode newBuffer() and threadgroup memory are filled with this
// signalling NaN, because arithmetic never produces it.
constexpr uint32_t kNeverWritten = 0x7FA5C3E1u;

// A stamp of the last access to a word of memory, in 64 bits. From the top:
// the phase (32), the thread (10), the number of simd functions called in the
// phase (12), 2 unused, the bytes touched (4), and 4 marks, which tell that
// the stamp stands for further accesses:
constexpr uint64_t kOtherThreads = 1;     // of its simdgroup, in its phase
constexpr uint64_t kOtherSimdgroups = 2;  // of its threadgroup, in its phase
constexpr uint64_t kOtherGroups = 4;      // threadgroups or dispatches
constexpr uint64_t kAtomic = 8;           // all of these accesses were atomic
constexpr int kBytesShift = 4;
constexpr int kEpochShift = 10;
constexpr int kThreadShift = 22;
constexpr int kPhaseShift = 32;
constexpr uint64_t kAllBytes = uint64_t{15} << kBytesShift;
constexpr uint64_t kEpoch = uint64_t{0xFFF} << kEpochShift;
constexpr uint64_t kThread = uint64_t{0x3FF} << kThreadShift;

struct Cell {
  uint64_t write;  // or kSplit of device/src/checked/races.h
  uint64_t read;
};

// How the running thread stamps one kind of memory.
struct Space {
  uint64_t stamp;   // of an access to a whole word, now
  uint64_t first;   // stamps below this cannot conflict any more
  uint64_t others;  // stamps from `first` to this may be other threadgroups'
};

// The running thread, in checked mode.
struct RunningThread {
  Space device;
  Space local;
  bool inside = false;  // for_each_thread()
  // The address of the code that makes the next access, if known.
  const void* where = nullptr;
  void SetThread(size_t thread) {
    const uint64_t bits = uint64_t{thread} << kThreadShift;
    device.stamp = (device.stamp & ~kThread) | bits;
    local.stamp = (local.stamp & ~kThread) | bits;
  }
};

// A bound buffer or a piece of threadgroup memory.
struct View {
  unsigned char* data = nullptr;
  size_t length = 0;
  size_t words = 0;      // offsets below this hold 4 bytes
  uintptr_t shadow = 0;  // where the cell of address 0 would be
  uintptr_t halves = 0;  // the same for the cells of every 2 bytes
  const Space* space = nullptr;
  RunningThread* thread = nullptr;
  size_t index = 0;
  uint8_t kind = 0;    // ViewKind of device/src/checked
  bool fresh = false;  // may hold words that were never written
  // For messages: a name that replaces kind and index, unless null; and the
  // bytes of an element, unless 0.
  const char* name = nullptr;
  size_t element = 0;
  size_t trails = 0;  // WordCells::trails of device/src/checked

  Cell& CellAt(uintptr_t address) const {
    return *reinterpret_cast<Cell*>(shadow + address / 4 * sizeof(Cell));
  }
};

// kAcquires and kReleases are not accesses. They are fences of device memory
// for all threadgroups.
enum AccessKind : uint32_t {
  kReads = 1,
  kWrites = 2,
  kAtomically = 4,
  kAcquires = 16,
  kReleases = 32
};

// Checks any access: throws if it is wrong, and records it otherwise. Defined
// in the library.
void CheckAccess(const View& view, ptrdiff_t offset, size_t size,
                 uint32_t kind);
[[noreturn]] void IndexOverflows(const View& view, size_t size);
[[noreturn]] void NotAligned(const View& view, ptrdiff_t offset,
                             size_t alignment);

// True if `last`, a cell's stamp, cannot conflict with the running thread:
// the thread itself made it in this phase, or it belongs to a phase that is
// over for the thread.
inline bool IsBehind(uint64_t last, const Space& space) {
  if (last < space.first) return true;
  const uint64_t change = last ^ space.stamp;
  if ((change >> kPhaseShift) == 0) {
    return (change &
            (kThread | kOtherThreads | kOtherSimdgroups | kOtherGroups)) == 0;
  }
  return last >= space.others && (last & kOtherGroups) == 0;
}

// The fast paths for a whole word, without a call.
inline void CheckRead(const View& view, ptrdiff_t offset) {
  if (static_cast<size_t>(offset) < view.words) {
    uint32_t value;
    std::memcpy(&value, view.data + offset, sizeof(value));
    Cell& cell = view.CellAt(reinterpret_cast<uintptr_t>(view.data + offset));
    const Space& space = *view.space;
    if (value != kNeverWritten && IsBehind(cell.write, space)) {
      const uint64_t last = cell.read;
      if (last < space.first) {
        cell.read = space.stamp;
        return;
      }
      // The stamp already conflicts with every later write that this read
      // would.
      if (last == space.stamp ||
          (last & (kOtherGroups | kAtomic)) == kOtherGroups) {
        return;
      }
      if (((last ^ space.stamp) >> kPhaseShift) == 0) {
        if ((last & (kOtherSimdgroups | kAtomic)) == kOtherSimdgroups) return;
      } else if (last >= space.others && (last & kOtherGroups) == 0) {
        cell.read = space.stamp;
        return;
      }
    }
  }
  CheckAccess(view, offset, 4, kReads);
}
inline void CheckWrite(const View& view, ptrdiff_t offset) {
  if (static_cast<size_t>(offset) < view.words) {
    Cell& cell = view.CellAt(reinterpret_cast<uintptr_t>(view.data + offset));
    const Space& space = *view.space;
    if (IsBehind(cell.write, space) && IsBehind(cell.read, space)) {
      cell.write = space.stamp;
      return;
    }
  }
  CheckAccess(view, offset, 4, kWrites);
}

// The offset of the element at `index`, in bytes from the view's start.
// Indices up to 2^46 cannot overflow products with sizes or sums of offsets.
constexpr ptrdiff_t kMostElements = ptrdiff_t{1} << 46;
template <class T, class Index>
ptrdiff_t OffsetOf(const View& view, ptrdiff_t offset, Index index) {
  static_assert(std::is_integral_v<Index>, "an index is an integer");
  const ptrdiff_t i = static_cast<ptrdiff_t>(index);
  if (i < -kMostElements || i > kMostElements) IndexOverflows(view, sizeof(T));
  return offset + i * static_cast<ptrdiff_t>(sizeof(T));
}

}  // namespace kernel_internal

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_MEMORY_H_
