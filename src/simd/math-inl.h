// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// exp, sigmoid and SiLU: one polynomial, one operation order, so that every ISA
// with FMA gives the same bits. Coefficients from tools/exp_poly.sollya;
// largest errors over all 2^32 inputs are stated there and tested.

// Per-target include guard
#if defined(SWITCHYARD_SRC_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_MATH_INL_H_
#undef SWITCHYARD_SRC_SIMD_MATH_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_MATH_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// exp(x) is below 2^-126, the smallest normal float, exactly when x <= this
// (0xC2AEAC50). There the result is defined as zero: a denormal would cost an
// assist of 40-60 ns a vector, and ISAs would disagree about it.
constexpr float kExpFlush = -87.33655f;

// 2^n * P(r) for y = n ln2 + r, where y = x or -x: the sign is folded into the
// constants, which saves SiLU a negation. Requires |y| < 88.72 or so: beyond,
// the bits are garbage that the callers replace. A NaN may not survive.
template <bool kNegate, class D, class V = hn::Vec<D>>
HWY_INLINE V ExpReduced(D d, V x) {
  const hn::RebindToSigned<D> di;
  constexpr float kSign = kNegate ? -1.0f : 1.0f;
  // Adding 1.5 * 2^23 rounds to an integer, which lands in the low bits.
  const V magic = hn::Set(d, 0x1.8p23f);
  const V shifted = hn::MulAdd(x, hn::Set(d, kSign * 0x1.715476p0f), magic);
  const V n = hn::Sub(shifted, magic);
  // r = x - kSign * n ln2 in two steps; with kNegate it is -(reduced y), so odd
  // coefficients change sign. The first product is exact even without FMA.
  V r = hn::MulAdd(n, hn::Set(d, kSign * -0x1.62e4p-1f), x);
  r = hn::MulAdd(n, hn::Set(d, kSign * -0x1.7f7d1cp-20f), r);
  V p = hn::MulAdd(hn::Set(d, 0x1.694c84p-10f), r,
                   hn::Set(d, kSign * 0x1.12397cp-7f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.555a26p-5f));
  p = hn::MulAdd(p, r, hn::Set(d, kSign * 0x1.555492p-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.fffffap-2f));
  p = hn::MulAdd(p, r, hn::Set(d, kSign * 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  // P(r) is in (0.7, 1.42): adding n to its exponent stays normal.
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p),
                                hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}

// e^x: +0 for x <= kExpFlush, +inf on overflow, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  V e = ExpReduced<false>(d, x);
  // 0x42B17217 is the largest float whose exp is finite.
  e = hn::IfThenElse(hn::Gt(x, hn::Set(d, 0x1.62e42ep6f)),
                     hn::Set(d, HUGE_VALF), e);
  e = hn::IfThenZeroElse(hn::Le(x, hn::Set(d, kExpFlush)), e);
  return hn::IfThenElse(hn::Eq(x, x), e, x);
}

// The same for x <= 0, or anything for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOfNonPositive(D d, V x) {
  return hn::IfThenZeroElse(hn::Le(x, hn::Set(d, kExpFlush)),
                            ExpReduced<false>(d, x));
}

// The same as a term of a sum that has a 1 among its terms: 2^-126 in the place
// of 0, which vanishes against it and is an instruction less.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpTerm(D d, V x) {
  constexpr float kAboveFlush = -87.33654f;  // the next float
  static_assert(kAboveFlush > kExpFlush, "exp of it would be garbage");
  return ExpReduced<false>(d, hn::Max(x, hn::Set(d, kAboveFlush)));
}

// exp(-x), good enough as a term of 1 + exp(-x): garbage for x <= kExpFlush.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOfNegated(D d, V x) {
  // exp(-87) vanishes against 1. A NaN becomes 87 or stays, by ISA.
  return ExpReduced<true>(d, hn::Min(x, hn::Set(d, 87.0f)));
}

// 1 / (1 + e^-x): +0 for x <= kExpFlush, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V s = hn::Div(one, hn::Add(one, ExpOfNegated(d, x)));
  const V flushed = hn::IfThenZeroElse(hn::Le(x, hn::Set(d, kExpFlush)), s);
  return hn::IfThenElse(hn::Eq(x, x), flushed, x);
}

// x / (1 + e^-x): -0 for x <= kExpFlush (-inf too), NaN for NaN, which the
// numerator carries.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Silu(D d, V x) {
  return DivUnless(d, hn::Le(x, hn::Set(d, kExpFlush)), hn::Set(d, -0.0f), x,
                   hn::Add(hn::Set(d, 1.0f), ExpOfNegated(d, x)));
}

}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_MATH_INL_H_
