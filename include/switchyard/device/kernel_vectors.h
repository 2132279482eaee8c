// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// MSL's vectors: their members, sizes and alignment, and arithmetic element by
// element. No swizzles. Included by kernel.h.

#ifndef SWITCHYARD_DEVICE_KERNEL_VECTORS_H_
#define SWITCHYARD_DEVICE_KERNEL_VECTORS_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "switchyard/device/kernel_floats.h"

namespace switchyard::device {

template <class T, size_t N>
struct Vec;

namespace kernel_internal {

template <class T>
constexpr bool kIsVec = false;
template <class T, size_t N>
constexpr bool kIsVec<Vec<T, N>> = true;

// of(i) for each element.
template <class R, size_t N, class Function>
Vec<R, N> MakeVec(const Function& of) {
  Vec<R, N> result;
  for (size_t i = 0; i < N; ++i) result[i] = static_cast<R>(of(i));
  return result;
}

// What a number, or an element of a CheckedPointer to numbers, makes all
// elements of.
template <class S, class T>
using IfScalar =
    std::enable_if_t<!kIsVec<std::decay_t<S>> && std::is_convertible_v<S, T>>;

// Functions that are found where an operand is a Vec, or converts to one.
template <class T, size_t N>
struct VecFunctions {
  using V = Vec<T, N>;
  using Bools = Vec<bool, N>;

#define SWITCHYARD_OPERATOR(op)                                   \
  friend V operator op(const V& a, const V& b) {                  \
    return MakeVec<T, N>([&](size_t i) { return a[i] op b[i]; }); \
  }                                                               \
  friend V& operator op##=(V& a, const V& b) { return a = a op b; }
  SWITCHYARD_OPERATOR(+)
  SWITCHYARD_OPERATOR(-)
  SWITCHYARD_OPERATOR(*)
  SWITCHYARD_OPERATOR(/)
  SWITCHYARD_OPERATOR(%)
  SWITCHYARD_OPERATOR(&)
  SWITCHYARD_OPERATOR(|)
  SWITCHYARD_OPERATOR(^)
  SWITCHYARD_OPERATOR(<<)
  SWITCHYARD_OPERATOR(>>)
#undef SWITCHYARD_OPERATOR
#define SWITCHYARD_OPERATOR(op)                                      \
  friend Bools operator op(const V& a, const V& b) {                 \
    return MakeVec<bool, N>([&](size_t i) { return a[i] op b[i]; }); \
  }
  SWITCHYARD_OPERATOR(==)
  SWITCHYARD_OPERATOR(!=)
  SWITCHYARD_OPERATOR(<)
  SWITCHYARD_OPERATOR(<=)
  SWITCHYARD_OPERATOR(>)
  SWITCHYARD_OPERATOR(>=)
#undef SWITCHYARD_OPERATOR
  friend V operator-(const V& a) {
    return MakeVec<T, N>([&](size_t i) { return -a[i]; });
  }
  friend V operator~(const V& a) {
    return MakeVec<T, N>([&](size_t i) { return ~a[i]; });
  }
  friend Bools operator!(const V& a) {
    return MakeVec<bool, N>([&](size_t i) { return !a[i]; });
  }
  // A number wins over NaN.
  friend V max(const V& a, const V& b) {
    return MakeVec<T, N>(
        [&](size_t i) { return a[i] < b[i] || IsNan(a[i]) ? b[i] : a[i]; });
  }
  friend V min(const V& a, const V& b) {
    return MakeVec<T, N>(
        [&](size_t i) { return b[i] < a[i] || IsNan(a[i]) ? b[i] : a[i]; });
  }
  // From x on, each product and sum rounded.
  friend T dot(const V& a, const V& b) {
    T sum = a[0] * b[0];
    for (size_t i = 1; i < N; ++i) sum = static_cast<T>(sum + a[i] * b[i]);
    return sum;
  }
  friend bool all(const V& a) {
    bool result = true;
    for (size_t i = 0; i < N; ++i) result = result && a[i] != T();
    return result;
  }
  friend bool any(const V& a) {
    bool result = false;
    for (size_t i = 0; i < N; ++i) result = result || a[i] != T();
    return result;
  }
};

template <class T>
T& PickOf(size_t i, T& x, T& y, T& z, T& w) {
  return i == 0 ? x : i == 1 ? y : i == 2 ? z : w;
}

}  // namespace kernel_internal

template <class T>
struct alignas(2 * sizeof(T)) Vec<T, 2> : kernel_internal::VecFunctions<T, 2> {
  T x, y;

  Vec() = default;
  template <class S, class = kernel_internal::IfScalar<S, T>>
  Vec(S&& all)  // NOLINT(runtime/explicit)
      : x(static_cast<T>(std::forward<S>(all))), y(x) {}
  Vec(T x0, T y0) : x(x0), y(y0) {}
  template <class U>
  explicit Vec(const Vec<U, 2>& v)
      : x(static_cast<T>(v.x)), y(static_cast<T>(v.y)) {}

  T& operator[](size_t i) { return i == 0 ? x : y; }
  const T& operator[](size_t i) const { return i == 0 ? x : y; }
};

template <class T>
struct alignas(4 * sizeof(T)) Vec<T, 3> : kernel_internal::VecFunctions<T, 3> {
  T x, y, z;

  Vec() = default;
  template <class S, class = kernel_internal::IfScalar<S, T>>
  Vec(S&& all)  // NOLINT(runtime/explicit)
      : x(static_cast<T>(std::forward<S>(all))), y(x), z(x) {}
  Vec(T x0, T y0, T z0) : x(x0), y(y0), z(z0) {}
  Vec(Vec<T, 2> xy, T z0) : x(xy.x), y(xy.y), z(z0) {}
  Vec(T x0, Vec<T, 2> yz) : x(x0), y(yz.x), z(yz.y) {}
  template <class U>
  explicit Vec(const Vec<U, 3>& v)
      : x(static_cast<T>(v.x)),
        y(static_cast<T>(v.y)),
        z(static_cast<T>(v.z)) {}

  T& operator[](size_t i) { return kernel_internal::PickOf(i, x, y, z, z); }
  const T& operator[](size_t i) const {
    return kernel_internal::PickOf(i, x, y, z, z);
  }
};

template <class T>
struct alignas(4 * sizeof(T)) Vec<T, 4> : kernel_internal::VecFunctions<T, 4> {
  T x, y, z, w;

  Vec() = default;
  template <class S, class = kernel_internal::IfScalar<S, T>>
  Vec(S&& all)  // NOLINT(runtime/explicit)
      : x(static_cast<T>(std::forward<S>(all))), y(x), z(x), w(x) {}
  Vec(T x0, T y0, T z0, T w0) : x(x0), y(y0), z(z0), w(w0) {}
  Vec(Vec<T, 2> xy, Vec<T, 2> zw) : x(xy.x), y(xy.y), z(zw.x), w(zw.y) {}
  Vec(Vec<T, 3> v, T w0) : x(v.x), y(v.y), z(v.z), w(w0) {}
  template <class U>
  explicit Vec(const Vec<U, 4>& v)
      : x(static_cast<T>(v.x)),
        y(static_cast<T>(v.y)),
        z(static_cast<T>(v.z)),
        w(static_cast<T>(v.w)) {}

  T& operator[](size_t i) { return kernel_internal::PickOf(i, x, y, z, w); }
  const T& operator[](size_t i) const {
    return kernel_internal::PickOf(i, x, y, z, w);
  }
};

#define SWITCHYARD_VECTORS(T, name) \
  using name##2 = Vec<T, 2>;        \
  using name##3 = Vec<T, 3>;        \
  using name##4 = Vec<T, 4>;
SWITCHYARD_VECTORS(float, float)
SWITCHYARD_VECTORS(half, half)
SWITCHYARD_VECTORS(bfloat, bfloat)
SWITCHYARD_VECTORS(int8_t, char)
SWITCHYARD_VECTORS(uint8_t, uchar)
SWITCHYARD_VECTORS(int16_t, short)
SWITCHYARD_VECTORS(uint16_t, ushort)
SWITCHYARD_VECTORS(int32_t, int)
SWITCHYARD_VECTORS(uint32_t, uint)
SWITCHYARD_VECTORS(int64_t, long)
SWITCHYARD_VECTORS(uint64_t, ulong)
SWITCHYARD_VECTORS(bool, bool)
#undef SWITCHYARD_VECTORS

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_VECTORS_H_
