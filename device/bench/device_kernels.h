// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Kernels that a user may write. Each kernel exists twice: as the .metal text
// of the original, and as a port to kernel.h.

#ifndef SWITCHYARD_DEVICE_BENCH_DEVICE_KERNELS_H_
#define SWITCHYARD_DEVICE_BENCH_DEVICE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/device/kernel.h"

namespace switchyard::bench {

using device::buffer;
using device::params;
using device::threadgroup_array;

// Computes out[i] = 2.5 x[i] + out[i]. Each thread handles one element.
struct Streaming {
  static constexpr const char* kName = "streaming";
  static constexpr uint32_t kColumns = 1 << 18;
  static constexpr size_t kIn = kColumns, kOut = kColumns,
                          kThreadgroups = kColumns / 256;
  static constexpr const char* kText = R"(
kernel void streaming(device const float* x [[buffer(0)]],
                      device float* out [[buffer(2)]],
                      constant uint& n [[buffer(3)]],
                      uint i [[thread_position_in_grid]]) {
  if (i >= n) return;
  out[i] = 2.5f * x[i] + out[i];
})";
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto n = params<uint32_t>(tg, 3);
    const auto x = buffer<const float>(tg, 0);
    const auto out = buffer<float>(tg, 2);
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_position_in_grid().width;
      if (i >= n) return;
      out[i] = 2.5f * x[i] + out[i];
    });
  }
};

// Computes a weighted sum of 8 rows. Each thread handles one column.
struct Weighted {
  static constexpr const char* kName = "weighted_sum";
  static constexpr uint32_t kColumns = 2048;
  static constexpr size_t kIn = 8 * kColumns, kOut = kColumns,
                          kThreadgroups = kColumns / 256;
  static constexpr const char* kText = R"(
kernel void weighted_sum(device const float* x [[buffer(0)]],
                         device const float* weights [[buffer(1)]],
                         device float* out [[buffer(2)]],
                         constant uint& n [[buffer(3)]],
                         uint i [[thread_position_in_grid]]) {
  if (i >= n) return;
  float sum = 0.0f;
  for (uint s = 0; s < 8; ++s) sum += weights[s] * x[s * n + i];
  out[i] = sum;
})";
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto n = params<uint32_t>(tg, 3);
    const auto x = buffer<const float>(tg, 0);
    const auto weights = buffer<const float>(tg, 1);
    const auto out = buffer<float>(tg, 2);
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_position_in_grid().width;
      if (i >= n) return;
      float sum = 0.0f;
      for (size_t s = 0; s < 8; ++s) sum += weights[s] * x[s * n + i];
      out[i] = sum;
    });
  }
};

// Sums the squares in each of 64 rows. Each threadgroup handles one row.
struct Reduction {
  static constexpr const char* kName = "row_reduction";
  static constexpr uint32_t kColumns = 2048;
  static constexpr size_t kIn = 64 * kColumns, kOut = 64, kThreadgroups = 64;
  static constexpr const char* kText = R"(
kernel void row_reduction(device const float* x [[buffer(0)]],
                          device float* out [[buffer(2)]],
                          constant uint& n [[buffer(3)]],
                          uint row [[threadgroup_position_in_grid]],
                          uint thread_index [[thread_index_in_threadgroup]],
                          uint lane [[thread_index_in_simdgroup]],
                          uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float part[8];
  x += row * n;
  float sum = 0.0f;
  for (uint i = thread_index; i < n; i += 256) sum += x[i] * x[i];
  const float total = simd_sum(sum);
  if (lane == 0) part[simdgroup] = total;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_index != 0) return;
  float all = 0.0f;
  for (uint s = 0; s < 8; ++s) all += part[s];
  out[row] = all;
})";
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto n = params<uint32_t>(tg, 3);
    const size_t row = tg.threadgroup_position_in_grid.width;
    const auto x = buffer<const float>(tg, 0) + row * n;
    const auto out = buffer<float>(tg, 2);
    const auto part = threadgroup_array<float, 8>(tg);
    auto sum = tg.per_thread(0.0f);
    tg.for_each_thread([&](auto t) {
      for (size_t i = t.thread_index_in_threadgroup; i < n; i += 256) {
        sum[t] += x[i] * x[i];
      }
    });
    const auto total = simd_sum(sum);
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_simdgroup != 0) return;
      part[t.simdgroup_index_in_threadgroup] = total[t];
    });
    tg.threadgroup_barrier();
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_threadgroup != 0) return;
      float all = 0.0f;
      for (size_t s = 0; s < 8; ++s) all += part[s];
      out[row] = all;
    });
  }
};

}  // namespace switchyard::bench

#endif  // SWITCHYARD_DEVICE_BENCH_DEVICE_KERNELS_H_
