// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Races that public projects had, in words of our own, each with its repair.

#include <metal_stdlib>
using namespace metal;

// A row's log of the sum of exponentials, by simdgroups that share one scratch:
// first for the maxima, then for the sums. A fast simdgroup writes its sum
// where a slow one has yet to read a maximum (mlx-lm 1700, 1714 and 1719:
// gradients of -3e38, under load).
kernel void log_sum_exp_yes(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]],
                            uint sg [[simdgroup_index_in_threadgroup]],
                            uint groups [[simdgroups_per_threadgroup]]) {
  threadgroup float shared[32];
  const float value = in[i];
  const float most = simd_max(value);
  if (lane == 0) shared[sg] = most;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float row_max = -INFINITY;
  for (uint s = 0; s < groups; ++s) {
    row_max = max(row_max, shared[s]);  // FINDS: missing-barrier
  }
  const float sum = simd_sum(exp(value - row_max));
  if (lane == 0) shared[sg] = sum;  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float row_sum = 0.0f;
  for (uint s = 0; s < groups; ++s) row_sum += shared[s];
  out[i] = value - row_max - log(row_sum);
}
kernel void log_sum_exp_no(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]],
                           uint sg [[simdgroup_index_in_threadgroup]],
                           uint groups [[simdgroups_per_threadgroup]]) {
  threadgroup float shared[32];
  const float value = in[i];
  const float most = simd_max(value);
  if (lane == 0) shared[sg] = most;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float row_max = -INFINITY;
  for (uint s = 0; s < groups; ++s) row_max = max(row_max, shared[s]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float sum = simd_sum(exp(value - row_max));
  if (lane == 0) shared[sg] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float row_sum = 0.0f;
  for (uint s = 0; s < groups; ++s) row_sum += shared[s];
  out[i] = value - row_max - log(row_sum);
}

// The same reduction with all its barriers, none of which is for memory: the
// other half of what those two mended.
kernel void row_max_mem_none_yes(device const float* in [[buffer(0)]],
                                 device float* out [[buffer(1)]],
                                 uint i [[thread_position_in_threadgroup]],
                                 uint lane [[thread_index_in_simdgroup]],
                                 uint sg [[simdgroup_index_in_threadgroup]],
                                 uint groups [[simdgroups_per_threadgroup]]) {
  threadgroup float shared[32];
  const float most = simd_max(in[i]);
  if (lane == 0) shared[sg] = most;  // FINDS: barrier-flags
  threadgroup_barrier(mem_flags::mem_none);
  float row_max = -INFINITY;
  for (uint s = 0; s < groups; ++s) {
    row_max = max(row_max, shared[s]);  // FINDS: barrier-flags
  }
  out[i] = in[i] - row_max;
}
kernel void row_max_mem_none_no(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint i [[thread_position_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]],
                                uint sg [[simdgroup_index_in_threadgroup]],
                                uint groups [[simdgroups_per_threadgroup]]) {
  threadgroup float shared[32];
  const float most = simd_max(in[i]);
  if (lane == 0) shared[sg] = most;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float row_max = -INFINITY;
  for (uint s = 0; s < groups; ++s) row_max = max(row_max, shared[s]);
  out[i] = in[i] - row_max;
}

// A running sum over a long row, a block at a time. The sums of the simdgroups
// of one block are still being read when the next block's are written (mlx
// 2591: seen in one of hundreds of runs, with a hundred processes at once).
kernel void running_sum_yes(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]],
                            uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float sums[32];
  float before = 0.0f;
  for (uint block = 0; block < 4; ++block) {
    const float value = in[64 * block + i];
    const float mine = simd_prefix_inclusive_sum(value);
    if (lane == 31) sums[sg] = mine;  // FINDS: missing-barrier
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float total = 0.0f, offset = 0.0f;
    for (uint s = 0; s < 2; ++s) {
      const float sum = sums[s];  // FINDS: missing-barrier
      if (s < sg) offset += sum;
      total += sum;
    }
    out[64 * block + i] = before + offset + mine;
    before += total;
  }
}
kernel void running_sum_no(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]],
                           uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float sums[32];
  float before = 0.0f;
  for (uint block = 0; block < 4; ++block) {
    const float value = in[64 * block + i];
    const float mine = simd_prefix_inclusive_sum(value);
    if (lane == 31) sums[sg] = mine;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float total = 0.0f, offset = 0.0f;
    for (uint s = 0; s < 2; ++s) {
      const float sum = sums[s];
      if (s < sg) offset += sum;
      total += sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[64 * block + i] = before + offset + mine;
    before += total;
  }
}

// A helper sums over the threadgroup, and is called for the mean and for the
// variance with the same scratch: the second call writes what the first one's
// last readers want (mlx 2340; ggml's norm had the same, llama.cpp 3057).
static float SumOfAll(float value, threadgroup float* shared, uint lane,
                      uint sg) {
  const float sum = simd_sum(value);
  if (lane == 0) shared[sg] = sum;  // FINDS: missing-barrier in norm_twice_yes
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return shared[0] + shared[1];  // FINDS: missing-barrier in norm_twice_yes
}
static float SumOfAllAndWait(float value, threadgroup float* shared, uint lane,
                             uint sg) {
  const float sum = simd_sum(value);
  if (lane == 0) shared[sg] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float total = shared[0] + shared[1];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return total;
}
kernel void norm_twice_yes(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]],
                           uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float shared[2];
  const float mean = SumOfAll(in[i], shared, lane, sg) / 64.0f;
  const float off = in[i] - mean;
  const float variance = SumOfAll(off * off, shared, lane, sg) / 64.0f;
  out[i] = off * rsqrt(variance + 1e-5f);
}
kernel void norm_twice_no(device const float* in [[buffer(0)]],
                          device float* out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]],
                          uint lane [[thread_index_in_simdgroup]],
                          uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float shared[2];
  const float mean = SumOfAllAndWait(in[i], shared, lane, sg) / 64.0f;
  const float off = in[i] - mean;
  const float variance = SumOfAllAndWait(off * off, shared, lane, sg) / 64.0f;
  out[i] = off * rsqrt(variance + 1e-5f);
}

// Two dispatches of one concurrent encoder: the first adds up the columns of a
// gradient, the second one turns the gradient into another, in place. Barriers
// were put in where a dispatch reads what an earlier one wrote, not where it
// writes what an earlier one reads (mlx 3630: a wrong bias gradient in one of
// ten runs).
kernel void column_sums(device const float* gradient [[buffer(0)]],
                        device float* sums [[buffer(1)]],
                        uint c [[thread_position_in_grid]]) {
  float sum = 0.0f;
  for (uint r = 0; r < 4; ++r) {
    sum += gradient[64 * r + c];  // FINDS: missing-memory-barrier in scale_in_place
  }
  sums[c] = sum;
}
kernel void scale_in_place(device float* gradient [[buffer(0)]],
                           device const float* scale [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
  gradient[i] = gradient[i] * scale[i % 64];  // FINDS: missing-memory-barrier
}
