// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sums in one order on every ISA. There are 32 virtual lanes, as in the
// simdgroup for which Metal kernels are written. Element i is added to lane i
// mod 32, and the lanes are folded to 16, 8, 4, 2 and 1. The order is part of
// the contract, because a change would change results.

#if defined(SWITCHYARD_SRC_SIMD_SIMDGROUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_SIMDGROUP_INL_H_
#undef SWITCHYARD_SRC_SIMD_SIMDGROUP_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_SIMDGROUP_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kSimdgroup = 32;

// Vectors of at most 32 lanes, so that their length divides 32.
using SimdgroupTag = hn::CappedTag<float, kSimdgroup>;

HWY_INLINE float FoldLanes(float* HWY_RESTRICT lanes) {
  for (size_t half = kSimdgroup / 2; half != 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
// The last steps of the fold, within one vector.
template <class D>
HWY_INLINE float FoldVector(D /* tag */, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return FoldVector(half,
                      hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    v = hn::Add(v, hn::Shuffle1032(v));
    return hn::GetLane(hn::Add(v, hn::Shuffle2301(v)));
  }
}
#endif

// Sums elements [0, n). `body` adds terms to accumulators. SimdgroupSum() calls
// it in ascending order, as one of
//   body.Four(d, i, a, b, c, e): adds the vectors at i, i + N, i + 2N, i + 3N
//       to a, b, c and e, in this order (they may be the same variables);
//   body.One(d, i, count, a): adds count <= N elements, beginning at i; the
//       other lanes of `a` must not change, or get + 0.
// Accumulators stay in registers. In memory, their chain of stores and loads,
// ten cycles a block, would take longer than the work of two 512-bit loads. For
// SSE, whose eight loads take as long as this chain, accumulators are in
// memory, which makes SSE code 0.3 MB smaller.
template <class Body>
HWY_INLINE float SimdgroupSum(size_t n, const Body& body) {
  const SimdgroupTag d;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
#if HWY_TARGET == HWY_SCALAR || (HWY_ARCH_X86 && HWY_MAX_BYTES == 16)
  HWY_ALIGN float lanes[kSimdgroup] = {};
  for (; HWY_TARGET != HWY_SCALAR && i + 4 * N <= n; i += 4 * N) {
    float* const at = lanes + i % kSimdgroup;
    auto a = hn::Load(d, at), b = hn::Load(d, at + N);
    auto c = hn::Load(d, at + 2 * N), e = hn::Load(d, at + 3 * N);
    body.Four(d, i, a, b, c, e);
    hn::Store(a, d, at);
    hn::Store(b, d, at + N);
    hn::Store(c, d, at + 2 * N);
    hn::Store(e, d, at + 3 * N);
  }
  for (; i < n; i += N) {
    auto a = hn::Load(d, lanes + i % kSimdgroup);
    body.One(d, i, HWY_MIN(N, n - i), a);
    hn::Store(a, d, lanes + i % kSimdgroup);
  }
  return FoldLanes(lanes);
#else
  // Only the first 32 / N accumulators are used. N is constant, except on SVE.
  auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  auto a4 = a0, a5 = a0, a6 = a0, a7 = a0;
  const size_t step = HWY_MAX(kSimdgroup, 4 * N);
  for (; i + step <= n; i += step) {
    if (N >= 32) {
      body.Four(d, i, a0, a0, a0, a0);
    } else if (N == 16) {
      body.Four(d, i, a0, a1, a0, a1);
    } else if (N == 8) {
      body.Four(d, i, a0, a1, a2, a3);
    } else {
      body.Four(d, i, a0, a1, a2, a3);
      body.Four(d, i + 4 * N, a4, a5, a6, a7);
    }
  }
  while (i < n) {
    const size_t count = HWY_MIN(N, n - i);
    switch (i % kSimdgroup / N) {
#define SWITCHYARD_CASE(at, a) \
  case at:                     \
    body.One(d, i, count, a);  \
    break;
      SWITCHYARD_CASE(0, a0)
      SWITCHYARD_CASE(1, a1)
      SWITCHYARD_CASE(2, a2)
      SWITCHYARD_CASE(3, a3)
      SWITCHYARD_CASE(4, a4)
      SWITCHYARD_CASE(5, a5)
      SWITCHYARD_CASE(6, a6)
#undef SWITCHYARD_CASE
      default:
        body.One(d, i, count, a7);
    }
    i += count;
  }
#if HWY_HAVE_SCALABLE
  HWY_ALIGN float lanes[kSimdgroup];
  hn::Store(a0, d, lanes);
  if (N < 32) hn::Store(a1, d, lanes + N);
  if (N < 16) {
    hn::Store(a2, d, lanes + 2 * N);
    hn::Store(a3, d, lanes + 3 * N);
  }
  if (N < 8) {
    hn::Store(a4, d, lanes + 4 * N);
    hn::Store(a5, d, lanes + 5 * N);
    hn::Store(a6, d, lanes + 6 * N);
    hn::Store(a7, d, lanes + 7 * N);
  }
  return FoldLanes(lanes);
#else
  if (N == 4) {
    a0 = hn::Add(a0, a4);
    a1 = hn::Add(a1, a5);
    a2 = hn::Add(a2, a6);
    a3 = hn::Add(a3, a7);
  }
  if (N <= 8) {
    a0 = hn::Add(a0, a2);
    a1 = hn::Add(a1, a3);
  }
  return FoldVector(d, hn::Add(a0, a1));
#endif
#endif
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_SIMDGROUP_INL_H_
