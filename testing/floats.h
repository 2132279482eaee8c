// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Encodes and decodes the small floats (bf16, f16, f8) by their definitions.
// Integer arithmetic is used, so that the rounding mode and flush-to-zero
// cannot change the results.

#ifndef SWITCHYARD_TESTING_FLOATS_H_
#define SWITCHYARD_TESTING_FLOATS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "switchyard/types.h"
#include "switchyard/views.h"
#include "testing/inputs.h"

namespace switchyard::reference {

// A binary float smaller than f32, with denormals. With m mantissa bits, code
// (e << m) + n stands for (2^m + n) * 2^(e - 1 + min_exponent - m) or, if e
// is 0, for n * 2^(min_exponent - m).
struct SmallFloat {
  int mantissa_bits;
  int min_exponent;
  uint32_t sign;     // the sign bit
  uint32_t largest;  // the code of the largest finite number
  bool infinity;     // the code after `largest` is infinity, not NaN
  bool saturates;    // Encode() returns `largest` for larger numbers
  uint32_t nan;      // the code that Encode() returns for a NaN

  // Rounds x to the nearest code, and ties to the even code.
  uint32_t Encode(double x) const {
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    const uint32_t signed_zero = bits >> 63 != 0 ? sign : 0;
    const uint32_t overflow = saturates ? largest : largest + 1;
    if (std::isnan(x)) return nan;
    if (std::isinf(x)) return signed_zero | overflow;
    // |x| = significand * 2^from is rounded to a multiple of 2^to.
    const int field = static_cast<int>(bits >> 52 & 0x7FF);
    uint64_t significand = bits & ((uint64_t{1} << 52) - 1);
    if (field != 0) significand |= uint64_t{1} << 52;
    const int exponent = std::max(field - 1023, min_exponent);
    const int from = std::max(field, 1) - 1075, to = exponent - mantissa_bits;
    const int dropped = std::min(to - from, 62);
    const uint64_t unit = uint64_t{1} << dropped;
    const uint64_t rest = significand & (unit - 1);
    uint64_t units = significand >> dropped;
    if (2 * rest > unit || (2 * rest == unit && units % 2 == 1)) ++units;
    // `units` includes the implicit leading bit, except for denormals. The
    // addition below adds this bit to the exponent field. If rounding carries
    // out of the mantissa, the carry goes to the exponent field, too. The
    // code is right in either case.
    const uint64_t code =
        (static_cast<uint64_t>(exponent - min_exponent) << mantissa_bits) +
        units;
    return signed_zero |
           (code > largest ? overflow : static_cast<uint32_t>(code));
  }
  float Decode(uint32_t bits) const {
    // bf16 has as many exponent bits as f32, so that a shift decodes it.
    if (min_exponent == -126) {
      return testing_support::FromBits(bits << (23 - mantissa_bits));
    }
    const uint32_t magnitude = bits & (sign - 1);
    double value = testing_support::kNaN;
    if (magnitude <= largest) {
      const int exponent = static_cast<int>(magnitude >> mantissa_bits);
      uint32_t significand = magnitude & ((1u << mantissa_bits) - 1);
      if (exponent != 0) significand |= 1u << mantissa_bits;
      value = std::ldexp(significand, std::max(exponent, 1) + min_exponent - 1 -
                                          mantissa_bits);
    } else if (infinity && magnitude == largest + 1) {
      value = testing_support::kInf;
    }
    return static_cast<float>((bits & sign) != 0 ? -value : value);
  }
};
constexpr SmallFloat kBF16 = {7, -126, 0x8000, 0x7F7F, true, false, 0x7FC0};
constexpr SmallFloat kF16 = {10, -14, 0x8000, 0x7BFF, true, false, 0x7E00};
constexpr SmallFloat kF8E4M3 = {3, -6, 0x80, 0x7E, false, true, 0x7F};
constexpr SmallFloat kF8E5M2 = {2, -14, 0x80, 0x7B, true, true, 0x7F};
inline const SmallFloat* SmallFloatOf(Type type) {
  switch (type) {
    case Type::kBF16:
      return &kBF16;
    case Type::kF16:
      return &kF16;
    case Type::kF8E4M3:
      return &kF8E4M3;
    case Type::kF8E5M2:
      return &kF8E5M2;
    default:
      return nullptr;
  }
}

}  // namespace switchyard::reference

namespace switchyard::testing_support {

// Returns a stored value as a float, which is always exact.
inline float Widen(float f) { return f; }
inline float Widen(BFloat16 f) { return reference::kBF16.Decode(f.bits); }
inline float Widen(Float16 f) { return reference::kF16.Decode(f.bits); }
inline float Widen(int8_t code) { return static_cast<float>(code); }
// uint8 codes have a zero point of 128.
inline float Widen(uint8_t code) { return static_cast<float>(code) - 128.0f; }
inline float Widen(Float8E4M3 f) { return reference::kF8E4M3.Decode(f.bits); }
inline float Widen(Float8E5M2 f) { return reference::kF8E5M2.Decode(f.bits); }

// Converts to double exactly, even in a mode that reads denormals as zeros.
inline double Exact(float f) {
  const uint32_t bits = Bits(f);
  if ((bits & 0x7F800000) != 0) return double{f};
  const double magnitude = std::ldexp(bits & 0x7FFFFF, -149);
  return bits >> 31 != 0 ? -magnitude : magnitude;
}

// Rounds to the nearest T, ties to even. Numbers beyond T's range become
// infinity in bf16 and f16, and the largest code in f8 and integers. NaN
// becomes 0 in integers.
template <class T>
T Round(float f);
template <>
inline float Round<float>(float f) {
  return f;
}
template <>
inline BFloat16 Round<BFloat16>(float f) {
  return {static_cast<uint16_t>(reference::kBF16.Encode(Exact(f)))};
}
template <>
inline Float16 Round<Float16>(float f) {
  return {static_cast<uint16_t>(reference::kF16.Encode(Exact(f)))};
}
template <>
inline Float8E4M3 Round<Float8E4M3>(float f) {
  return {static_cast<uint8_t>(reference::kF8E4M3.Encode(Exact(f)))};
}
template <>
inline Float8E5M2 Round<Float8E5M2>(float f) {
  return {static_cast<uint8_t>(reference::kF8E5M2.Encode(Exact(f)))};
}
template <>
inline int8_t Round<int8_t>(float f) {
  if (std::isnan(f)) return 0;
  const float code = std::min(std::max(f, -127.0f), 127.0f);
  return static_cast<int8_t>(std::lrint(code));
}
template <>
inline uint8_t Round<uint8_t>(float f) {
  return static_cast<uint8_t>(Round<int8_t>(f) + 128);
}
// Returns f(T()) for the element type T of `type`: a float of any size or a
// code of one byte.
template <class F>
auto WithElement(Type type, const F& f) {
  switch (type) {
    case Type::kBF16:
      return f(BFloat16());
    case Type::kF16:
      return f(Float16());
    case Type::kI8:
      return f(int8_t());
    case Type::kU8:
      return f(uint8_t());
    case Type::kF8E4M3:
      return f(Float8E4M3());
    case Type::kF8E5M2:
      return f(Float8E5M2());
    default:
      return f(float());
  }
}
// Returns element i of the array of `type` at `data`, as a float.
inline float WidenAt(Type type, const void* data, size_t i) {
  return WithElement(type, [&](auto element) {
    return Widen(static_cast<const decltype(element)*>(data)[i]);
  });
}
inline void RoundAt(Type type, float f, void* data, size_t i) {
  WithElement(type, [&](auto element) {
    using T = decltype(element);
    static_cast<T*>(data)[i] = Round<T>(f);
  });
}
// Returns the number that is read back after `f` is stored as `type`.
inline float Rounded(Type type, float f) {
  return WithElement(
      type, [f](auto element) { return Widen(Round<decltype(element)>(f)); });
}
inline std::vector<float> Rounded(Type type, std::vector<float> values) {
  for (float& f : values) f = Rounded(type, f);
  return values;
}

// An array of `type` that holds `values`, rounded to that type.
class Stored {
 public:
  Stored(Type type, const std::vector<float>& values)
      : type_(type), bytes_(values.size() * SizeOf(type)) {
    for (size_t i = 0; i < values.size(); ++i) {
      RoundAt(type, values[i], bytes_.data(), i);
    }
  }

  AnyMatrix View(size_t rows, size_t cols) {
    return {static_cast<void*>(bytes_.data()), type_, rows, cols, cols};
  }
  std::vector<float> Values() const {
    std::vector<float> values(bytes_.size() / SizeOf(type_));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = WidenAt(type_, bytes_.data(), i);
    }
    return values;
  }

 private:
  Type type_;
  std::vector<unsigned char> bytes_;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_FLOATS_H_
