// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Memory as a kernel sees it: plain pointers, or in checked mode a
// CheckedPointer whose every access is looked at. Included by kernel.h, where
// the whole is explained.

#ifndef SWITCHYARD_DEVICE_KERNEL_MEMORY_H_
#define SWITCHYARD_DEVICE_KERNEL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace switchyard::device {

namespace kernel_internal {

// In checked mode newBuffer() and threadgroup memory are filled with this: a
// signalling NaN, which no arithmetic makes.
constexpr uint32_t kNeverWritten = 0x7FA5C3E1u;

// Who touched a word of memory last, as 64 bits: from the top the phase (32),
// the thread (10), how many simd functions the phase had called (12), 2 unused,
// the bytes touched (4), and 4 marks, which say that the stamp stands for more
// accesses than its own:
constexpr uint64_t kOtherThreads = 1;     // of its simdgroup, in its phase
constexpr uint64_t kOtherSimdgroups = 2;  // of its threadgroup, in its phase
constexpr uint64_t kOtherGroups = 4;      // threadgroups or dispatches
constexpr uint64_t kAtomic = 8;           // all of them were atomic
constexpr int kBytesShift = 4;
constexpr int kEpochShift = 10;
constexpr int kThreadShift = 22;
constexpr int kPhaseShift = 32;
constexpr uint64_t kAllBytes = uint64_t{15} << kBytesShift;
constexpr uint64_t kEpoch = uint64_t{0xFFF} << kEpochShift;
constexpr uint64_t kThread = uint64_t{0x3FF} << kThreadShift;

struct Cell {
  uint64_t write;
  uint64_t read;
};

// How the thread that runs now stamps one kind of memory.
struct Space {
  uint64_t stamp;   // of an access to a whole word, now
  uint64_t first;   // stamps below this conflict with nobody any more
  uint64_t others;  // those from `first` to here may be other threadgroups'
};

// The thread that runs now, in checked mode.
struct RunningThread {
  Space device;
  Space local;
  bool inside = false;  // for_each_thread()
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
  const Space* space = nullptr;
  RunningThread* thread = nullptr;
  size_t index = 0;
  uint8_t kind = 0;    // ViewKind of src/device/checked
  bool fresh = false;  // may hold words that nothing has written

  Cell& CellAt(uintptr_t address) const {
    return *reinterpret_cast<Cell*>(shadow + address / 4 * sizeof(Cell));
  }
};

enum AccessKind : uint32_t { kReads = 1, kWrites = 2, kAtomically = 4 };

// Any access: throws what is wrong with it, or notes it. Defined in the
// library.
void CheckAccess(const View& view, ptrdiff_t offset, size_t size,
                 uint32_t kind);
[[noreturn]] void IndexOverflows(const View& view, size_t size);
[[noreturn]] void NotAligned(const View& view, ptrdiff_t offset,
                             size_t alignment);

// Whether `last`, in a cell, can conflict with nothing that the thread of the
// stamp does: its own in this phase, or in a phase that is over for it.
inline bool IsBehind(uint64_t last, const Space& space) {
  if (last < space.first) return true;
  const uint64_t change = last ^ space.stamp;
  if ((change >> kPhaseShift) == 0) {
    return (change &
            (kThread | kOtherThreads | kOtherSimdgroups | kOtherGroups)) == 0;
  }
  return last >= space.others && (last & kOtherGroups) == 0;
}

// The common cases of a whole word without a call.
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
      // Nothing to add, whoever writes later.
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

// The element at `index`, in bytes from the view's start. Below 2^46, products
// with sizes and sums of offsets do not overflow.
constexpr ptrdiff_t kMostElements = ptrdiff_t{1} << 46;
template <class T, class Index>
ptrdiff_t OffsetOf(const View& view, ptrdiff_t offset, Index index) {
  static_assert(std::is_integral_v<Index>, "an index is an integer");
  const ptrdiff_t i = static_cast<ptrdiff_t>(index);
  if (i < -kMostElements || i > kMostElements) IndexOverflows(view, sizeof(T));
  return offset + i * static_cast<ptrdiff_t>(sizeof(T));
}

}  // namespace kernel_internal

// An element of a CheckedPointer: reads where it is converted, writes where it
// is assigned. Only of use at once: `auto v = p[i]` does not compile further
// down; write `float v = p[i]`.
template <class T>
class CheckedElement {
 public:
  CheckedElement(const CheckedElement&) = delete;

  operator T() const&& { return Load(); }  // NOLINT(runtime/explicit)
  T operator=(T value) && { return Store(value); }
  T operator=(CheckedElement&& other) && { return Store(other.Load()); }
  T operator+=(T v) && { return Store(static_cast<T>(Load() + v)); }
  T operator-=(T v) && { return Store(static_cast<T>(Load() - v)); }
  T operator*=(T v) && { return Store(static_cast<T>(Load() * v)); }
  T operator/=(T v) && { return Store(static_cast<T>(Load() / v)); }
  T operator%=(T v) && { return Store(static_cast<T>(Load() % v)); }
  T operator&=(T v) && { return Store(static_cast<T>(Load() & v)); }
  T operator|=(T v) && { return Store(static_cast<T>(Load() | v)); }
  T operator^=(T v) && { return Store(static_cast<T>(Load() ^ v)); }
  T operator<<=(T v) && { return Store(static_cast<T>(Load() << v)); }
  T operator>>=(T v) && { return Store(static_cast<T>(Load() >> v)); }
  T operator++() && { return Store(static_cast<T>(Load() + T{1})); }
  T operator--() && { return Store(static_cast<T>(Load() - T{1})); }
  T operator++(int) && {
    const T old = Load();
    Store(static_cast<T>(old + T{1}));
    return old;
  }
  T operator--(int) && {
    const T old = Load();
    Store(static_cast<T>(old - T{1}));
    return old;
  }

 private:
  template <class U>
  friend class CheckedPointer;
  CheckedElement(const kernel_internal::View* view, ptrdiff_t offset)
      : view_(view), offset_(offset) {}

  T Load() const {
    if constexpr (sizeof(T) == 4) {
      kernel_internal::CheckRead(*view_, offset_);
    } else {
      kernel_internal::CheckAccess(*view_, offset_, sizeof(T),
                                   kernel_internal::kReads);
    }
    std::remove_const_t<T> value;
    std::memcpy(&value, view_->data + offset_, sizeof(T));
    return value;
  }
  T Store(T value) const {
    if constexpr (sizeof(T) == 4) {
      kernel_internal::CheckWrite(*view_, offset_);
    } else {
      kernel_internal::CheckAccess(*view_, offset_, sizeof(T),
                                   kernel_internal::kWrites);
    }
    std::memcpy(view_->data + offset_, &value, sizeof(T));
    return value;
  }

  const kernel_internal::View* const view_;
  const ptrdiff_t offset_;
};

// What T* is in checked mode: indexing and pointer arithmetic, anywhere; each
// access is looked at when it happens. Not to be kept beyond the kernel's call.
template <class T>
class CheckedPointer {
 public:
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 4096);

  CheckedPointer(const kernel_internal::View* view, ptrdiff_t offset)
      : view_(view), offset_(offset) {}
  operator CheckedPointer<const T>() const {  // NOLINT(runtime/explicit)
    return CheckedPointer<const T>(view_, offset_);
  }

  // A CheckedElement<T>, or the value where T is const.
  template <class Index>
  decltype(auto) operator[](Index index) const {
    const ptrdiff_t offset =
        kernel_internal::OffsetOf<T>(*view_, offset_, index);
    if constexpr (std::is_const_v<T>) {
      return CheckedElement<T>(view_, offset).Load();
    } else {
      return CheckedElement<T>(view_, offset);
    }
  }
  decltype(auto) operator*() const { return (*this)[0]; }

  template <class Index>
  CheckedPointer& operator+=(Index index) {
    const ptrdiff_t moved =
        kernel_internal::OffsetOf<T>(*view_, offset_, index);
    constexpr ptrdiff_t kMost = kernel_internal::kMostElements * 4096;
    if (moved < -kMost || moved > kMost) {
      kernel_internal::IndexOverflows(*view_, sizeof(T));
    }
    offset_ = moved;
    return *this;
  }
  template <class Index>
  CheckedPointer& operator-=(Index index) {
    const ptrdiff_t i = static_cast<ptrdiff_t>(index);
    return *this += i < -kernel_internal::kMostElements
                        ? kernel_internal::kMostElements
                        : -i;
  }
  CheckedPointer& operator++() { return *this += 1; }
  CheckedPointer& operator--() { return *this -= 1; }
  template <class Index>
  friend CheckedPointer operator+(CheckedPointer p, Index index) {
    return p += index;
  }
  template <class Index>
  friend CheckedPointer operator-(CheckedPointer p, Index index) {
    return p -= index;
  }

 private:
  template <class U, class V>
  friend CheckedPointer<U> pointer_cast(CheckedPointer<V> p);
  template <class Pointer>
  friend class AtomicPointer;

  const kernel_internal::View* view_;
  ptrdiff_t offset_;
};

// The same address as another type: MSL's `(threadgroup int*)p`. As in C++,
// what was written as one type is not to be read as another.
template <class U, class T>
U* pointer_cast(T* p) {
  return reinterpret_cast<U*>(p);
}
template <class U, class T>
CheckedPointer<U> pointer_cast(CheckedPointer<T> p) {
  static_assert(std::is_const_v<U> || !std::is_const_v<T>);
  const uintptr_t address = reinterpret_cast<uintptr_t>(p.view_->data) +
                            static_cast<uintptr_t>(p.offset_);
  if (address % alignof(U) != 0) {
    kernel_internal::NotAligned(*p.view_, p.offset_, alignof(U));
  }
  return CheckedPointer<U>(p.view_, p.offset_);
}

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_MEMORY_H_
