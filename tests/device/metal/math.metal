// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// metal_stdlib: math, integer, common and relational functions. Each thread
// writes a row of results for its element.

#include <metal_stdlib>
using namespace metal;

kernel void exponents(device const float* in [[buffer(0)]],
                      device float* out [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
  const float x = in[i];
  device float* const o = out + 12 * i;
  o[0] = exp(x);
  o[1] = exp2(x);
  o[2] = exp10(0.25f * x);
  o[3] = log(fabs(x) + 0.5f);
  o[4] = log2(fabs(x) + 0.5f);
  o[5] = log10(fabs(x) + 0.5f);
  o[6] = pow(fabs(x) + 0.5f, 1.5f);
  o[7] = powr(fabs(x) + 0.5f, -0.75f);
  o[8] = sqrt(fabs(x));
  o[9] = rsqrt(fabs(x) + 0.5f);
  o[10] = precise::exp(-x);
  o[11] = fast::exp(-x);
}

kernel void angles(device const float* in [[buffer(0)]],
                   device float* out [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
  const float x = in[i];
  device float* const o = out + 16 * i;
  o[0] = sin(x);
  o[1] = cos(x);
  float c;
  o[2] = sincos(x, c);
  o[3] = c;
  o[4] = tan(0.25f * x);
  o[5] = asin(0.1f * x);
  o[6] = acos(0.1f * x);
  o[7] = atan(x);
  o[8] = atan2(x, 2.0f);
  o[9] = sinh(0.5f * x);
  o[10] = cosh(0.5f * x);
  o[11] = tanh(x);
  o[12] = asinh(x);
  o[13] = acosh(fabs(x) + 1.0f);
  o[14] = atanh(0.1f * x);
  o[15] = sinpi(0.125f) + cospi(0.25f) + tanpi(0.125f);
}

kernel void rounding(device const float* in [[buffer(0)]],
                     device float* out [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  const float x = in[i];
  device float* const o = out + 16 * i;
  o[0] = floor(x);
  o[1] = ceil(x);
  o[2] = trunc(x);
  o[3] = round(x);
  o[4] = rint(x);
  o[5] = fract(x);
  float whole;
  o[6] = modf(x, whole);
  o[7] = whole;
  int exponent;
  o[8] = frexp(x, exponent);
  o[9] = float(exponent);
  o[10] = ldexp(x, 3);
  o[11] = fmod(x, 1.5f);
  o[12] = copysign(2.0f, x);
  o[13] = fdim(x, 1.0f);
  o[14] = fma(x, 2.0f, 1.0f);
  o[15] = nextafter(x, 100.0f) > x ? 1.0f : 0.0f;
}

kernel void extremes(device const float* in [[buffer(0)]],
                     device float* out [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  const float x = in[i], y = in[(i + 1) % 16];
  device float* const o = out + 16 * i;
  o[0] = min(x, y);
  o[1] = max(x, y);
  o[2] = fmin(x, NAN);
  o[3] = fmax(NAN, y);
  o[4] = max3(x, y, 0.5f);
  o[5] = min3(x, y, 0.5f);
  o[6] = median3(x, y, 0.5f);
  o[7] = clamp(x, -1.0f, 1.0f);
  o[8] = mix(x, y, 0.25f);
  o[9] = saturate(x);
  o[10] = sign(x);
  o[11] = step(0.5f, x);
  o[12] = smoothstep(-4.0f, 4.0f, x);
  o[13] = abs(x) + fabs(y);
  o[14] = select(x, y, x < y);
  o[15] = M_PI_F + y * 0.0f;
}

kernel void classes(device const float* in [[buffer(0)]],
                    device uint* out [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
  const float x = in[i];
  out[i] = uint(isnan(x)) | uint(isinf(x)) << 1 | uint(isfinite(x)) << 2 |
           uint(isnormal(x)) << 3 | uint(signbit(x)) << 4 |
           uint(isordered(x, 1.0f)) << 5 | uint(isunordered(1.0f, x)) << 6 |
           uint(all(isfinite(float2(x, 0.0f)))) << 7 |
           uint(any(isnan(float3(0.0f, x, 1.0f)))) << 8;
}

kernel void bits(device const uint* in [[buffer(0)]],
                 device uint* out [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
  const uint x = in[i];
  device uint* const o = out + 10 * i;
  o[0] = popcount(x);
  o[1] = clz(x);
  o[2] = ctz(x);
  o[3] = reverse_bits(x);
  o[4] = rotate(x, 7u);
  o[5] = extract_bits(x, 4, 9);
  o[6] = insert_bits(x, 0x5Au, 12, 8);
  o[7] = uint(extract_bits(int(x), 28, 4));
  o[8] = uint(popcount(ushort(x))) + uint(clz(uchar(x)));
  o[9] = popcount(ulong(x) << 16 | 3ul);
}

kernel void integers(device const int* in [[buffer(0)]],
                     device int* out [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  const int a = in[2 * i], b = in[2 * i + 1];
  device int* const o = out + 16 * i;
  o[0] = abs(a);
  o[1] = int(absdiff(a, b));
  o[2] = addsat(a, b);
  o[3] = subsat(a, b);
  o[4] = hadd(a, b);
  o[5] = rhadd(a, b);
  o[6] = mulhi(a, b);
  o[7] = int(mulhi(uint(a), uint(b)));
  o[8] = madhi(a, b, 5);
  o[9] = mad24(a & 0xFFF, b & 0xFFF, 7);
  o[10] = mul24(a & 0xFFF, b & 0xFFF);
  o[11] = madsat(a, b, 1);
  o[12] = clamp(a, -5, 5);
  o[13] = median3(a, b, 0);
  o[14] = int(addsat(uchar(a), uchar(b))) + int(subsat(char(a), char(b)));
  o[15] = min3(a, b, 3) ^ max3(a, b, 3);
}
