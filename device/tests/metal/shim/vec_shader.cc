// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Uses operators and constructors of vectors, and matrices.

#include <metal_stdlib>

using namespace metal;

// Stores one vector in `out` for each operator, in the order of the test's
// list.
extern "C" void int_operators(const int* x, const int* y, int* out) {
  const int4 a(x[0], x[1], x[2], x[3]), b(y[0], y[1], y[2], y[3]);
  int4 c = a;
  int4* o = reinterpret_cast<int4*>(out);
  *o++ = a + b;
  *o++ = a - b;
  *o++ = a * b;
  *o++ = a / b;
  *o++ = a % b;
  *o++ = a & b;
  *o++ = a | b;
  *o++ = a ^ b;
  *o++ = a << b;
  *o++ = a >> b;
  *o++ = ~a;
  *o++ = -a;
  *o++ = int4(!a);
  *o++ = int4(a < b);
  *o++ = int4(a > b);
  *o++ = int4(a <= b);
  *o++ = int4(a >= b);
  *o++ = int4(a == b);
  *o++ = int4(a != b);
  *o++ = int4(a && b);
  *o++ = int4(a || b);
  *o++ = a + 7;
  *o++ = 7 - a;
  c += b;
  c *= 3;
  c -= a;
  c.xz += 5;
  c.yw = c.wy;
  c++;
  --c;
  *o++ = c;
}

// Uses constructors and conversions. The test knows the expected elements.
extern "C" void constructors(const float* in, float* out) {
  const float2 a(in[0], in[1]);
  const float3 b(a, in[2]);
  const float4 all[] = {float4(in[3]),
                        float4(in[0], a, in[2]),
                        float4(a, a.yx),
                        float4(b, in[3]),
                        float4(in[3], b),
                        float4(b.zyx, 1),
                        float4(half4(in[0], in[1], in[2], in[3]) * 2.0h),
                        float4(int4(2.9f, -2.9f, true, 4u)),
                        {in[0], in[1]},
                        float4(packed_float3(b) * 2.0f, 0),
                        float4(bfloat4(float4(a, a))),
                        float4(uchar4(1, 2, 3, 255))};
  for (const float4& v : all) {
    for (int i = 0; i < 4; ++i) *out++ = v[i];
  }
}

extern "C" void matrices(const float* in, float* out) {
  float4x3 a;
  float2x4 b;
  for (int i = 0; i < 12; ++i) a[i / 3][i % 3] = in[i];
  for (int i = 0; i < 8; ++i) b[i / 4][i % 4] = in[12 + i];
  const float2x3 product = a * b;
  for (int i = 0; i < 6; ++i) *out++ = product[i / 3][i % 3];
  const float3x4 turned = transpose(a);
  for (int i = 0; i < 12; ++i) *out++ = turned[i / 4][i % 4];
  const float3 right = a * b[0];
  const float4 left = right * a;
  for (int i = 0; i < 3; ++i) *out++ = right[i];
  for (int i = 0; i < 4; ++i) *out++ = left[i];
  float4x4 square;
  for (int i = 0; i < 16; ++i) square[i / 4][i % 4] = in[i];
  *out++ = determinant(square);
  *out++ = determinant(float3x3(square[0].xyz, square[1].xyz, square[2].xyz));
  *out++ = determinant(float2x2(square[0].xy, square[1].xy));
  const float4x4 unit(1.0f);
  *out++ =
      unit * square == square && (square + square) / 2 == square &&
      square - square == float4x4(0.0f) && square * 2 != square &&
      float2x2(1.0f, 2.0f, 3.0f, 4.0f)[1][0] == 3 &&
      all(square.columns[1] == square[1]) &&
      all(select(int4(1), int4(2), int4(0, 3, 0, 3) > 1) == int4(1, 2, 1, 2));
}

static_assert(sizeof(float2) == 8 && alignof(float2) == 8);
static_assert(sizeof(float3) == 16 && alignof(float3) == 16);
static_assert(sizeof(char3) == 4 && alignof(char3) == 4);
static_assert(sizeof(half4) == 8 && alignof(half4) == 8);
static_assert(sizeof(ulong4) == 32 && alignof(ulong4) == 32);
static_assert(sizeof(bool4) == 4);
static_assert(sizeof(packed_float3) == 12 && alignof(packed_float3) == 4);
static_assert(sizeof(packed_half4) == 8 && alignof(packed_half4) == 2);
static_assert(sizeof(float3x3) == 48 && sizeof(half4x4) == 32);
static_assert(alignof(float2x3) == 16 && sizeof(bfloat2x4) == 16);

// The compiler evaluates these constants and assertions.
constexpr float4 kFloats = float4(1, 2, 3, 4) * 2 + 1;
static_assert(kFloats.x == 3 && kFloats[3] == 9);
constexpr short2 kShorts = {1, -2};
static_assert((kShorts * kShorts).y == 4);
static_assert(all(kShorts < 2) && !any(kShorts == 0));
static_assert(is_same_v<decltype(float4() < 0.0f), bool4>);
