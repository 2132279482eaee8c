// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Races on device memory, in a threadgroup and between threadgroups. If
// kDefect is set, a kernel has the race; otherwise it is correct.

#include <metal_stdlib>
using namespace metal;

constant bool kDefect [[function_constant(0)]];

// Threads read elements of a buffer that other threads have written.
// RUN: buffer2=64
kernel void dev_read_after_write(device const float* in [[buffer(0)]],
                                 device float* out [[buffer(1)]],
                                 device float* work [[buffer(2)]],
                                 uint i [[thread_position_in_threadgroup]]) {
  work[i] = in[i] * 3.0f;  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_device);
  out[i] = work[63 - i];  // FINDS: missing-barrier
}

// The barrier is for threadgroup memory, but the buffer is in device memory.
// RUN: buffer2=64
kernel void dev_narrow_barrier(device const float* in [[buffer(0)]],
                               device float* out [[buffer(1)]],
                               device float* work [[buffer(2)]],
                               uint i [[thread_position_in_threadgroup]]) {
  work[i] = in[i] * 3.0f;  // FINDS: barrier-flags
  threadgroup_barrier(kDefect ? mem_flags::mem_threadgroup : mem_flags::mem_device | mem_flags::mem_threadgroup);
  out[i] = work[63 - i];  // FINDS: barrier-flags
}

// Two threads write the same element of a buffer.
kernel void dev_write_write(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]]) {
  if (kDefect || i % 2 == 0) out[i / 2] = in[i] + float(i);  // FINDS: missing-barrier
}

// Each thread moves an element down by one index, within the same buffer.
kernel void dev_shift_in_place(device float* out [[buffer(1)]],
                               uint i [[thread_position_in_threadgroup]]) {
  const float next = out[i + 1];  // FINDS: missing-barrier
  if (!kDefect) threadgroup_barrier(mem_flags::mem_device);
  out[i] = next;  // FINDS: missing-barrier
}

// Each thread writes its own byte. With the defect, thread 0 also writes a
// word that contains the bytes of four other threads.
kernel void dev_bytes(device const float* in [[buffer(0)]],
                      device uchar* out [[buffer(1)]],
                      uint i [[thread_position_in_threadgroup]]) {
  out[i] = uchar(in[i]);  // FINDS: missing-barrier
  if (i == 0) *(device uint*)(out + (kDefect ? 4 : 64)) = 0x01020304;  // FINDS: missing-barrier
}

// Neighbouring threads write vectors that overlap by one component.
kernel void dev_vectors(device const float* in [[buffer(0)]],
                        device float* out [[buffer(1)]],
                        uint i [[thread_position_in_threadgroup]]) {
  device packed_float3* to = (device packed_float3*)(out + (kDefect ? 2 : 3) * i);
  *to = packed_float3(in[i], float(i), 1.0f);  // FINDS: missing-barrier
}

// Thread 0 writes data and sets a flag. The others read the data if they see
// the flag, but the flag alone orders nothing.
// RUN: buffer2=4 buffer3=1
kernel void dev_produce_consume(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                device float* data [[buffer(2)]],
                                device atomic_uint* flag [[buffer(3)]],
                                uint i [[thread_position_in_threadgroup]]) {
  if (i == 0) {
    data[0] = in[0];  // FINDS: missing-barrier
    atomic_store_explicit(flag, 1u, memory_order_relaxed);
  }
  if (!kDefect) threadgroup_barrier(mem_flags::mem_device);
  if (i != 0 && atomic_load_explicit(flag, memory_order_relaxed) != 0u) {
    out[i] = data[0];  // FINDS: missing-barrier
  }
}

// Every threadgroup writes its sum to the same word.
// RUN: groups=3 threads=32
kernel void groups_one_word(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            uint g [[threadgroup_position_in_grid]],
                            uint i [[thread_position_in_threadgroup]]) {
  const float sum = simd_sum(in[32 * g + i]);
  if (i == 0) out[kDefect ? 0 : g] = sum + float(g);  // FINDS: race
}

// A stencil in place: each threadgroup also reads the first element of the
// next threadgroup, which the next threadgroup overwrites.
// RUN: groups=3 threads=32
kernel void groups_stencil(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint n [[threads_per_grid]],
                           uint i [[thread_position_in_grid]]) {
  device const float* from = kDefect ? out : in;
  const float sum = from[i] + from[(i + 1) % n];  // FINDS: race
  threadgroup_barrier(mem_flags::mem_device);
  out[i] = sum;  // FINDS: race
}

// Each threadgroup adds 1 to a counter, with a plain read and write.
// RUN: groups=3 threads=32
kernel void groups_count(device uint* count [[buffer(1)]],
                         uint i [[thread_position_in_threadgroup]]) {
  if (i != 0) return;
  if (kDefect) count[0] += 1;  // FINDS: race
  if (!kDefect) atomic_fetch_add_explicit((device atomic_uint*)count, 1u, memory_order_relaxed);
}

// Neighbouring threadgroups write tiles that overlap by one element.
// RUN: groups=3 threads=32
kernel void groups_tiles(device const float* in [[buffer(0)]],
                         device float* out [[buffer(1)]],
                         uint g [[threadgroup_position_in_grid]],
                         uint i [[thread_position_in_threadgroup]]) {
  const uint first = (kDefect ? 31 : 33) * g;
  out[first + i] = in[32 * g + i];  // FINDS: race
}

// The last threadgroup to finish adds up the sums of all. Without fences,
// plain stores are not visible to other threadgroups.
// RUN: groups=3 threads=32 buffer2=4 buffer3=1
kernel void groups_last_adds(device const float* in [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             device float* part [[buffer(2)]],
                             device atomic_uint* done [[buffer(3)]],
                             uint g [[threadgroup_position_in_grid]],
                             uint groups [[threadgroups_per_grid]],
                             uint i [[thread_position_in_threadgroup]]) {
  const float sum = simd_sum(in[32 * g + i]);
  if (i != 0) return;
  if (!kDefect) {
    atomic_fetch_add_explicit((device atomic_float*)part, sum, memory_order_relaxed);
    return;
  }
  part[g] = sum;  // FINDS: race
  if (atomic_fetch_add_explicit(done, 1u, memory_order_relaxed) + 1 != groups) return;
  float total = 0.0f;
  for (uint s = 0; s < groups; ++s) total += part[s];  // FINDS: race
  out[0] = total;
}

// The last threadgroup to finish adds up the values of all, with fences. The
// defect is that the fence after the count is missing.
#define FENCE(order) \
  atomic_thread_fence(mem_flags::mem_device, order, thread_scope_device)
// RUN: groups=3 threads=32 buffer2=96 buffer3=1
kernel void groups_last_fenced(device const float* in [[buffer(0)]],
                               device float* out [[buffer(1)]],
                               device float* part [[buffer(2)]],
                               device atomic_uint* done [[buffer(3)]],
                               uint g [[threadgroup_position_in_grid]],
                               uint groups [[threadgroups_per_grid]],
                               uint i [[thread_position_in_threadgroup]]) {
  threadgroup bool is_last;
  part[32 * g + i] = in[32 * g + i];  // FINDS: race
  FENCE(memory_order_release);
  threadgroup_barrier(mem_flags::mem_none);
  if (i == 0) {
    is_last =
        atomic_fetch_add_explicit(done, 1u, memory_order_relaxed) + 1 == groups;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (!is_last) return;
  if (!kDefect) FENCE(memory_order_acquire);
  float total = 0.0f;
  for (uint s = 0; s < groups; ++s) total += part[32 * s + i];  // FINDS: race
  // With the fence, the last threadgroup may also overwrite words of the
  // others.
  if (!kDefect) part[i] = total;
  out[i] = total;
}

// Threadgroup 0 writes data and sets a flag for threadgroup 1, which sets a
// flag for threadgroup 2. Threadgroup 2 then reads the data. With the defect,
// threadgroup 1 has no fence, so it does not pass the data on.
// RUN: groups=3 threads=32 buffer2=1 buffer3=3
// SOMETIMES: the second threadgroup has to run between the two others
kernel void groups_handed_on(device const float* in [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             device float* data [[buffer(2)]],
                             device atomic_uint* flag [[buffer(3)]],
                             uint g [[threadgroup_position_in_grid]],
                             uint i [[thread_position_in_threadgroup]]) {
  if (i != 0) return;
  if (g == 0) {
    data[0] = in[0];  // FINDS: race
    FENCE(memory_order_release);
  } else if (atomic_load_explicit(&flag[g - 1], memory_order_relaxed) != 7u) {
    return;
  }
  if (kDefect ? g == 2 : g != 0) FENCE(memory_order_acq_rel);
  if (g == 2) out[0] = data[0];  // FINDS: race
  atomic_store_explicit(&flag[g], 7u, memory_order_relaxed);
}
#undef FENCE

// With the defect, all threadgroups use the same scratch in device memory;
// otherwise each threadgroup has its own scratch.
// RUN: groups=3 threads=32 buffer2=96
kernel void groups_scratch(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           device float* work [[buffer(2)]],
                           uint g [[threadgroup_position_in_grid]],
                           uint i [[thread_position_in_threadgroup]]) {
  device float* mine = work + (kDefect ? 0 : 32 * g);
  mine[i] = in[32 * g + i];  // FINDS: race
  threadgroup_barrier(mem_flags::mem_device);
  out[32 * g + i] = mine[31 - i];  // FINDS: race
}

// Reverses in place. With the defect, all threads swap, not only half of
// them, so two threads swap the same pair.
// RUN: groups=3 threads=32
kernel void groups_reverse(device float* out [[buffer(1)]],
                           uint n [[threads_per_grid]],
                           uint i [[thread_position_in_grid]]) {
  if (!kDefect && i >= n / 2) return;
  const float low = out[i], high = out[n - 1 - i];  // FINDS: race
  out[i] = high;  // FINDS: race
  out[n - 1 - i] = low;  // FINDS: race
}

// One threadgroup writes data and sets a flag. Others read the data if they
// see the flag, but no threadgroup executes a fence.
// RUN: groups=3 threads=32 buffer2=4 buffer3=1
// SOMETIMES: the first threadgroup has to run before another one
kernel void groups_publish(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           device float* data [[buffer(2)]],
                           device atomic_uint* flag [[buffer(3)]],
                           uint g [[threadgroup_position_in_grid]],
                           uint i [[thread_position_in_threadgroup]]) {
  if (i != 0) return;
  device atomic_float* atomic = (device atomic_float*)data;
  if (kDefect && g == 0) {
    data[0] = in[0];  // FINDS: race
    atomic_store_explicit(flag, 1u, memory_order_relaxed);
  } else if (kDefect) {
    const bool ready = atomic_load_explicit(flag, memory_order_relaxed) != 0u;
    out[g] = ready ? data[0] : -1.0f;  // FINDS: race
  } else if (g == 0) {
    atomic_store_explicit(atomic, in[0], memory_order_relaxed);
  } else {
    out[g] = atomic_load_explicit(atomic, memory_order_relaxed);
  }
}
