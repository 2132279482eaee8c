// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// MSL's half and bfloat, to compute with. Included by kernel.h.

#ifndef SWITCHYARD_DEVICE_KERNEL_FLOATS_H_
#define SWITCHYARD_DEVICE_KERNEL_FLOATS_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "switchyard/language.h"

namespace switchyard::device {

// The bits of a value as another type of the same size.
template <class To, class From>
To as_type(const From& from) {
  static_assert(sizeof(To) == sizeof(From) &&
                    std::is_trivially_copyable_v<To> &&
                    std::is_trivially_copyable_v<From>,
                "as_type: both types have the same size");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

namespace kernel_internal {

struct HalfFormat {
  static float Widen(uint16_t bits) {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
    const uint32_t magnitude = bits & 0x7FFFu;
    if (magnitude < 0x0400) {  // a multiple of the smallest denormal
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return sign != 0 ? -value : value;
    }
    const uint32_t rebias = magnitude < 0x7C00 ? 112u << 23 : 224u << 23;
    return as_type<float>(sign | ((magnitude << 13) + rebias));
  }
  // To the nearest, of two to the even one.
  static uint16_t Round(float value) {
    uint32_t bits = as_type<uint32_t>(value);
    const uint32_t sign = bits >> 16 & 0x8000u;
    bits &= 0x7FFFFFFFu;
    if (bits > 0x7F800000u) {  // NaN, made quiet
      return static_cast<uint16_t>(sign | 0x7E00u | (bits >> 13 & 0x1FFu));
    }
    if (bits >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7C00u);
    if (bits < 0x38800000u) {
      // 0.5 has the smallest denormal for its last place.
      const float placed = as_type<float>(bits) + 0.5f;
      return static_cast<uint16_t>(
          sign | (as_type<uint32_t>(placed) - as_type<uint32_t>(0.5f)));
    }
    bits += 0xFFFu + (bits >> 13 & 1);
    return static_cast<uint16_t>(sign | ((bits - (112u << 23)) >> 13));
  }
};

struct BfloatFormat {
  static float Widen(uint16_t bits) {
    return as_type<float>(uint32_t{bits} << 16);
  }
  static uint16_t Round(float value) {
    const uint32_t bits = as_type<uint32_t>(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
      return static_cast<uint16_t>(bits >> 16 | 0x40u);
    }
    return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
  }
};

// Towards zero, with the last bit set if that was not exact: rounded once more,
// to fewer bits, it is as if the value had been.
inline float RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (!(std::fabs(value) < HUGE_VAL) || back == value) return nearest;
  uint32_t bits = as_type<uint32_t>(nearest);
  if (std::fabs(back) > std::fabs(value)) --bits;
  return as_type<float>(bits | 1);
}

}  // namespace kernel_internal

// A float of 16 bits. An operation on two of them, or on one and an integer, is
// rounded once; with a float it gives a float, as in MSL. Converts from numbers
// by rounding once, too, and to float exactly.
template <class Format>
struct SmallFloat {
  uint16_t bits;

  SmallFloat() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  SmallFloat(T value) {  // NOLINT(runtime/explicit)
    if constexpr (std::is_same_v<T, float>) {
      bits = Format::Round(value);
    } else {
      bits = Format::Round(
          kernel_internal::RoundToOdd(static_cast<double>(value)));
    }
  }
  // Between the two formats.
  template <class F>
  explicit SmallFloat(SmallFloat<F> value)
      : SmallFloat(static_cast<float>(value)) {}

  operator float() const { return Format::Widen(bits); }  // NOLINT

  SmallFloat operator-() const { return SmallFloat(-Float()); }
  SmallFloat operator+() const { return *this; }
  SmallFloat& operator++() { return *this += 1; }
  SmallFloat& operator--() { return *this -= 1; }
  SmallFloat operator++(int) {
    const SmallFloat old = *this;
    ++*this;
    return old;
  }
  SmallFloat operator--(int) {
    const SmallFloat old = *this;
    --*this;
    return old;
  }

 private:
  float Float() const { return Format::Widen(bits); }
  // The other operand, and the result, of an operation with a T.
  template <class T>
  using With = std::enable_if_t<
      std::is_arithmetic_v<T>,
      std::conditional_t<std::is_floating_point_v<T>, T, SmallFloat>>;

 public:
#define SWITCHYARD_OPERATOR(op)                                              \
  friend SmallFloat operator op(SmallFloat a, SmallFloat b) {                \
    return SmallFloat(a.Float() op b.Float());                               \
  }                                                                          \
  template <class T>                                                         \
  friend With<T> operator op(SmallFloat a, T b) {                            \
    return With<T>(a) op With<T>(b);                                         \
  }                                                                          \
  template <class T>                                                         \
  friend With<T> operator op(T a, SmallFloat b) {                            \
    return With<T>(a) op With<T>(b);                                         \
  }                                                                          \
  template <class T>                                                         \
  SmallFloat& operator op##=(T&& value) {                                    \
    return *this = static_cast<SmallFloat>(*this op std::forward<T>(value)); \
  }
  SWITCHYARD_OPERATOR(+)
  SWITCHYARD_OPERATOR(-)
  SWITCHYARD_OPERATOR(*)
  SWITCHYARD_OPERATOR(/)
#undef SWITCHYARD_OPERATOR
#define SWITCHYARD_OPERATOR(op)                         \
  friend bool operator op(SmallFloat a, SmallFloat b) { \
    return a.Float() op b.Float();                      \
  }                                                     \
  template <class T, class W = With<T>>                 \
  friend bool operator op(SmallFloat a, T b) {          \
    return W(a) op W(b);                                \
  }                                                     \
  template <class T, class W = With<T>>                 \
  friend bool operator op(T a, SmallFloat b) {          \
    return W(a) op W(b);                                \
  }
  SWITCHYARD_OPERATOR(==)
  SWITCHYARD_OPERATOR(!=)
  SWITCHYARD_OPERATOR(<)
  SWITCHYARD_OPERATOR(<=)
  SWITCHYARD_OPERATOR(>)
  SWITCHYARD_OPERATOR(>=)
#undef SWITCHYARD_OPERATOR
};

using half = SmallFloat<kernel_internal::HalfFormat>;
using bfloat = SmallFloat<kernel_internal::BfloatFormat>;
static_assert(sizeof(half) == 2 && std::is_trivially_copyable_v<half>);

namespace kernel_internal {

// What can be added and compared.
template <class T>
constexpr bool kIsNumber = std::is_arithmetic_v<T>;
template <class Format>
constexpr bool kIsNumber<SmallFloat<Format>> = true;

template <class T>
bool IsNan(T value) {
  if constexpr (kIsNumber<T> && !std::is_integral_v<T>) {
    return value != value;
  } else {
    return false;
  }
}

}  // namespace kernel_internal
}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_FLOATS_H_
