// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Barriers that do not order the accesses, or that not all threads reach. If
// kDefect is set, a kernel has the defect; otherwise it is correct.

#include <metal_stdlib>
using namespace metal;

constant bool kDefect [[function_constant(0)]];

// Without a flag, threads wait for each other, but no memory is ordered.
kernel void barrier_none(device const float* in [[buffer(0)]],
                         device float* out [[buffer(1)]],
                         uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];  // FINDS: barrier-flags
  threadgroup_barrier(mem_flags::mem_none);
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i];  // FINDS: barrier-flags
}

// The flag is for device memory, but threads exchange threadgroup memory.
kernel void barrier_device(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];  // FINDS: barrier-flags
  threadgroup_barrier(kDefect ? mem_flags::mem_device : mem_flags::mem_device | mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i];  // FINDS: barrier-flags
}

// Threads exchange values in both kinds of memory, but the barrier is for
// only one kind.
// RUN: buffer2=64
kernel void barrier_one_of_two(device const float* in [[buffer(0)]],
                               device float* out [[buffer(1)]],
                               device float* work [[buffer(2)]],
                               uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  work[i] = in[i] + 1.0f;  // FINDS: barrier-flags
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (!kDefect) threadgroup_barrier(mem_flags::mem_device);
  const float a = scratch[63 - i];
  out[i] = a * work[63 - i];  // FINDS: barrier-flags
}

// Threads past the end of the row return before the barrier.
kernel void barrier_early_return(device const float* in [[buffer(0)]],
                                 device float* out [[buffer(1)]],
                                 uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  if (kDefect && i >= 40) return;
  if (i < 40) scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier
  if (i >= 40) return;
  out[i] = scratch[39 - i];
}

// The barrier is in a branch that half of the threads take.
kernel void barrier_in_branch(device const float* in [[buffer(0)]],
                              device float* out [[buffer(1)]],
                              uint n [[threads_per_threadgroup]],
                              uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  float value = in[i];
  if (kDefect ? i < 32 : n > 32) {
    scratch[i] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier
    value = scratch[(kDefect ? 31 : 63) - i];
  }
  out[i] = value;
}

// The number of rounds, each with a barrier, depends on the thread.
kernel void barrier_in_loop(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  float value = in[i];
  for (uint step = 0; step < (kDefect ? 2 + i / 32 : 3); ++step) {
    if (step < 2 + i / 32) scratch[i] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier
    value += 1.0f;
  }
  out[i] = value + scratch[i];
}

// The barrier is in a helper that not all threads call.
static float Exchanged(threadgroup float* scratch, uint i, float value) {
  scratch[i] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier in barrier_in_helper
  return scratch[i ^ 1];
}
kernel void barrier_in_helper(device const float* in [[buffer(0)]],
                              device float* out [[buffer(1)]],
                              uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  float value = in[i];
  if (!kDefect || (value < 1e9f && i != 17)) value = Exchanged(scratch, i, value);
  if (i != 17) out[i] = value;
}

// Both branches have one barrier, but threads in different branches wait at
// different barriers.
kernel void barrier_of_two_ways(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  if (!kDefect) {
    scratch[i] = i < 32 ? in[i] : -in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = scratch[63 - i] + (i < 32 ? 0.0f : 1.0f);
  } else if (i < 32) {
    scratch[i] = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier
    out[i] = scratch[63 - i];
  } else {
    scratch[i] = -in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier
    out[i] = scratch[63 - i] + 1.0f;
  }
}

// The barrier is before the write, not between the write and the read.
kernel void barrier_too_early(device const float* in [[buffer(0)]],
                              device float* out [[buffer(1)]],
                              uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  scratch[i] = in[i];  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i];  // FINDS: missing-barrier
}

// Some lanes of the simdgroup return before its barrier.
kernel void barrier_of_lanes(device const float* in [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  if (kDefect ? i % 32 >= 20 : i >= 32) return;
  simdgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier
  out[i] = scratch[i ^ 1];
}
