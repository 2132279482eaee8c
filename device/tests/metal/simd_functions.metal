// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Simd functions that only some lanes call.

#include <metal_stdlib>
using namespace metal;

// In each branch, only some lanes call simd functions, and the other lanes
// take no part. The operands have several types.
kernel void in_branches(device const int* in [[buffer(0)]],
                        device int* out [[buffer(1)]],
                        uint i [[thread_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
  int result = -1;
  if (in[i] % 3 == 0) {
    result = simd_sum(in[i]) * (simd_is_first() ? 2 : 1);
  } else if (lane >= 10) {
    const half2 h = simd_max(half2(half(lane), half(-int(lane))));
    result = int(h.x) * 100 + int(h.y);
  } else {
    const ushort s = simd_prefix_exclusive_sum(ushort(1));
    result = int(s) + int(simd_min(uchar(lane + 100)));
  }
  for (uint round = 0; round <= lane / 16; ++round) result += simd_or(1 << round);
  out[i] = result;
}
