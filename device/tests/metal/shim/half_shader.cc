// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes with half and bfloat. The test compares the results with the
// host's arithmetic.

#include <metal_stdlib>

using namespace metal;

#define SHIM_SMALL(T)                                                          \
  extern "C" void T##_to_float(const ushort* in, float* out, ulong n) {        \
    for (ulong i = 0; i < n; ++i) out[i] = as_type<T>(in[i]);                  \
  }                                                                            \
  extern "C" void T##_from_float(const float* in, ushort* out, ulong n) {      \
    for (ulong i = 0; i < n; ++i) out[i] = as_type<ushort>(T(in[i]));          \
  }                                                                            \
  extern "C" void T##_from_double(const double* in, ushort* out, ulong n) {    \
    for (ulong i = 0; i < n; ++i) out[i] = as_type<ushort>(T(in[i]));          \
  }                                                                            \
  extern "C" void T##_from_int(const int* in, ushort* out, ulong n) {          \
    for (ulong i = 0; i < n; ++i) out[i] = as_type<ushort>(T(in[i]));          \
  }                                                                            \
  extern "C" void T##_from_long(const long* in, ushort* out, ulong n) {        \
    for (ulong i = 0; i < n; ++i) out[i] = as_type<ushort>(T(in[i]));          \
  }                                                                            \
  /* Sum, difference, product, quotient, square root, fma, and tests. */       \
  extern "C" void T##_arithmetic(const ushort* in_a, const ushort* in_b,       \
                                 ushort* out, ulong n) {                       \
    for (ulong i = 0; i < n; ++i) {                                            \
      const T a = as_type<T>(in_a[i]), b = as_type<T>(in_b[i]);                \
      const T results[] = {a + b, a - b, a * b, a / b, sqrt(a), fma(a, b, a)}; \
      for (int k = 0; k < 6; ++k)                                              \
        out[8 * i + k] = as_type<ushort>(results[k]);                          \
      out[8 * i + 6] = (a < b) | (a > b) << 1 | (a == b) << 2 |                \
                       (a != b) << 3 | (a <= b) << 4 | (a >= b) << 5;          \
      out[8 * i + 7] = as_type<ushort>(-a);                                    \
    }                                                                          \
  }
SHIM_SMALL(half)
SHIM_SMALL(bfloat)

static_assert(sizeof(half) == 2 && sizeof(bfloat) == 2);
static_assert(is_same_v<decltype(half() + half()), half>);
static_assert(is_same_v<decltype(half() * 2), half>);
static_assert(is_same_v<decltype(half() * 2.0f), float>);
static_assert(is_same_v<decltype(1.0f - bfloat()), float>);
static_assert(is_same_v<decltype(half() + bfloat()), float>);
static_assert(is_floating_point_v<half> && is_floating_point_v<bfloat>);
static_assert(is_convertible_v<half, float> && is_convertible_v<float, half>);

// The compiler evaluates the following assertions.
constexpr half kHalf = 0.1h;
static_assert(kHalf == 0x1.998p-4f);
static_assert(half(2049) == 2048.0f && half(2051) == 2052.0f);
static_assert(1.5h * 3 == 4.5f);
static_assert(numeric_limits<half>::max() == 65504.0f);
static_assert(numeric_limits<bfloat>::lowest() == -0x1.fep127f);
static_assert(numeric_limits<half>::infinity() > HALF_MAX);

// These conditional expressions have operands of two types. The translation
// of shaders writes them in this form.
using switchyard_metal::Arm;
using switchyard_metal::Either;
extern "C" float conditional(const half* h, float f, bool c) {
  const auto mixed = Either(c ? (h[0], Arm()) : (f, Arm()));
  const auto other = Either(c ? (f, Arm()) : (h[0], Arm()));
  const auto zero = Either(c ? 0 : (h[0], Arm()));
  const auto both = Either(c ? (h[0], Arm()) : (h[1], Arm()));
  static_assert(is_same_v<decltype(mixed), const float>);
  static_assert(is_same_v<decltype(other), const float>);
  static_assert(is_same_v<decltype(zero), const half>);
  static_assert(is_same_v<decltype(both), const half>);
  return mixed + 10.0f * other + 100.0f * zero + 10000.0f * both;
}
// Mixes halves with other types.
extern "C" float mixture(half h, int i, float f) {
  f += h;
  f *= h;
  h += 1;
  h /= 2.0f;
  h++;
  uint u = h;
  i = half(2.75f);
  if (h) u += 10;
  return f + 1000 * u + 100000 * (h > i);
}
