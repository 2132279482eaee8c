// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/silu_mul.h"

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/silu_mul.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard {
namespace simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// out may be gate or up: no HWY_RESTRICT, and each vector is loaded before it
// is stored.
HWY_INLINE void SiluMulRow(const float* gate, const float* up, float* out,
                           size_t cols) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  // Four independent chains of ten dependent operations each.
  for (; i + 4 * N <= cols; i += 4 * N) {
    const auto s0 = Silu(d, hn::LoadU(d, gate + i));
    const auto s1 = Silu(d, hn::LoadU(d, gate + i + N));
    const auto s2 = Silu(d, hn::LoadU(d, gate + i + 2 * N));
    const auto s3 = Silu(d, hn::LoadU(d, gate + i + 3 * N));
    const auto u0 = hn::LoadU(d, up + i);
    const auto u1 = hn::LoadU(d, up + i + N);
    const auto u2 = hn::LoadU(d, up + i + 2 * N);
    const auto u3 = hn::LoadU(d, up + i + 3 * N);
    hn::StoreU(hn::Mul(s0, u0), d, out + i);
    hn::StoreU(hn::Mul(s1, u1), d, out + i + N);
    hn::StoreU(hn::Mul(s2, u2), d, out + i + 2 * N);
    hn::StoreU(hn::Mul(s3, u3), d, out + i + 3 * N);
  }
  for (; i + N <= cols; i += N) {
    const auto s = Silu(d, hn::LoadU(d, gate + i));
    hn::StoreU(hn::Mul(s, hn::LoadU(d, up + i)), d, out + i);
  }
  if (i < cols) {
    const size_t n = cols - i;
    const auto s = Silu(d, LoadPartial(d, gate + i, n));
    StorePartial(hn::Mul(s, LoadPartial(d, up + i, n)), d, out + i, n);
  }
}

void SiluMulRows(const SiluMulArgs& args, size_t begin, size_t end) {
  RecordTarget(HWY_TARGET);
  for (size_t row = begin; row < end; ++row) {
    SiluMulRow(args.gate.Row(row), args.up.Row(row), args.out.Row(row),
               args.out.cols);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace switchyard
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard {
namespace simd {

HWY_EXPORT(SiluMulRows);

void SiluMulRows(const SiluMulArgs& args, size_t begin, size_t end) {
  SWITCHYARD_DISPATCH(SiluMulRows)(args, begin, end);
}

}  // namespace simd
}  // namespace switchyard

#endif  // HWY_ONCE
