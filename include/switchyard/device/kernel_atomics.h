// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Relaxed atomics on device and threadgroup memory. Included by kernel.h.

#ifndef SWITCHYARD_DEVICE_KERNEL_ATOMICS_H_
#define SWITCHYARD_DEVICE_KERNEL_ATOMICS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "switchyard/device/kernel_memory.h"
#include "switchyard/device/kernel_pointers.h"

namespace switchyard::device {

template <class Pointer>
class AtomicPointer;

namespace kernel_internal {

template <class Pointer>
struct Element;
template <class T>
struct Element<T*> {
  using Type = T;
};
template <class T>
struct Element<CheckedPointer<T>> {
  using Type = T;
};

}  // namespace kernel_internal

// MSL's `device atomic_int*`: element i is p.load(i), p.fetch_add(i, v), ... in
// the place of atomic_load_explicit(&p[i], memory_order_relaxed), ...
// Atomics of one memory word never race with each other; with plain accesses
// they do. Pointer is T* or CheckedPointer<T>; T has 4 or 8 bytes.
template <class Pointer>
class AtomicPointer {
 public:
  using T = typename kernel_internal::Element<Pointer>::Type;
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                "atomics are of numbers of 4 or 8 bytes");

  explicit AtomicPointer(Pointer pointer) : pointer_(pointer) {}

  // An element by MSL's names: &p[i], p + i.
  class Element {
   public:
    AtomicPointer operator&() const { return at_; }  // NOLINT

   private:
    friend class AtomicPointer;
    explicit Element(AtomicPointer at) : at_(at) {}
    const AtomicPointer at_;
  };
  template <class Index>
  Element operator[](Index&& i) const {
    return Element(*this + std::forward<Index>(i));
  }
  Element operator*() const { return Element(*this); }
  template <class Index>
  AtomicPointer operator+(Index&& i) const {
    return AtomicPointer(pointer_ +
                         kernel_internal::ValueOf(std::forward<Index>(i)));
  }

  template <class Index>
  T load(Index i) const {
    T value;
    __atomic_load(At(i, kernel_internal::kReads), &value, __ATOMIC_RELAXED);
    return value;
  }
  template <class Index>
  void store(Index i, T value) const {
    __atomic_store(At(i, kernel_internal::kWrites), &value, __ATOMIC_RELAXED);
  }
  // These return the value before.
  template <class Index>
  T exchange(Index i, T value) const {
    T old;
    __atomic_exchange(At(i), &value, &old, __ATOMIC_RELAXED);
    return old;
  }
  template <class Index>
  T fetch_add(Index i, T v) const {
    if constexpr (std::is_integral_v<T>) {
      return __atomic_fetch_add(At(i), v, __ATOMIC_RELAXED);
    } else {
      return Update(i, [v](T old) { return old + v; });
    }
  }
  template <class Index>
  T fetch_sub(Index i, T v) const {
    if constexpr (std::is_integral_v<T>) {
      return __atomic_fetch_sub(At(i), v, __ATOMIC_RELAXED);
    } else {
      return Update(i, [v](T old) { return old - v; });
    }
  }
  template <class Index>
  T fetch_max(Index i, T v) const {
    return Update(i, [v](T old) { return v > old ? v : old; });
  }
  template <class Index>
  T fetch_min(Index i, T v) const {
    return Update(i, [v](T old) { return v < old ? v : old; });
  }
  template <class Index>
  T fetch_or(Index i, T v) const {
    return __atomic_fetch_or(At(i), v, __ATOMIC_RELAXED);
  }
  template <class Index>
  T fetch_and(Index i, T v) const {
    return __atomic_fetch_and(At(i), v, __ATOMIC_RELAXED);
  }
  template <class Index>
  T fetch_xor(Index i, T v) const {
    return __atomic_fetch_xor(At(i), v, __ATOMIC_RELAXED);
  }
  // Whether *i was `expected`, and is `desired` now; else `expected` is what it
  // was. Never fails otherwise, unlike Metal's weak form.
  template <class Index>
  bool compare_exchange(Index i, T& expected, T desired) const {
    return __atomic_compare_exchange(At(i), &expected, &desired, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }

 private:
  template <class Index>
  T* At(Index i, uint32_t kind = kernel_internal::kReads |
                                 kernel_internal::kWrites) const {
    if constexpr (std::is_pointer_v<Pointer>) {
      return pointer_ + i;
    } else {
      const kernel_internal::View& view = *pointer_.view_;
      const ptrdiff_t offset =
          kernel_internal::OffsetOf<T>(view, pointer_.offset_, i);
      kernel_internal::CheckAccess(view, offset, sizeof(T),
                                   kind | kernel_internal::kAtomically);
      return reinterpret_cast<T*>(view.data + offset);
    }
  }
  template <class Index, class Function>
  T Update(Index i, const Function& function) const {
    T* const at = At(i);
    T old;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    T value = function(old);
    while (!__atomic_compare_exchange(at, &old, &value, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
      value = function(old);
    }
    return old;
  }

  Pointer pointer_;
};

// The same memory for atomics: of a buffer, or of threadgroup memory.
template <class Pointer>
AtomicPointer<Pointer> atomic_pointer(Pointer pointer) {
  return AtomicPointer<Pointer>(pointer);
}

// MSL's spelling, of the element that the pointer points to. Relaxed is the
// only order, and the weak exchange fails only where the values differ.
using std::memory_order;
using std::memory_order_relaxed;

#define SWITCHYARD_ATOMIC(name, function)                           \
  template <class P>                                                \
  auto name(AtomicPointer<P> p, typename AtomicPointer<P>::T value, \
            memory_order) {                                         \
    return p.function(0, value);                                    \
  }
SWITCHYARD_ATOMIC(atomic_store_explicit, store)
SWITCHYARD_ATOMIC(atomic_exchange_explicit, exchange)
SWITCHYARD_ATOMIC(atomic_fetch_add_explicit, fetch_add)
SWITCHYARD_ATOMIC(atomic_fetch_sub_explicit, fetch_sub)
SWITCHYARD_ATOMIC(atomic_fetch_max_explicit, fetch_max)
SWITCHYARD_ATOMIC(atomic_fetch_min_explicit, fetch_min)
SWITCHYARD_ATOMIC(atomic_fetch_or_explicit, fetch_or)
SWITCHYARD_ATOMIC(atomic_fetch_and_explicit, fetch_and)
SWITCHYARD_ATOMIC(atomic_fetch_xor_explicit, fetch_xor)
#undef SWITCHYARD_ATOMIC
template <class P>
auto atomic_load_explicit(AtomicPointer<P> p, memory_order) {
  return p.load(0);
}
template <class P>
bool atomic_compare_exchange_weak_explicit(
    AtomicPointer<P> p, typename AtomicPointer<P>::T* expected,
    typename AtomicPointer<P>::T desired, memory_order, memory_order) {
  return p.compare_exchange(0, *expected, desired);
}

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_ATOMICS_H_
