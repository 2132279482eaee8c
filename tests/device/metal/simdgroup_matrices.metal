// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Matrices of 8 x 8 that a simdgroup holds.

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

// c = a * b + c, of matrices whose rows are `stride` elements long.
template <typename T, typename Acc>
kernel void multiply(device const T* a [[buffer(0)]],
                     device const T* b [[buffer(1)]],
                     device Acc* c [[buffer(2)]],
                     constant uint& stride [[buffer(3)]]) {
  simdgroup_matrix<T, 8, 8> left, right;
  simdgroup_matrix<Acc, 8, 8> sum;
  simdgroup_load(left, a, stride);
  simdgroup_load(right, b, ulong(stride));
  simdgroup_load(sum, c, stride);
  simdgroup_multiply_accumulate(sum, left, right, sum);
  simdgroup_store(sum, c, stride);
}
template [[host_name("multiply_float")]] [[kernel]]
decltype(multiply<float, float>) multiply<float, float>;
template [[host_name("multiply_half")]] [[kernel]]
decltype(multiply<half, float>) multiply<half, float>;
template [[host_name("multiply_bfloat")]] [[kernel]]
decltype(multiply<bfloat, float>) multiply<bfloat, float>;

// Goes through threadgroup memory: transposed, offset, and scaled by hand.
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

// The places of a lane's two elements, and matrices of one value.
kernel void places(device float* out [[buffer(0)]],
                   uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8, 8>(0.5f);
  thread auto& own = m.thread_elements();
  own[0] += float(2 * lane);
  own[1] += float(2 * lane + 1);
  simdgroup_float8x8 twice(2.0f), product;
  simdgroup_multiply(product, twice, m);
  simdgroup_store(product, out, 8);
}
