// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Defects that checked mode finds in every schedule that the test runs.

#include <metal_stdlib>
using namespace metal;

constant bool kDefect [[function_constant(0)]];

// With the defect, the buffer lacks three bytes of the word that is read.
// RUN: threads=1 bytes0=381
kernel void words(device const ulong* x [[buffer(0)]],
                  device float* out [[buffer(1)]]) {
  out[0] = float(x[kDefect ? 47 : 46] & 1);  // FINDS: bounds
}

// Thread 0 reads an element of two bytes that no thread has written.
// RUN: threads=32 threadgroup=128
kernel void gather_halves(device float* out [[buffer(1)]],
                          threadgroup float* scratch [[threadgroup(0)]],
                          uint i [[thread_index_in_threadgroup]]) {
  threadgroup ushort* const halves = (threadgroup ushort*)scratch;
  if (i < 31 || !kDefect) halves[i] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(halves[31 - i]);  // FINDS: never-written
}

// A tree adds 32 elements, but the 24 threads have written only 24 of them.
// RUN: threads=24
kernel void tree(device const float* x [[buffer(0)]],
                 device float* out [[buffer(1)]],
                 uint n [[threads_per_threadgroup]],
                 uint i [[thread_index_in_threadgroup]]) {
  threadgroup float scratch[32];
  scratch[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 16; s != 0; s /= 2) {
    if (i < s && (i + s < n || kDefect)) scratch[i] += scratch[i + s];  // FINDS: never-written
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (i == 0) out[0] = scratch[0];
}

// The host has written no parameters to the buffer.
struct Params {
  uint n, padding;
};
// RUN: threads=1 fresh0=2/0
kernel void params(constant Params& p [[buffer(0)]],
                   device float* out [[buffer(1)]]) {
  out[0] = float(p.n);  // FINDS: never-written
}

// Threads write neighbouring bytes or, with the defect, the same byte.
kernel void bytes(device uchar* out [[buffer(1)]],
                  uint i [[thread_index_in_threadgroup]]) {
  out[1 + (kDefect ? i / 2 : i)] = uchar(i);  // FINDS: missing-barrier
}
// Each word holds two values of two bytes. With the defect, thread 40 reads
// the lower value of a word, which thread 7 has written.
kernel void halves(device ushort* words [[buffer(1)]],
                   device float* result [[buffer(0)]],
                   uint i [[thread_index_in_threadgroup]]) {
  device ushort* const out = words + 1;
  out[i] = ushort(i);  // FINDS: missing-barrier
  if (i == 40) result[0] = float(out[kDefect ? 7 : 40]);  // FINDS: missing-barrier
}
// Threads write halves of words and then whole words. One thread reads the
// upper half of a word.
kernel void halves_then_words(device float* words [[buffer(1)]],
                              device float* result [[buffer(0)]],
                              uint i [[thread_index_in_threadgroup]]) {
  device ushort* const halves = (device ushort*)words;
  halves[2 * i] = 1;
  threadgroup_barrier(mem_flags::mem_device);
  words[i] = float(i);  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_device);
  if (i == 40) result[0] = float(halves[2 * 7 + 1]);  // FINDS: missing-barrier
}

// The last threadgroup overwrites a word that all threadgroups read. A
// barrier orders only the threads of its own threadgroup.
// RUN: groups=3 threads=32
kernel void scale(device float* x [[buffer(0)]],
                  uint p [[thread_position_in_grid]]) {
  float v = 0.0f;
  for (uint round = 0; round < 2; ++round) {
    v += x[0] + 1.0f;  // FINDS: race
    threadgroup_barrier(mem_flags::mem_device);
  }
  if (p == 95) x[kDefect ? 0 : 1] = v;  // FINDS: race
}
// The same defect as in the kernel scale(), with elements of two words.
// RUN: groups=3 threads=32
kernel void scale_words(device float2* x [[buffer(0)]],
                        uint p [[thread_position_in_grid]]) {
  float2 v = 0.0f;
  for (uint round = 0; round < 2; ++round) {
    v += x[0] + 1.0f;  // FINDS: race
    threadgroup_barrier(mem_flags::mem_device);
  }
  if (p == 95) x[kDefect ? 0 : 1] = v;  // FINDS: race
}

