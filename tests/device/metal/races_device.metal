// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Pairs over device memory: in one threadgroup, and across threadgroups.

#include <metal_stdlib>
using namespace metal;

// Threads read what others have written to a buffer.
kernel void dev_read_after_write_yes(device const float* in [[buffer(0)]],
                                     device float* out [[buffer(1)]],
                                     device float* work [[buffer(2)]],
                                     uint i [[thread_position_in_threadgroup]]) {
  work[i] = in[i] * 3.0f;  // FINDS: missing-barrier
  out[i] = work[63 - i];   // FINDS: missing-barrier
}
kernel void dev_read_after_write_no(device const float* in [[buffer(0)]],
                                    device float* out [[buffer(1)]],
                                    device float* work [[buffer(2)]],
                                    uint i [[thread_position_in_threadgroup]]) {
  work[i] = in[i] * 3.0f;
  threadgroup_barrier(mem_flags::mem_device);
  out[i] = work[63 - i];
}

// There is a barrier, for the other kind of memory.
kernel void dev_narrow_barrier_yes(device const float* in [[buffer(0)]],
                                   device float* out [[buffer(1)]],
                                   device float* work [[buffer(2)]],
                                   uint i [[thread_position_in_threadgroup]]) {
  work[i] = in[i] * 3.0f;  // FINDS: barrier-flags
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = work[63 - i];  // FINDS: barrier-flags
}
kernel void dev_narrow_barrier_no(device const float* in [[buffer(0)]],
                                  device float* out [[buffer(1)]],
                                  device float* work [[buffer(2)]],
                                  uint i [[thread_position_in_threadgroup]]) {
  work[i] = in[i] * 3.0f;
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  out[i] = work[63 - i];
}

// Two threads, one element of a buffer.
kernel void dev_write_write_yes(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint i [[thread_position_in_threadgroup]]) {
  out[i / 2] = in[i] + float(i);  // FINDS: missing-barrier
}
kernel void dev_write_write_no(device const float* in [[buffer(0)]],
                               device float* out [[buffer(1)]],
                               uint i [[thread_position_in_threadgroup]]) {
  if (i % 2 == 0) out[i / 2] = in[i] + in[i + 1];
}

// Each element moves one place down, in place.
kernel void dev_shift_in_place_yes(device float* out [[buffer(1)]],
                                   uint i [[thread_position_in_threadgroup]]) {
  out[i] = out[i + 1];  // FINDS: missing-barrier
}
kernel void dev_shift_in_place_no(device float* out [[buffer(1)]],
                                  uint i [[thread_position_in_threadgroup]]) {
  const float next = out[i + 1];
  threadgroup_barrier(mem_flags::mem_device);
  out[i] = next;
}

// Bytes: each thread its own, or one writes the word that holds four.
kernel void dev_bytes_yes(device const float* in [[buffer(0)]],
                          device uchar* out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
  out[i] = uchar(in[i]);  // FINDS: missing-barrier
  if (i == 0) *(device uint*)(out + 4) = 0x01020304;  // FINDS: missing-barrier
}
kernel void dev_bytes_no(device const float* in [[buffer(0)]],
                         device uchar* out [[buffer(1)]],
                         uint i [[thread_position_in_threadgroup]]) {
  out[i] = uchar(in[i]);
  if (i == 0) *(device uint*)(out + 64) = 0x01020304;
}

// Vectors whose places overlap by one component.
kernel void dev_vectors_yes(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]]) {
  device packed_float3* to = (device packed_float3*)(out + 2 * i);
  *to = packed_float3(in[i], float(i), 1.0f);  // FINDS: missing-barrier
}
kernel void dev_vectors_no(device const float* in [[buffer(0)]],
                           device float* out [[buffer(1)]],
                           uint i [[thread_position_in_threadgroup]]) {
  device packed_float3* to = (device packed_float3*)(out + 3 * i);
  *to = packed_float3(in[i], float(i), 1.0f);
}

// One thread produces, others look at a flag and consume.
kernel void dev_produce_consume_yes(device const float* in [[buffer(0)]],
                                    device float* out [[buffer(1)]],
                                    device float* data [[buffer(2)]],
                                    device atomic_uint* flag [[buffer(3)]],
                                    uint i [[thread_position_in_threadgroup]]) {
  if (i == 0) {
    data[0] = in[0];  // FINDS: missing-barrier
    atomic_store_explicit(flag, 1u, memory_order_relaxed);
  } else if (atomic_load_explicit(flag, memory_order_relaxed) != 0u) {
    out[i] = data[0];  // FINDS: missing-barrier
  }
}
kernel void dev_produce_consume_no(device const float* in [[buffer(0)]],
                                   device float* out [[buffer(1)]],
                                   device float* data [[buffer(2)]],
                                   device atomic_uint* flag [[buffer(3)]],
                                   uint i [[thread_position_in_threadgroup]]) {
  if (i == 0) {
    data[0] = in[0];
    atomic_store_explicit(flag, 1u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_device);
  if (i != 0 && atomic_load_explicit(flag, memory_order_relaxed) != 0u) {
    out[i] = data[0];
  }
}

// Every threadgroup leaves its sum in one word.
kernel void groups_one_word_yes(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                uint g [[threadgroup_position_in_grid]],
                                uint i [[thread_position_in_threadgroup]]) {
  const float sum = simd_sum(in[32 * g + i]);
  if (i == 0) out[0] = sum + float(g);  // FINDS: race
}
kernel void groups_one_word_no(device const float* in [[buffer(0)]],
                               device float* out [[buffer(1)]],
                               uint g [[threadgroup_position_in_grid]],
                               uint i [[thread_position_in_threadgroup]]) {
  const float sum = simd_sum(in[32 * g + i]);
  if (i == 0) out[g] = sum + float(g);
}

// A stencil in place: the neighbour's first element is the next threadgroup's.
kernel void groups_stencil_yes(device float* out [[buffer(1)]],
                               uint n [[threads_per_grid]],
                               uint i [[thread_position_in_grid]]) {
  const float sum = out[i] + out[(i + 1) % n];  // FINDS: race
  threadgroup_barrier(mem_flags::mem_device);
  out[i] = sum;  // FINDS: race
}
kernel void groups_stencil_no(device const float* in [[buffer(0)]],
                              device float* out [[buffer(1)]],
                              uint n [[threads_per_grid]],
                              uint i [[thread_position_in_grid]]) {
  out[i] = in[i] + in[(i + 1) % n];
}

// Threadgroups count themselves.
kernel void groups_count_yes(device uint* count [[buffer(1)]],
                             uint i [[thread_position_in_threadgroup]]) {
  if (i == 0) count[0] += 1;  // FINDS: race
}
kernel void groups_count_no(device atomic_uint* count [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]]) {
  if (i == 0) atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
}

// The tiles that threadgroups write overlap by one element.
kernel void groups_tiles_yes(device const float* in [[buffer(0)]],
                             device float* out [[buffer(1)]],
                             uint g [[threadgroup_position_in_grid]],
                             uint i [[thread_position_in_threadgroup]]) {
  const uint first = 31 * g;
  out[first + i] = in[32 * g + i];  // FINDS: race
}
kernel void groups_tiles_no(device const float* in [[buffer(0)]],
                            device float* out [[buffer(1)]],
                            uint g [[threadgroup_position_in_grid]],
                            uint i [[thread_position_in_threadgroup]]) {
  const uint first = 33 * g;
  out[first + i] = in[32 * g + i];
}

// The last threadgroup to finish adds up what all have left. Without fences,
// no plain store is visible across threadgroups.
kernel void groups_last_adds_yes(device const float* in [[buffer(0)]],
                                 device float* out [[buffer(1)]],
                                 device float* part [[buffer(2)]],
                                 device atomic_uint* done [[buffer(3)]],
                                 uint g [[threadgroup_position_in_grid]],
                                 uint groups [[threadgroups_per_grid]],
                                 uint i [[thread_position_in_threadgroup]]) {
  const float sum = simd_sum(in[32 * g + i]);
  if (i != 0) return;
  part[g] = sum;  // FINDS: race
  if (atomic_fetch_add_explicit(done, 1u, memory_order_relaxed) + 1 != groups) {
    return;
  }
  float total = 0.0f;
  for (uint s = 0; s < groups; ++s) total += part[s];  // FINDS: race
  out[0] = total;
}
kernel void groups_last_adds_no(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                device atomic_float* part [[buffer(2)]],
                                uint g [[threadgroup_position_in_grid]],
                                uint i [[thread_position_in_threadgroup]]) {
  const float sum = simd_sum(in[32 * g + i]);
  if (i == 0) atomic_fetch_add_explicit(part, sum, memory_order_relaxed);
  out[32 * g + i] = sum;
}

// The same with fences, of which the one behind the count is missing.
#define FENCE(order) \
  atomic_thread_fence(mem_flags::mem_device, order, thread_scope_device)
kernel void groups_last_fenced_yes(device const float* in [[buffer(0)]],
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
  float total = 0.0f;
  for (uint s = 0; s < groups; ++s) total += part[32 * s + i];  // FINDS: race
  out[i] = total;
}
kernel void groups_last_fenced_no(device const float* in [[buffer(0)]],
                                  device float* out [[buffer(1)]],
                                  device float* part [[buffer(2)]],
                                  device atomic_uint* done [[buffer(3)]],
                                  uint g [[threadgroup_position_in_grid]],
                                  uint groups [[threadgroups_per_grid]],
                                  uint i [[thread_position_in_threadgroup]]) {
  threadgroup bool is_last;
  part[32 * g + i] = in[32 * g + i];
  FENCE(memory_order_release);
  threadgroup_barrier(mem_flags::mem_none);
  if (i == 0) {
    is_last =
        atomic_fetch_add_explicit(done, 1u, memory_order_relaxed) + 1 == groups;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (!is_last) return;
  FENCE(memory_order_acquire);
  float total = 0.0f;
  for (uint s = 0; s < groups; ++s) total += part[32 * s + i];
  // It may write what the others have, too.
  part[i] = total;
  out[i] = total;
}

// The first threadgroup's value reaches the third through the second, which
// has no fence for it.
kernel void groups_handed_on_yes(device const float* in [[buffer(0)]],
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
  if (g == 2) {
    FENCE(memory_order_acquire);
    out[0] = data[0];  // FINDS: race
  }
  atomic_store_explicit(&flag[g], 7u, memory_order_relaxed);
}
kernel void groups_handed_on_no(device const float* in [[buffer(0)]],
                                device float* out [[buffer(1)]],
                                device float* data [[buffer(2)]],
                                device atomic_uint* flag [[buffer(3)]],
                                uint g [[threadgroup_position_in_grid]],
                                uint i [[thread_position_in_threadgroup]]) {
  if (i != 0) return;
  if (g == 0) {
    data[0] = in[0];
    FENCE(memory_order_release);
  } else if (atomic_load_explicit(&flag[g - 1], memory_order_relaxed) != 7u) {
    return;
  }
  if (g != 0) FENCE(memory_order_acq_rel);
  if (g == 2) out[0] = data[0];
  atomic_store_explicit(&flag[g], 7u, memory_order_relaxed);
}
#undef FENCE

// Scratch in device memory: one for all threadgroups, or one for each.
kernel void groups_scratch_yes(device const float* in [[buffer(0)]],
                               device float* out [[buffer(1)]],
                               device float* work [[buffer(2)]],
                               uint g [[threadgroup_position_in_grid]],
                               uint i [[thread_position_in_threadgroup]]) {
  work[i] = in[32 * g + i];  // FINDS: race
  threadgroup_barrier(mem_flags::mem_device);
  out[32 * g + i] = work[31 - i];  // FINDS: race
}
kernel void groups_scratch_no(device const float* in [[buffer(0)]],
                              device float* out [[buffer(1)]],
                              device float* work [[buffer(2)]],
                              uint g [[threadgroup_position_in_grid]],
                              uint i [[thread_position_in_threadgroup]]) {
  device float* mine = work + 32 * g;
  mine[i] = in[32 * g + i];
  threadgroup_barrier(mem_flags::mem_device);
  out[32 * g + i] = mine[31 - i];
}

// Reversal in place: all threads swap, and so each pair is swapped twice.
kernel void groups_reverse_yes(device float* out [[buffer(1)]],
                               uint n [[threads_per_grid]],
                               uint i [[thread_position_in_grid]]) {
  const float low = out[i], high = out[n - 1 - i];  // FINDS: race
  out[i] = high;         // FINDS: race
  out[n - 1 - i] = low;  // FINDS: race
}
kernel void groups_reverse_no(device float* out [[buffer(1)]],
                              uint n [[threads_per_grid]],
                              uint i [[thread_position_in_grid]]) {
  if (i >= n / 2) return;
  const float low = out[i], high = out[n - 1 - i];
  out[i] = high;
  out[n - 1 - i] = low;
}

// One threadgroup publishes by a flag what another one reads.
kernel void groups_publish_yes(device const float* in [[buffer(0)]],
                               device float* out [[buffer(1)]],
                               device float* data [[buffer(2)]],
                               device atomic_uint* flag [[buffer(3)]],
                               uint g [[threadgroup_position_in_grid]],
                               uint i [[thread_position_in_threadgroup]]) {
  if (i != 0) return;
  if (g == 0) {
    data[0] = in[0];  // FINDS: race
    atomic_store_explicit(flag, 1u, memory_order_relaxed);
  } else {
    const bool ready = atomic_load_explicit(flag, memory_order_relaxed) != 0u;
    out[g] = ready ? data[0] : -1.0f;  // FINDS: race
  }
}
kernel void groups_publish_no(device const float* in [[buffer(0)]],
                              device float* out [[buffer(1)]],
                              device atomic_float* data [[buffer(2)]],
                              uint g [[threadgroup_position_in_grid]],
                              uint i [[thread_position_in_threadgroup]]) {
  if (i != 0) return;
  if (g == 0) {
    atomic_store_explicit(data, in[0], memory_order_relaxed);
  } else {
    out[g] = atomic_load_explicit(data, memory_order_relaxed);
  }
}
