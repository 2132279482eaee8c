// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Kernels of concurrent dispatches: they are right, and what is between them is
// not.

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

// The grid of the next dispatch, or its parameters.
kernel void ones(device uint* out [[buffer(0)]],
                 uint i [[thread_index_in_threadgroup]]) {
  out[i] = 1;
}

kernel void reader(constant uint& p [[buffer(0)]],
                   device uint* out [[buffer(1)]]) {
  out[0] = p;  // FINDS: missing-memory-barrier
}
