// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// In C++ `c ? a : b` is ambiguous if a or b is a half, because half and float
// convert to each other. So the translated source has this instead:
//   switchyard_metal::Either(c ? (a, Arm()) : (b, Arm()))
// The result is a half for two halves, or for a half and an integer. It is a
// float for a half and a float. For other types the result is the same as
// without Either.

#ifndef SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_CONDITIONAL_H_
#define SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_CONDITIONAL_H_

#include "switchyard_half.h"

namespace metal {
template <class T, int N>
struct vec;
}  // namespace metal

namespace switchyard_metal {

struct Arm {};

// A half that limits conversions: integers convert to it, but floats do not,
// and it converts to floats, but not to integers.
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
