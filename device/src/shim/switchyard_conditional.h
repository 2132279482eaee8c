// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// `c ? a : b` where a or b is a half, which becomes a float and is made of one:
// C++ would have two meanings for that. The translated source has
//   switchyard_metal::Either(c ? (a, Arm()) : (b, Arm()))
// instead, which is the half for two of them and for one and an integer, float
// for one and a float, and anything else as it would be without.

#ifndef SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_CONDITIONAL_H_
#define SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_CONDITIONAL_H_

#include "switchyard_half.h"

namespace metal {
template <class T, int N>
struct vec;
}  // namespace metal

namespace switchyard_metal {

struct Arm {};

// A half that is made of integers and of no floats, and becomes a float and no
// integer.
template <class Format>
struct SmallArm {
  constexpr SmallArm(SmallFloat<Format> value) : value_(value) {}
  template <class T, class = typename EnableIf<__is_integral(T)>::Type>
  constexpr SmallArm(T value) : value_(value) {}
  template <class T, class = typename EnableIf<__is_floating_point(T)>::Type>
  constexpr operator T() const {
    return static_cast<float>(value_);
  }
  template <class T, int N>
  constexpr operator metal::vec<T, N>() const {
    return metal::vec<T, N>(static_cast<T>(value_));
  }
  constexpr SmallFloat<Format> Get() const { return value_; }

 private:
  SmallFloat<Format> value_;
};

template <class T>
constexpr bool kIsSmallArm = false;
template <class Format>
constexpr bool kIsSmallArm<SmallFloat<Format>> = true;
template <class Format>
constexpr bool kIsSmallArm<const SmallFloat<Format>> = true;
template <class T>
constexpr bool kIsSmallArm<T&> = kIsSmallArm<T>;

template <class T, class = typename EnableIf<!kIsSmallArm<T>>::Type>
__attribute__((always_inline)) constexpr T&& operator,(T&& value, Arm) {
  return static_cast<T&&>(value);
}
template <class Format>
__attribute__((always_inline)) constexpr SmallArm<Format> operator,(
    const SmallFloat<Format>& value, Arm) {
  return value;
}

template <class T>
__attribute__((always_inline)) constexpr T Either(T&& value) {
  return static_cast<T&&>(value);
}
template <class Format>
__attribute__((always_inline)) constexpr SmallFloat<Format> Either(
    SmallArm<Format> value) {
  return value.Get();
}

}  // namespace switchyard_metal

#endif  // SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_CONDITIONAL_H_
