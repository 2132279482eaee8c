// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sums, products and similar operations over the lanes of a simdgroup, and
// the rules by which a shuffle chooses a lane. The functor `at` gives access
// to the lanes: at(i) points to the value of lane i, and is null if the lane
// is absent.

#ifndef SWITCHYARD_DEVICE_METAL_SWITCHYARD_LANE_OPERATIONS_H_
#define SWITCHYARD_DEVICE_METAL_SWITCHYARD_LANE_OPERATIONS_H_

#include "switchyard_vec.h"

#ifndef __METAL__
#pragma GCC system_header
#endif

namespace switchyard_metal {

// Sums and products wrap around, as on a GPU: narrow integers are not
// promoted to int.
struct LaneSum {
  template <class T>
  SWITCHYARD_NOT_CHECKED static T Apply(T a, T b) {
    if constexpr (kIsIntegral<T>) {
      using U = typename BitsOf<sizeof(T)>::Type;
      return static_cast<T>(static_cast<U>(a) + 0u + static_cast<U>(b));
    } else {
      return a + b;
    }
  }
  static constexpr int kStart = 0;
};
struct LaneProduct {
  template <class T>
  SWITCHYARD_NOT_CHECKED static T Apply(T a, T b) {
    if constexpr (kIsIntegral<T>) {
      using U = typename BitsOf<sizeof(T)>::Type;
      return static_cast<T>(1u * static_cast<U>(a) * static_cast<U>(b));
    } else {
      return a * b;
    }
  }
  static constexpr int kStart = 1;
};
// The maximum (kMost) or minimum. If one value is NaN, the other one wins. If
// values are equal, the value of the lower lane wins.
template <bool kMost>
struct LaneBest {
  template <class T>
  SWITCHYARD_NOT_CHECKED static T Apply(T a, T b) {
    if constexpr (kIsVector<T>) {
      for (int i = 0; i < Shape<T>::kSize; ++i) a[i] = Apply(a[i], b[i]);
      return a;
    } else {
      return a != a || (kMost ? b > a : b < a) ? b : a;
    }
  }
};
using LaneMax = LaneBest<true>;
using LaneMin = LaneBest<false>;
// Bit operations on floats combine the bits of the floats.
#define SWITCHYARD_LANE_BITS(name, op)                                        \
  struct name {                                                               \
    template <class T>                                                        \
    SWITCHYARD_NOT_CHECKED static T Apply(T a, T b) {                         \
      if constexpr (kIsScalar<T> && !kIsIntegral<T>) {                        \
        using U = typename BitsOf<sizeof(T)>::Type;                           \
        return __builtin_bit_cast(T, static_cast<U>(__builtin_bit_cast(       \
                                         U, a) op __builtin_bit_cast(U, b))); \
      } else {                                                                \
        return static_cast<T>(a op b);                                        \
      }                                                                       \
    }                                                                         \
  };
SWITCHYARD_LANE_BITS(LaneAnd, &)
SWITCHYARD_LANE_BITS(LaneOr, |)
SWITCHYARD_LANE_BITS(LaneXor, ^)
#undef SWITCHYARD_LANE_BITS

// Sums by halving: adds lane l + 16 to lane l, then lane l + 8, and so on
// down to l + 1. Metal does not define the order.
template <class F>
struct Halve {
  template <class T, class At>
  SWITCHYARD_NOT_CHECKED static T Apply(const At& at, uint32_t lanes) {
    T all[32];
    for (uint32_t i = 0; i < lanes; ++i) {
      const T* const value = at(i);
      if (value != nullptr) {
        all[i] = *value;
      } else {
        all[i] = T(F::kStart);
      }
    }
    for (uint32_t width = lanes / 2; width != 0; width /= 2) {
      for (uint32_t i = 0; i < width; ++i)
        all[i] = F::Apply(all[i], all[i + width]);
    }
    return all[0];
  }
};
// Combines one lane after the other in ascending order; at least one lane
// must be present.
template <class F>
struct Fold {
  template <class T, class At>
  SWITCHYARD_NOT_CHECKED static T Apply(const At& at, uint32_t lanes) {
    uint32_t i = 0;
    while (at(i) == nullptr) ++i;
    T all = *at(i);
    for (++i; i < lanes; ++i) {
      const T* const value = at(i);
      if (value != nullptr) all = F::Apply(all, *value);
    }
    return all;
  }
};
struct First {
  template <class T>
  SWITCHYARD_NOT_CHECKED static T Apply(T a, T) {
    return a;
  }
};
// For each present lane i, calls put(i, value), where value combines the
// lanes up to i (kInclusive) or below i.
template <class F, bool kInclusive>
struct Prefix {
  template <class T, class At, class Put>
  SWITCHYARD_NOT_CHECKED static void Run(const At& at, uint32_t lanes,
                                         const Put& put) {
    T all = T(F::kStart);
    for (uint32_t i = 0; i < lanes; ++i) {
      const T* const value = at(i);
      if (value == nullptr) continue;
      const T next = F::Apply(all, *value);
      put(i, kInclusive ? next : all);
      all = next;
    }
  }
};

// For shuffles, From::Apply(i, n, lanes) returns the lane that lane i reads;
// n is a lane, a mask or a distance. With FromBelow and FromAbove, a lane
// reads its own value if the other lane would lie outside of the simdgroup.
#define SWITCHYARD_LANE_FROM(name, lane)          \
  struct name {                                   \
    SWITCHYARD_NOT_CHECKED static uint32_t Apply( \
        [[maybe_unused]] uint32_t i, uint32_t n,  \
        [[maybe_unused]] uint32_t lanes) {        \
      return lane;                                \
    }                                             \
  };
SWITCHYARD_LANE_FROM(FromLane, n)
SWITCHYARD_LANE_FROM(FromXor, i ^ n)
SWITCHYARD_LANE_FROM(FromBelow, i < n ? i : i - n)
SWITCHYARD_LANE_FROM(FromAbove, n >= lanes - i ? i : i + n)
SWITCHYARD_LANE_FROM(FromBelowAround, (i - n) % lanes)
SWITCHYARD_LANE_FROM(FromAboveAround, (i + n) % lanes)
#undef SWITCHYARD_LANE_FROM

}  // namespace switchyard_metal

#endif  // SWITCHYARD_DEVICE_METAL_SWITCHYARD_LANE_OPERATIONS_H_
