// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Functions that Metal's own headers call. They have the names that Metal's
// compiler gives them. Public shaders call some of them to add functions for
// their own types.

#ifndef SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_INTERNALS_H_
#define SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_INTERNALS_H_

#include "metal_math"
#include "metal_simdgroup"

#define __METAL_PRECISE_MATH__ 0
#define __METAL_FAST_MATH__ 1
#define __METAL_MAYBE_FAST_MATH__ 2

// The last argument of the functions selects the precision. It is ignored,
// because each function has only one implementation here.
#define SWITCHYARD_INTERNAL_1(name)                    \
  template <class A>                                   \
  constexpr auto __metal_##name(const A& a, int = 0) { \
    return metal::name(a);                             \
  }
#define SWITCHYARD_INTERNAL_2(name)                                \
  template <class A, class B>                                      \
  constexpr auto __metal_##name(const A& a, const B& b, int = 0) { \
    return metal::name(a, b);                                      \
  }
#define SWITCHYARD_INTERNAL_3(name)                                            \
  template <class A, class B, class C>                                         \
  constexpr auto __metal_##name(const A& a, const B& b, const C& c, int = 0) { \
    return metal::name(a, b, c);                                               \
  }
SWITCHYARD_BUILTINS_1(SWITCHYARD_INTERNAL_1)
SWITCHYARD_OTHER_FLOATS_1(SWITCHYARD_INTERNAL_1)
SWITCHYARD_BUILTINS_2(SWITCHYARD_INTERNAL_2)
SWITCHYARD_OTHER_FLOATS_2(SWITCHYARD_INTERNAL_2)
SWITCHYARD_FLOATS_3(SWITCHYARD_INTERNAL_3)
#undef SWITCHYARD_INTERNAL_1
#undef SWITCHYARD_INTERNAL_2
#undef SWITCHYARD_INTERNAL_3

template <class A, class E>
auto __metal_frexp(const A& a, E* exponent) {
  return metal::frexp(a, *exponent);
}
template <class A, class K>
auto __metal_ldexp(const A& a, const K& k, int = 0) {
  return metal::ldexp(a, k);
}

template <class T>
constexpr T __metal_get_simdgroup_size(T) {
  return switchyard_metal::kSimdWidth;
}
template <class T>
T __metal_get_thread_index_in_simdgroup(T) {
  return static_cast<T>(switchyard_metal::ThisLane());
}

#define SWITCHYARD_INTERNAL_1(name, ...) \
  template <class A>                     \
  auto __metal_simd_##name(const A& a) { \
    return metal::simd_##name(a);        \
  }
#define SWITCHYARD_INTERNAL_2(name, ...)                \
  template <class A>                                    \
  auto __metal_simd_##name(const A& a, ushort number) { \
    return metal::simd_##name(a, number);               \
  }
#define SWITCHYARD_INTERNAL_3(name, ...)                               \
  template <class A>                                                   \
  auto __metal_simd_##name(const A& a, const A& filling, ushort delta, \
                           ushort modulo) {                            \
    return metal::simd_##name(a, filling, delta, modulo);              \
  }
SWITCHYARD_REDUCTIONS(SWITCHYARD_INTERNAL_1, )
SWITCHYARD_BIT_REDUCTIONS(SWITCHYARD_INTERNAL_1, )
SWITCHYARD_SHUFFLES(SWITCHYARD_INTERNAL_2, )
SWITCHYARD_FILLS(SWITCHYARD_INTERNAL_3, )
#undef SWITCHYARD_INTERNAL_1
#undef SWITCHYARD_INTERNAL_2
#undef SWITCHYARD_INTERNAL_3

#endif  // SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_INTERNALS_H_
