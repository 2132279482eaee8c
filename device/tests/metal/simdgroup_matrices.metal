// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Matrices of 8 x 8. Each lane of a simdgroup holds two elements.

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

// Loads one matrix at an offset in threadgroup memory, and another one
// transposed. Doubles the elements of the product one by one, and stores the
// product in the same memory.
kernel void transposed(device const float* in [[buffer(0)]],
                       device float* out [[buffer(1)]],
                       uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[16 * 16];
  for (uint k = lane; k < 256; k += 32) tile[k] = in[k];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 corner, flipped, product;
  simdgroup_load(corner, tile, 16, ulong2(8, 4));
  simdgroup_load(flipped, tile, 16, ulong2(0, 0), true);
  simdgroup_multiply(product, corner, flipped);
  product.thread_elements()[0] *= 2.0f;
  product.thread_elements()[1] *= 2.0f;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_store(product, tile, 16, ulong2(8, 8));
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = lane; k < 256; k += 32) out[k] = tile[k];
}
