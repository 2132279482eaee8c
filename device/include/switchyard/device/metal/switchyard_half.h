// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The scalar types of Metal that C++ lacks: half, bfloat and the short names
// of integers. Operations on halves are computed in float and rounded once to
// nearest even, which gives the correctly rounded result.
//
// The headers of this folder are compiled in two ways. For shaders
// (__METAL__) they are a part of Metal's standard library, and cannot include
// other headers. For kernels in C++ (kernel.h), any compiler compiles them.

#ifndef SWITCHYARD_DEVICE_METAL_SWITCHYARD_HALF_H_
#define SWITCHYARD_DEVICE_METAL_SWITCHYARD_HALF_H_

#ifndef __METAL__
#pragma GCC system_header  // Allows anonymous structs and Clang's pragmas.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#define SWITCHYARD_NOT_CHECKED
#endif

#ifdef __METAL__
using int8_t = __INT8_TYPE__;
using int16_t = __INT16_TYPE__;
using int32_t = __INT32_TYPE__;
using int64_t = __INT64_TYPE__;
using uint8_t = __UINT8_TYPE__;
using uint16_t = __UINT16_TYPE__;
using uint32_t = __UINT32_TYPE__;
using uint64_t = __UINT64_TYPE__;
using size_t = __SIZE_TYPE__;
using ptrdiff_t = __PTRDIFF_TYPE__;
using intptr_t = __INTPTR_TYPE__;
using uintptr_t = __UINTPTR_TYPE__;
using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
#endif

namespace switchyard_metal {

#ifdef __METAL__
template <class T>
constexpr bool kIsArithmetic = __is_arithmetic(T);
template <class T>
constexpr bool kIsIntegral = __is_integral(T);
template <class T>
constexpr bool kBecomesFloat = __is_convertible_to(T, float);
#else
using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
template <class T>
constexpr bool kIsArithmetic = std::is_arithmetic_v<T>;
template <class T>
constexpr bool kIsIntegral = std::is_integral_v<T>;
template <class T>
constexpr bool kBecomesFloat = std::is_convertible_v<T, float>;
#endif

struct HalfFormat {
  // Every half has an equal float. The code shifts the bits into place, and a
  // multiplication corrects the exponent's bias. The product is exact, and
  // subnormals become normal numbers.
  static constexpr float ToFloat(uint16_t bits) {
    const uint32_t shifted = static_cast<uint32_t>(bits & 0x7fff) << 13;
    uint32_t out = __builtin_bit_cast(
        uint32_t, __builtin_bit_cast(float, shifted) * 0x1p112f);
    if ((bits & 0x7c00) == 0x7c00) out |= 0x7f800000;
    out |= static_cast<uint32_t>(bits & 0x8000) << 16;
    return __builtin_bit_cast(float, out);
  }
  static constexpr uint16_t FromFloat(float value) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, value);
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t absolute = bits & 0x7fffffff;
    uint32_t out = 0;
    if (absolute >= 0x47800000) {  // 2^16 and more, infinity, NaN
      out = absolute > 0x7f800000 ? 0x7e00 | (absolute >> 13 & 0x1ff) : 0x7c00;
    } else if (absolute < 0x38800000) {  // below 2^-14: subnormal
      // The addition rounds the value, because the last bit of the sum is
      // 2^-24.
      const float sum = __builtin_bit_cast(float, absolute) + 0.5f;
      out = __builtin_bit_cast(uint32_t, sum) - 0x3f000000;
    } else {
      out = (absolute + 0xc8000fff + (absolute >> 13 & 1)) >> 13;
    }
    return static_cast<uint16_t>(sign | out);
  }
};

struct BfloatFormat {
  static constexpr float ToFloat(uint16_t bits) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
  static constexpr uint16_t FromFloat(float value) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, value);
    if ((bits & 0x7fffffff) > 0x7f800000) {
      return static_cast<uint16_t>(bits >> 16 | 0x40);
    }
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

// Rounds to odd: returns `value` if a float can hold it, and otherwise the
// neighbouring float with an odd last bit. Rounding the result again, to a
// smaller type, then gives the same as rounding `value` once.
constexpr float RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || value != value) return nearest;
  uint32_t bits = __builtin_bit_cast(uint32_t, nearest);
  // The value is beyond the largest float, so the half or bfloat is infinite
  // too.
  if ((bits & 0x7fffffff) == 0x7f800000) return nearest;
  if (value < 0 ? back < value : back > value) --bits;
  return __builtin_bit_cast(float, bits | 1);
}

// Rounds an integer to odd. A double cannot hold all integers of 64 bits, so
// all bits beyond its precision are combined into the last bit that it can
// hold.
template <class T>
constexpr float IntegerToOdd(T value) {
  if constexpr (sizeof(T) == 8) {
    const bool negative = value < 0;
    uint64_t bits = static_cast<uint64_t>(value);
    if (negative) bits = 0 - bits;
    if (bits >> 53 != 0) {
      bits = (bits >> 11 | ((bits & 0x7ff) != 0 ? 1 : 0)) << 11;
    }
    const double size = static_cast<double>(bits);
    return RoundToOdd(negative ? -size : size);
  } else {
    return RoundToOdd(static_cast<double>(value));
  }
}

template <class Format>
struct SmallFloat;

template <class T>
constexpr bool kIsSmallFloat = false;
template <class Format>
constexpr bool kIsSmallFloat<SmallFloat<Format>> = true;
template <class T>
constexpr bool kIsScalar = kIsArithmetic<T> || kIsSmallFloat<T>;

template <bool kIf, class T = void>
struct EnableIf {};
template <class T>
struct EnableIf<true, T> {
  using Type = T;
};
template <class T>
using IfScalar = typename EnableIf<kIsScalar<T>>::Type;

// half and bfloat convert implicitly to float and integers, but not to
// double, because some expressions would then be ambiguous.
template <class T>
constexpr bool kIsImplicit = __is_same(T, float) || kIsIntegral<T>;

template <class Format>
struct SmallFloat {
  SmallFloat() = default;
  template <class T, class = typename EnableIf<kIsArithmetic<T>>::Type>
  constexpr SmallFloat(T value) : bits_(FromAny(value)) {}
  // Converts from a class of numbers that a shader defines.
  template <class T,
            class = typename EnableIf<__is_class(T) && !kIsSmallFloat<T> &&
                                      kBecomesFloat<T>>::Type,
            class = void>
  // Takes the value by copy, because T's conversion to float may not be
  // const.
  constexpr SmallFloat(T value) : bits_(FromAny(static_cast<float>(value))) {}
  // Conversions between half and bfloat are explicit.
  template <class F>
  explicit constexpr SmallFloat(SmallFloat<F> value)
      : bits_(Format::FromFloat(F::ToFloat(value.Bits()))) {}

  template <class T, class = typename EnableIf<kIsImplicit<T>>::Type>
  constexpr operator T() const {
    return static_cast<T>(Format::ToFloat(bits_));
  }
  template <
      class T,
      class = typename EnableIf<kIsArithmetic<T> && !kIsImplicit<T>>::Type,
      class = void>
  explicit constexpr operator T() const {
    return static_cast<T>(Format::ToFloat(bits_));
  }

#define SWITCHYARD_SMALL_ASSIGNMENT(op)                     \
  template <class T>                                        \
  constexpr SmallFloat& operator op##=(T value) {           \
    return *this = static_cast<SmallFloat>(*this op value); \
  }
  SWITCHYARD_SMALL_ASSIGNMENT(+)
  SWITCHYARD_SMALL_ASSIGNMENT(-)
  SWITCHYARD_SMALL_ASSIGNMENT(*)
  SWITCHYARD_SMALL_ASSIGNMENT(/)
#undef SWITCHYARD_SMALL_ASSIGNMENT
  constexpr SmallFloat& operator++() { return *this += 1.0f; }
  constexpr SmallFloat& operator--() { return *this -= 1.0f; }
  constexpr SmallFloat operator++(int) {
    const SmallFloat before = *this;
    ++*this;
    return before;
  }
  constexpr SmallFloat operator--(int) {
    const SmallFloat before = *this;
    --*this;
    return before;
  }
  constexpr SmallFloat operator-() const { return FromBits(bits_ ^ 0x8000); }
  constexpr SmallFloat operator+() const { return *this; }

  static constexpr SmallFloat FromBits(uint32_t bits) {
    SmallFloat result(0.0f);
    result.bits_ = static_cast<uint16_t>(bits);
    return result;
  }
  constexpr uint16_t Bits() const { return bits_; }

 private:
  template <class T>
  static constexpr uint16_t FromAny(T value) {
    // A double, or an integer that a float cannot hold, is first rounded to
    // odd, to avoid rounding twice.
    if constexpr (__is_same(T, double) || __is_same(T, long double)) {
      return Format::FromFloat(RoundToOdd(static_cast<double>(value)));
    } else if constexpr (kIsIntegral<T> && sizeof(T) > 2) {
      return Format::FromFloat(IntegerToOdd(value));
    } else {
      return Format::FromFloat(static_cast<float>(value));
    }
  }
  uint16_t bits_;
};

using half = SmallFloat<HalfFormat>;
using bfloat = SmallFloat<BfloatFormat>;

// The result type of an operation on a half or bfloat and another scalar. If
// the other scalar has the same type or is an integer, the result type is the
// half or bfloat; otherwise it is float.
template <class A, class B>
struct SmallResult {};
template <class F>
struct SmallResult<SmallFloat<F>, SmallFloat<F>> {
  using Type = SmallFloat<F>;
};
template <>
struct SmallResult<half, bfloat> : EnableIf<true, float> {};
template <>
struct SmallResult<bfloat, half> : EnableIf<true, float> {};
template <class F, class B>
struct SmallResult<SmallFloat<F>, B>
    : EnableIf<kIsArithmetic<B> || __is_enum(B),
               typename SmallResult<SmallFloat<F>, SmallFloat<F>>::Type> {};
template <class F>
struct SmallResult<SmallFloat<F>, float> : EnableIf<true, float> {};
template <class F>
struct SmallResult<SmallFloat<F>, double> : EnableIf<true, float> {};
template <class F, class A>
struct SmallResult<A, SmallFloat<F>> : SmallResult<SmallFloat<F>, A> {};

#define SWITCHYARD_SMALL_OPERATOR(op)                                      \
  template <class A, class B, class R = typename SmallResult<A, B>::Type>  \
  constexpr R operator op(A a, B b) {                                      \
    return static_cast<R>(static_cast<float>(a) op static_cast<float>(b)); \
  }
SWITCHYARD_SMALL_OPERATOR(+)
SWITCHYARD_SMALL_OPERATOR(-)
SWITCHYARD_SMALL_OPERATOR(*)
SWITCHYARD_SMALL_OPERATOR(/)
#undef SWITCHYARD_SMALL_OPERATOR

// Compound assignments to a C++ number, with a half or bfloat on the right
// side. The number keeps its type.
#define SWITCHYARD_SMALL_ASSIGNMENT(op)                        \
  template <class A, class Format,                             \
            class = typename EnableIf<kIsArithmetic<A>>::Type> \
  constexpr A& operator op##=(A& a, SmallFloat<Format> b) {    \
    return a = static_cast<A>(a op b);                         \
  }
SWITCHYARD_SMALL_ASSIGNMENT(+)
SWITCHYARD_SMALL_ASSIGNMENT(-)
SWITCHYARD_SMALL_ASSIGNMENT(*)
SWITCHYARD_SMALL_ASSIGNMENT(/)
#undef SWITCHYARD_SMALL_ASSIGNMENT

#define SWITCHYARD_SMALL_COMPARISON(op)                                   \
  template <class A, class B, class R = typename SmallResult<A, B>::Type> \
  constexpr bool operator op(A a, B b) {                                  \
    return static_cast<float>(a) op static_cast<float>(b);                \
  }
SWITCHYARD_SMALL_COMPARISON(==)
SWITCHYARD_SMALL_COMPARISON(!=)
SWITCHYARD_SMALL_COMPARISON(<)
SWITCHYARD_SMALL_COMPARISON(>)
SWITCHYARD_SMALL_COMPARISON(<=)
SWITCHYARD_SMALL_COMPARISON(>=)
#undef SWITCHYARD_SMALL_COMPARISON

}  // namespace switchyard_metal

#ifdef __METAL__
using switchyard_metal::bfloat;
using switchyard_metal::half;

#pragma clang diagnostic ignored "-Wuser-defined-literals"
#pragma clang diagnostic ignored "-Wreserved-user-defined-literal"
constexpr half operator""h(long double value) {
  return static_cast<double>(value);
}
constexpr half operator""h(unsigned long long value) { return value; }
constexpr half operator"" H(long double value) {
  return static_cast<double>(value);
}
constexpr bfloat operator"" bf(long double value) {
  return static_cast<double>(value);
}
constexpr bfloat operator"" BF(long double value) {
  return static_cast<double>(value);
}

namespace metal {
using ::bfloat, ::half, ::uchar, ::ushort, ::uint, ::ulong, ::size_t,
    ::ptrdiff_t, ::int8_t, ::int16_t, ::int32_t, ::int64_t, ::uint8_t,
    ::uint16_t, ::uint32_t, ::uint64_t;
}  // namespace metal
#endif  // __METAL__

#endif  // SWITCHYARD_DEVICE_METAL_SWITCHYARD_HALF_H_
