// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// All ways to declare threadgroup memory, and barriers in all kinds of
// places.

#include <metal_stdlib>
using namespace metal;

struct Pair {
  float value;
  uint index;
};

kernel void reverse_rows(device const float* in [[buffer(0)]],
                         device float* out [[buffer(1)]],
                         uint2 p [[thread_position_in_threadgroup]],
                         uint2 g [[thread_position_in_grid]],
                         uint2 size [[threads_per_grid]]) {
  threadgroup float tile[4][8], flipped[8][4];
  tile[p.y][p.x] = in[g.y * size.x + g.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  flipped[p.x][p.y] = tile[3 - p.y][7 - p.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[g.y * size.x + g.x] = flipped[p.x][p.y];
}

// Finds the largest element and its index, by a tree over structs.
kernel void arg_max(device const float* in [[buffer(0)]],
                    device float* value [[buffer(1)]],
                    device uint* index [[buffer(2)]],
                    uint n [[threads_per_threadgroup]],
                    uint g [[threadgroup_position_in_grid]],
                    uint i [[thread_position_in_threadgroup]]) {
  threadgroup Pair best[64];
  best[i].value = in[g * n + i];
  best[i].index = i;
  for (uint s = 32; s != 0; s >>= 1) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i < s) {
      const Pair other = best[i + s];
      threadgroup Pair& mine = best[i];
      if (other.value > mine.value ||
          (other.value == mine.value && other.index < mine.index)) {
        mine = other;
      }
    }
  }
  if (i == 0) {
    value[g] = best[0].value;
    index[g] = best[0].index;
  }
}

// The host sets the lengths of two arrays.
kernel void two_arguments(device const float* in [[buffer(0)]],
                          device float* out [[buffer(1)]],
                          threadgroup float* a [[threadgroup(0)]],
                          threadgroup ushort* b [[threadgroup(1)]],
                          uint i [[thread_index_in_threadgroup]]) {
  a[i] = in[i];
  b[i] = ushort(31 - i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = a[b[i ^ 3]];
}

// A single simdgroup does not need the array, so hosts give it no bytes.
kernel void row_sum(device const float* in [[buffer(0)]],
                    device float* out [[buffer(1)]],
                    threadgroup float* part [[threadgroup(0)]],
                    uint i [[thread_index_in_threadgroup]],
                    uint sg [[simdgroup_index_in_threadgroup]],
                    uint simdgroups [[simdgroups_per_threadgroup]]) {
  float sum = simd_sum(in[i]);
  if (simdgroups > 1) {
    if (simd_is_first()) part[sg] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = 0.0f;
    for (uint s = 0; s < simdgroups; ++s) sum += part[s];
  }
  out[i] = sum;
}

// Barriers in a loop, in a branch that all threads take, in a helper, and in
// a function that the helper calls.
static void Wait(uint rounds) {
  if (rounds > 1) {
    Wait(rounds - 1);
  } else {
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
static float Rotated(threadgroup float* row, float value, uint i, uint by) {
  row[i] = value;
  Wait(2);
  const float rotated = row[(i + by) % 64];
  Wait(1);
  return rotated;
}
kernel void everywhere(device const float* in [[buffer(0)]],
                       device float* out [[buffer(1)]],
                       device float* work [[buffer(2)]],
                       constant uint& rounds [[buffer(3)]],
                       uint i [[thread_position_in_threadgroup]]) {
  threadgroup float row[64];
  float value = in[i];
  for (uint round = 0; round < rounds; ++round) {
    if (round % 2 == 0) {
      value = Rotated(row, value, i, round + 1);
    } else {
      work[i] = value;
      threadgroup_barrier(mem_flags::mem_device);
      value = work[i ^ 32];
      threadgroup_barrier(mem_flags::mem_device);
      if (round == 3) continue;
      value += 1.0f;
    }
  }
  out[i] = value;
}

// The array is declared in a template, so each type has its own array.
template <typename T>
kernel void neighbours(device const T* in [[buffer(0)]],
                       device T* out [[buffer(1)]],
                       uint i [[thread_position_in_threadgroup]]) {
  threadgroup T copies[32];
  copies[i] = in[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = copies[31 - i] + in[(i + 1) % 32];
}
template [[host_name("neighbours_float")]] [[kernel]]
decltype(neighbours<float>) neighbours<float>;
template [[host_name("neighbours_int")]] [[kernel]]
decltype(neighbours<int>) neighbours<int>;
