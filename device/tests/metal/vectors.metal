// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Vectors and packed vectors; metal/shim/ tests their operators and matrices.

#include <metal_stdlib>
using namespace metal;

// Reads and writes swizzles of swizzles, which C++ does not have, and deduces
// types from them.
template <typename T, int N>
T last_of(vec<T, N> v) {
  return v[N - 1];
}
template <typename V>
V twice(V v) {
  return v + v;
}
struct Box {
  struct Corner {
    float x, y;
  };
  Corner xx;
  float4 v;
};
kernel void swizzles_of_swizzles(device const float4* in [[buffer(0)]],
                                 device float4* out [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  const float4 v = in[i];
  float4 w = v;
  w.zyx.xy = v.wzyx.yz.yx;
  w.xy.y += v.wzy.z;
  auto pair = v.zw;
  pair.y = last_of(v.xyz) + last_of(w.xy.xyxx);
  Box box = {{1.0f, 2.0f}, v};
  box.v.xyz.z = box.xx.y;
  device const float4* p = in + i;
  out[i] = float4(twice(pair.yx), twice(box.v.xyz.zy)) + twice<float4>(p->wzyx.xyzw);
}

// Types of one and two bytes, and conversions that do not round.
kernel void conversions(device const float4* in [[buffer(0)]],
                        device uint4* out [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
  const float4 v = in[i];
  const short4 s = short4(v);
  const uchar4 c = uchar4(abs(s));
  const char4 t = as_type<char4>(c);
  const uint4 bits = as_type<uint4>(v);
  const ushort2 h = as_type<ushort2>(bits.x);
  out[i] = uint4(uint(int(t.x) + int(s.y)), as_type<uint>(c), uint(h.y),
                 bits.w ^ uint(as_type<ushort4>(ulong(bits.z)).x));
}

struct Packed {
  packed_float3 a;
  uchar flag;
  packed_short3 b;
};
struct Sizes {
  char c;
  float3 v;
  half2 h;
};
kernel void packed_types(device const Packed* in [[buffer(0)]],
                         device packed_float3* out [[buffer(1)]],
                         device uint* sizes [[buffer(2)]],
                         uint i [[thread_position_in_grid]]) {
  float3 sum = in[i].a;
  sum += float3(short3(in[i].b)) * float(in[i].flag);
  out[i] = packed_float3(sum);
  out[i].y += in[i].a[2] + in[i].a.x;
  out[i][2] *= 2.0f;
  if (i != 0) return;
  sizes[0] = sizeof(Packed);
  sizes[1] = sizeof(Sizes);
  sizes[2] = sizeof(float3);
  sizes[3] = alignof(float4);
  sizes[4] = sizeof(packed_half4);
  sizes[5] = sizeof(bool4);
  sizes[6] = alignof(packed_float3);
  sizes[7] = sizeof(half3x3);
  sizes[8] = sizeof(float2x4);
  sizes[9] = sizeof(long3);
}

kernel void geometry(device const float3* in [[buffer(0)]],
                     device float* out [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  const float3 a = in[2 * i], b = in[2 * i + 1];
  out[8 * i] = dot(a, b);
  const float3 c = cross(a, b);
  out[8 * i + 1] = c.x;
  out[8 * i + 2] = c.y;
  out[8 * i + 3] = c.z;
  out[8 * i + 4] = length(a);
  out[8 * i + 5] = distance(a, b);
  out[8 * i + 6] = normalize(a + 1.0f).y;
  out[8 * i + 7] = length_squared(b) + reflect(a, float3(0, 1, 0)).y +
                   faceforward(b, a, a).x + distance_squared(a, b);
}

kernel void half_vectors(device const half4* in [[buffer(0)]],
                         device half4* out [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
  const half4 v = in[i];
  half4 w = max(v, half4(0.0h)) * 2.0h + half4(float4(v) * 0.5f);
  w.w = dot(v.xy, v.zw) + half(1) + 0.5h;
  out[i] = fma(v, half4(2.0h), w).wzyx;
}

// Rows have 21 elements, so vectors are aligned only to the size of an element.
kernel void unaligned(device const float* in [[buffer(0)]],
                      device float* out [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
  device const float* from = in + 21 * i + 1;
  device float* to = out + 21 * i + 1;
  to[-1] = from[-1];
  // switchyard: allow(misaligned)
  *(device float4x4*)to = *(device const float4x4*)from;
  device float4& last = *(device float4*)(to + 16);
  // switchyard: allow(misaligned)
  last = *(device const float4*)(from + 16) + *(device const float4*)from;
  last *= ((device const float4*)from)[3];  // switchyard: allow(misaligned)
}
