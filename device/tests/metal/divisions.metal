// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Integer divisions. device/tests/metal_divisions_test.cc divides numbers by
// 0, and the least number by -1.

#include <metal_stdlib>
using namespace metal;

// Each division is on a separate line, so that a finding names it.
template <class T>
kernel void every(device const T *a [[buffer(0)]],
                  device const T *b [[buffer(1)]],
                  device T *out [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  T q = a[i];
  T r = a[i];
  out[4 * i] = a[i] / b[i];
  out[4 * i + 1] = a[i] % b[i];
  q /= b[i];
  r = r % b[i];
  out[4 * i + 2] = q;
  out[4 * i + 3] = r;
}
#define EVERY(name, T)                                              \
  template [[host_name("every_" name)]] kernel void every<T>(       \
      device const T *, device const T *, device T *, uint);
EVERY("char", char)
EVERY("uchar", uchar)
EVERY("short", short)
EVERY("ushort", ushort)
EVERY("int", int)
EVERY("uint", uint)
EVERY("long", long)
EVERY("ulong", ulong)
EVERY("uchar4", uchar4)
EVERY("short4", short4)
EVERY("int2", int2)
EVERY("int4", int4)
EVERY("packed_uint3", packed_uint3)
EVERY("long4", long4)

// Divides vectors of Clang's ext_vector_type, not the shim's.
typedef int Four __attribute__((ext_vector_type(4)));
kernel void clangs(device const Four *a [[buffer(0)]],
                   device const Four *b [[buffer(1)]],
                   device Four *out [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
  out[4 * i] = a[i] / b[i];
  out[4 * i + 1] = a[i] % b[i];
  out[4 * i + 2] = a[i] / b[i];
  out[4 * i + 3] = a[i] % b[i];
}

// In unchecked mode, this kernel is cut into regions at its barriers.
kernel void meets(device const int *a [[buffer(0)]],
                  device const int *b [[buffer(1)]],
                  device int *out [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  threadgroup int x[64];
  x[i] = a[i] / b[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[4 * i] = x[i];
  out[4 * i + 1] = a[i] % b[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[4 * i + 2] = a[i] / b[i];
  out[4 * i + 3] = a[i] % b[i];
}

// Tests the divisor after the division. Clang must not remove this test: it
// must not conclude from the division that the divisor is not 0. `sum` is 0
// if the loop has no iteration.
kernel void tested(device const int *a [[buffer(0)]],
                   device const int *b [[buffer(1)]],
                   device int *out [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
  int sum = 0;
  for (int k = 0; k < b[i] && k < 12; ++k) sum += (b[k] * b[k]) | 1;
  const int q = a[i] / sum;
  out[4 * i] = sum == 0 ? -77 : q;
  const int r = a[i] % b[i];
  out[4 * i + 1] = b[i] != 0 ? r : -77;
  out[4 * i + 2] = 5 / (b[i] == 0 ? 0 : 1);
  out[4 * i + 3] = b[i] == 0 ? -77 : 1;
}

kernel void allowed(device const int *a [[buffer(0)]],
                    device const int *b [[buffer(1)]],
                    device int *out [[buffer(2)]],
                    uint i [[thread_position_in_grid]]) {
  out[i] = a[i] / b[i];  // switchyard: allow(division)
}
