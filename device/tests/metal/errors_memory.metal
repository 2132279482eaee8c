// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Accesses that are wrong in every order of the threads. If kDefect is set, a
// kernel has the defect; otherwise it is correct.

#include <metal_stdlib>
using namespace metal;

constant bool kDefect [[function_constant(0)]];

// Reads threadgroup memory that no thread has written.
kernel void fresh_threadgroup(device float* out [[buffer(1)]],
                              uint i [[thread_position_in_threadgroup]]) {
  threadgroup float sums[64];
  if (!kDefect) sums[i] = 0.0f;
  out[i] = sums[i] + 1.0f;  // FINDS: never-written
}

// Reads all elements, but the threads have written all except for the last
// one.
kernel void fresh_last(device const float* in [[buffer(0)]],
                       device float* out [[buffer(1)]],
                       uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  if (!kDefect || i + 1 < 64) scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i];  // FINDS: never-written
}

// Reads a buffer that has not been written since newBuffer() made it.
// RUN: fresh2=64
kernel void fresh_buffer(device float* out [[buffer(1)]],
                         device float* work [[buffer(2)]],
                         uint i [[thread_position_in_threadgroup]]) {
  if (!kDefect) work[i] = float(i);
  out[i] = work[i];  // FINDS: never-written
}

// Adds to a new buffer, as if it were filled with zeros.
// RUN: fresh2=64
kernel void fresh_sum(device const float* in [[buffer(0)]],
                      device float* work [[buffer(2)]],
                      uint i [[thread_position_in_threadgroup]]) {
  if (!kDefect) work[i] = 0.0f;
  work[i] += in[i];  // FINDS: never-written
}

// Reads the neighbour of the last element, one element past the end.
// RUN: buffer2=64
kernel void past_the_end(device const float* x [[buffer(2)]],
                         device float* out [[buffer(1)]],
                         uint i [[thread_position_in_threadgroup]]) {
  if (kDefect || i + 1 < 64) out[i] = x[i + 1] - x[i];  // FINDS: bounds
}

// Reads the element before the first one, with index -1.
kernel void negative(device const float* in [[buffer(0)]],
                     device float* out [[buffer(1)]],
                     uint i [[thread_position_in_threadgroup]]) {
  const int before = kDefect ? int(i) - 1 : max(int(i) - 1, 0);
  out[i] = in[before];  // FINDS: bounds
}

// Reads with index 0 - 1, which is unsigned and wraps to 4294967295.
kernel void wraps_around(device const float* in [[buffer(0)]],
                         device float* out [[buffer(1)]],
                         uint i [[thread_position_in_threadgroup]]) {
  out[i] = in[!kDefect && i == 0 ? 0 : i - 1];  // FINDS: bounds
}

// The threadgroup memory has one element too few.
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

// There are slots for two simdgroups, but three simdgroups run.
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

// The bound buffer lacks the last word of the parameters.
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

// Reads a row in vectors of four elements, but the row's length is not a
// multiple of four.
// RUN: buffer2=62
kernel void vector_tail(device const float4* x [[buffer(2)]],
                        device float* out [[buffer(1)]],
                        uint i [[thread_position_in_threadgroup]]) {
  const uint last = 4 * i + (kDefect ? 0 : 3);
  if (last < 62) out[i] = dot(x[i], float4(1.0f));  // FINDS: bounds
}

// The grid is larger than the row, and threads do not check the row's length.
// RUN: groups=2 threads=32 buffer2=62
kernel void no_guard(device float* x [[buffer(2)]],
                     uint i [[thread_position_in_grid]]) {
  if (kDefect || i < 62) x[i] = float(i);  // FINDS: bounds
}

// Reads at an index that comes from the data, without a check.
// RUN: buffer2=62
kernel void gather(device const float* x [[buffer(2)]],
                   device const float* in [[buffer(0)]],
                   device float* out [[buffer(1)]],
                   uint i [[thread_position_in_threadgroup]]) {
  const uint from = uint(in[i]) * 16;
  out[i] = x[kDefect ? from : min(from, 61u)];  // FINDS: bounds
}

// Reads past the end of a constant table of the program. Checked mode has no
// bounds for such tables.
constant float kTable[4] = {1.0f, 2.0f, 4.0f, 8.0f};
// MISSED: constants and variables of the program have no bounds here
kernel void past_a_table(device const float* in [[buffer(0)]],
                         device float* out [[buffer(1)]],
                         uint i [[thread_position_in_threadgroup]]) {
  out[i] = kTable[uint(in[i]) % (kDefect ? 5 : 4)];  // FINDS: bounds
}

// Reads a float4 at a multiple of 4 bytes, but it needs a multiple of 16.
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

// Uses a constant that is computed from a function constant, which no host
// sets.
constant uint kScale [[function_constant(1)]];
constant uint kTwice = kScale * 2;
constant uint kScaleOrOne = is_function_constant_defined(kScale) ? kScale : 1;
// Not inlined: otherwise Clang would make the kernel read both kTwice and
// kScaleOrOne, and then choose between them.
__attribute__((noinline)) static float Twice() {
  return float(kTwice);  // FINDS: never-written in unset_constant
}
kernel void unset_constant(device const float* x [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]]) {
  out[i] = x[i] * (kDefect ? Twice() : float(kScaleOrOne));
}
