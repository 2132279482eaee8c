// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The operations of atomic functions on a value in memory.

#ifndef SWITCHYARD_DEVICE_METAL_SWITCHYARD_ATOMIC_OPERATIONS_H_
#define SWITCHYARD_DEVICE_METAL_SWITCHYARD_ATOMIC_OPERATIONS_H_

#include "switchyard_elements.h"

#ifndef __METAL__
#pragma GCC system_header
#endif

namespace switchyard_metal {

template <class T>
using AtomicBits = typename BitsOf<sizeof(T)>::Type;

// Defines an operation, which computes the new value from the old value and
// the operand. Sums of integers wrap around.
#define SWITCHYARD_FETCH(name, ...)                   \
  struct name {                                       \
    template <class T>                                \
    SWITCHYARD_NOT_CHECKED static T Apply(T a, T b) { \
      __VA_ARGS__;                                    \
    }                                                 \
  };
#define SWITCHYARD_FETCH_SUM(name, op)                               \
  SWITCHYARD_FETCH(                                                  \
      name,                                                          \
      if constexpr (kIsIntegral<T>) {                                \
        return static_cast<T>(static_cast<AtomicBits<T>>(a)          \
                                  op static_cast<AtomicBits<T>>(b)); \
      } else { return a op b; })
SWITCHYARD_FETCH_SUM(FetchAdd, +)
SWITCHYARD_FETCH_SUM(FetchSub, -)
SWITCHYARD_FETCH(FetchMin, return b < a ? b : a)
SWITCHYARD_FETCH(FetchMax, return a < b ? b : a)
SWITCHYARD_FETCH(FetchAnd, return a & b)
SWITCHYARD_FETCH(FetchOr, return a | b)
SWITCHYARD_FETCH(FetchXor, return a ^ b)
#undef SWITCHYARD_FETCH
#undef SWITCHYARD_FETCH_SUM

// Replaces the value in memory by the result of the operation, and returns
// the old value.
template <class Operation, class T>
SWITCHYARD_NOT_CHECKED T Fetch(volatile AtomicBits<T>* bits, T operand) {
  using B = AtomicBits<T>;
  B before = __atomic_load_n(bits, __ATOMIC_RELAXED);
  for (;;) {
    const T value = __builtin_bit_cast(T, before);
    const T after = Operation::Apply(value, operand);
    if (__atomic_compare_exchange_n(bits, &before, __builtin_bit_cast(B, after),
                                    true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
      return value;
    }
  }
}
template <class T>
SWITCHYARD_NOT_CHECKED T Exchange(volatile AtomicBits<T>* bits, T desired) {
  return __builtin_bit_cast(
      T, __atomic_exchange_n(bits, __builtin_bit_cast(AtomicBits<T>, desired),
                             __ATOMIC_SEQ_CST));
}
// If the value is `expected`, stores `desired` and returns true. Otherwise
// copies the value to `expected` and returns false. Metal's weak form may
// also fail if the value is `expected`; this function does not.
template <class T>
SWITCHYARD_NOT_CHECKED bool CompareExchange(volatile AtomicBits<T>* bits,
                                            T* expected, T desired) {
  using B = AtomicBits<T>;
  B before = __builtin_bit_cast(B, *expected);
  const bool done =
      __atomic_compare_exchange_n(bits, &before, __builtin_bit_cast(B, desired),
                                  false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
  if (!done) *expected = __builtin_bit_cast(T, before);
  return done;
}

}  // namespace switchyard_metal

#endif  // SWITCHYARD_DEVICE_METAL_SWITCHYARD_ATOMIC_OPERATIONS_H_
