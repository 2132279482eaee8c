// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Races of two simdgroups on threadgroup memory. If kDefect is set, a kernel
// has the race; otherwise it is correct.

#include <metal_stdlib>
using namespace metal;

constant bool kDefect [[function_constant(0)]];

// Threads read elements that the other simdgroup has written.
kernel void tg_read_after_write(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[(i + 33) % 64];  // FINDS: missing-barrier
}

// Threads overwrite elements that the other simdgroup may not have read yet.
kernel void tg_write_after_read(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float other = scratch[i ^ 32];  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  scratch[i] = 2.0f * other;  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i];
}

// Two threads of different simdgroups write one element.
kernel void tg_write_write(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  if (kDefect || i < 32) scratch[i % 32] = in[i];  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[i % 32];
}

// All threads that find a value store the same 1 in the same word.
kernel void tg_same_value(device const float* in [[buffer(0)]],
                          device float* out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
  threadgroup int found;
  if (i == 0) found = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const bool is_one = in[i] > 2.0f;
  if (kDefect && is_one) found = 1;  // FINDS: same-value
  if (!kDefect && is_one) atomic_store_explicit((threadgroup atomic_int*)&found, 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(found);
}

// The last round lacks the barrier between its write and its read.
kernel void tg_last_round(device const float* in [[buffer(0)]],
                          device float* out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  float sum = 0.0f;
  for (uint round = 0; round < 4; ++round) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    scratch[i] = in[i] + float(round);  // FINDS: missing-barrier
    if (!kDefect || round + 1 < 4) threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += scratch[63 - i];  // FINDS: missing-barrier
  }
  out[i] = sum;
}

// Without a barrier at the end of a round, the next round overwrites elements
// that other threads may not have read yet.
kernel void tg_next_round(device const float* in [[buffer(0)]],
                          device float* out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  float sum = 0.0f;
  for (uint round = 0; round < 3; ++round) {
    scratch[i] = in[i] * float(round + 1);  // FINDS: missing-barrier
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += scratch[(i + 32) % 64];  // FINDS: missing-barrier
    if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[i] = sum;
}

// One thread writes `count`, and another thread writes `sum`. With the
// defect, two threads write `sum`.
struct Summary {
  float sum;
  uint count;
};
kernel void tg_struct_member(device const float* in [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             uint i [[thread_position_in_threadgroup]]) {
  threadgroup Summary summary;
  if (i == 0) summary.count = 64;
  if (kDefect ? i % 32 == 0 : i == 32) summary.sum = in[i] + float(i);  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = summary.sum / float(summary.count);
}

// Each thread writes its own element of two bytes. With the defect, it also
// writes the element of the next thread.
kernel void tg_halves(device const float* in [[buffer(0)]],
                      device float* out [[buffer(1)]],
                      uint i [[thread_position_in_threadgroup]]) {
  threadgroup half scratch[66];
  if (i < 2) scratch[64 + i] = 0.0h;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const half value = half(in[i]) + half(i);
  scratch[i] = value;  // FINDS: missing-barrier
  if (kDefect) scratch[i + 1] = value;  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(scratch[63 - i]);
}

// Two arrays share an allocation. With the defect, the second array begins at
// the last element of the first.
// RUN: threadgroup=512
kernel void tg_regions(device const float* in [[buffer(0)]],
                       device float* out [[buffer(1)]],
                       threadgroup float* scratch [[threadgroup(0)]],
                       uint i [[thread_position_in_threadgroup]]) {
  threadgroup float* first = scratch;
  threadgroup float* second = scratch + (kDefect ? 63 : 64);
  first[i] = in[i];  // FINDS: missing-barrier
  second[i] = in[i] + 10.0f;  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = first[i] + second[63 - i];
}

// The only barrier comes before the second array is written, so it orders
// only accesses to the first array.
kernel void tg_two_arrays(device const float* in [[buffer(0)]],
                          device float* out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
  threadgroup float a[64];
  threadgroup float b[64];
  a[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  b[i] = in[i] * in[i];  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = a[63 - i] + b[63 - i];  // FINDS: missing-barrier
}

// The kernel passes the array to a helper, which does the racing read.
static float NextOf(threadgroup const float* row, uint i) {
  return row[(i + 1) % 64];  // FINDS: missing-barrier in tg_helper
}
kernel void tg_helper(device const float* in [[buffer(0)]],
                      device float* out [[buffer(1)]],
                      uint i [[thread_position_in_threadgroup]]) {
  threadgroup float row[64];
  row[i] = in[i];  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = NextOf(row, i);
}

// Elements of 32 bytes. Clang's sanitizer has no function for one access of
// that size.
kernel void tg_wide(device const float* in [[buffer(0)]],
                    device float* out [[buffer(1)]],
                    uint i [[thread_position_in_threadgroup]]) {
  threadgroup ulong4 scratch[64];
  scratch[i] = ulong4(in[i]);  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(all(scratch[i ^ 32] == 1) ? 1 : 0);  // FINDS: missing-barrier
}

// Candidates of an arg-max: one access stores all five bytes.
struct Candidate {
  uint at;
  bool is_found;
};
kernel void tg_candidates(device const float* in [[buffer(0)]],
                          device float* out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
  threadgroup Candidate best[64];
  const Candidate mine = {i, in[i] > 2.0f};
  best[i] = mine;  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_threadgroup);
  const Candidate other = best[i ^ 32];  // FINDS: missing-barrier
  out[i] = float(other.is_found ? other.at : 0);
}
