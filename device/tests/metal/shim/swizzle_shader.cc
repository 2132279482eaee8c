// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Contains a function for every swizzle of vectors. The test finds the
// function by the swizzle's name.

#include <metal_stdlib>

using namespace metal;

// Reads a swizzle of `in`. If the swizzle's letters are distinct, also
// assigns to it.
struct Swizzle {
  const char* name;
  void (*read)(const float* in, float* out);
  void (*assign)(float* out, const float* in);
};

constexpr bool Distinct(const char* name) {
  for (int i = 0; name[i] != 0; ++i) {
    for (int j = 0; j < i; ++j) {
      if (name[i] == name[j]) return false;
    }
  }
  return true;
}

#define ENTRY(name)                                                   \
  {#name,                                                             \
   [](const float* in, float* out) {                                  \
     const auto swizzled = reinterpret_cast<const V*>(in)->name;      \
     const vec<float, sizeof(#name) - 1> r = swizzled;                \
     for (int i = 0; i < int(sizeof(#name)) - 1; ++i) out[i] = r[i];  \
   },                                                                 \
   [](float* out, const float* in) {                                  \
     if constexpr (Distinct(#name)) {                                 \
       vec<float, sizeof(#name) - 1> r;                               \
       for (int i = 0; i < int(sizeof(#name)) - 1; ++i) r[i] = in[i]; \
       reinterpret_cast<V*>(out)->name = r;                           \
     }                                                                \
   }},

// These macros add one letter out of two, three or four. Each level of
// nesting needs its own macro, because a macro cannot expand itself.
#define NEXT_1_OF_2(M, n, a, b) M(n##a, a, b) M(n##b, a, b)
#define NEXT_1_OF_3(M, n, a, b, c) \
  M(n##a, a, b, c) M(n##b, a, b, c) M(n##c, a, b, c)
#define NEXT_1_OF_4(M, n, a, b, c, d) \
  M(n##a, a, b, c, d)                 \
  M(n##b, a, b, c, d) M(n##c, a, b, c, d) M(n##d, a, b, c, d)
#define NEXT_2_OF_2(M, n, a, b) M(n##a, a, b) M(n##b, a, b)
#define NEXT_2_OF_3(M, n, a, b, c) \
  M(n##a, a, b, c) M(n##b, a, b, c) M(n##c, a, b, c)
#define NEXT_2_OF_4(M, n, a, b, c, d) \
  M(n##a, a, b, c, d)                 \
  M(n##b, a, b, c, d) M(n##c, a, b, c, d) M(n##d, a, b, c, d)
#define NEXT_3_OF_2(M, n, a, b) M(n##a, a, b) M(n##b, a, b)
#define NEXT_3_OF_3(M, n, a, b, c) \
  M(n##a, a, b, c) M(n##b, a, b, c) M(n##c, a, b, c)
#define NEXT_3_OF_4(M, n, a, b, c, d) \
  M(n##a, a, b, c, d)                 \
  M(n##b, a, b, c, d) M(n##c, a, b, c, d) M(n##d, a, b, c, d)
#define FOUR_OF_2(n, a, b) ENTRY(n)
#define THREE_OF_2(n, a, b) ENTRY(n) NEXT_3_OF_2(FOUR_OF_2, n, a, b)
#define TWO_OF_2(n, a, b) ENTRY(n) NEXT_2_OF_2(THREE_OF_2, n, a, b)
#define ONE_OF_2(n, a, b) NEXT_1_OF_2(TWO_OF_2, n, a, b)
#define ALL_OF_2(a, b) ONE_OF_2(a, a, b) ONE_OF_2(b, a, b)
#define FOUR_OF_3(n, a, b, c) ENTRY(n)
#define THREE_OF_3(n, a, b, c) ENTRY(n) NEXT_3_OF_3(FOUR_OF_3, n, a, b, c)
#define TWO_OF_3(n, a, b, c) ENTRY(n) NEXT_2_OF_3(THREE_OF_3, n, a, b, c)
#define ONE_OF_3(n, a, b, c) NEXT_1_OF_3(TWO_OF_3, n, a, b, c)
#define ALL_OF_3(a, b, c) \
  ONE_OF_3(a, a, b, c) ONE_OF_3(b, a, b, c) ONE_OF_3(c, a, b, c)
#define FOUR_OF_4(n, a, b, c, d) ENTRY(n)
#define THREE_OF_4(n, a, b, c, d) ENTRY(n) NEXT_3_OF_4(FOUR_OF_4, n, a, b, c, d)
#define TWO_OF_4(n, a, b, c, d) ENTRY(n) NEXT_2_OF_4(THREE_OF_4, n, a, b, c, d)
#define ONE_OF_4(n, a, b, c, d) NEXT_1_OF_4(TWO_OF_4, n, a, b, c, d)
#define ALL_OF_4(a, b, c, d) \
  ONE_OF_4(a, a, b, c, d)    \
  ONE_OF_4(b, a, b, c, d) ONE_OF_4(c, a, b, c, d) ONE_OF_4(d, a, b, c, d)

template <class V>
struct Two {
  static constexpr Swizzle kAll[] = {ALL_OF_2(x, y) ALL_OF_2(r, g)};
};
template <class V>
struct Three {
  static constexpr Swizzle kAll[] = {ALL_OF_3(x, y, z) ALL_OF_3(r, g, b)};
};
template <class V>
struct Four {
  static constexpr Swizzle kAll[] = {ALL_OF_4(x, y, z, w) ALL_OF_4(r, g, b, a)};
};

template <int kCount>
const Swizzle* First(const Swizzle (&all)[kCount], int* count) {
  *count = kCount;
  return all;
}
extern "C" const Swizzle* swizzles(int size, int* count) {
  return size == 4   ? First(Four<float4>::kAll, count)
         : size == 3 ? First(Three<float3>::kAll, count)
                     : First(Two<float2>::kAll, count);
}
