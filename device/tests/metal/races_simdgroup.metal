// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Races within simdgroups, because lanes do not run in lockstep. If kDefect
// is set, a kernel has the defect; otherwise it is correct.

#include <metal_stdlib>
using namespace metal;

constant bool kDefect [[function_constant(0)]];

// Lanes exchange values through threadgroup memory.
// RUN: threads=32
kernel void simd_no_barrier(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];  // FINDS: missing-barrier
  if (!kDefect) simdgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = scratch[lane ^ 1];  // FINDS: missing-barrier
}

// A simd function is no barrier: it does not make the writes of a lane
// visible to other lanes.
// RUN: threads=32
kernel void simd_sum_between(device const float* in [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];  // FINDS: missing-barrier
  const float sum = simd_sum(in[lane]);
  if (!kDefect) simdgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = sum + scratch[lane ^ 1];  // FINDS: missing-barrier
}

// A simd function waits until every lane has its operand. Here the operand is
// the value that the lane has read, so all lanes have read before any lane
// writes. With the defect, the function is missing.
// RUN: threads=32
kernel void simd_read_then_write(device const float* in [[buffer(0)]],
                                 device float* out [[buffer(1)]],
                                 uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  float other = scratch[lane ^ 1];  // FINDS: missing-barrier
  if (!kDefect) other = simd_max(other);
  scratch[lane] = other + float(lane);  // FINDS: missing-barrier
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = scratch[31 - lane];
}

// Two simdgroups exchange values, but the barrier only waits for the lanes of
// one simdgroup.
kernel void simd_barrier_of_one(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint i [[thread_index_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];  // FINDS: missing-barrier
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[i ^ (kDefect ? 32 : 16)];  // FINDS: missing-barrier
}

// A simdgroup barrier without a flag orders no memory.
// RUN: threads=32
kernel void simd_barrier_none(device const float* in [[buffer(0)]],
                              device float* out [[buffer(1)]],
                              uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];  // FINDS: barrier-flags
  simdgroup_barrier(kDefect ? mem_flags::mem_none : mem_flags::mem_threadgroup);
  out[lane] = scratch[31 - lane];  // FINDS: barrier-flags
}

// The last steps of a tree have no barrier, as in "warp-synchronous" code.
// RUN: threads=32
kernel void simd_tree(device const float* in [[buffer(0)]],
                      device float* out [[buffer(1)]],
                      uint lane [[thread_index_in_simdgroup]]) {
  threadgroup volatile float scratch[32];
  scratch[lane] = in[lane];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint n = 16; n != 0; n /= 2) {
    if (lane < (kDefect ? 16 : n)) scratch[lane] = scratch[lane] + scratch[lane + n];  // FINDS: missing-barrier
    if (!kDefect) simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (lane == 0) out[0] = scratch[0];
}

// A lane in a branch reads the value of a lane that is not in the branch.
// RUN: threads=32
kernel void simd_shuffle_branch(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint lane [[thread_index_in_simdgroup]]) {
  float value = in[lane];
  float other = value;
  if (!kDefect || lane < 16) other = simd_shuffle(value, ushort((lane + 16) % 32));  // FINDS: divergent-simd
  if (lane < 16) value = other;
  out[lane] = value;
}

// The last simdgroup has lanes 0 to 7, but the broadcast is from lane 8.
// RUN: threads=40
kernel void simd_short_group(device const float* in [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             uint i [[thread_index_in_threadgroup]]) {
  out[i] = simd_broadcast(in[i], ushort(kDefect ? 8 : 7));  // FINDS: divergent-simd
}

// The lanes of a quad exchange values through memory, without a barrier.
// RUN: threads=32
kernel void simd_quad(device const float* in [[buffer(0)]],
                      device float* out [[buffer(1)]],
                      uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];  // FINDS: missing-barrier
  const float sum = quad_sum(in[lane]);
  out[lane] = sum - (kDefect ? scratch[lane ^ 3] : quad_shuffle_xor(in[lane], 3));  // FINDS: missing-barrier
}
