// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Atomics of all types, in both address spaces.

#include <metal_stdlib>
using namespace metal;

// Each operation updates a word of its own. The final values do not depend on
// the order of the threads.
kernel void of_ints(device atomic_int* out [[buffer(0)]],
                    device const int* in [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
  const int x = in[i];
  atomic_fetch_add_explicit(&out[0], x, memory_order_relaxed);
  atomic_fetch_sub_explicit(&out[1], x, memory_order_relaxed);
  atomic_fetch_min_explicit(&out[2], x, memory_order_relaxed);
  atomic_fetch_max_explicit(&out[3], x, memory_order_relaxed);
  atomic_fetch_and_explicit(out + 4, x | 0xF0, memory_order_relaxed);
  atomic_fetch_or_explicit(out + 5, x & 0xFF, memory_order_relaxed);
  atomic_fetch_xor_explicit(out + 6, x, memory_order_relaxed);
}
kernel void of_uints(device atomic_uint* out [[buffer(0)]],
                     device const uint* in [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  const uint x = in[i];
  atomic_fetch_add_explicit(&out[0], x, memory_order_relaxed);
  atomic_fetch_min_explicit(&out[1], x, memory_order_relaxed);
  atomic_fetch_max_explicit(&out[2], x, memory_order_relaxed);
}

kernel void of_floats(device atomic_float* out [[buffer(0)]],
                      device const float* in [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&out[0], in[i], memory_order_relaxed);
  atomic_fetch_sub_explicit(&out[1], in[i], memory_order_relaxed);
}

kernel void of_longs(device atomic_ulong* out [[buffer(0)]],
                     device const uint* in [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  atomic_max_explicit(&out[0], ulong(in[i]) << 20 | i, memory_order_relaxed);
  atomic_min_explicit(&out[1], ulong(in[i]) << 20 | i, memory_order_relaxed);
}

// Computes a maximum of floats by compare and exchange. Every thread also
// exchanges out[1], as code that takes a lock does.
kernel void by_exchange(device atomic_uint* out [[buffer(0)]],
                        device const float* in [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
  uint seen = atomic_load_explicit(&out[0], memory_order_relaxed);
  while (as_type<float>(seen) < in[i] &&
         !atomic_compare_exchange_weak_explicit(&out[0], &seen,
                                                as_type<uint>(in[i]),
                                                memory_order_relaxed,
                                                memory_order_relaxed)) {
  }
  const uint before =
      atomic_exchange_explicit(&out[1], i + 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&out[2], before, memory_order_relaxed);
}

// In threadgroup memory, computes a histogram of in[p] % 16, and finds the
// first thread in the threadgroup for which this value is 3.
kernel void in_threadgroups(device const uint* in [[buffer(0)]],
                            device atomic_uint* out [[buffer(1)]],
                            device uint* firsts [[buffer(2)]],
                            uint g [[threadgroup_position_in_grid]],
                            uint p [[thread_position_in_grid]],
                            uint i [[thread_position_in_threadgroup]]) {
  threadgroup atomic_uint bins[16];
  threadgroup atomic<int> first;
  threadgroup atomic_bool any;
  if (i < 16) atomic_store_explicit(&bins[i], 0u, memory_order_relaxed);
  if (i == 0) {
    atomic_store_explicit(&first, 1000, memory_order_relaxed);
    atomic_store_explicit(&any, false, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&bins[in[p] % 16], 1u, memory_order_relaxed);
  if (in[p] % 16 == 3) {
    atomic_fetch_min_explicit(&first, int(i), memory_order_relaxed);
    atomic_store_explicit(&any, true, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 16) {
    const uint count = atomic_load_explicit(&bins[i], memory_order_relaxed);
    atomic_fetch_add_explicit(&out[i], count, memory_order_relaxed);
  }
  if (i == 0) {
    const bool found = atomic_load_explicit(&any, memory_order_relaxed);
    firsts[g] = found ? uint(atomic_load_explicit(&first, memory_order_relaxed))
                      : 999u;
  }
}
