// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The Metal kernels that RouteTopK stands in for, thread by thread and with
// their defects: what the built-in kernels are compared with. Buffers,
// parameters and grids are those of switchyard/device/kernels.h.
//
// exp is the float one: the shaders compute in float throughout, so that a
// double's extra digits would be rounded away at the next step.

#ifndef SWITCHYARD_TESTS_DEVICE_SEED_ROUTE_H_
#define SWITCHYARD_TESTS_DEVICE_SEED_ROUTE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "switchyard/device/kernel.h"
#include "switchyard/device/kernels.h"

namespace switchyard::seeds {

using namespace device;

// moe_router_topk_softmax_f32: a simdgroup per row makes probabilities in
// threadgroup memory, then picks the largest of them top_k times.
//   threadgroup memory 0: float [num_experts], float [top_k], int [top_k],
//   float [1]
//
// Its defects: where no probability is above -inf (a NaN among the logits, or
// more picks than experts) the pick is -1, at which it writes and whose -inf
// spoils the sum of the renormalisation; a lane per slot writes the results,
// that is 32 slots.
struct RouterTopkSoftmax {
  // So many floats of threadgroup memory lie in front of the kernel's. With one
  // of them the write at -1 hits nobody, as it may on a GPU.
  size_t in_front = 0;

  static size_t MemoryLength(size_t experts, size_t top_k) {
    return 4 * (experts + 2 * top_k + 1);
  }

  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<MoeRouterTopkSoftmaxParams>(tg, 3);
    const size_t experts = static_cast<size_t>(p.num_experts);
    const size_t top_k = static_cast<size_t>(p.top_k);
    const size_t row = tg.threadgroup_position_in_grid.width;
    const auto logits = buffer<const float>(tg, 0) + row * experts;
    const auto ids = buffer<int32_t>(tg, 1) + row * top_k;
    const auto weights = buffer<float>(tg, 2) + row * top_k;
    const auto probabilities = threadgroup_memory<float>(tg, 0) + in_front;
    const auto picked_weights = probabilities + experts;
    const auto picked_ids = pointer_cast<int32_t>(picked_weights + top_k);
    const auto picked_sum = pointer_cast<float>(picked_ids + top_k);

    auto largest = tg.per_thread(-INFINITY);
    tg.for_each_thread([&](auto t) {
      for (size_t e = t.thread_index_in_simdgroup; e < experts; e += 32) {
        const float logit = logits[e];
        probabilities[e] = logit;
        largest[t] = std::fmax(largest[t], logit);
      }
    });
    const auto row_max = simd_max(largest);
    auto sum = tg.per_thread(0.0f);
    tg.for_each_thread([&](auto t) {
      for (size_t e = t.thread_index_in_simdgroup; e < experts; e += 32) {
        const float logit = probabilities[e];
        const float value = std::exp(logit - row_max[t]);
        probabilities[e] = value;
        sum[t] += value;
      }
    });
    const auto row_sum = simd_sum(sum);
    tg.for_each_thread([&](auto t) {
      const float inverse = 1.0f / row_sum[t];
      for (size_t e = t.thread_index_in_simdgroup; e < experts; e += 32) {
        probabilities[e] *= inverse;
      }
    });
    tg.threadgroup_barrier(mem_flags::mem_threadgroup);

    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_simdgroup == 0) picked_sum[0] = 0.0f;
    });
    for (size_t slot = 0; slot < top_k; ++slot) {
      auto best = tg.per_thread(-INFINITY);
      auto best_id = tg.per_thread(int32_t{-1});
      tg.for_each_thread([&](auto t) {
        for (size_t e = t.thread_index_in_simdgroup; e < experts; e += 32) {
          const float probability = probabilities[e];
          if (probability > best[t]) {
            best[t] = probability;
            best_id[t] = static_cast<int32_t>(e);
          }
        }
      });
      const auto winner = simd_max(best);
      // The smallest index wins among those who hold the maximum.
      tg.for_each_thread([&](auto t) {
        if (best[t] != winner[t]) {
          best_id[t] = std::numeric_limits<int32_t>::max();
        }
      });
      const auto winner_id = simd_min(best_id);
      tg.for_each_thread([&](auto t) {
        if (t.thread_index_in_simdgroup != 0) return;
        picked_weights[slot] = winner[t];
        picked_ids[slot] = winner_id[t];
        picked_sum[0] += winner[t];
        probabilities[winner_id[t]] = -INFINITY;  // not to be picked again
      });
      tg.threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    tg.for_each_thread([&](auto t) {
      float scale = 1.0f;
      if (p.norm_topk_prob != 0) {
        const float picked = picked_sum[0];
        scale = 1.0f / std::fmax(picked, 0x1p-14f);
      }
      const size_t slot = t.thread_index_in_simdgroup;
      if (slot >= top_k) return;
      const float weight = picked_weights[slot];
      ids[slot] = picked_ids[slot];
      weights[slot] = weight * scale;
    });
  }
};

// moe_softmax_topk_f32: min(n_experts, 128) threads per row make probabilities
// with two tree reductions, then the first inserts them into a sorted list of
// at most 64.
//   threadgroup memory 0: float [threads], float [threads], float [n_experts]
//
// Its defects: the trees drop lanes unless their number is a power of two; NaN
// gets into the list without displacing what it is compared with.
struct SoftmaxTopk {
  static constexpr size_t kMostTopK = 64;

  static size_t Threads(size_t experts) {
    return std::min<size_t>(experts, 128);
  }
  static size_t MemoryLength(size_t experts) {
    return 4 * (2 * Threads(experts) + experts);
  }

  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<MoeSoftmaxTopkParams>(tg, 0);
    const size_t row = tg.threadgroup_position_in_grid.width;
    if (row >= p.n_tokens) return;
    const size_t experts = p.n_experts, top_k = p.top_k;
    const size_t threads = Threads(experts);
    const auto logits = buffer<const float>(tg, 1) + row * experts;
    const auto ids = buffer<uint32_t>(tg, 2) + row * top_k;
    const auto weights = buffer<float>(tg, 3) + row * top_k;
    const auto maxima = threadgroup_memory<float>(tg, 0);
    const auto sums = maxima + threads;
    const auto probabilities = sums + threads;

    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      float largest = -INFINITY;
      for (size_t e = i; e < experts; e += threads) {
        const float logit = logits[e];
        if (logit > largest) largest = logit;
      }
      maxima[i] = largest;
    });
    tg.threadgroup_barrier(mem_flags::mem_threadgroup);
    for (size_t half = threads / 2; half != 0; half /= 2) {
      tg.for_each_thread([&](auto t) {
        const size_t i = t.thread_index_in_threadgroup;
        if (i >= half) return;
        const float mine = maxima[i], other = maxima[i + half];
        if (other > mine) maxima[i] = other;
      });
      tg.threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      const float row_max = maxima[0];
      float sum = 0.0f;
      for (size_t e = i; e < experts; e += threads) {
        const float value = std::exp(logits[e] - row_max);
        probabilities[e] = value;
        sum += value;
      }
      sums[i] = sum;
    });
    tg.threadgroup_barrier(mem_flags::mem_threadgroup);
    for (size_t half = threads / 2; half != 0; half /= 2) {
      tg.for_each_thread([&](auto t) {
        const size_t i = t.thread_index_in_threadgroup;
        if (i < half) sums[i] += sums[i + half];
      });
      tg.threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      const float row_sum = sums[0];
      for (size_t e = i; e < experts; e += threads) probabilities[e] /= row_sum;
    });
    tg.threadgroup_barrier(mem_flags::mem_threadgroup);

    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_threadgroup != 0) return;
      float best[kMostTopK];
      uint32_t best_ids[kMostTopK];
      std::fill_n(best, top_k, -INFINITY);
      std::fill_n(best_ids, top_k, 0u);
      for (size_t e = 0; e < experts; ++e) {
        const float probability = probabilities[e];
        if (probability <= best[top_k - 1]) continue;
        size_t at = top_k - 1;
        while (at != 0 && probability > best[at - 1]) --at;
        std::copy_backward(best + at, best + top_k - 1, best + top_k);
        std::copy_backward(best_ids + at, best_ids + top_k - 1,
                           best_ids + top_k);
        best[at] = probability;
        best_ids[at] = static_cast<uint32_t>(e);
      }
      float sum = 0.0f;
      for (size_t slot = 0; slot < top_k; ++slot) sum += best[slot];
      const float scale = sum > 1e-9f ? 1.0f / sum : 1.0f;
      for (size_t slot = 0; slot < top_k; ++slot) {
        ids[slot] = best_ids[slot];
        weights[slot] = best[slot] * scale;
      }
    });
  }
};

}  // namespace switchyard::seeds

#endif  // SWITCHYARD_TESTS_DEVICE_SEED_ROUTE_H_
