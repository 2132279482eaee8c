// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Relaxed atomics on device and threadgroup memory, with the names of MSL.
// kernel.h includes this file.

#ifndef SWITCHYARD_DEVICE_KERNEL_ATOMICS_H_
#define SWITCHYARD_DEVICE_KERNEL_ATOMICS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "switchyard/device/kernel_memory.h"
#include "switchyard/device/kernel_pointers.h"
#include "switchyard/device/metal/switchyard_atomic_operations.h"

namespace switchyard::device {

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

// Stands for MSL's `device atomic_int*`, as in
// atomic_fetch_add_explicit(&p[i], v, memory_order_relaxed). p + i is the
// same pointer as &p[i]. Atomic accesses to a memory word never race with
// each other; they do race with plain accesses. Pointer is T* or
// CheckedPointer<T>; T has 4 or 8 bytes.
template <class Pointer>
class AtomicPointer {
 public:
  using T = typename kernel_internal::Element<Pointer>::Type;
  using Bits = volatile switchyard_metal::AtomicBits<T>;
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                "atomics are of numbers of 4 or 8 bytes");

  explicit AtomicPointer(Pointer pointer) : pointer_(pointer) {}

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

  // Returns the address of the value. In checked mode it checks the access
  // first.
  Bits* At(uint32_t kind = kernel_internal::kReads |
                           kernel_internal::kWrites) const {
    if constexpr (std::is_pointer_v<Pointer>) {
      return reinterpret_cast<Bits*>(pointer_);
    } else {
      const kernel_internal::View& view = *pointer_.view_;
      kernel_internal::CheckAccess(view, pointer_.offset_, sizeof(T),
                                   kind | kernel_internal::kAtomically);
      return reinterpret_cast<Bits*>(view.data + pointer_.offset_);
    }
  }

 private:
  Pointer pointer_;
};

// Makes a pointer for atomics from a pointer to a buffer or to threadgroup
// memory.
template <class Pointer>
AtomicPointer<Pointer> atomic_pointer(Pointer pointer) {
  return AtomicPointer<Pointer>(pointer);
}

// memory_order_relaxed is the only order. Unlike in Metal, the weak exchange
// fails only if *p differs from *expected.
using std::memory_order;
using std::memory_order_relaxed;

template <class P>
typename AtomicPointer<P>::T atomic_load_explicit(AtomicPointer<P> p,
                                                  memory_order) {
  return __builtin_bit_cast(
      typename AtomicPointer<P>::T,
      __atomic_load_n(p.At(kernel_internal::kReads), __ATOMIC_RELAXED));
}
template <class P>
void atomic_store_explicit(AtomicPointer<P> p,
                           typename AtomicPointer<P>::T value, memory_order) {
  using Bits = switchyard_metal::AtomicBits<typename AtomicPointer<P>::T>;
  __atomic_store_n(p.At(kernel_internal::kWrites),
                   __builtin_bit_cast(Bits, value), __ATOMIC_RELAXED);
}
template <class P>
auto atomic_exchange_explicit(AtomicPointer<P> p,
                              typename AtomicPointer<P>::T value,
                              memory_order) {
  return switchyard_metal::Exchange<typename AtomicPointer<P>::T>(p.At(),
                                                                  value);
}
template <class P>
bool atomic_compare_exchange_weak_explicit(
    AtomicPointer<P> p, typename AtomicPointer<P>::T* expected,
    typename AtomicPointer<P>::T desired, memory_order, memory_order) {
  return switchyard_metal::CompareExchange<typename AtomicPointer<P>::T>(
      p.At(), expected, desired);
}
// These functions return the old value.
#define SWITCHYARD_FETCH(name, Operation)                                   \
  template <class P>                                                        \
  auto atomic_fetch_##name##_explicit(AtomicPointer<P> p,                   \
                                      typename AtomicPointer<P>::T operand, \
                                      memory_order) {                       \
    return switchyard_metal::Fetch<switchyard_metal::Operation,             \
                                   typename AtomicPointer<P>::T>(p.At(),    \
                                                                 operand);  \
  }
SWITCHYARD_FETCH(add, FetchAdd)
SWITCHYARD_FETCH(sub, FetchSub)
SWITCHYARD_FETCH(max, FetchMax)
SWITCHYARD_FETCH(min, FetchMin)
SWITCHYARD_FETCH(or, FetchOr)
SWITCHYARD_FETCH(and, FetchAnd)
SWITCHYARD_FETCH(xor, FetchXor)
#undef SWITCHYARD_FETCH

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_ATOMICS_H_
