// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Checks each access of a kernel to memory, in checked mode. kernel.h
// includes this file and explains the model.

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

// A stamp records the last access to a word of memory in 64 bits. From the
// top, it has the phase (32 bits), the thread (10), the number of simd
// functions called in the phase (12), 2 unused bits, the bytes of the word
// that were accessed (4), and 4 marks. A phase is the time between two
// barriers of a threadgroup. The first three marks tell that the stamp also
// stands for accesses by others:
// * kOtherThreads: by threads of the same simdgroup, in the same phase.
// * kOtherSimdgroups: by threads of the same threadgroup, in the same phase.
// * kOtherGroups: by other threadgroups or dispatches.
// kAtomic tells that all accesses that the stamp stands for were atomic.
constexpr uint64_t kOtherThreads = 1;
constexpr uint64_t kOtherSimdgroups = 2;
constexpr uint64_t kOtherGroups = 4;
constexpr uint64_t kAtomic = 8;
constexpr int kBytesShift = 4;
constexpr int kEpochShift = 10;
constexpr int kThreadShift = 22;
constexpr int kPhaseShift = 32;
constexpr uint64_t kAllBytes = uint64_t{15} << kBytesShift;
constexpr uint64_t kEpoch = uint64_t{0xFFF} << kEpochShift;
constexpr uint64_t kThread = uint64_t{0x3FF} << kThreadShift;

struct Cell {
  uint64_t write;  // a stamp, or kSplit of device/src/checked/races.h
  uint64_t read;
};

// An access to device memory, or to threadgroup memory, compares the last stamp
// of a word with these stamps.
struct Space {
  uint64_t stamp;   // the stamp that an access to a whole word gets now
  uint64_t first;   // stamps below this cannot conflict any more
  uint64_t others;  // stamps in [first, others) may be of other threadgroups
};

// The state of the thread that runs in checked mode.
struct RunningThread {
  Space device;
  Space local;
  bool inside = false;  // true inside for_each_thread()
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
  size_t words = 0;  // offsets below this are followed by at least 4 bytes
  // The cell of a word is at shadow + address / 4 * sizeof(Cell), and the cell
  // of a 2-byte half is at halves + address / 2 * sizeof(Cell).
  uintptr_t shadow = 0;
  uintptr_t halves = 0;
  const Space* space = nullptr;
  RunningThread* thread = nullptr;
  size_t index = 0;
  uint8_t kind = 0;    // ViewKind of device/src/checked
  bool fresh = false;  // true if it may hold words that were never written
  // Used in messages. `name` replaces kind and index unless it is null.
  // `element` is the size of an element in bytes, or 0 if it is not known.
  const char* name = nullptr;
  size_t element = 0;
  size_t trails = 0;  // WordCells::trails of device/src/checked

  Cell& CellAt(uintptr_t address) const {
    return *reinterpret_cast<Cell*>(shadow + address / 4 * sizeof(Cell));
  }
};

// kAcquires and kReleases mark a fence, not an access. The fence orders
// device memory for all threadgroups.
enum AccessKind : uint32_t {
  kReads = 1,
  kWrites = 2,
  kAtomically = 4,
  kAcquires = 16,
  kReleases = 32
};

// Checks an access. Throws if the access is a mistake, and otherwise records
// it. The library defines this function.
void CheckAccess(const View& view, ptrdiff_t offset, size_t size,
                 uint32_t kind);
[[noreturn]] void IndexOverflows(const View& view, size_t size);
[[noreturn]] void NotAligned(const View& view, ptrdiff_t offset,
                             size_t alignment);

// Returns true if `last`, the stamp of a cell, cannot conflict with the
// running thread, either because the thread itself made the stamp in this
// phase, or because the stamp's phase ended before the thread's phase began.
inline bool IsBehind(uint64_t last, const Space& space) {
  if (last < space.first) return true;
  const uint64_t change = last ^ space.stamp;
  if ((change >> kPhaseShift) == 0) {
    return (change &
            (kThread | kOtherThreads | kOtherSimdgroups | kOtherGroups)) == 0;
  }
  return last >= space.others && (last & kOtherGroups) == 0;
}

// CheckRead() and CheckWrite() check an access to a whole word. Their fast
// paths do not call CheckAccess().
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
      // Every later write that would conflict with this read also conflicts
      // with the existing stamp, so the read need not be recorded.
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

// The largest magnitude of an index. Products of an index and a size, and
// sums of offsets, then cannot overflow.
constexpr ptrdiff_t kMostElements = ptrdiff_t{1} << 46;
// Returns the byte offset of the element that is `index` elements after
// `offset`.
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
