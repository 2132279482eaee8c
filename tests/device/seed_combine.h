// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The Metal kernels that WeightedSum and WeightedSumRmsNorm stand in for,
// thread by thread: what the built-in kernels are compared with. Buffers,
// parameters and grids are those of switchyard/device/kernels.h. Nothing looks
// at the sizes of buffers.

#ifndef SWITCHYARD_TESTS_DEVICE_SEED_COMBINE_H_
#define SWITCHYARD_TESTS_DEVICE_SEED_COMBINE_H_

#include <cmath>
#include <cstddef>

#include "switchyard/device/kernel.h"
#include "switchyard/device/kernels.h"

namespace switchyard::seeds {

using namespace device;

// One column's weighted sum over the slots of a token.
template <class Slots, class Weights>
float SumOfSlots(Slots slots, Weights weights, size_t n_slots, size_t hidden,
                 size_t col) {
  float sum = 0.0f;
  for (size_t s = 0; s < n_slots; ++s) {
    sum += weights[s] * slots[s * hidden + col];
  }
  return sum;
}

// function(col) for each thread of a tile of 256 columns; those behind the
// last column return.
template <class Tg, class Function>
void ForEachColumn(Tg& tg, size_t hidden, const Function& function) {
  tg.for_each_thread([&](auto t) {
    const size_t col = tg.threadgroup_position_in_grid.width * 256 +
                       t.thread_position_in_threadgroup().width;
    if (col >= hidden) return t.exit();
    function(col);
  });
}

// weighted_sum_stacked_f32 and weighted_sum_residual_stacked_f32
template <bool kResidual>
struct SumStacked {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<WeightedSumStackedParams>(tg, 3);
    const auto slots = buffer<const float>(tg, 0);
    const auto weights = buffer<const float>(tg, 1);
    const auto out = buffer<float>(tg, 2);
    const size_t hidden = static_cast<size_t>(p.hidden);
    ForEachColumn(tg, hidden, [&](size_t col) {
      const float sum = SumOfSlots(slots, weights,
                                   static_cast<size_t>(p.n_slots), hidden, col);
      if constexpr (kResidual) {
        out[col] += sum;
      } else {
        out[col] = sum;
      }
    });
  }
};
using WeightedSumStacked = SumStacked<false>;
using WeightedSumResidualStacked = SumStacked<true>;

// weighted_sum_batched_f32
struct WeightedSumBatched {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<WeightedSumBatchedParams>(tg, 3);
    const size_t top_k = static_cast<size_t>(p.top_k);
    const size_t hidden = static_cast<size_t>(p.hidden);
    const size_t token = tg.threadgroup_position_in_grid.height;
    if (token >= static_cast<size_t>(p.batch)) return;
    const auto slots = buffer<const float>(tg, 0) + token * top_k * hidden;
    const auto weights = buffer<const float>(tg, 1) + token * top_k;
    const auto out = buffer<float>(tg, 2) + token * hidden;
    ForEachColumn(tg, hidden, [&](size_t col) {
      out[col] = SumOfSlots(slots, weights, top_k, hidden, col);
    });
  }
};

// One token of the kernels below: the sum is added to the residual, whose root
// mean square is then found by simdgroup, and by the first thread across them.
template <class Tg>
void SumResidualNorm(Tg& tg, size_t token, size_t n_slots, size_t hidden,
                     float eps) {
  constexpr size_t kThreads = 256;
  const auto slots = buffer<const float>(tg, 0) + token * n_slots * hidden;
  const auto weights = buffer<const float>(tg, 1) + token * n_slots;
  const auto residual = buffer<float>(tg, 2) + token * hidden;
  const auto norm_weight = buffer<const float>(tg, 3);
  const auto normed = buffer<float>(tg, 4) + token * hidden;
  const auto parts = threadgroup_array<float, kThreads / 32>(tg);
  const auto shared_scale = threadgroup_array<float, 1>(tg);

  auto squares = tg.per_thread(0.0f);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    for (size_t col = i; col < hidden; col += kThreads) {
      const float sum = SumOfSlots(slots, weights, n_slots, hidden, col);
      const float value = residual[col] + sum;
      residual[col] = value;
      squares[t] += value * value;
    }
  });
  const auto part = simd_sum(squares);
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_simdgroup == 0) {
      parts[t.simdgroup_index_in_threadgroup] = part[t];
    }
  });
  tg.threadgroup_barrier(mem_flags::mem_threadgroup);
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup != 0) return;
    float total = 0.0f;
    for (size_t s = 0; s < kThreads / 32; ++s) total += parts[s];
    const float mean = total / static_cast<float>(hidden);
    shared_scale[0] = 1.0f / std::sqrt(mean + eps);
  });
  tg.threadgroup_barrier(mem_flags::mem_threadgroup);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    const float scale = shared_scale[0];
    for (size_t col = i; col < hidden; col += kThreads) {
      normed[col] = residual[col] * scale * norm_weight[col];
    }
  });
}

// weighted_sum_residual_norm_stacked_f32
struct WeightedSumResidualNormStacked {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<WeightedSumResidualNormStackedParams>(tg, 5);
    SumResidualNorm(tg, 0, static_cast<size_t>(p.n_slots),
                    static_cast<size_t>(p.hidden), p.eps);
  }
};

// weighted_sum_residual_norm_batched_f32, which no seed has: a threadgroup of
// the kernel above per token.
struct WeightedSumResidualNormBatched {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<WeightedSumResidualNormBatchedParams>(tg, 5);
    const size_t token = tg.threadgroup_position_in_grid.width;
    if (token >= static_cast<size_t>(p.batch)) return;
    SumResidualNorm(tg, token, static_cast<size_t>(p.top_k),
                    static_cast<size_t>(p.hidden), p.eps);
  }
};

// moe_weighted_reduce_f32
struct WeightedReduce {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<MoeWeightedReduceParams>(tg, 0);
    const size_t top_k = p.top_k, hidden = p.h;
    const size_t token = tg.threadgroup_position_in_grid.height;
    if (token >= p.n_tokens) return;
    const auto weights = buffer<const float>(tg, 1) + token * top_k;
    const auto slots = buffer<const float>(tg, 2) + token * top_k * hidden;
    const auto gate = buffer<const float>(tg, 3);
    const auto shared = buffer<const float>(tg, 4) + token * hidden;
    const auto residual = buffer<const float>(tg, 5);
    const auto out = buffer<float>(tg, 6) + token * hidden;
    ForEachColumn(tg, hidden, [&](size_t col) {
      float sum = SumOfSlots(slots, weights, top_k, hidden, col);
      const float sigmoid = 1.0f / (1.0f + std::exp(-gate[token]));
      sum += sigmoid * shared[col];
      if (p.add_residual != 0) sum += residual[token * hidden + col];
      out[col] = sum;
    });
  }
};

}  // namespace switchyard::seeds

#endif  // SWITCHYARD_TESTS_DEVICE_SEED_COMBINE_H_
