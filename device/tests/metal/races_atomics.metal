// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Races between an atomic access and a plain access, and wrong uses of atomics.
// If kDefect is set, a kernel has the defect; otherwise it is correct.

#include <metal_stdlib>
using namespace metal;

constant bool kDefect [[function_constant(0)]];

// A plain store clears a counter while other threads add to it.
kernel void atomic_clear(device float* out [[buffer(1)]],
                         uint i [[thread_position_in_threadgroup]]) {
  threadgroup int words[1];
  threadgroup atomic_int* count = (threadgroup atomic_int*)words;
  if (i == 0) words[0] = 0;  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(count, 1, memory_order_relaxed);  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(atomic_load_explicit(count, memory_order_relaxed));
}

// An atomic store clears a counter while other threads add to it. This is no
// data race, but the count is wrong.
// MISSED: atomics against atomics, ordered or not
kernel void atomic_clear_late(device float* out [[buffer(1)]],
                              uint i [[thread_position_in_threadgroup]]) {
  threadgroup atomic_int count;
  if (i == 0) atomic_store_explicit(&count, 0, memory_order_relaxed);
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);  // FINDS: order
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(atomic_load_explicit(&count, memory_order_relaxed));
}

// A histogram in threadgroup memory. With the defect, its additions are not
// atomic.
kernel void atomic_bins(device const float* in [[buffer(0)]],
                        device float* out [[buffer(1)]],
                        uint i [[thread_position_in_threadgroup]]) {
  threadgroup uint bins[8];
  threadgroup atomic_uint* counts = (threadgroup atomic_uint*)bins;
  if (i < 8) bins[i] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint bin = uint(in[i]) % 8;
  if (kDefect) bins[bin] += 1;  // FINDS: missing-barrier
  if (!kDefect) atomic_fetch_add_explicit(&counts[bin], 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 8) out[i] = float(bins[i]);
}

// Threads read the maximum before all threads have updated it.
kernel void atomic_max(device const float* in [[buffer(0)]],
                       device float* out [[buffer(1)]],
                       uint i [[thread_position_in_threadgroup]]) {
  threadgroup uint words[1];
  threadgroup atomic_uint* most = (threadgroup atomic_uint*)words;
  if (i == 0) words[0] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_max_explicit(most, uint(in[i]), memory_order_relaxed);  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(words[0]);  // FINDS: missing-barrier
}

// Threads take tickets by an atomic load and an atomic store, so two threads
// can get the same ticket.
// RUN: buffer2=1
// MISSED: threads change places at barriers and simd functions only
kernel void atomic_ticket(device float* out [[buffer(1)]],
                          device atomic_uint* next [[buffer(2)]],
                          uint i [[thread_position_in_threadgroup]]) {
  uint ticket;
  if (kDefect) {
    ticket = atomic_load_explicit(next, memory_order_relaxed);
    atomic_store_explicit(next, ticket + 1, memory_order_relaxed);
  } else {
    ticket = atomic_fetch_add_explicit(next, 1u, memory_order_relaxed);
  }
  out[ticket] = float(i);  // FINDS: missing-barrier
}

// Threadgroups add to one sum. With the defect, the additions are not atomic.
// RUN: groups=3 threads=32
kernel void atomic_sum(device const float* in [[buffer(0)]],
                       device float* out [[buffer(1)]],
                       uint g [[threadgroup_position_in_grid]],
                       uint i [[thread_position_in_threadgroup]]) {
  const float sum = simd_sum(in[32 * g + i]);
  if (i != 0) return;
  if (kDefect) out[0] += sum;  // FINDS: race
  if (!kDefect) atomic_fetch_add_explicit((device atomic_float*)out, sum, memory_order_relaxed);
}

// Atomics update a progress counter, and a plain load reads it.
// RUN: groups=3 threads=32 buffer2=3
kernel void atomic_progress(device uint* count [[buffer(1)]],
                            device uint* seen [[buffer(2)]],
                            uint g [[threadgroup_position_in_grid]],
                            uint i [[thread_position_in_threadgroup]]) {
  if (i != 0) return;
  device atomic_uint* atomic = (device atomic_uint*)count;
  atomic_fetch_add_explicit(atomic, 1u, memory_order_relaxed);  // FINDS: race
  seen[g] = kDefect ? count[0] : atomic_load_explicit(atomic, memory_order_relaxed);  // FINDS: race
}

// All threads use compare and exchange on a word. One thread also writes the
// word by a plain store.
// RUN: buffer2=64
kernel void atomic_exchange(device int* owner [[buffer(1)]],
                            device float* out [[buffer(2)]],
                            uint i [[thread_position_in_threadgroup]]) {
  device atomic_int* atomic = (device atomic_int*)owner;
  int expected = 0;
  const bool won = atomic_compare_exchange_weak_explicit(  // FINDS: missing-barrier
      atomic, &expected, int(i + 1), memory_order_relaxed,
      memory_order_relaxed);
  out[i] = won ? 1.0f : 0.0f;
  if (!kDefect) threadgroup_barrier(mem_flags::mem_device);
  if (i == 40) owner[0] = 0;  // FINDS: missing-barrier
}
