// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Which compiled ISA the kernels use: Highway's tables, our own index.
// Highway's own chosen target is process-wide and belongs to every user of it.
//
// A kernel file exports each row function once, outside the ISA namespaces:
//   HWY_EXPORT(SiluMulRows);
//   void SiluMulRows(const SiluMulArgs& args, size_t begin, size_t end) {
//     SWITCHYARD_DISPATCH(SiluMulRows)(args, begin, end);
//   }
// and each row function starts with RecordTarget(HWY_TARGET), which is how
// LastIsa() and the tests know what ran.

#ifndef SWITCHYARD_SRC_SIMD_TARGETS_H_
#define SWITCHYARD_SRC_SIMD_TARGETS_H_

#include <atomic>
#include <cstdint>

#include "hwy/targets.h"

namespace switchyard {
namespace simd {

// Set up from the CPU on first use, then changed by CapIsa only.
hwy::ChosenTarget& ActiveTarget() noexcept;

extern std::atomic<int64_t> g_last_target;

// Writes only on a change: the line stays shared among threads that run small
// batches at the same time.
inline void RecordTarget(int64_t target) noexcept {
  if (g_last_target.load(std::memory_order_relaxed) != target) {
    g_last_target.store(target, std::memory_order_relaxed);
  }
}

}  // namespace simd
}  // namespace switchyard

#if HWY_IDE || ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0)
#define SWITCHYARD_DISPATCH(FUNC) HWY_STATIC_DISPATCH(FUNC)
#else
#define SWITCHYARD_DISPATCH(FUNC) \
  (*(HWY_DISPATCH_TABLE(FUNC)[::switchyard::simd::ActiveTarget().GetIndex()]))
#endif

#endif  // SWITCHYARD_SRC_SIMD_TARGETS_H_
