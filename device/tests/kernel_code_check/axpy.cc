// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Contains a kernel over plain pointers. A test inspects the kernel's machine
// code.

#include <cstddef>
#include <cstdint>

#include "switchyard/device/kernel.h"

namespace switchyard::device {

// Computes y[i] += 2.5 x[i] with three accessors.
void Axpy(Threadgroup<Unchecked>& tg) {
  const auto n = params<uint32_t>(tg, 2);
  const auto x = buffer<const float>(tg, 0);
  const auto y = buffer<float>(tg, 1);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_position_in_grid().width;
    if (i < n) y[i] += 2.5f * x[i];
  });
}

}  // namespace switchyard::device
