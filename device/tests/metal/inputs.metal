// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// All inputs that give a compute kernel its position and its sizes.

#include <metal_stdlib>
using namespace metal;

struct Place {
  uint values[40];
};

static void Put(device uint* out, thread uint& at, uint value) {
  out[at++] = value;
}
static void Put(device uint* out, thread uint& at, uint3 value) {
  Put(out, at, value.x);
  Put(out, at, value.y);
  Put(out, at, value.z);
}

kernel void wide(device Place* places [[buffer(0)]],
                 uint3 position [[thread_position_in_grid]],
                 uint3 in_group [[thread_position_in_threadgroup]],
                 uint index [[thread_index_in_threadgroup]],
                 uint lane [[thread_index_in_simdgroup]],
                 uint quad_lane [[thread_index_in_quadgroup]],
                 uint simdgroup [[simdgroup_index_in_threadgroup]],
                 uint quad [[quadgroup_index_in_threadgroup]],
                 uint3 group [[threadgroup_position_in_grid]],
                 uint3 groups [[threadgroups_per_grid]],
                 uint3 grid [[threads_per_grid]],
                 uint3 threads [[threads_per_threadgroup]],
                 uint3 dispatched [[dispatch_threads_per_threadgroup]],
                 uint width [[threads_per_simdgroup]],
                 uint execution_width [[thread_execution_width]],
                 uint simdgroups [[simdgroups_per_threadgroup]],
                 uint all_simdgroups [[dispatch_simdgroups_per_threadgroup]],
                 uint quads [[quadgroups_per_threadgroup]],
                 uint all_quads [[dispatch_quadgroups_per_threadgroup]],
                 uint3 origin [[grid_origin]], uint3 size [[grid_size]]) {
  device uint* const out =
      places[(position.z * grid.y + position.y) * grid.x + position.x].values;
  uint at = 0;
  Put(out, at, position);
  Put(out, at, in_group);
  Put(out, at, index);
  Put(out, at, lane);
  Put(out, at, quad_lane);
  Put(out, at, simdgroup);
  Put(out, at, quad);
  Put(out, at, group);
  Put(out, at, groups);
  Put(out, at, grid);
  Put(out, at, threads);
  Put(out, at, dispatched);
  Put(out, at, width);
  Put(out, at, execution_width);
  Put(out, at, simdgroups);
  Put(out, at, all_simdgroups);
  Put(out, at, quads);
  Put(out, at, all_quads);
  Put(out, at, origin);
  Put(out, at, size);
  for (; at < 40; ++at) out[at] = 0;
}

// Writes some of the inputs again, in types of 16 bits.
kernel void narrow(device uint4* out [[buffer(0)]],
                   ushort2 position [[thread_position_in_grid]],
                   ushort index [[thread_index_in_threadgroup]],
                   ushort lane [[thread_index_in_simdgroup]],
                   ushort2 group [[threadgroup_position_in_grid]],
                   ushort2 grid [[threads_per_grid]],
                   ushort2 threads [[threads_per_threadgroup]]) {
  out[position.y * grid.x + position.x] =
      uint4(index, lane, group.y * 16 + group.x, threads.x);
}

// Arguments without an index get the lowest free indices.
kernel void without_indices(device const float* a, constant float& b,
                            device float* out [[buffer(3)]],
                            device const float* c,
                            uint i [[thread_position_in_grid]]) {
  out[i] = a[i] * b + c[i];
}
