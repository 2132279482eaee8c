// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Defects for checked mode to find; with `clean` the kernels are right.

#include <metal_stdlib>
using namespace metal;

constant bool clean [[function_constant(0)]];

// out[i] = x[i] + x[i + 1]
kernel void stencil(device const float* x [[buffer(0)]],
                    device float* out [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
  const uint next = clean ? (i + 1) % 96 : i + 1;
  out[i] = x[i] + x[next];  // FINDS: bounds
}

// An arg-max that finds nothing in a row of NaN, and masks what it found.
kernel void top1(device const float* x [[buffer(0)]],
                 threadgroup float* scores [[threadgroup(0)]],
                 uint i [[thread_index_in_threadgroup]]) {
  int best = -1;
  scores[i] = x[i];
  if (x[i] > -1e30f || clean) best = int(i);
  const int winner = simd_max(best);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) scores[winner] = -1e30f;  // FINDS: bounds
}

// One slot per simdgroup, for a group that has more of them.
kernel void sum(device const float* x [[buffer(0)]],
                uint i [[thread_index_in_threadgroup]],
                uint lane [[thread_index_in_simdgroup]],
                uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float part[2];
  threadgroup float rest[8];
  const float total = simd_sum(x[i]);
  if (lane != 0) return;
  threadgroup float* const to = clean ? rest : part;
  to[sg] = total;  // FINDS: bounds
}

// The buffer is three bytes short of the last word.
kernel void words(device const ulong* x [[buffer(0)]],
                  device float* out [[buffer(1)]]) {
  out[0] = float(x[clean ? 46 : 47] & 1);  // FINDS: bounds
}

// Pointers may point anywhere; what they are used for counts.
kernel void reverse(device const float* x [[buffer(0)]],
                    device float* out [[buffer(1)]],
                    uint i [[thread_index_in_threadgroup]]) {
  device const float* from = x + 200;
  from -= 150;
  out[i] = from[(clean ? -1 : -2) * int(i)];  // FINDS: bounds
}

// Thread 0 writes what all add up, but one less than they are.
kernel void gather(device float* out [[buffer(1)]],
                   threadgroup float* scratch [[threadgroup(0)]],
                   uint i [[thread_index_in_threadgroup]]) {
  if (i < 31 || clean) scratch[i] = 1.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = scratch[31 - i];  // FINDS: never-written
}
// The same of elements of two bytes.
kernel void gather_halves(device float* out [[buffer(1)]],
                          threadgroup float* scratch [[threadgroup(0)]],
                          uint i [[thread_index_in_threadgroup]]) {
  threadgroup ushort* const halves = (threadgroup ushort*)scratch;
  if (i < 31 || clean) halves[i] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = float(halves[31 - i]);  // FINDS: never-written
}

// Adds halves for a group of 24, as if it had 32.
kernel void tree(device const float* x [[buffer(0)]],
                 device float* out [[buffer(1)]],
                 uint n [[threads_per_threadgroup]],
                 uint i [[thread_index_in_threadgroup]]) {
  threadgroup float scratch[32];
  scratch[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 16; s != 0; s /= 2) {
    if (i < s && (i + s < n || !clean)) {
      scratch[i] += scratch[i + s];  // FINDS: never-written
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (i == 0) out[0] = scratch[0];
}

kernel void copy_fresh(device const float* x [[buffer(0)]],
                       device float* out [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  out[i] = x[i];  // FINDS: never-written
}

struct Params {
  uint n, padding;
};
kernel void params(constant Params& p [[buffer(0)]],
                   device float* out [[buffer(1)]]) {
  out[0] = float(p.n);  // FINDS: never-written
}

// Each thread reads what another one wrote.
kernel void shift(device const float* x [[buffer(0)]],
                  device float* out [[buffer(1)]],
                  threadgroup float* scratch [[threadgroup(0)]],
                  uint p [[thread_position_in_grid]],
                  uint i [[thread_index_in_threadgroup]]) {
  scratch[i] = x[i];  // FINDS: missing-barrier
  if (clean) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[p] = scratch[i ^ 1];  // FINDS: missing-barrier
}
// Near by or in the next simdgroup.
kernel void shift_simdgroups(device const float* x [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             threadgroup float* scratch [[threadgroup(0)]],
                             uint p [[thread_position_in_grid]],
                             uint i [[thread_index_in_threadgroup]]) {
  scratch[i] = x[i];  // FINDS: missing-barrier
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[p] = scratch[i ^ (clean ? 16 : 32)];  // FINDS: missing-barrier
}

// Maximum, then sum, of a row over the same scratch.
kernel void softmax(device const float* x [[buffer(0)]],
                    device float* out [[buffer(1)]],
                    uint p [[thread_position_in_grid]],
                    uint i [[thread_index_in_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]],
                    uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float part[2];
  const float most = simd_max(x[i]);
  if (lane == 0) part[sg] = most;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float v = x[i] - max(part[0], part[1]);  // FINDS: missing-barrier
  const float total = simd_sum(v);
  if (clean) threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) part[sg] = total;  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[p] = part[0] + part[1];
}

// Values go through device memory.
kernel void mirror(device float* out [[buffer(1)]],
                   device float* result [[buffer(0)]],
                   uint n [[threads_per_threadgroup]],
                   uint i [[thread_index_in_threadgroup]]) {
  out[i] = float(i);  // FINDS: missing-barrier
  if (clean) threadgroup_barrier(mem_flags::mem_device);
  device const float* const last = out + (n - 1);
  result[i] = *(last - i);  // FINDS: missing-barrier
}
kernel void mirror_flags(device float* out [[buffer(1)]],
                         device float* result [[buffer(0)]],
                         uint n [[threads_per_threadgroup]],
                         uint i [[thread_index_in_threadgroup]]) {
  out[i] = float(i);  // FINDS: barrier-flags
  if (clean) {
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  } else {
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  device const float* const last = out + (n - 1);
  result[i] = *(last - i);  // FINDS: barrier-flags
}

// Lanes of a simdgroup talk through scratch, with a simd function in between.
kernel void lanes(device float* out [[buffer(1)]],
                  threadgroup float* scratch [[threadgroup(0)]],
                  uint p [[thread_position_in_grid]],
                  uint i [[thread_index_in_threadgroup]]) {
  float v = 1.0f + float(i);
  scratch[i] = v;  // FINDS: missing-barrier
  if (clean) {
    simdgroup_barrier(mem_flags::mem_threadgroup);
  } else {
    v = simd_sum(v);
  }
  out[p] = v + scratch[i ^ 1];  // FINDS: missing-barrier
}
kernel void lanes_backwards(device float* out [[buffer(1)]],
                            threadgroup float* scratch [[threadgroup(0)]],
                            uint p [[thread_position_in_grid]],
                            uint i [[thread_index_in_threadgroup]]) {
  scratch[i] = 1.0f + float(i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float v = scratch[i ^ 1];  // FINDS: missing-barrier
  if (clean) v = simd_sum(v);
  scratch[i] = v;  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[p] = scratch[i];
}

kernel void flag(device float* out [[buffer(1)]],
                 uint p [[thread_position_in_grid]],
                 uint i [[thread_index_in_threadgroup]]) {
  threadgroup int flags[4];
  if (i == 5 || !clean) flags[3] = int(i);  // FINDS: missing-barrier
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[p] = float(flags[3]);
}

// Values of one byte: neighbours, or the same.
kernel void bytes(device uchar* out [[buffer(1)]],
                  uint i [[thread_index_in_threadgroup]]) {
  out[1 + (clean ? i : i / 2)] = uchar(i);  // FINDS: missing-barrier
}
// Values of two bytes, of which two share a word. The lower one is then read, by
// another thread than wrote it.
kernel void halves(device ushort* words [[buffer(1)]],
                   device float* result [[buffer(0)]],
                   uint i [[thread_index_in_threadgroup]]) {
  device ushort* const out = words + 1;
  out[i] = ushort(i);  // FINDS: missing-barrier
  if (i == 40) result[0] = float(out[clean ? 40 : 7]);  // FINDS: missing-barrier
}
// Halves of words are written, then whole words, and then an upper half is read.
kernel void halves_then_words(device float* words [[buffer(1)]],
                              device float* result [[buffer(0)]],
                              uint i [[thread_index_in_threadgroup]]) {
  device ushort* const halves = (device ushort*)words;
  halves[2 * i] = 1;
  threadgroup_barrier(mem_flags::mem_device);
  words[i] = float(i);  // FINDS: missing-barrier
  if (clean) threadgroup_barrier(mem_flags::mem_device);
  if (i == 40) result[0] = float(halves[2 * 7 + 1]);  // FINDS: missing-barrier
}

// A count by atomics, that thread 0 reads.
kernel void count_then_read(device float* out [[buffer(1)]],
                            uint i [[thread_index_in_threadgroup]]) {
  threadgroup int count[1];
  threadgroup atomic_int* const atomic = (threadgroup atomic_int*)count;
  if (i == 0) count[0] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(atomic, 1, memory_order_relaxed);  // FINDS: missing-barrier
  if (clean) threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) out[0] = float(count[0]);  // FINDS: missing-barrier
}

// Threads past the end of the row return, and the others wait for them.
kernel void early(uint i [[thread_index_in_threadgroup]]) {
  if (i >= 40 && !clean) return;
  threadgroup_barrier(mem_flags::mem_device);  // FINDS: divergent-barrier
}
kernel void early_lanes(uint i [[thread_index_in_threadgroup]]) {
  if (i >= 40 && !clean) return;
  simdgroup_barrier(mem_flags::mem_device);  // FINDS: divergent-barrier
}

// Newton's steps until each thread is happy, with a barrier in the loop.
kernel void newton(device float* out [[buffer(1)]],
                   uint p [[thread_position_in_grid]],
                   uint i [[thread_index_in_threadgroup]]) {
  const uint wanted = clean ? 3 : 2 + i / 7;
  uint steps = 0;
  do {
    ++steps;
    threadgroup_barrier(mem_flags::mem_device);  // FINDS: divergent-barrier
  } while (steps < wanted);
  out[p] = float(steps);
}

kernel void lane(device float* out [[buffer(1)]],
                 uint p [[thread_position_in_grid]]) {
  out[p] = simd_broadcast(1.0f, clean ? 7 : 8);  // FINDS: divergent-simd
}

// Every threadgroup leaves its sum in one word.
kernel void dot(device const int* x [[buffer(0)]],
                device float* out [[buffer(1)]],
                uint p [[thread_position_in_grid]],
                uint g [[threadgroup_position_in_grid]],
                uint i [[thread_index_in_threadgroup]]) {
  const float total = simd_sum(float(x[p])) + float(g);
  if (i == 3) out[clean ? g : 7] = total;  // FINDS: race
}

kernel void histogram(device const int* x [[buffer(0)]],
                      device int* counts [[buffer(1)]],
                      uint p [[thread_position_in_grid]]) {
  device atomic_int* const atomic = (device atomic_int*)counts;
  const int bin = x[p];
  if (clean) {
    atomic_fetch_add_explicit(&atomic[bin], 1, memory_order_relaxed);
  } else {
    counts[bin] += 1;  // FINDS: missing-barrier, race
  }
}

// Adds into a row that the next threadgroup reads the start of.
kernel void stencil_groups(device float* x [[buffer(0)]],
                           device float* to [[buffer(1)]],
                           uint n [[threads_per_grid]],
                           uint p [[thread_position_in_grid]]) {
  device float* const out = clean ? to : x;
  const float v = x[p] + x[(p + 1) % n] + float(p);  // FINDS: race
  threadgroup_barrier(mem_flags::mem_device);
  out[p] = v;  // FINDS: race
}

// The last threadgroup overwrites, behind barriers of its own, what all read.
kernel void scale(device float* x [[buffer(0)]],
                  uint p [[thread_position_in_grid]]) {
  float v = 0.0f;
  for (uint round = 0; round < 2; ++round) {
    v += x[0] + 1.0f;  // FINDS: race
    threadgroup_barrier(mem_flags::mem_device);
  }
  if (p == 95) x[clean ? 1 : 0] = v;  // FINDS: race
}
kernel void scale_words(device float2* x [[buffer(0)]],
                        uint p [[thread_position_in_grid]]) {
  float2 v = 0.0f;
  for (uint round = 0; round < 2; ++round) {
    v += x[0] + 1.0f;  // FINDS: race
    threadgroup_barrier(mem_flags::mem_device);
  }
  if (p == 95) x[clean ? 1 : 0] = v;  // FINDS: race
}

// The last threadgroup to count reads the others' results.
kernel void count_groups(device int* seen [[buffer(0)]],
                         device int* count [[buffer(1)]],
                         uint g [[threadgroup_position_in_grid]],
                         uint i [[thread_index_in_threadgroup]]) {
  if (i != 0) return;
  device atomic_int* const atomic = (device atomic_int*)count;
  atomic_fetch_add_explicit(atomic, 1, memory_order_relaxed);  // FINDS: race
  if (clean) {
    seen[g] = atomic_load_explicit(atomic, memory_order_relaxed);
  } else {
    seen[g] = count[0];  // FINDS: race
  }
}
