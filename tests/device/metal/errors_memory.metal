// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Pairs of accesses that are wrong by themselves.

#include <metal_stdlib>
using namespace metal;

// Threadgroup memory that nobody has written.
kernel void fresh_threadgroup_yes(device float* out [[buffer(1)]],
                                  uint i [[thread_position_in_threadgroup]]) {
  threadgroup float sums[64];
  out[i] = sums[i] + 1.0f;  // FINDS: never-written
}
kernel void fresh_threadgroup_no(device float* out [[buffer(1)]],
                                 uint i [[thread_position_in_threadgroup]]) {
  threadgroup float sums[64];
  sums[i] = 0.0f;
  out[i] = sums[i] + 1.0f;
}

// All but the last element are written.
kernel void fresh_last_yes(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  if (i + 1 < 64) scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i];  // FINDS: never-written
}
kernel void fresh_last_no(device const float* in [[buffer(0)]],
                          device float* out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
  threadgroup float scratch[64];
  if (i + 1 <= 64) scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i];
}

// A buffer that nothing has written since it was made.
kernel void fresh_buffer_yes(device float* out [[buffer(1)]],
                             device const float* work [[buffer(2)]],
                             uint i [[thread_position_in_threadgroup]]) {
  out[i] = work[i];  // FINDS: never-written
}
kernel void fresh_buffer_no(device float* out [[buffer(1)]],
                            device float* work [[buffer(2)]],
                            uint i [[thread_position_in_threadgroup]]) {
  work[i] = float(i);
  out[i] = work[i];
}

// An accumulator in a fresh buffer: "it is zero anyhow".
kernel void fresh_sum_yes(device const float* in [[buffer(0)]],
                          device float* work [[buffer(2)]],
                          uint i [[thread_position_in_threadgroup]]) {
  work[i] += in[i];  // FINDS: never-written
}
kernel void fresh_sum_no(device const float* in [[buffer(0)]],
                         device float* work [[buffer(2)]],
                         uint i [[thread_position_in_threadgroup]]) {
  work[i] = in[i];
}

// One past the end: the neighbour of the last element.
kernel void past_the_end_yes(device const float* x [[buffer(2)]],
                             device float* out [[buffer(1)]],
                             uint i [[thread_position_in_threadgroup]]) {
  out[i] = x[i + 1] - x[i];  // FINDS: bounds
}
kernel void past_the_end_no(device const float* x [[buffer(2)]],
                            device float* out [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]]) {
  if (i + 1 < 64) out[i] = x[i + 1] - x[i];
}

// Index -1: the neighbour of the first.
kernel void negative_yes(device const float* in [[buffer(0)]],
                         device float* out [[buffer(1)]],
                         uint i [[thread_position_in_threadgroup]]) {
  const int before = int(i) - 1;
  out[i] = in[before];  // FINDS: bounds
}
kernel void negative_no(device const float* in [[buffer(0)]],
                        device float* out [[buffer(1)]],
                        uint i [[thread_position_in_threadgroup]]) {
  const int before = max(int(i) - 1, 0);
  out[i] = in[before];
}

// The same of an unsigned index, which is four thousand millions.
kernel void wraps_around_yes(device const float* in [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             uint i [[thread_position_in_threadgroup]]) {
  out[i] = in[i - 1];  // FINDS: bounds
}
kernel void wraps_around_no(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]]) {
  out[i] = in[i == 0 ? 0 : i - 1];
}

// Threadgroup memory of one element too few.
kernel void past_scratch_yes(device const float* in [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             threadgroup float* scratch [[threadgroup(0)]],
                             uint i [[thread_position_in_threadgroup]]) {
  scratch[i + 1] = in[i];  // FINDS: bounds
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[64 - i];  // FINDS: bounds
}
kernel void past_scratch_no(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            threadgroup float* scratch [[threadgroup(0)]],
                            uint i [[thread_position_in_threadgroup]]) {
  scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[63 - i];
}

// A slot for each simdgroup, and one simdgroup more.
kernel void too_many_simdgroups_yes(device const float* in [[buffer(0)]],
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
kernel void too_many_simdgroups_no(device const float* in [[buffer(0)]],
                                   device float* out [[buffer(1)]],
                                   uint i [[thread_position_in_threadgroup]],
                                   uint lane [[thread_index_in_simdgroup]],
                                   uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float part[32];
  const float sum = simd_sum(in[i]);
  if (lane == 0) part[sg] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) out[0] = part[0] + part[1];
}

// Parameters of which the last word is not bound.
struct Params {
  uint rows;
  uint cols;
  uint stride;
};
kernel void short_params_yes(device float* out [[buffer(1)]],
                             constant Params& p [[buffer(2)]],
                             uint i [[thread_position_in_threadgroup]]) {
  out[i] = float(p.stride + i);  // FINDS: binding
}
kernel void short_params_no(device float* out [[buffer(1)]],
                            constant uint2& p [[buffer(2)]],
                            uint i [[thread_position_in_threadgroup]]) {
  out[i] = float(p.y + i);
}

// The tail of a row, read four at a time.
kernel void vector_tail_yes(device const float4* x [[buffer(2)]],
                            device float* out [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]]) {
  if (4 * i < 62) out[i] = dot(x[i], float4(1.0f));  // FINDS: bounds
}
kernel void vector_tail_no(device const float4* x [[buffer(2)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]]) {
  if (4 * i + 3 < 62) out[i] = dot(x[i], float4(1.0f));
}

// A grid that is larger than the row, and no look at its length.
kernel void no_guard_yes(device float* x [[buffer(2)]],
                         uint i [[thread_position_in_grid]]) {
  x[i] = float(i);  // FINDS: bounds
}
kernel void no_guard_no(device float* x [[buffer(2)]],
                        uint i [[thread_position_in_grid]]) {
  if (i < 62) x[i] = float(i);
}

// An index from the data.
kernel void gather_yes(device const float* x [[buffer(2)]],
                       device const float* in [[buffer(0)]],
                       device float* out [[buffer(1)]],
                       uint i [[thread_position_in_threadgroup]]) {
  out[i] = x[uint(in[i]) * 16];  // FINDS: bounds
}
kernel void gather_no(device const float* x [[buffer(2)]],
                      device const float* in [[buffer(0)]],
                      device float* out [[buffer(1)]],
                      uint i [[thread_position_in_threadgroup]]) {
  out[i] = x[min(uint(in[i]) * 16, 61u)];
}

// Past a table of the program's own, which nothing is told about.
constant float kTable[4] = {1.0f, 2.0f, 4.0f, 8.0f};
kernel void past_a_table_yes(device const float* in [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             uint i [[thread_position_in_threadgroup]]) {
  out[i] = kTable[uint(in[i]) % 5];  // FINDS: bounds
}
kernel void past_a_table_no(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]]) {
  out[i] = kTable[uint(in[i]) % 4];
}

// Four floats from anywhere: float4 wants every fourth of them.
kernel void misaligned_yes(device const float* x [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]]) {
  const float4 v = *(device const float4*)(x + i);  // FINDS: misaligned
  out[i] = dot(v, v);  // FINDS: misaligned
}
kernel void misaligned_no(device const float* x [[buffer(0)]],
                          device float* out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
  const float4 v = *(device const packed_float4*)(x + i);
  out[i] = dot(v, v);
}

// A function constant that no host sets, and what is made of it.
constant uint kScale [[function_constant(0)]];
constant uint kTwice = kScale * 2;
constant uint kScaleOrOne = is_function_constant_defined(kScale) ? kScale : 1;
kernel void unset_constant_yes(device const float* x [[buffer(0)]],
                               device float* out [[buffer(1)]],
                               uint i [[thread_position_in_threadgroup]]) {
  out[i] = x[i] * float(kTwice);  // FINDS: never-written
}
kernel void unset_constant_no(device const float* x [[buffer(0)]],
                              device float* out [[buffer(1)]],
                              uint i [[thread_position_in_threadgroup]]) {
  out[i] = x[i] * float(kScaleOrOne);
}
