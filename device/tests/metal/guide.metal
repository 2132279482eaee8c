#include <metal_stdlib>
using namespace metal;

kernel void row_max(device const float* x [[buffer(0)]],
                    device float* out [[buffer(1)]],
                    uint i [[thread_position_in_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]],
                    uint sg [[simdgroup_index_in_threadgroup]],
                    uint groups [[simdgroups_per_threadgroup]]) {
  threadgroup float part[32];
  const float most = simd_max(x[i]);
  if (lane == 0) part[sg] = most;
  threadgroup_barrier(mem_flags::mem_none);
  float row = part[0];
  for (uint s = 1; s < groups; ++s) row = max(row, part[s]);
  out[i] = x[i] - row;
}
