// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Simd and quad functions: each thread writes a row of results.

#include <metal_stdlib>
using namespace metal;

kernel void reductions(device const int* in [[buffer(0)]],
                       device int* out [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  const int x = in[i];
  device int* const o = out + 16 * i;
  o[0] = simd_sum(x);
  o[1] = simd_product(x % 2 + 1);
  o[2] = simd_min(x);
  o[3] = simd_max(x);
  o[4] = simd_and(x | 0x11);
  o[5] = simd_or(x & 0x16);
  o[6] = simd_xor(x);
  o[7] = simd_prefix_inclusive_sum(x);
  o[8] = simd_prefix_exclusive_sum(x);
  o[9] = simd_prefix_inclusive_product(x % 2 + 1);
  o[10] = simd_prefix_exclusive_product(x % 2 + 1);
  o[11] = quad_sum(x);
  o[12] = quad_product(x);
  o[13] = quad_min(x) ^ quad_max(x);
  o[14] = quad_and(x) + quad_or(x) + quad_xor(x);
  o[15] = quad_prefix_inclusive_sum(x) - quad_prefix_exclusive_sum(x) +
          quad_prefix_inclusive_product(x % 2 + 1) +
          quad_prefix_exclusive_product(x % 2 + 1);
}

// In the order of the tree: lane l + 16 is added to l, then 8, 4, 2, 1.
kernel void float_sums(device const float* in [[buffer(0)]],
                       device float* out [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  out[2 * i] = simd_sum(in[i]);
  const float3 sums = simd_sum(float3(in[i], 1.0f, -in[i]));
  out[2 * i + 1] = sums.x + sums.y + sums.z;
}

kernel void shuffles(device const float* in [[buffer(0)]],
                     device float* out [[buffer(1)]],
                     uint i [[thread_position_in_grid]],
                     ushort lane [[thread_index_in_simdgroup]]) {
  const float x = in[i];
  device float* const o = out + 16 * i;
  o[0] = simd_shuffle(x, ushort((lane * 7) % 32));
  o[1] = simd_shuffle_xor(x, 5);
  const float up = simd_shuffle_up(x, 3), down = simd_shuffle_down(x, 2);
  o[2] = lane >= 3 ? up : 0.0f;
  o[3] = lane < 30 ? down : 0.0f;
  o[4] = simd_shuffle_rotate_up(x, 4);
  o[5] = simd_shuffle_rotate_down(x, 9);
  o[6] = simd_shuffle_and_fill_up(x, -x, 3);
  o[7] = simd_shuffle_and_fill_down(x, -x, 3);
  o[8] = simd_broadcast(x, 11);
  o[9] = simd_broadcast_first(x);
  o[10] = quad_shuffle(x, ushort(3 - lane % 4));
  o[11] = quad_shuffle_xor(x, 2);
  const float quad_up = quad_shuffle_up(x, 1);
  o[12] = lane % 4 >= 1 ? quad_up : 0.0f;
  o[13] = quad_broadcast(x, 2) + quad_broadcast_first(x);
  o[14] = quad_shuffle_rotate_down(x, 1) - quad_shuffle_rotate_up(x, 1);
  o[15] = quad_shuffle_and_fill_up(x, -x, 1) +
          quad_shuffle_and_fill_down(x, -x, 2);
}

kernel void votes(device const uint* in [[buffer(0)]],
                  device uint* out [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  const bool odd = in[i] % 2 != 0, small = in[i] < 1000;
  device uint* const o = out + 8 * i;
  const simd_vote vote = simd_ballot(odd);
  o[0] = uint(static_cast<simd_vote::vote_t>(vote));
  o[1] = uint(vote.all()) | uint(vote.any()) << 1;
  o[2] = uint(simd_all(small)) | uint(simd_any(odd)) << 1;
  o[3] = uint(simd_is_first());
  o[4] = uint(static_cast<simd_vote::vote_t>(simd_active_threads_mask()));
  o[5] = uint(quad_all(odd)) | uint(quad_any(odd)) << 1 |
         uint(quad_is_first()) << 2;
  o[6] = uint(static_cast<quad_vote::vote_t>(quad_ballot(odd)));
  o[7] = uint(static_cast<quad_vote::vote_t>(quad_active_threads_mask()));
}

// Lanes that are not in the branch take no part; other types.
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
