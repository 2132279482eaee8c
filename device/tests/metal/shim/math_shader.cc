// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Lists math functions with their names. The test looks them up by name.

#include <metal_stdlib>

using namespace metal;

// A function of up to three floats. If the shim's function has two results,
// `run` returns a weighted sum of them.
struct FloatFunction {
  const char* name;
  float (*run)(float x, float y, float z);
};

#define ONE(name, ...)                                            \
  {                                                               \
#name, [](float x, float, float) -> float { return name(x); } \
  }
#define TWO(name, ...)                                                 \
  {                                                                    \
#name, [](float x, float y, float) -> float { return name(x, y); } \
  }
#define THREE(name, ...)                                                    \
  {                                                                         \
#name, [](float x, float y, float z) -> float { return name(x, y, z); } \
  }

static constexpr FloatFunction kFloats[] = {
#include "math_functions.inc"
    {"sincos",
     [](float x, float, float) {
       float c;
       return sincos(x, c) + 10 * c;
     }},
    {"modf",
     [](float x, float, float) {
       float n;
       return modf(x, n) + 10 * n;
     }},
    {"frexp",
     [](float x, float, float) {
       int e;
       return frexp(x, e) + 10 * e;
     }},
    {"ldexp", [](float x, float, float) { return ldexp(x, 3); }},
    {"select", [](float x, float y, float z) { return select(x, y, z > 0); }},
    // For vectors, functions are computed element by element.
    {"exp", [](float x, float y, float z) { return exp(float3(y, z, x)).z; }},
    {"isfinite",
     [](float x, float, float) -> float {
       return all(isfinite(float2(x, 0)));
     }},
    {"isnan",
     [](float x, float, float) -> float {
       return any(isnan(float3(0, x, 1)));
     }},
    {"max", [](float x, float y, float) { return max(float2(0, x), y).y; }},
    {"mix",
     [](float x, float y, float z) {
       const float4 v(x, y, z, 0);
       return mix(v.wx, v.wy, v.zz).y;
     }},
    {"dot", [](float x, float y,
               float z) { return dot(float3(x, y, z), float3(z, x, y)); }},
    {"length",
     [](float x, float y, float z) { return length(float3(x, y, z)); }},
    {"distance", [](float x, float y,
                    float z) { return distance(float2(x, y), float2(z, 1)); }},
    {"normalize",
     [](float x, float y, float z) { return normalize(float3(x, y, z)).y; }},
    {"cross",
     [](float x, float y, float z) {
       return cross(float3(x, y, z), float3(1, 2, 3)).y;
     }},
    {"refract",
     [](float x, float y, float) {
       return refract(float2(0.6f, -0.8f), float2(0, 1), x).x + y;
     }},
    {"faceforward",
     [](float x, float y, float z) {
       return faceforward(float2(x, y), float2(1, z), float2(1, 1)).y;
     }},
    {"length_squared",
     [](float x, float y, float) { return length_squared(float2(x, y)); }},
    {"reflect", [](float x, float y,
                   float) { return reflect(float2(x, y), float2(0, 1)).y; }},
};

extern "C" int float_function(int i, const char** name, float x, float y,
                              float z, float* out) {
  if (i >= int(sizeof(kFloats) / sizeof(kFloats[0]))) return false;
  *name = kFloats[i].name;
  *out = kFloats[i].run(x, y, z);
  return true;
}

template <class T>
struct IntFunction {
  const char* name;
  T (*run)(T x, T y, T z);
};
#define INT(name, ...)                                    \
  {                                                       \
#name, [](T x, T y, T z) -> T { return __VA_ARGS__; } \
  }
template <class T>
struct Ints {
  static constexpr IntFunction<T> kAll[] = {
      INT(popcount, popcount(x)),
      INT(clz, clz(x)),
      INT(ctz, ctz(x)),
      INT(reverse_bits, reverse_bits(x)),
      INT(absdiff, absdiff(x, y)),
      INT(addsat, addsat(x, y)),
      INT(subsat, subsat(x, y)),
      INT(hadd, hadd(x, y)),
      INT(rhadd, rhadd(x, y)),
      INT(mulhi, mulhi(x, y)),
      INT(madhi, madhi(x, y, z)),
      INT(madsat, madsat(x, y, z)),
      INT(rotate, rotate(x, y)),
      INT(max, max(x, y)),
      INT(min, min(x, y)),
      INT(abs, abs(x)),
      INT(clamp, clamp(x, min(y, z), max(y, z))),
      INT(median3, median3(x, y, z)),
      INT(extract_bits, extract_bits(x, uint(y) % 7, uint(z) % 9)),
      INT(insert_bits, insert_bits(x, y, uint(z) % 5, uint(y) % 4)),
      INT(mad24, sizeof(T) == 4 ? mad24(x, y, z) : z),
      INT(mul24, sizeof(T) == 4 ? mul24(x, y) : y),
      INT(popcount, popcount(vec<T, 3>(y, x, z)).y),
      INT(rotate, rotate(vec<T, 2>(y, x), vec<T, 2>(x, y)).y)};
};
#define SHIM_INTS(T)                                                          \
  extern "C" bool T##_function(int i, const char** name, T x, T y, T z,       \
                               T* out) {                                      \
    if (i >= int(sizeof(Ints<T>::kAll) / sizeof(Ints<T>::kAll[0]))) return 0; \
    *name = Ints<T>::kAll[i].name;                                            \
    *out = Ints<T>::kAll[i].run(x, y, z);                                     \
    return true;                                                              \
  }
SHIM_INTS(char)
SHIM_INTS(uchar)
SHIM_INTS(short)
SHIM_INTS(ushort)
SHIM_INTS(int)
SHIM_INTS(uint)
SHIM_INTS(long)
SHIM_INTS(ulong)

// `what` is the index of a packing format, here and in unpack().
extern "C" uint pack(int what, const float* in) {
  const float4 v(in[0], in[1], in[2], in[3]);
  switch (what) {
    case 0:
      return pack_float_to_unorm4x8(v);
    case 1:
      return pack_float_to_snorm4x8(v);
    case 2:
      return pack_float_to_unorm2x16(v.xy);
    case 3:
      return pack_float_to_snorm2x16(v.xy);
    case 4:
      return pack_half_to_unorm4x8(half4(v));
    case 5:
      return pack_float_to_unorm10a2(v);
    case 6:
      return pack_float_to_unorm565(v.xyz);
    default:
      return pack_float_to_srgb_unorm4x8(v);
  }
}
extern "C" void unpack(int what, uint bits, float* out) {
  float4 v(0);
  switch (what) {
    case 0:
      v = unpack_unorm4x8_to_float(bits);
      break;
    case 1:
      v = unpack_snorm4x8_to_float(bits);
      break;
    case 2:
      v.xy = unpack_unorm2x16_to_float(bits);
      break;
    case 3:
      v.xy = unpack_snorm2x16_to_float(bits);
      break;
    case 4:
      v = float4(unpack_unorm4x8_to_half(bits));
      break;
    case 5:
      v = unpack_unorm10a2_to_float(bits);
      break;
    case 6:
      v.xyz = unpack_unorm565_to_float(bits);
      break;
    default:
      v = unpack_unorm4x8_srgb_to_float(bits);
      break;
  }
  for (int i = 0; i < 4; ++i) out[i] = v[i];
}

static_assert(as_type<uint>(1.0f) == 0x3f800000);
static_assert(M_PI_F == 3.14159265358979323846f);
static_assert(numeric_limits<short>::lowest() == -32768);
static_assert(numeric_limits<ulong>::max() == ULONG_MAX);
static_assert(_disjunction<is_same<int, uint>, is_same<int, int>>::value);
static_assert(is_same_v<make_unsigned_t<short>, ushort>);
static_assert(is_same_v<decltype(absdiff(1, 2)), uint>);
static_assert(is_same_v<decltype(max(1.0h, 2.0h)), half>);
static_assert(is_same_v<decltype(exp(float4().xy)), float2>);
