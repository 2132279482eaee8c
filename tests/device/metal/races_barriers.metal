// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Pairs of barriers that do not order, or that not all threads reach.

#include <metal_stdlib>
using namespace metal;

// No flag: threads wait, memory does not.
kernel void barrier_none_yes(device const float* in [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];  // FINDS: barrier-flags
  threadgroup_barrier(mem_flags::mem_none);
  out[i] = scratch[63 - i];  // FINDS: barrier-flags
}
kernel void barrier_none_no(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_none);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i];
}

// The flag of device memory, where threadgroup memory is meant.
kernel void barrier_device_yes(device const float* in [[buffer(0)]],
                               device float* out [[buffer(1)]],
                               uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];  // FINDS: barrier-flags
  threadgroup_barrier(mem_flags::mem_device);
  out[i] = scratch[63 - i];  // FINDS: barrier-flags
}
kernel void barrier_device_no(device const float* in [[buffer(0)]],
                              device float* out [[buffer(1)]],
                              uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i];
}

// Both kinds of memory change hands, and the barrier is for one.
kernel void barrier_one_of_two_yes(device const float* in [[buffer(0)]],
                                   device float* out [[buffer(1)]],
                                   device float* work [[buffer(2)]],
                                   uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  work[i] = in[i] + 1.0f;  // FINDS: barrier-flags
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float a = scratch[63 - i];
  out[i] = a * work[63 - i];  // FINDS: barrier-flags
}
kernel void barrier_one_of_two_no(device const float* in [[buffer(0)]],
                                  device float* out [[buffer(1)]],
                                  device float* work [[buffer(2)]],
                                  uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  work[i] = in[i] + 1.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup_barrier(mem_flags::mem_device);
  const float a = scratch[63 - i];
  out[i] = a * work[63 - i];
}

// Threads past the end of the row have gone when the others wait.
kernel void barrier_early_return_yes(device const float* in [[buffer(0)]],
                                     device float* out [[buffer(1)]],
                                     uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  if (i >= 40) return;
  scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier
  out[i] = scratch[39 - i];
}
kernel void barrier_early_return_no(device const float* in [[buffer(0)]],
                                    device float* out [[buffer(1)]],
                                    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  if (i < 40) scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i >= 40) return;
  out[i] = scratch[39 - i];
}

// The barrier is in a branch that half of the threads take.
kernel void barrier_in_branch_yes(device const float* in [[buffer(0)]],
                                  device float* out [[buffer(1)]],
                                  uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[32];
  float value = in[i];
  if (i < 32) {
    scratch[i] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier
    value = scratch[31 - i];
  }
  out[i] = value;
}
kernel void barrier_in_branch_no(device const float* in [[buffer(0)]],
                                 device float* out [[buffer(1)]],
                                 uint n [[threads_per_threadgroup]],
                                 uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  float value = in[i];
  if (n > 32) {
    scratch[i] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    value = scratch[63 - i];
  }
  out[i] = value;
}

// A loop whose length is the thread's own.
kernel void barrier_in_loop_yes(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  float value = in[i];
  for (uint step = 0; step < 2 + i / 32; ++step) {
    scratch[i] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier
    value += 1.0f;
  }
  out[i] = value + scratch[i];
}
kernel void barrier_in_loop_no(device const float* in [[buffer(0)]],
                               device float* out [[buffer(1)]],
                               uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  float value = in[i];
  for (uint step = 0; step < 3; ++step) {
    if (step < 2 + i / 32) scratch[i] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    value += 1.0f;
  }
  out[i] = value + scratch[i];
}

// The barrier is in a helper, which not all call.
static float Exchanged(threadgroup float* scratch, uint i, float value) {
  scratch[i] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier in barrier_in_helper_yes
  return scratch[i ^ 1];
}
kernel void barrier_in_helper_yes(device const float* in [[buffer(0)]],
                                  device float* out [[buffer(1)]],
                                  uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  float value = in[i];
  if (value < 1e9f && i != 17) value = Exchanged(scratch, i, value);
  out[i] = value;
}
kernel void barrier_in_helper_no(device const float* in [[buffer(0)]],
                                 device float* out [[buffer(1)]],
                                 uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  const float value = Exchanged(scratch, i, in[i]);
  if (i != 17) out[i] = value;
}

// Both ways have as many barriers, but not the same ones.
kernel void barrier_of_two_ways_yes(device const float* in [[buffer(0)]],
                                    device float* out [[buffer(1)]],
                                    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  if (i < 32) {
    scratch[i] = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier
    out[i] = scratch[63 - i];
  } else {
    scratch[i] = -in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier
    out[i] = scratch[63 - i] + 1.0f;
  }
}
kernel void barrier_of_two_ways_no(device const float* in [[buffer(0)]],
                                   device float* out [[buffer(1)]],
                                   uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = i < 32 ? in[i] : -in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i] + (i < 32 ? 0.0f : 1.0f);
}

// One that comes too early.
kernel void barrier_too_early_yes(device const float* in [[buffer(0)]],
                                  device float* out [[buffer(1)]],
                                  uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  scratch[i] = in[i];        // FINDS: missing-barrier
  out[i] = scratch[63 - i];  // FINDS: missing-barrier
}
kernel void barrier_too_early_no(device const float* in [[buffer(0)]],
                                 device float* out [[buffer(1)]],
                                 uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i];
}

// A barrier of the simdgroup that some of its lanes skip.
kernel void barrier_of_lanes_yes(device const float* in [[buffer(0)]],
                                 device float* out [[buffer(1)]],
                                 uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  if (i % 32 >= 20) return;
  simdgroup_barrier(mem_flags::mem_threadgroup);  // FINDS: divergent-barrier
  out[i] = scratch[i ^ 1];
}
kernel void barrier_of_lanes_no(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  if (i >= 32) return;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[i ^ 1];
}
