// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/gather.h"

#include <cstring>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/gather.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard {
namespace simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// As integers: a signalling NaN stays one.
HWY_INLINE void CopyRow(const int32_t* HWY_RESTRICT from,
                        int32_t* HWY_RESTRICT to, size_t cols) {
  const hn::ScalableTag<int32_t> d;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + 4 * N <= cols; i += 4 * N) {
    const auto v0 = hn::LoadU(d, from + i);
    const auto v1 = hn::LoadU(d, from + i + N);
    const auto v2 = hn::LoadU(d, from + i + 2 * N);
    const auto v3 = hn::LoadU(d, from + i + 3 * N);
    hn::StoreU(v0, d, to + i);
    hn::StoreU(v1, d, to + i + N);
    hn::StoreU(v2, d, to + i + 2 * N);
    hn::StoreU(v3, d, to + i + 3 * N);
  }
  for (; i + N <= cols; i += N) {
    hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  }
  if (i < cols) {
    const size_t n = cols - i;
    StorePartial(LoadPartial(d, from + i, n), d, to + i, n);
  }
}

void GatherRows(const GatherArgs& args, size_t begin, size_t end) {
  RecordTarget(HWY_TARGET);
  const size_t cols = args.out.cols;
  size_t invalid = 0;
  for (size_t r = begin; r < end; ++r) {
    float* out = args.out.Row(r);
    const int32_t pair = args.pairs[r];
    const size_t token = static_cast<size_t>(pair) / args.top_k;
    if (pair >= 0 && token < args.tokens.rows) {
#ifdef USE_MEMCPY
      std::memcpy(out, args.tokens.Row(token), cols * sizeof(float));
#else
      CopyRow(reinterpret_cast<const int32_t*>(args.tokens.Row(token)), reinterpret_cast<int32_t*>(out), cols);
#endif
    } else {
      std::memset(out, 0, cols * sizeof(float));
      ++invalid;
    }
  }
  if (invalid != 0) {
    args.invalid->fetch_add(invalid, std::memory_order_relaxed);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace switchyard
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard {
namespace simd {

HWY_EXPORT(GatherRows);

void GatherRows(const GatherArgs& args, size_t begin, size_t end) {
  SWITCHYARD_DISPATCH(GatherRows)(args, begin, end);
}

}  // namespace simd
}  // namespace switchyard

#endif  // HWY_ONCE
