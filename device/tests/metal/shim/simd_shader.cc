// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Contains all simd and quad functions for float, int, half2 and uint. The
// test finds each by its name.

#include <metal_stdlib>

using namespace metal;

extern "C" void set_runtime(const switchyard_metal::Runtime* runtime) {
  switchyard_metal::runtime = runtime;
}

// `number` is the distance, mask or lane that the function takes, or 0 if it
// takes none.
template <class T>
struct Function {
  const char* name;
  void (*run)(const T* in, T* out, const T* filling, ushort number);
};

#define SHIM_PLAIN(name, Operation, prefix)                       \
  {#prefix "_" #name, [](const T* in, T* out, const T*, ushort) { \
     *out = prefix##_##name(*in);                                 \
   }},
#define SHIM_NUMBER(name, Operation, prefix)                             \
  {#prefix "_" #name, [](const T* in, T* out, const T*, ushort number) { \
     *out = prefix##_##name(*in, number);                                \
   }},
#define SHIM_FILL(name, Operation, prefix)                    \
  {#prefix "_" #name,                                         \
   [](const T* in, T* out, const T* filling, ushort number) { \
     *out = prefix##_##name(*in, *filling, number);           \
   }},
#define SHIM_FILL_8(name)                                                    \
  {                                                                          \
#name "_8", [](const T* in, T* out, const T* filling,                    \
                   ushort number) { *out = name(*in, *filling, number, 8); } \
  }

// Expands a list in switchyard_lanes.h twice: for simd functions and for quad
// functions.
#define SHIM_BOTH(LIST, one) LIST(one, simd) LIST(one, quad)

template <class T>
struct Functions {
  static constexpr Function<T> kAll[] = {
      SHIM_BOTH(SWITCHYARD_REDUCTIONS, SHIM_PLAIN)
          SHIM_BOTH(SWITCHYARD_SHUFFLES, SHIM_NUMBER)
              SHIM_BOTH(SWITCHYARD_FILLS, SHIM_FILL)
                  SHIM_FILL_8(simd_shuffle_and_fill_up),
      SHIM_FILL_8(simd_shuffle_and_fill_down),
  };
};
template <class T>
struct BitFunctions {
  static constexpr Function<T> kAll[] = {
      SHIM_BOTH(SWITCHYARD_BIT_REDUCTIONS, SHIM_PLAIN)};
};

template <class T, class List>
bool Run(List& list, const char* name, const T* in, T* out, const T* filling,
         ushort number) {
  for (const auto& each : list) {
    if (__builtin_strcmp(each.name, name) == 0) {
      each.run(in, out, filling, number);
      return true;
    }
  }
  return false;
}

#define SHIM_RUN(T, List, name)                                    \
  extern "C" bool name(const char* function, const T* in, T* out,  \
                       const T* filling, ushort number) {          \
    return Run(List<T>::kAll, function, in, out, filling, number); \
  }
SHIM_RUN(float, Functions, run_float)
SHIM_RUN(int, Functions, run_int)
SHIM_RUN(float2, Functions, run_float2)
SHIM_RUN(uint, BitFunctions, run_uint)

struct Votes {
  ulong ballot, active;
  uint quad_ballot, quad_active;
  bool all, any, first, quad_all, quad_any, quad_first;
};
extern "C" void vote(bool value, Votes* out) {
  out->ballot = static_cast<ulong>(simd_ballot(value));
  out->active = static_cast<ulong>(simd_active_threads_mask());
  out->quad_ballot = static_cast<uint>(quad_ballot(value));
  out->quad_active = static_cast<uint>(quad_active_threads_mask());
  out->all = simd_all(value);
  out->any = simd_any(value);
  out->first = simd_is_first();
  out->quad_all = quad_all(value);
  out->quad_any = quad_any(value);
  out->quad_first = quad_is_first();
}

// Computes D = 2 (A B + C) from memory. The matrix A begins at row 1, column
// 2 of a larger matrix, whose rows have `stride` elements. B is transposed,
// and D is optionally stored transposed.
template <class T>
void Multiply(const T* a, const T* b, const float* c, float* d, ulong stride,
              bool transpose) {
  simdgroup_matrix<T, 8, 8> ma, mb;
  simdgroup_float8x8 mc, md;
  simdgroup_load(ma, a, stride, ulong2(2, 1));
  simdgroup_load(mb, b, 8, 0, true);
  simdgroup_load(mc, c);
  simdgroup_multiply_accumulate(md, ma, mb, mc);
  simdgroup_float8x8 twice = make_filled_simdgroup_matrix<float, 8>(0.0f);
  simdgroup_float8x8 two(2.0f);
  simdgroup_multiply(twice, md, two);
  simdgroup_store(twice, d, 8, 0, transpose);
}
extern "C" void multiply_float(const float* a, const float* b, const float* c,
                               float* d, ulong stride, bool transpose) {
  Multiply(a, b, c, d, stride, transpose);
}
extern "C" void multiply_half(const half* a, const half* b, const float* c,
                              float* d, ulong stride, bool transpose) {
  Multiply(a, b, c, d, stride, transpose);
}
extern "C" void multiply_bfloat(const bfloat* a, const bfloat* b,
                                const float* c, float* d, ulong stride,
                                bool transpose) {
  Multiply(a, b, c, d, stride, transpose);
}
extern "C" void elements(const float* in, float* out) {
  simdgroup_float8x8 m;
  simdgroup_load(m, in);
  out[0] = m.thread_elements()[0];
  out[1] = m.thread_elements()[1];
}
