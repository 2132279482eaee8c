// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// half, bfloat and vectors of kernels: their bits, their layout, and one
// rounding per operation.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/kernel.h"
#include "tests/device/kernel_test.h"

namespace switchyard::testing_support {
namespace {

template <class F>
F FromBits(uint32_t bits) {
  return as_type<F>(static_cast<uint16_t>(bits));
}

// By the definition of the format.
template <class F>
double Value(uint32_t bits) {
  constexpr bool kHalf = std::is_same_v<F, half>;
  constexpr int kMantissa = kHalf ? 10 : 7, kBias = kHalf ? 15 : 127;
  const int exponent = static_cast<int>(bits & 0x7FFF) >> kMantissa;
  const int mantissa = static_cast<int>(bits) & ((1 << kMantissa) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (kHalf ? 31 : 255)) {
    return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  }
  if (exponent == 0) {
    return sign * std::ldexp(mantissa, 1 - kBias - kMantissa);
  }
  return sign *
         std::ldexp(mantissa + (1 << kMantissa), exponent - kBias - kMantissa);
}

template <class F>
class SmallFloats : public testing::Test {};
using Formats = testing::Types<half, bfloat>;
TYPED_TEST_SUITE(SmallFloats, Formats, );

TYPED_TEST(SmallFloats, EveryBitPatternConvertsExactlyAndBack) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const TypeParam f = FromBits<TypeParam>(bits);
    const double want = Value<TypeParam>(bits);
    const float got = f;
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(got)))) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(got), want) << bits;
    ASSERT_EQ(std::signbit(got), (bits & 0x8000) != 0) << bits;
    ASSERT_EQ(TypeParam(got).bits, bits);
  }
}

// Between each two neighbours: below the middle, in it (to the even one), and
// above; from float, and from double, where the middle is missed by less than
// a float can tell.
TYPED_TEST(SmallFloats, RoundsToNearestEven) {
  const uint32_t infinity = TypeParam(HUGE_VALF).bits;
  ASSERT_TRUE(std::isinf(Value<TypeParam>(infinity)));
  for (uint32_t bits = 0; bits < infinity; ++bits) {
    const double low = Value<TypeParam>(bits);
    // What would follow the largest, if the exponent went on.
    const double high = bits + 1 == infinity
                            ? 2 * low - Value<TypeParam>(bits - 1)
                            : Value<TypeParam>(bits + 1);
    const double middle = low + (high - low) / 2;
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    for (const uint32_t sign : {0u, 0x8000u}) {
      const double s = sign != 0 ? -1.0 : 1.0;
      const float exact = static_cast<float>(middle);
      if (static_cast<double>(exact) == middle) {
        ASSERT_EQ(TypeParam(static_cast<float>(s) * exact).bits, even | sign);
        ASSERT_EQ(
            TypeParam(static_cast<float>(s) * std::nextafter(exact, 0.0f)).bits,
            bits | sign);
        ASSERT_EQ(
            TypeParam(static_cast<float>(s) * std::nextafter(exact, HUGE_VALF))
                .bits,
            (bits + 1) | sign);
      }
      ASSERT_EQ(TypeParam(s * middle).bits, even | sign);
      ASSERT_EQ(TypeParam(s * std::nextafter(middle, 0.0)).bits, bits | sign);
      ASSERT_EQ(TypeParam(s * std::nextafter(middle, HUGE_VAL)).bits,
                (bits + 1) | sign);
    }
  }
  EXPECT_EQ(TypeParam(std::numeric_limits<double>::max()).bits, infinity);
  EXPECT_EQ(TypeParam(-HUGE_VAL).bits, infinity | 0x8000);
  EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(std::nan("")))));
}

TYPED_TEST(SmallFloats, Integers) {
  for (int i = -300; i <= 300; ++i) {
    ASSERT_EQ(TypeParam(i).bits, TypeParam(static_cast<float>(i)).bits);
  }
  // 2^24 + 1 is no float, and just above the middle of two bfloats.
  EXPECT_EQ(bfloat((1 << 24) + (1 << 16) + 1).bits,
            bfloat(16777216.0f).bits + 1);
  EXPECT_EQ(half(65519).bits, 0x7BFF);
  EXPECT_EQ(half(65520u).bits, 0x7C00);
}

// An operation is that of exact numbers, rounded once.
TYPED_TEST(SmallFloats, Arithmetic) {
  uint32_t state = 1;
  const auto next = [&state] {
    state = state * 1664525u + 1013904223u;
    return FromBits<TypeParam>(state >> 16);
  };
  for (int i = 0; i < 200000; ++i) {
    const TypeParam a = next(), b = next();
    const double x = static_cast<float>(a), y = static_cast<float>(b);
    const auto expect = [&](TypeParam got, double want) {
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(static_cast<float>(got)));
      } else {
        ASSERT_EQ(got.bits, TypeParam(want).bits) << x << " " << y;
      }
    };
    // The sum of two doubles far apart is not exact, but far from a middle.
    expect(a + b, x + y);
    expect(a - b, x - y);
    expect(a * b, x * y);
    expect(a / b, x / y);
    expect(-a, -x);
    TypeParam c = a;
    c += b;
    expect(c, x + y);
    c *= 3;
    expect(c, 3.0 * static_cast<double>(static_cast<float>(a + b)));
    ASSERT_EQ(a < b, x < y);
    ASSERT_EQ(a >= b, x >= y);
    ASSERT_EQ(a == b, x == y);
    ASSERT_EQ(a != b, x != y);
  }
}

TYPED_TEST(SmallFloats, TypesOfResults) {
  const TypeParam a = 1.5f;
  static_assert(std::is_same_v<decltype(a + a), TypeParam>);
  static_assert(std::is_same_v<decltype(a + 1), TypeParam>);
  static_assert(std::is_same_v<decltype(2u * a), TypeParam>);
  static_assert(std::is_same_v<decltype(a * 1.0f), float>);
  static_assert(std::is_same_v<decltype(1.0f / a), float>);
  static_assert(sizeof(TypeParam) == 2 && alignof(TypeParam) == 2);
  // With a float the small one is widened, and nothing is rounded to it.
  EXPECT_EQ(a * 1.0009765f, 1.5f * 1.0009765f);
  EXPECT_EQ(std::sqrt(TypeParam(4)), 2.0f);
  TypeParam b = 2;
  EXPECT_EQ(static_cast<float>(b++), 2.0f);
  EXPECT_EQ(static_cast<float>(--b), 2.0f);
  EXPECT_TRUE(b > 1.5f);
  EXPECT_TRUE(1 < b);
}

TEST(Vectors, LayoutIsMsls) {
  static_assert(sizeof(float2) == 8 && alignof(float2) == 8);
  static_assert(sizeof(float3) == 16 && alignof(float3) == 16);
  static_assert(sizeof(float4) == 16 && alignof(float4) == 16);
  static_assert(sizeof(half2) == 4 && alignof(half2) == 4);
  static_assert(sizeof(half3) == 8 && alignof(half3) == 8);
  static_assert(sizeof(bfloat4) == 8 && alignof(bfloat4) == 8);
  static_assert(sizeof(uchar4) == 4 && alignof(uchar4) == 4);
  static_assert(sizeof(char3) == 4 && sizeof(short2) == 4);
  static_assert(sizeof(ushort4) == 8 && sizeof(int3) == 16);
  static_assert(sizeof(uint2) == 8 && sizeof(ulong2) == 16);
  static_assert(sizeof(long3) == 32 && sizeof(bool4) == 4);
  static_assert(std::is_trivially_copyable_v<float3>);
  const float4 v(1, 2, 3, 4);
  float floats[4];
  std::memcpy(floats, &v, sizeof(v));
  EXPECT_EQ(floats[0], 1.0f);
  EXPECT_EQ(floats[3], 4.0f);
}

TEST(Vectors, ElementByElement) {
  float4 a(1, 2, 3, 4);
  const float4 b = 2.0f;
  EXPECT_TRUE(all(b == float4(2, 2, 2, 2)));
  EXPECT_TRUE(all(a + b == float4(3, 4, 5, 6)));
  EXPECT_TRUE(all(a * 2 - b / 4.0f == float4(1.5f, 3.5f, 5.5f, 7.5f)));
  EXPECT_TRUE(all(1.0f - a == float4(0, -1, -2, -3)));
  EXPECT_TRUE(all(-a == float4(-1, -2, -3, -4)));
  EXPECT_FALSE(all(a == b));
  EXPECT_TRUE(any(a == b));
  EXPECT_FALSE(any(a > 4.0f));
  EXPECT_TRUE((a < 3.0f)[1]);
  EXPECT_FALSE((a < 3.0f)[2]);
  EXPECT_EQ(dot(a, b), 20.0f);
  a += b;
  a *= 2.0f;
  a[3] = a.x;
  a.y = -1;
  EXPECT_TRUE(all(a == float4(6, -1, 10, 6)));
  EXPECT_TRUE(all(max(a, 0.0f) == float4(6, 0, 10, 6)));
  EXPECT_TRUE(all(min(a, float4(NAN)) == a));
  EXPECT_TRUE(all(max(float4(NAN), a) == a));

  const uint3 u = uint3(7, 8, 9) & 3u;
  EXPECT_TRUE(all(u == uint3(3, 0, 1)));
  EXPECT_TRUE(all(~u == uint3(~3u, ~0u, ~1u)));
  EXPECT_TRUE(all((u << 1 | uint3(1)) == uint3(7, 1, 3)));
  EXPECT_TRUE(all(int2(7, -7) % int2(4) == int2(3, -3)));
  EXPECT_TRUE(all(uchar2(uint8_t{200}, uint8_t{3}) + uint8_t{100} ==
                  uchar2(uint8_t{44}, uint8_t{103})));
  EXPECT_TRUE(all(float3(float2(1, 2), 3.0f) == float3(1, 2, 3)));
  EXPECT_TRUE(all(float3(1.0f, float2(2, 3)) == float3(1, 2, 3)));
  EXPECT_TRUE(all(float4(float2(1, 2), float2(3, 4)) == float4(1, 2, 3, 4)));
  EXPECT_TRUE(all(float4(float3(1, 2, 3), 4.0f) == float4(1, 2, 3, 4)));
  EXPECT_TRUE(all(int4(float4(1.9f, -1.9f, 0, 7)) == int4(1, -1, 0, 7)));
  EXPECT_TRUE(all(!bool2(false, false)));

  // Each element of half is rounded on its own.
  const half4 h = half4(half(2048), half(1), half(2), half(3)) + half(1);
  EXPECT_EQ(static_cast<float>(h.x), 2048.0f);
  EXPECT_EQ(static_cast<float>(h.w), 4.0f);
  EXPECT_EQ(static_cast<float>((h * 0.5f).y), 1.0f);
  EXPECT_TRUE(all(float4(h) == float4(2048, 2, 3, 4)));
}

using DeviceKernelTypes = KernelTest;

// Through pointers, plain or checked.
const auto kHalves = [](auto& tg) {
  const auto in = buffer<const half>(tg, 0);
  const auto out = buffer<half>(tg, 1);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    out[i] = in[i] * in[i];
    out[i] += in[i];
    out[i] = out[i] * 0.5f;
    half h = in[i];
    h += out[i];
    h -= 1.0f;
    if (in[i] < 3.0f) out[i] = h;
    out[i]++;
  });
};

TEST_P(DeviceKernelTypes, HalvesInMemory) {
  std::vector<half> in(64);
  for (size_t i = 0; i < in.size(); ++i) in[i] = half(static_cast<int>(i));
  const auto out = Threadgroup<half, half>(in, 64, 64, kHalves);
  for (size_t i = 0; i < in.size(); ++i) {
    half want = half(half(in[i] * in[i]) + in[i]);
    want = half(static_cast<float>(want) * 0.5f);
    if (i < 3) {
      want = half(static_cast<float>(half(in[i] + want)) - 1.0f);
    }
    want = want + half(1);
    ASSERT_EQ(out[i].bits, want.bits) << i;
  }
}

const auto kRows = [](auto& tg) {
  const auto in = buffer<const float4>(tg, 0);
  const auto out = buffer<float>(tg, 1);
  auto sums = tg.per_thread(float4(0.0f));
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    sums[t] += in[i] * in[i];
    sums[t] += 2.0f * in[i];
  });
  const auto all_lanes = simd_sum(sums);
  tg.for_each_thread([&](auto t) {
    const float4 v = all_lanes[t];
    out[t.thread_index_in_threadgroup] = v.x + v.y + v.z + v.w;
  });
};

TEST_P(DeviceKernelTypes, VectorsInMemory) {
  std::vector<float4> in(32);
  float want = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    for (size_t j = 0; j < 4; ++j) {
      in[i][j] = static_cast<float>(4 * i + j);
      want += in[i][j] * (in[i][j] + 2.0f);
    }
  }
  const auto out = Threadgroup<float4, float>(in, 32, 32, kRows);
  for (const float sum : out) ASSERT_EQ(sum, want);
}

INSTANTIATE_TEST_SUITE_P(Modes, DeviceKernelTypes, testing::ValuesIn(kModes),
                         ModeName);

}  // namespace
}  // namespace switchyard::testing_support
