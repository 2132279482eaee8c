// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Pairs of atomics against plain accesses, and of atomics that do not do.

#include <metal_stdlib>
using namespace metal;

// A counter is cleared plainly, while others count.
kernel void atomic_clear_yes(device float* out [[buffer(1)]],
                             uint i [[thread_position_in_threadgroup]]) {
  threadgroup int words[1];
  threadgroup atomic_int* count = (threadgroup atomic_int*)words;
  if (i == 0) words[0] = 0;  // FINDS: missing-barrier
  atomic_fetch_add_explicit(count, 1, memory_order_relaxed);  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(atomic_load_explicit(count, memory_order_relaxed));
}
kernel void atomic_clear_no(device float* out [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]]) {
  threadgroup int words[1];
  threadgroup atomic_int* count = (threadgroup atomic_int*)words;
  if (i == 0) words[0] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(atomic_load_explicit(count, memory_order_relaxed));
}

// The same, and it is cleared atomically: no data race, and wrong.
kernel void atomic_clear_late_yes(device float* out [[buffer(1)]],
                                  uint i [[thread_position_in_threadgroup]]) {
  threadgroup atomic_int count;
  if (i == 0) atomic_store_explicit(&count, 0, memory_order_relaxed);
  atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);  // FINDS: order
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(atomic_load_explicit(&count, memory_order_relaxed));
}
kernel void atomic_clear_late_no(device float* out [[buffer(1)]],
                                 uint i [[thread_position_in_threadgroup]]) {
  threadgroup atomic_int count;
  if (i == 0) atomic_store_explicit(&count, 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(atomic_load_explicit(&count, memory_order_relaxed));
}

// A histogram in threadgroup memory.
kernel void atomic_bins_yes(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]]) {
  threadgroup uint bins[8];
  if (i < 8) bins[i] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  bins[uint(in[i]) % 8] += 1;  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 8) out[i] = float(bins[i]);
}
kernel void atomic_bins_no(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]]) {
  threadgroup atomic_uint bins[8];
  if (i < 8) atomic_store_explicit(&bins[i], 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&bins[uint(in[i]) % 8], 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 8) {
    out[i] = float(atomic_load_explicit(&bins[i], memory_order_relaxed));
  }
}

// The maximum is read before all have contributed.
kernel void atomic_max_yes(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]]) {
  threadgroup uint words[1];
  threadgroup atomic_uint* most = (threadgroup atomic_uint*)words;
  if (i == 0) words[0] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_max_explicit(most, uint(in[i]), memory_order_relaxed);  // FINDS: missing-barrier
  out[i] = float(words[0]);  // FINDS: missing-barrier
}
kernel void atomic_max_no(device const float* in [[buffer(0)]],
                          device float* out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
  threadgroup uint words[1];
  threadgroup atomic_uint* most = (threadgroup atomic_uint*)words;
  if (i == 0) words[0] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_max_explicit(most, uint(in[i]), memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(words[0]);
}

// A ticket by a load and a store is no ticket.
kernel void atomic_ticket_yes(device float* out [[buffer(1)]],
                              device atomic_uint* next [[buffer(2)]],
                              uint i [[thread_position_in_threadgroup]]) {
  const uint ticket = atomic_load_explicit(next, memory_order_relaxed);
  atomic_store_explicit(next, ticket + 1, memory_order_relaxed);
  out[ticket] = float(i);  // FINDS: missing-barrier
}
kernel void atomic_ticket_no(device float* out [[buffer(1)]],
                             device atomic_uint* next [[buffer(2)]],
                             uint i [[thread_position_in_threadgroup]]) {
  const uint ticket = atomic_fetch_add_explicit(next, 1u, memory_order_relaxed);
  out[ticket] = float(i);
}

// Threadgroups add to one sum.
kernel void atomic_sum_yes(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint g [[threadgroup_position_in_grid]],
                           uint i [[thread_position_in_threadgroup]]) {
  const float sum = simd_sum(in[32 * g + i]);
  if (i == 0) out[0] += sum;  // FINDS: race
}
kernel void atomic_sum_no(device const float* in [[buffer(0)]],
                          device atomic_float* out [[buffer(1)]],
                          uint g [[threadgroup_position_in_grid]],
                          uint i [[thread_position_in_threadgroup]]) {
  const float sum = simd_sum(in[32 * g + i]);
  if (i == 0) atomic_fetch_add_explicit(out, sum, memory_order_relaxed);
}

// A progress counter is updated atomically and read plainly.
kernel void atomic_progress_yes(device uint* count [[buffer(1)]],
                                device uint* seen [[buffer(2)]],
                                uint g [[threadgroup_position_in_grid]],
                                uint i [[thread_position_in_threadgroup]]) {
  if (i != 0) return;
  device atomic_uint* atomic = (device atomic_uint*)count;
  atomic_fetch_add_explicit(atomic, 1u, memory_order_relaxed);  // FINDS: race
  seen[g] = count[0];  // FINDS: race
}
kernel void atomic_progress_no(device atomic_uint* count [[buffer(1)]],
                               device uint* seen [[buffer(2)]],
                               uint g [[threadgroup_position_in_grid]],
                               uint i [[thread_position_in_threadgroup]]) {
  if (i != 0) return;
  atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
  seen[g] = atomic_load_explicit(count, memory_order_relaxed);
}

// Compare and exchange on one side, a plain store on the other.
kernel void atomic_exchange_yes(device int* owner [[buffer(1)]],
                                device float* out [[buffer(2)]],
                                uint i [[thread_position_in_threadgroup]]) {
  device atomic_int* atomic = (device atomic_int*)owner;
  int expected = 0;
  const bool won = atomic_compare_exchange_weak_explicit(  // FINDS: missing-barrier
      atomic, &expected, int(i + 1), memory_order_relaxed,
      memory_order_relaxed);
  out[i] = won ? 1.0f : 0.0f;
  if (i == 40) owner[0] = 0;  // FINDS: missing-barrier
}
kernel void atomic_exchange_no(device int* owner [[buffer(1)]],
                               device float* out [[buffer(2)]],
                               uint i [[thread_position_in_threadgroup]]) {
  device atomic_int* atomic = (device atomic_int*)owner;
  int expected = 0;
  const bool won = atomic_compare_exchange_weak_explicit(
      atomic, &expected, int(i + 1), memory_order_relaxed,
      memory_order_relaxed);
  out[i] = won ? 1.0f : 0.0f;
  threadgroup_barrier(mem_flags::mem_device);
  if (i == 40) owner[0] = 0;
}
