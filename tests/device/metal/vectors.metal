// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Vectors, packed vectors, matrices, and numbers of 16 bits.

#include <metal_stdlib>
using namespace metal;

kernel void construct(device float4* out [[buffer(0)]],
                      uint i [[thread_position_in_grid]]) {
  const float a = float(i);
  const float2 two(a, a + 1.0f);
  const float3 three = float3(two, 9.0f);
  switch (i) {
    case 0: out[i] = float4(a); break;
    case 1: out[i] = float4(two, two); break;
    case 2: out[i] = float4(three, -1.0f); break;
    case 3: out[i] = float4(-1.0f, three); break;
    case 4: out[i] = float4(1.0f, two, 2.0f); break;
    case 5: out[i] = float4(int4(1, -2, 3, -4)); break;
    case 6: out[i] = float4{a, 1.0f, 2.0f, 3.0f}; break;
    case 7: out[i] = 2.0f; break;
    default: out[i] = vec<float, 4>(uchar4(1, 2, 3, 255)); break;
  }
}

kernel void swizzle(device const float4* in [[buffer(0)]],
                    device float4* out [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
  float4 v = in[i];
  float4 w = v.wzyx;
  w.xz = v.yx + 1.0f;
  w.y += v.r;
  w.zw *= 2.0f;
  w[1] -= v[3];
  const float3 rgb = v.bgr;
  w.xyz = w.zxy + rgb;
  device float4& to = out[i];
  to = w.xxyy;
  to.zw = w.zw;
  to.w = to.x + v.a + v.g;
}

// What C++ has to be told: swizzles of swizzles, in both directions, and types
// that are deduced from them.
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

kernel void arithmetic(device const int4* in [[buffer(0)]],
                       device int4* out [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  const int4 a = in[2 * i], b = in[2 * i + 1];
  int4 c = a + b * 3 - (a / (b | 1)) % 5;
  c ^= (a << 2) | (b >> 1);
  c = select(c, -c, a < b);
  c += int4(a == b) + int4(!(a >= b)) * 2;
  const bool4 both = (a > 0) && (b > 0);
  c.x += any(both) ? 1000 : 0;
  c.y += all(both) ? 1000 : 0;
  ++c;
  out[i] = ~c & 0xFFFF;
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

kernel void matrices(device const float3* in [[buffer(0)]],
                     device float* out [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  const float3x3 m(in[0], in[1], in[2]);
  const float3x3 n = float3x3(float3(1, 2, 3), in[1], float3(0.0f)) * 2.0f;
  const float3 v = in[i];
  const float3 a = m * v, b = v * m;
  const float3x3 product = m * n - transpose(n);
  float2x3 wide;
  wide[0] = a;
  wide[1] = b + product[1];
  wide[1][2] += determinant(m);
  const float3x2 tall = transpose(wide);
  const float2x2 square = tall * wide;
  out[6 * i] = a.x + a.y * b.z;
  out[6 * i + 1] = product[2].y;
  out[6 * i + 2] = square[0][1];
  out[6 * i + 3] = square.columns[1].x;
  out[6 * i + 4] = wide[1].z;
  out[6 * i + 5] = float4x4(2.0f)[3][3] + float2x2(1.0f, 2.0f, 3.0f, 4.0f)[1][0];
}

// Each operation rounds once.
template <typename T>
kernel void small_floats(device const T* in [[buffer(0)]],
                         device T* out [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
  const T a = in[2 * i], b = in[2 * i + 1];
  T sum = a + b;
  sum *= a;
  sum -= b / T(3.0f);
  const vec<T, 2> both = vec<T, 2>(sum, -a) + vec<T, 2>(b);
  T more = T(float(both.x) + float(both.y));
  if (a < b) more = -more;
  out[i] = more;
}
template [[host_name("small_half")]] [[kernel]]
decltype(small_floats<half>) small_floats<half>;
template [[host_name("small_bfloat")]] [[kernel]]
decltype(small_floats<bfloat>) small_floats<bfloat>;

kernel void half_vectors(device const half4* in [[buffer(0)]],
                         device half4* out [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
  const half4 v = in[i];
  half4 w = max(v, half4(0.0h)) * 2.0h + half4(float4(v) * 0.5f);
  w.w = dot(v.xy, v.zw) + half(1) + 0.5h;
  out[i] = fma(v, half4(2.0h), w).wzyx;
}

// Rows of 21: vectors there are only aligned as their elements are.
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
