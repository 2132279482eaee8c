// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Pairs of accesses that are wrong by themselves.

#include <metal_stdlib>
using namespace metal;

constant bool kDefect [[function_constant(0)]];

// Threadgroup memory that nobody has written.
kernel void fresh_threadgroup(device float* out [[buffer(1)]],
                              uint i [[thread_position_in_threadgroup]]) {
  threadgroup float sums[64];
  if (!kDefect) sums[i] = 0.0f;
  out[i] = sums[i] + 1.0f;  // FINDS: never-written
}

// All but the last element are written.
kernel void fresh_last(device const float* in [[buffer(0)]],
                       device float* out [[buffer(1)]],
                       uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  if (!kDefect || i + 1 < 64) scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i];  // FINDS: never-written
}

// A buffer that nothing has written since it was made.
// RUN: fresh2=64
kernel void fresh_buffer(device float* out [[buffer(1)]],
                         device float* work [[buffer(2)]],
                         uint i [[thread_position_in_threadgroup]]) {
  if (!kDefect) work[i] = float(i);
  out[i] = work[i];  // FINDS: never-written
}

// An accumulator in a fresh buffer: "it is zero anyhow".
// RUN: fresh2=64
kernel void fresh_sum(device const float* in [[buffer(0)]],
                      device float* work [[buffer(2)]],
                      uint i [[thread_position_in_threadgroup]]) {
  if (!kDefect) work[i] = 0.0f;
  work[i] += in[i];  // FINDS: never-written
}

// One past the end: the neighbour of the last element.
// RUN: buffer2=64
kernel void past_the_end(device const float* x [[buffer(2)]],
                         device float* out [[buffer(1)]],
                         uint i [[thread_position_in_threadgroup]]) {
  if (kDefect || i + 1 < 64) out[i] = x[i + 1] - x[i];  // FINDS: bounds
}

// Index -1: the neighbour of the first.
kernel void negative(device const float* in [[buffer(0)]],
                     device float* out [[buffer(1)]],
                     uint i [[thread_position_in_threadgroup]]) {
  const int before = kDefect ? int(i) - 1 : max(int(i) - 1, 0);
  out[i] = in[before];  // FINDS: bounds
}

// The same of an unsigned index, which is four thousand millions.
kernel void wraps_around(device const float* in [[buffer(0)]],
                         device float* out [[buffer(1)]],
                         uint i [[thread_position_in_threadgroup]]) {
  out[i] = in[!kDefect && i == 0 ? 0 : i - 1];  // FINDS: bounds
}

// Threadgroup memory of one element too few.
// RUN: threadgroup=256
kernel void past_scratch(device const float* in [[buffer(0)]],
                         device float* out [[buffer(1)]],
                         threadgroup float* scratch [[threadgroup(0)]],
                         uint i [[thread_position_in_threadgroup]]) {
  const uint first = kDefect ? 1 : 0;
  scratch[first + i] = in[i];  // FINDS: bounds
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[first + 63 - i];  // FINDS: bounds
}

// A slot for each simdgroup, and one simdgroup more.
// RUN: threads=96/64
kernel void too_many_simdgroups(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint i [[thread_position_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]],
                                uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float part[2];
  const float sum = simd_sum(in[i]);
  if (lane == 0) part[sg] = sum;  // FINDS: bounds
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) out[0] = part[0] + part[1];
}

// Parameters of which the last word is not bound.
struct Params {
  uint rows;
  uint cols;
  uint stride;
};
// RUN: buffer2=2/3
// ERROR: buffer 2 (p) needs 12 bytes, 8 are bound
kernel void short_params(device float* out [[buffer(1)]],
                         constant Params& p [[buffer(2)]],
                         uint i [[thread_position_in_threadgroup]]) {
  out[i] = float(p.stride + i);  // FINDS: binding
}

// The tail of a row, read four at a time.
// RUN: buffer2=62
kernel void vector_tail(device const float4* x [[buffer(2)]],
                        device float* out [[buffer(1)]],
                        uint i [[thread_position_in_threadgroup]]) {
  const uint last = 4 * i + (kDefect ? 0 : 3);
  if (last < 62) out[i] = dot(x[i], float4(1.0f));  // FINDS: bounds
}

// A grid that is larger than the row, and no look at its length.
// RUN: groups=2 threads=32 buffer2=62
kernel void no_guard(device float* x [[buffer(2)]],
                     uint i [[thread_position_in_grid]]) {
  if (kDefect || i < 62) x[i] = float(i);  // FINDS: bounds
}

// An index from the data.
// RUN: buffer2=62
kernel void gather(device const float* x [[buffer(2)]],
                   device const float* in [[buffer(0)]],
                   device float* out [[buffer(1)]],
                   uint i [[thread_position_in_threadgroup]]) {
  const uint from = uint(in[i]) * 16;
  out[i] = x[kDefect ? from : min(from, 61u)];  // FINDS: bounds
}

// Past a table of the program's own, which nothing is told about.
constant float kTable[4] = {1.0f, 2.0f, 4.0f, 8.0f};
// MISSED: constants and variables of the program have no bounds here
kernel void past_a_table(device const float* in [[buffer(0)]],
                         device float* out [[buffer(1)]],
                         uint i [[thread_position_in_threadgroup]]) {
  out[i] = kTable[uint(in[i]) % (kDefect ? 5 : 4)];  // FINDS: bounds
}

// Four floats from anywhere: float4 wants every fourth of them.
kernel void misaligned(device const float* x [[buffer(0)]],
                       device float* out [[buffer(1)]],
                       uint i [[thread_position_in_threadgroup]]) {
  float4 v;
  if (kDefect) {
    v = *(device const float4*)(x + i);  // FINDS: misaligned
  } else {
    v = *(device const packed_float4*)(x + i);
  }
  out[i] = dot(v, v);  // FINDS: misaligned
}

// A function constant that no host sets, and what is made of it.
constant uint kScale [[function_constant(1)]];
constant uint kTwice = kScale * 2;
constant uint kScaleOrOne = is_function_constant_defined(kScale) ? kScale : 1;
// In a function: Clang would read both constants and choose between them.
__attribute__((noinline)) static float Twice() {
  return float(kTwice);  // FINDS: never-written in unset_constant
}
kernel void unset_constant(device const float* x [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]]) {
  out[i] = x[i] * (kDefect ? Twice() : float(kScaleOrOne));
}
