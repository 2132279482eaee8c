// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Pairs within simdgroups, whose lanes do not run in lockstep.

#include <metal_stdlib>
using namespace metal;

// Lanes talk through threadgroup memory.
kernel void simd_no_barrier_yes(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];        // FINDS: missing-barrier
  out[lane] = scratch[lane ^ 1];   // FINDS: missing-barrier
}
kernel void simd_no_barrier_no(device const float* in [[buffer(0)]],
                               device float* out [[buffer(1)]],
                               uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = scratch[lane ^ 1];
}

// A simd function is no barrier: what lanes have written it makes visible to
// none.
kernel void simd_sum_between_yes(device const float* in [[buffer(0)]],
                                 device float* out [[buffer(1)]],
                                 uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];  // FINDS: missing-barrier
  const float sum = simd_sum(in[lane]);
  out[lane] = sum + scratch[lane ^ 1];  // FINDS: missing-barrier
}
kernel void simd_sum_between_no(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];
  const float sum = simd_sum(in[lane]);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = sum + scratch[lane ^ 1];
}

// But it waits for what lanes have read: here for nothing, there for a value
// that depends on it.
kernel void simd_read_then_write_yes(device const float* in [[buffer(0)]],
                                     device float* out [[buffer(1)]],
                                     uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  const float other = scratch[lane ^ 1];  // FINDS: missing-barrier
  scratch[lane] = other + 1.0f;           // FINDS: missing-barrier
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = scratch[31 - lane];
}
kernel void simd_read_then_write_no(device const float* in [[buffer(0)]],
                                    device float* out [[buffer(1)]],
                                    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  const float most = simd_max(scratch[lane ^ 1]);
  scratch[lane] = most + float(lane);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = scratch[31 - lane];
}

// A barrier of simdgroups, where two of them exchange values.
kernel void simd_barrier_of_one_yes(device const float* in [[buffer(0)]],
                                    device float* out [[buffer(1)]],
                                    uint i [[thread_index_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];  // FINDS: missing-barrier
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[i ^ 32];  // FINDS: missing-barrier
}
kernel void simd_barrier_of_one_no(device const float* in [[buffer(0)]],
                                   device float* out [[buffer(1)]],
                                   uint i [[thread_index_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[i ^ 16];
}

// A simdgroup barrier without a flag.
kernel void simd_barrier_none_yes(device const float* in [[buffer(0)]],
                                  device float* out [[buffer(1)]],
                                  uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];  // FINDS: barrier-flags
  simdgroup_barrier(mem_flags::mem_none);
  out[lane] = scratch[31 - lane];  // FINDS: barrier-flags
}
kernel void simd_barrier_none_no(device const float* in [[buffer(0)]],
                                 device float* out [[buffer(1)]],
                                 uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[lane] = scratch[31 - lane];
}

// The last steps of a tree, "warp-synchronous".
kernel void simd_tree_yes(device const float* in [[buffer(0)]],
                          device float* out [[buffer(1)]],
                          uint lane [[thread_index_in_simdgroup]]) {
  threadgroup volatile float scratch[32];
  scratch[lane] = in[lane];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  if (lane < 16) {
    scratch[lane] = scratch[lane] + scratch[lane + 16];  // FINDS: missing-barrier
    scratch[lane] = scratch[lane] + scratch[lane + 8];   // FINDS: missing-barrier
    scratch[lane] = scratch[lane] + scratch[lane + 4];   // FINDS: missing-barrier
    scratch[lane] = scratch[lane] + scratch[lane + 2];   // FINDS: missing-barrier
    scratch[lane] = scratch[lane] + scratch[lane + 1];   // FINDS: missing-barrier
  }
  if (lane == 0) out[0] = scratch[0];
}
kernel void simd_tree_no(device const float* in [[buffer(0)]],
                         device float* out [[buffer(1)]],
                         uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];
  for (uint half_size = 16; half_size != 0; half_size /= 2) {
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (lane < half_size) scratch[lane] += scratch[lane + half_size];
  }
  if (lane == 0) out[0] = scratch[0];
}

// A shuffle from a lane that is not in the branch.
kernel void simd_shuffle_branch_yes(device const float* in [[buffer(0)]],
                                    device float* out [[buffer(1)]],
                                    uint lane [[thread_index_in_simdgroup]]) {
  float value = in[lane];
  if (lane < 16) {
    value = simd_shuffle(value, ushort(lane + 16));  // FINDS: divergent-simd
  }
  out[lane] = value;
}
kernel void simd_shuffle_branch_no(device const float* in [[buffer(0)]],
                                   device float* out [[buffer(1)]],
                                   uint lane [[thread_index_in_simdgroup]]) {
  float value = in[lane];
  const float other = simd_shuffle(value, ushort((lane + 16) % 32));
  if (lane < 16) value = other;
  out[lane] = value;
}

// The last simdgroup has eight lanes, and lane 8 is asked.
kernel void simd_short_group_yes(device const float* in [[buffer(0)]],
                                 device float* out [[buffer(1)]],
                                 uint i [[thread_index_in_threadgroup]]) {
  out[i] = simd_broadcast(in[i], 8);  // FINDS: divergent-simd
}
kernel void simd_short_group_no(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint i [[thread_index_in_threadgroup]]) {
  out[i] = simd_broadcast(in[i], 7);
}

// Quads exchange through memory.
kernel void simd_quad_yes(device const float* in [[buffer(0)]],
                          device float* out [[buffer(1)]],
                          uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float scratch[32];
  scratch[lane] = in[lane];  // FINDS: missing-barrier
  const float sum = quad_sum(in[lane]);
  out[lane] = sum - scratch[lane ^ 3];  // FINDS: missing-barrier
}
kernel void simd_quad_no(device const float* in [[buffer(0)]],
                         device float* out [[buffer(1)]],
                         uint lane [[thread_index_in_simdgroup]]) {
  const float sum = quad_sum(in[lane]);
  out[lane] = sum - quad_shuffle_xor(in[lane], 3);
}
