// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Kernels of concurrent dispatches. The kernels are correct, but the host
// leaves out a barrier between the dispatches.

#include <metal_stdlib>
using namespace metal;

kernel void fill(device uint* out [[buffer(0)]],
                 uint i [[thread_position_in_grid]]) {
  out[i] = 3;  // FINDS: missing-memory-barrier, same-value
}

kernel void copy(device const uint* x [[buffer(0)]],
                 device uint* out [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
  out[i] = x[i];  // FINDS: missing-memory-barrier
}

// Writes the size of the next dispatch's grid, or the next parameters.
kernel void ones(device uint* out [[buffer(0)]],
                 uint i [[thread_index_in_threadgroup]]) {
  out[i] = 1;
}

kernel void reader(constant uint& p [[buffer(0)]],
                   device uint* out [[buffer(1)]]) {
  out[0] = p;  // FINDS: missing-memory-barrier
}

// Two dispatches of one concurrent encoder: the first adds up the columns of
// a gradient, and the second scales the gradient in place. MLX's encoder put
// a barrier before a dispatch that reads the output of an earlier one, but
// none before a dispatch that overwrites the input of an earlier one (mlx
// 3630: a wrong bias gradient in one of ten runs).
kernel void column_sums(device const float* gradient [[buffer(0)]],
                        device float* sums [[buffer(1)]],
                        uint c [[thread_position_in_grid]]) {
  float sum = 0.0f;
  for (uint r = 0; r < 4; ++r) {
    sum += gradient[64 * r + c];  // FINDS: missing-memory-barrier in scale_in_place
  }
  sums[c] = sum;
}
kernel void scale_in_place(device float* gradient [[buffer(0)]],
                           device const float* scale [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
  gradient[i] = gradient[i] * scale[i % 64];  // FINDS: missing-memory-barrier
}
