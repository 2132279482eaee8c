// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The small floats: by their definition, and bit by bit, in integers, whatever
// the rounding mode and flush-to-zero are.

#ifndef SWITCHYARD_TESTING_FLOATS_H_
#define SWITCHYARD_TESTING_FLOATS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "switchyard/types.h"
#include "switchyard/views.h"
#include "testing/inputs.h"

namespace switchyard::reference {

// A binary float of fewer bits than f32, with denormals: code (e << m) + n
// stands for (2^m + n) * 2^(e - 1 + min_exponent - m), or where e is 0 for
// n * 2^(min_exponent - m).
struct SmallFloat {
  int mantissa_bits;
  int min_exponent;
  uint32_t sign;     // the bit
  uint32_t largest;  // the code of the largest number
  bool infinity;     // the code behind it; the others are NaNs
  bool saturates;    // when encoding
  uint32_t nan;      // the one that is encoded to

  // To nearest, ties to even.
  uint32_t Encode(double x) const;
  float Decode(uint32_t bits) const;
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

// A format of IEEE's kind: a sign, exponent bits, mantissa bits.
template <int kExponent, int kMantissa>
struct FloatFormat {
  static constexpr uint32_t kSign = 1u << (kExponent + kMantissa);
  static constexpr uint32_t kInfinity = ((1u << kExponent) - 1) << kMantissa;
  static constexpr uint32_t kQuietNaN = kInfinity | 1u << (kMantissa - 1);
  // The smallest number above zero is 2^kLeast.
  static constexpr int kLeast = 2 - (1 << (kExponent - 1)) - kMantissa;

  // There are no infinities and NaNs: every exponent is a number's.
  static float WidenFinite(uint32_t bits) {
    const uint32_t magnitude = bits & (kSign - 1);
    const auto exponent = static_cast<int>(magnitude >> kMantissa);
    uint32_t significand = magnitude & ((1u << kMantissa) - 1);
    if (exponent != 0) significand |= 1u << kMantissa;
    // A double, so that flush-to-zero finds no denormal on the way.
    const double value = std::ldexp(static_cast<double>(significand),
                                    std::max(exponent, 1) - 1 + kLeast);
    return (bits & kSign) != 0 ? static_cast<float>(-value)
                               : static_cast<float>(value);
  }
  static float Widen(uint32_t bits) {
    const uint32_t magnitude = bits & (kSign - 1);
    if (magnitude > kInfinity) return kNaN;
    if (magnitude < kInfinity) return WidenFinite(bits);
    return (bits & kSign) != 0 ? -kInf : kInf;
  }

  // To nearest, ties to even, without an end: what is too large gets bits of
  // kInfinity or more. Not for a NaN or an infinity.
  static uint32_t RoundMagnitude(uint32_t bits) {
    using Single = FloatFormat<8, 23>;
    const uint32_t magnitude = bits & (Single::kSign - 1);
    const int exponent = std::max(1, static_cast<int>(magnitude >> 23));
    uint64_t significand = magnitude & ((1u << 23) - 1);
    if (magnitude >> 23 != 0) significand |= 1u << 23;
    // |x| = significand * 2^from. The result is a multiple of 2^to.
    const int from = exponent - 1 + Single::kLeast;
    const int to = std::max(from + 23 - kMantissa, kLeast);
    const int dropped = std::min(to - from, 40);
    const uint64_t unit = uint64_t{1} << dropped;
    const uint64_t rest = significand % unit;
    uint64_t rounded = significand / unit;
    if (2 * rest > unit || (2 * rest == unit && rounded % 2 == 1)) ++rounded;
    // A carry out of the mantissa is the exponent's next.
    return static_cast<uint32_t>(rounded) +
           (static_cast<uint32_t>(to - kLeast) << kMantissa);
  }
  // Every NaN becomes the same.
  static uint32_t Round(float f) {
    const uint32_t bits = Bits(f), sign = bits >> 31 != 0 ? kSign : 0;
    if (std::isnan(f)) return kQuietNaN;
    if (std::isinf(f)) return sign | kInfinity;
    return sign | std::min(RoundMagnitude(bits), kInfinity);
  }
};
using BFloat16Format = FloatFormat<8, 7>;
using Float16Format = FloatFormat<5, 10>;

// The stored value as a float: exact.
inline float Widen(float f) { return f; }
inline float Widen(BFloat16 f) { return FromBits(uint32_t{f.bits} << 16); }
inline float Widen(Float16 f) { return Float16Format::Widen(f.bits); }
inline float Widen(int8_t code) { return static_cast<float>(code); }
// uint8 codes have a zero point.
inline float Widen(uint8_t code) { return static_cast<float>(code) - 128.0f; }
inline float Widen(Float8E4M3 f) {
  return (f.bits & 0x7F) == 0x7F ? kNaN
                                 : FloatFormat<4, 3>::WidenFinite(f.bits);
}
inline float Widen(Float8E5M2 f) { return FloatFormat<5, 2>::Widen(f.bits); }

// The nearest T, ties to even. Beyond its range bf16 and f16 have infinity,
// codes their largest; integers have 0 for NaN.
template <class T>
T Round(float f);
template <>
inline float Round<float>(float f) {
  return f;
}
template <>
inline BFloat16 Round<BFloat16>(float f) {
  return {static_cast<uint16_t>(BFloat16Format::Round(f))};
}
template <>
inline Float16 Round<Float16>(float f) {
  return {static_cast<uint16_t>(Float16Format::Round(f))};
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
template <>
inline Float8E4M3 Round<Float8E4M3>(float f) {
  using Bits8 = FloatFormat<4, 3>;
  const uint32_t sign = std::signbit(f) ? Bits8::kSign : 0;
  const uint32_t magnitude =
      std::isnan(f) ? 0x7F : std::min(0x7Eu, Bits8::RoundMagnitude(Bits(f)));
  return {static_cast<uint8_t>(sign | magnitude)};
}
template <>
inline Float8E5M2 Round<Float8E5M2>(float f) {
  using Bits8 = FloatFormat<5, 2>;
  const uint32_t sign = std::signbit(f) ? Bits8::kSign : 0;
  const uint32_t magnitude =
      std::isnan(f) ? Bits8::kQuietNaN
                    : std::min(0x7Bu, Bits8::RoundMagnitude(Bits(f)));
  return {static_cast<uint8_t>(sign | magnitude)};
}

// f(T()) for the T of `type`: a float of any size, or a code of one byte.
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
// The i-th of the elements of `type` at `data`.
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
// The value of a number after it is stored in `type`.
inline float Rounded(Type type, float f) {
  return WithElement(
      type, [f](auto element) { return Widen(Round<decltype(element)>(f)); });
}
inline std::vector<float> Rounded(Type type, std::vector<float> values) {
  for (float& f : values) f = Rounded(type, f);
  return values;
}

// Numbers in memory of `type`, rounded to it.
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
