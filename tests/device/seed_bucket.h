// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The Metal kernel that BucketStrided and MakeDispatchArgs stand in for, thread
// by thread: what the built-in kernel is compared with. Buffers, parameters and
// grid are those of switchyard/device/kernels.h.

#ifndef SWITCHYARD_TESTS_DEVICE_SEED_BUCKET_H_
#define SWITCHYARD_TESTS_DEVICE_SEED_BUCKET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "switchyard/device/kernel.h"
#include "switchyard/device/kernels.h"

namespace switchyard::seeds {

using namespace device;

// moe_compute_ids_tpe_f32: the threads of one threadgroup claim places in the
// experts' rows with atomics, so pairs come in any order there, then agree on
// the busiest expert.
//
// Its defects: one threadgroup, whatever the size; rows are found with 32-bit
// products; nothing looks whether row_stride is enough.
struct ComputeIdsTpe {
  static constexpr size_t kThreads = 256;

  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<MoeComputeIdsTpeParams>(tg, 5);
    const auto selected = buffer<const int32_t>(tg, 0);
    const auto tpe = atomic_buffer<int32_t>(tg, 1);
    const auto ids = buffer<int32_t>(tg, 2);
    const auto gate_up_args = buffer<uint32_t>(tg, 3);
    const auto down_args = buffer<uint32_t>(tg, 4);
    const auto maxima = threadgroup_array<int32_t, kThreads / 32>(tg);
    const size_t experts = static_cast<size_t>(p.num_experts);
    const size_t pairs = static_cast<size_t>(p.total_pairs);

    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      for (size_t e = i; e < experts; e += kThreads) {
        atomic_store_explicit(&tpe[e], 0, memory_order_relaxed);
      }
    });
    tg.threadgroup_barrier(mem_flags::mem_device);
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      for (size_t pair = i; pair < pairs; pair += kThreads) {
        const int32_t e = selected[pair];
        if (e < 0 || e >= p.num_experts) continue;
        const int32_t place =
            atomic_fetch_add_explicit(&tpe[e], 1, memory_order_relaxed);
        ids[e * p.row_stride + place] = static_cast<int32_t>(pair);
      }
    });
    tg.threadgroup_barrier(mem_flags::mem_device);

    auto most = tg.per_thread(int32_t{0});
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      for (size_t e = i; e < experts; e += kThreads) {
        most[t] = std::max(most[t],
                           atomic_load_explicit(&tpe[e], memory_order_relaxed));
      }
    });
    const auto most_of_simdgroup = simd_max(most);
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_simdgroup == 0) {
        maxima[t.simdgroup_index_in_threadgroup] = most_of_simdgroup[t];
      }
    });
    tg.threadgroup_barrier(mem_flags::mem_threadgroup);
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_threadgroup != 0) return;
      int32_t max_tpe = 0;
      for (size_t s = 0; s < kThreads / 32; ++s) {
        max_tpe = std::max<int32_t>(max_tpe, maxima[s]);
      }
      const uint32_t tiles = std::max(1u, Tiles(max_tpe, 32));
      WriteArgs(gate_up_args, tiles, Tiles(p.m_gate_up, 64), p.num_experts);
      WriteArgs(down_args, tiles, Tiles(p.m_down, 64), p.num_experts);
    });
  }

 private:
  static uint32_t Tiles(int32_t count, int32_t tile) {
    return static_cast<uint32_t>((count + tile - 1) / tile);
  }
  template <class Pointer>
  static void WriteArgs(Pointer args, uint32_t x, uint32_t y, int32_t z) {
    args[0] = x;
    args[1] = y;
    args[2] = static_cast<uint32_t>(z);
  }
};

}  // namespace switchyard::seeds

#endif  // SWITCHYARD_TESTS_DEVICE_SEED_BUCKET_H_
