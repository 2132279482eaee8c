// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The Metal kernels that SiluMul stands in for, thread by thread: what the
// built-in kernels are compared with. Buffers, parameters and grids are those
// of switchyard/device/kernels.h. exp is the float one, as in the shaders; its
// overflow gives -0 where x / (1 + exp(-x)) is below -88.7.

#ifndef SWITCHYARD_TESTS_DEVICE_SEED_SILU_MUL_H_
#define SWITCHYARD_TESTS_DEVICE_SEED_SILU_MUL_H_

#include <cmath>
#include <cstddef>

#include "switchyard/device/kernel.h"
#include "switchyard/device/kernels.h"

namespace switchyard::seeds {

using namespace device;

// One element per thread, in tiles of 256 columns by one row.
template <class Tg>
void SiluMulTile(Tg& tg, size_t rows, size_t cols) {
  const auto gate = buffer<const float>(tg, 0);
  const auto up = buffer<const float>(tg, 1);
  const auto out = buffer<float>(tg, 2);
  const size_t row = tg.threadgroup_position_in_grid.height;
  if (row >= rows) return;
  tg.for_each_thread([&](auto t) {
    const size_t col = tg.threadgroup_position_in_grid.width * 256 +
                       t.thread_position_in_threadgroup().width;
    if (col >= cols) return t.exit();
    const size_t at = row * cols + col;
    const float g = gate[at];
    const float silu = g / (1.0f + std::exp(-g));
    out[at] = silu * up[at];
  });
}

// silu_mul_stacked_f32
struct SiluMulStacked {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<SiluMulStackedParams>(tg, 3);
    SiluMulTile(tg, static_cast<size_t>(p.n_slots), static_cast<size_t>(p.ffn));
  }
};

// silu_mul_batched_f32
struct SiluMulBatched {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<SiluMulBatchedParams>(tg, 3);
    SiluMulTile(tg, static_cast<size_t>(p.total_pairs),
                static_cast<size_t>(p.ffn));
  }
};

}  // namespace switchyard::seeds

#endif  // SWITCHYARD_TESTS_DEVICE_SEED_SILU_MUL_H_
