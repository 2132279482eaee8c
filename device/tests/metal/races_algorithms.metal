// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Defects in common parts of shaders, such as reductions, scans and sorts. If
// kDefect is set, a kernel has the defect; otherwise it is correct.

#include <metal_stdlib>
using namespace metal;

constant bool kDefect [[function_constant(0)]];

// A reduction by a tree, without a barrier in its loop.
kernel void tree(device const float* in [[buffer(0)]],
                 device float* out [[buffer(1)]],
                 uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 32; s != 0; s /= 2) {
    if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i < s) scratch[i] += scratch[i + s];  // FINDS: missing-barrier
  }
  if (i == 0) out[0] = scratch[0];
}

// All threads read both simdgroups' partial sums, without a barrier.
kernel void partials(device const float* in [[buffer(0)]],
                     device float* out [[buffer(1)]],
                     uint i [[thread_position_in_threadgroup]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float part[2];
  const float sum = simd_sum(in[i]);
  if (lane == 0) part[sg] = sum;  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = part[0] + part[1];  // FINDS: missing-barrier, never-written
}

// Two buffers alternate, so one barrier a round is enough. With the defect,
// two rounds use the same buffer.
kernel void ping_pong(device const float* in [[buffer(0)]],
                      device float* out [[buffer(1)]],
                      uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[2][64];
  float sum = 0.0f;
  for (uint round = 0; round < 4; ++round) {
    const uint turn = (kDefect ? round / 2 : round) % 2;
    tile[turn][i] = in[64 * round + i];  // FINDS: missing-barrier
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += tile[turn][63 - i];  // FINDS: missing-barrier
  }
  out[i] = sum;
}

// A prefix sum in place: a step overwrites elements that other threads read
// in the same step.
kernel void scan(device const float* in [[buffer(0)]],
                 device float* out [[buffer(1)]],
                 uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 1; s < 64; s *= 2) {
    const float before = i >= s ? scratch[i - s] : 0.0f;  // FINDS: missing-barrier
    if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
    scratch[i] += before;  // FINDS: missing-barrier
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[i] = scratch[i];
}

// A transpose through a tile, without a barrier.
// RUN: threads=8x8
kernel void transpose(device const float* in [[buffer(0)]],
                      device float* out [[buffer(1)]],
                      uint2 p [[thread_position_in_threadgroup]]) {
  threadgroup float tile[8][9];
  tile[p.y][p.x] = in[8 * p.y + p.x];  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[8 * p.y + p.x] = tile[p.x][p.y];  // FINDS: missing-barrier
}

// A transpose in place. With the defect all threads swap, not only those
// above the diagonal, so two threads swap the same pair.
// RUN: threads=8x8
kernel void transpose_in_place(device float* out [[buffer(1)]],
                               uint2 p [[thread_position_in_grid]]) {
  if (!kDefect && p.x <= p.y) return;
  const float upper = out[8 * p.y + p.x];  // FINDS: missing-barrier
  const float lower = out[8 * p.x + p.y];  // FINDS: missing-barrier
  out[8 * p.y + p.x] = lower;  // FINDS: missing-barrier
  out[8 * p.x + p.y] = upper;  // FINDS: missing-barrier
}

// A stencil in a tile: threads overwrite values that their neighbours read.
kernel void stencil(device const float* in [[buffer(0)]],
                    device float* out [[buffer(1)]],
                    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = 0; step < 3; ++step) {
    const float value = 0.5f * (tile[(i + 63) % 64] + tile[(i + 1) % 64]);  // FINDS: missing-barrier
    if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
    tile[i] = value;  // FINDS: missing-barrier
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[i] = tile[i];
}

// Two threads fetch the elements beside the tile after the barrier.
kernel void halo(device const float* in [[buffer(0)]],
                 device float* out [[buffer(1)]],
                 uint i [[thread_position_in_threadgroup]]) {
  threadgroup float tile[66];
  tile[i + 1] = in[i + 1];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) tile[0] = in[0];  // FINDS: missing-barrier
  if (i == 1) tile[65] = in[65];  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = tile[i] + tile[i + 2];  // FINDS: missing-barrier, never-written
}

// A product of matrices, tile by tile. With one barrier a tile, threads
// overwrite a tile that others still read.
// RUN: threads=8x8
kernel void tiles(device const float* in [[buffer(0)]],
                  device float* out [[buffer(1)]],
                  uint2 p [[thread_position_in_threadgroup]]) {
  threadgroup float a[8][8];
  threadgroup float b[8][8];
  float sum = 0.0f;
  for (uint k = 0; k < 2; ++k) {
    a[p.y][p.x] = in[16 * p.y + 8 * k + p.x];  // FINDS: missing-barrier
    b[p.y][p.x] = in[16 * (8 * k + p.y) + p.x];  // FINDS: missing-barrier
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = 0; j < 8; ++j) sum += a[p.y][j] * b[j][p.x];  // FINDS: missing-barrier
    if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[8 * p.y + p.x] = sum;
}

// A bitonic sort with the barrier in the outer loop only.
kernel void bitonic(device const float* in [[buffer(0)]],
                    device float* out [[buffer(1)]],
                    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float row[64];
  row[i] = in[i];
  for (uint size = 2; size <= 64; size *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint s = size / 2; s != 0; s /= 2) {
      if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
      const uint j = i ^ s;
      if (j < i) continue;
      const float low = row[i], high = row[j];  // FINDS: missing-barrier
      if ((low > high) == ((i & size) == 0)) {
        row[i] = high;  // FINDS: missing-barrier
        row[j] = low;  // FINDS: missing-barrier
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = row[i];
}

// Threads add up the bins of both simdgroups before all threads have counted.
kernel void merge_bins(device const float* in [[buffer(0)]],
                       device float* out [[buffer(1)]],
                       uint i [[thread_position_in_threadgroup]],
                       uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup uint bins[2][8];
  if (i < 16) bins[i / 8][i % 8] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup atomic_uint* mine = (threadgroup atomic_uint*)bins[sg];
  const uint bin = uint(in[i]) % 8;
  atomic_fetch_add_explicit(&mine[bin], 1u, memory_order_relaxed);  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 8) out[i] = float(bins[0][i] + bins[1][i]);  // FINDS: missing-barrier
}
