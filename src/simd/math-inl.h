// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// exp, sigmoid, SiLU, softplus and tanh by polynomials with one order of
// operations, so that every ISA with FMA gives the same bits. The coefficients
// are from tools/exp_poly.sollya and tools/log1p_poly.sollya. These files state
// the largest errors over all 2^32 inputs, which tests check.

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
namespace {

// exp(x) is below 2^-126, the smallest normal float, exactly if x <= kExpFlush
// (0xC2AEAC50). For such x the result is defined as zero: a denormal would cost
// an assist of 40-60 ns a vector, and its bits would depend on the ISA.
constexpr float kExpFlush = -87.33655f;

// Returns e^y for y = scale * (x + low), as 2^n * P(r) with y = n ln2 + r. The
// scale, a power of two of either sign, is folded into the constants, which
// saves SiLU a negation. `low` is far below x, and may be left out. |y| must be
// less than about 88.72; otherwise the result is garbage, which callers
// replace. The result for NaN may be a number.
template <class Scale, class D, class V = hn::Vec<D>, class... Low>
HWY_INLINE V ExpReduced(D d, V x, Low... low) {
  const hn::RebindToSigned<D> di;
  constexpr float kScale = Scale::kValue;
  // Adding 1.5 * 2^23 rounds to an integer, which is in the sum's low bits.
  const V magic = hn::Set(d, 0x1.8p23f);
  const V shifted = hn::MulAdd(x, hn::Set(d, kScale * 0x1.715476p0f), magic);
  const V n = hn::Sub(shifted, magic);
  // r = x - n ln2 / scale, in two steps. So y's remainder is r * scale, and the
  // coefficients contain powers of the scale. The first product is exact even
  // without FMA.
  constexpr float kInverse = 1.0f / kScale;
  V r = hn::MulAdd(n, hn::Set(d, kInverse * -0x1.62e4p-1f), x);
  r = hn::MulAdd(n, hn::Set(d, kInverse * -0x1.7f7d1cp-20f), r);
  if constexpr (sizeof...(low) != 0) r = hn::Add(r, low...);
  constexpr float k2 = kScale * kScale, k3 = k2 * kScale;
  V p = hn::MulAdd(hn::Set(d, k3 * k3 * 0x1.694c84p-10f), r,
                   hn::Set(d, k2 * k3 * 0x1.12397cp-7f));
  p = hn::MulAdd(p, r, hn::Set(d, k2 * k2 * 0x1.555a26p-5f));
  p = hn::MulAdd(p, r, hn::Set(d, k3 * 0x1.555492p-3f));
  p = hn::MulAdd(p, r, hn::Set(d, k2 * 0x1.fffffap-2f));
  p = hn::MulAdd(p, r, hn::Set(d, kScale));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  // P(r) is in (0.7, 1.42), so it stays normal when n is added to its exponent.
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p),
                                hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}
struct Plain {
  static constexpr float kValue = 1.0f;
};
struct Negated {
  static constexpr float kValue = -1.0f;
};
struct NegatedHalf {
  static constexpr float kValue = -0.5f;
};

// Returns e^x: +0 for x <= kExpFlush, +inf on overflow, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  V e = ExpReduced<Plain>(d, x);
  // 0x42B17217 is the largest float with a finite exp.
  e = hn::IfThenElse(hn::Gt(x, hn::Set(d, 0x1.62e42ep6f)),
                     hn::Set(d, HUGE_VALF), e);
  e = hn::IfThenZeroElse(hn::Le(x, hn::Set(d, kExpFlush)), e);
  return hn::IfThenElse(hn::Eq(x, x), e, x);
}

// Exp() for x <= 0. The result for NaN is arbitrary.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOfNonPositive(D d, V x) {
  return hn::IfThenZeroElse(hn::Le(x, hn::Set(d, kExpFlush)),
                            ExpReduced<Plain>(d, x));
}

// Exp() for x <= 0, in a sum that also has the term 1. It returns 2^-126
// instead of 0, which makes no difference next to the 1, and saves an
// instruction.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpTerm(D d, V x) {
  constexpr float kAboveFlush = -87.33654f;  // the next float above kExpFlush
  static_assert(kAboveFlush > kExpFlush, "exp of it would be garbage");
  return ExpReduced<Plain>(d, hn::Max(x, hn::Set(d, kAboveFlush)));
}

// Returns exp(-x), for the sum 1 + exp(-x). It is garbage for x <= kExpFlush.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOfNegated(D d, V x) {
  // Limits x, because exp(-87) vanishes against 1. Depending on the ISA, Min()
  // turns a NaN into 87, or leaves it.
  return ExpReduced<Negated>(d, hn::Min(x, hn::Set(d, 87.0f)));
}

// Returns 1 / (1 + e^-x): +0 for x <= kExpFlush, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V s = hn::Div(one, hn::Add(one, ExpOfNegated(d, x)));
  const V flushed = hn::IfThenZeroElse(hn::Le(x, hn::Set(d, kExpFlush)), s);
  return hn::IfThenElse(hn::Eq(x, x), flushed, x);
}

// Returns x / (1 + e^-x): -0 for x <= kExpFlush (-inf too), and NaN for NaN,
// because the numerator is NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Silu(D d, V x) {
  return DivUnless(d, hn::Le(x, hn::Set(d, kExpFlush)), hn::Set(d, -0.0f), x,
                   hn::Add(hn::Set(d, 1.0f), ExpOfNegated(d, x)));
}

// Computes tanh(x) = numerator / denominator, for callers that combine this
// with another division. With t = |x|, tanh(t) = (1 - e^-2t) / (1 + e^-2t). The
// code writes e^-2t as 2^n (1 - p) with n <= 0, to avoid cancellation: 1 -
// e^-2t = (1 - 2^n) + 2^n p, and the first term is 0 for n = 0. The ratio is at
// most 1. If x is NaN, the numerator is NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void TanhParts(D d, V x, V& numerator, V& denominator) {
  const hn::RebindToSigned<D> di;
  const V one = hn::Set(d, 1.0f);
  // tanh is 1 from 9.02 on.
  const V t = MinOrNaN(d, hn::Set(d, 9.02f), hn::Abs(x));
  const V magic = hn::Set(d, 0x1.8p23f);
  const V shifted = hn::MulAdd(t, hn::Set(d, -0x1.715476p1f), magic);
  const V n = hn::Sub(shifted, magic);
  // One step is enough: the float nearest to ln 2 is exact to 28 bits.
  const V r = hn::MulAdd(n, hn::Set(d, 0x1.62e43p-2f), t);
  V p = hn::MulAdd(hn::Set(d, -0x1.6b7158p-4f), r, hn::Set(d, 0x1.1227acp-2f));
  p = hn::MulAdd(p, r, hn::Set(d, -0x1.555718p-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.5554bp0f));
  p = hn::MulAdd(p, r, hn::Set(d, -0x1.fffffep0f));
  // 2^-60 avoids denormals, as in Log1p().
  p = hn::MulAdd(p, r, hn::Set(d, 0x1p-60f));
  p = hn::MulAdd(p, r, hn::Add(r, r));
  const V power =
      hn::BitCast(d, hn::Add(hn::BitCast(di, one),
                             hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
  const V difference = hn::MulAdd(power, p, hn::Sub(one, power));
  numerator = hn::CopySignToAbs(difference, x);
  denominator = hn::Sub(hn::Set(d, 2.0f), difference);
}

// Returns tanh(x): -0 for -0, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  V numerator, denominator;
  TanhParts(d, x, numerator, denominator);
  return hn::Div(numerator, denominator);
}

// Returns log(1 + t) for 0 <= t <= 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log1p(D d, V t) {
  V p = hn::MulAdd(hn::Set(d, -0x1.b22adep-9f), t, hn::Set(d, 0x1.4a9226p-6f));
  p = hn::MulAdd(p, t, hn::Set(d, -0x1.d7efa8p-5f));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.b53c48p-4f));
  p = hn::MulAdd(p, t, hn::Set(d, -0x1.3a6736p-3f));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.935568p-3f));
  p = hn::MulAdd(p, t, hn::Set(d, -0x1.ff2556p-3f));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.554ddap-2f));
  p = hn::MulAdd(p, t, hn::Set(d, -0x1.ffffd2p-2f));
  // The addend is 2^-60 instead of 0, because with 0 the smallest t would give
  // denormals. It is so small that rounding removes it.
  p = hn::MulAdd(p, t, hn::Set(d, 0x1p-60f));
  return hn::MulAdd(p, t, t);
}

// Returns log(1 + e^x): +0 for x <= kExpFlush, +inf for +inf, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Softplus(D d, V x) {
  const V e = ExpOfNonPositive(d, hn::Neg(hn::Abs(x)));
  const V s = hn::Add(hn::Max(x, hn::Zero(d)), Log1p(d, e));
  return hn::IfThenElse(hn::Eq(x, x), s, x);
}

// Returns the square root of Softplus(), correctly rounded.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SqrtSoftplus(D d, V x) {
  return hn::Sqrt(Softplus(d, x));
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_MATH_INL_H_
