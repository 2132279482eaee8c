// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Races that public projects had, in kernels that we wrote. If kDefect is
// set, a kernel has the race; otherwise it has the repair.

#include <metal_stdlib>
using namespace metal;

constant bool kDefect [[function_constant(0)]];

// The log of the sum of a row's exponentials. Simdgroups use one scratch,
// first for their maxima, then for their sums. A fast simdgroup overwrites a
// maximum that a slow one has not read yet (mlx-lm 1700, 1714 and 1719:
// gradients of -3e38, under load).
kernel void log_sum_exp(device const float* in [[buffer(0)]],
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
  for (uint s = 0; s < groups; ++s) row_max = max(row_max, shared[s]);  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  const float sum = simd_sum(exp(value - row_max));
  if (lane == 0) shared[sg] = sum;  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float row_sum = 0.0f;
  for (uint s = 0; s < groups; ++s) row_sum += shared[s];
  out[i] = value - row_max - log(row_sum);
}

// The maximum of a row. The barrier is there, but with mem_none it orders no
// memory (mlx-lm 1700, in two of four kernels).
kernel void row_max_mem_none(device const float* in [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             uint i [[thread_position_in_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]],
                             uint sg [[simdgroup_index_in_threadgroup]],
                             uint groups [[simdgroups_per_threadgroup]]) {
  threadgroup float shared[32];
  const float most = simd_max(in[i]);
  if (lane == 0) shared[sg] = most;  // FINDS: barrier-flags
  threadgroup_barrier(kDefect ? mem_flags::mem_none : mem_flags::mem_threadgroup);
  float row_max = -INFINITY;
  for (uint s = 0; s < groups; ++s) row_max = max(row_max, shared[s]);  // FINDS: barrier-flags
  out[i] = in[i] - row_max;
}

// A running sum over a long row, block by block. A fast simdgroup writes its
// sum of the next block while a slow one still reads the sums of this block
// (mlx 2591: seen in one of hundreds of runs, with a hundred processes at
// once).
kernel void running_sum(device const float* in [[buffer(0)]],
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
    if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
    out[64 * block + i] = before + offset + mine;
    before += total;
  }
}

// A helper adds up the values of a threadgroup. A kernel calls it for the
// mean and for the variance, with the same scratch. The second call
// overwrites sums that slow threads still read in the first call (mlx 2340;
// llama.cpp 3057, in ggml's norm).
static float SumOfAll(float value, threadgroup float* shared, uint lane,
                      uint sg) {
  const float sum = simd_sum(value);
  if (lane == 0) shared[sg] = sum;  // FINDS: missing-barrier in norm_twice
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float total = shared[0] + shared[1];  // FINDS: missing-barrier in norm_twice
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  return total;
}
kernel void norm_twice(device const float* in [[buffer(0)]],
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
