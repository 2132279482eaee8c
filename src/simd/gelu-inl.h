// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Both forms of GELU, each with one division and without cancellation, in the
// style of math-inl.h. tools/gelu_poly.sollya computes the coefficients.

#if defined(SWITCHYARD_SRC_SIMD_GELU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_GELU_INL_H_
#undef SWITCHYARD_SRC_SIMD_GELU_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_GELU_INL_H_
#endif

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// x Phi(x) = x / 2 (1 + erf(x / sqrt(2))). The result is -0 for x <=
// kGeluFlush (-inf too), where it would be denormal, and NaN for NaN. It is
// computed as max(x, 0) - t Phi(-t) with t = |x|, where Phi(-t) = e^(-t^2 / 2)
// R(t), and R is a quotient of polynomials.
constexpr float kGeluFlush = -13.146247f;
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Gelu(D d, V x) {
  const V t = hn::Min(hn::Abs(x), hn::Set(d, -kGeluFlush));
  // The square is in two parts. A square in one part would have an error of
  // 2^-17, which would become the relative error of the exponential. 2^-100
  // avoids denormal squares.
  const V square = hn::MulAdd(t, t, hn::Set(d, 0x1p-100f));
  const V e = ExpReduced<NegatedHalf>(d, square, hn::MulSub(t, t, square));
  // p is twice the numerator and q twice the denominator, so that the
  // numerator's first term is t. 2^-60 avoids denormals, as in Log1p().
  V p = hn::MulAdd(hn::Set(d, 0x1.078188p-7f), t, hn::Set(d, 0x1.4794dep-4f));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.7356b4p-2f));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.be2852p-1f));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1p-60f));
  p = hn::MulAdd(p, t, t);
  V q = hn::MulAdd(hn::Set(d, 0x1.4a4048p-6f), t, hn::Set(d, 0x1.9a97bcp-3f));
  q = hn::MulAdd(q, t, hn::Set(d, 0x1.db8e24p-1f));
  q = hn::MulAdd(q, t, hn::Set(d, 0x1.31cca8p+1f));
  q = hn::MulAdd(q, t, hn::Set(d, 0x1.ab5658p+1f));
  q = hn::MulAdd(q, t, hn::Set(d, 2.0f));
  const V below = DivUnless(d, hn::Le(x, hn::Set(d, kGeluFlush)), hn::Zero(d),
                            hn::Mul(p, e), q);
  return hn::Sub(MaxOrNaN(d, hn::Set(d, -0.0f), x), below);
}

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). This is x / (1 + e^-y)
// with y = 2 sqrt(2 / pi) (x + 0.044715 x^3). The result is -0 for x <=
// kGeluTanhFlush (-inf too), and NaN for NaN. The absolute error of y, which is
// up to 87, becomes the relative error of the exponential, but computing y in
// two parts would take 1.7 times as long.
constexpr float kGeluTanhFlush = -10.00104f;
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluTanh(D d, V x) {
  // Beyond +-10.001, e^-y would not be a normal float. So x is limited above,
  // and the result is -0 below.
  const V t = hn::Min(x, hn::Set(d, 9.99f));
  const V square = hn::MulAdd(t, t, hn::Set(d, 0x1p-100f));
  const V y = hn::Mul(t, hn::MulAdd(hn::Set(d, 0x1.2444f2p-4f), square,
                                    hn::Set(d, 0x1.988454p+0f)));
  const V e = ExpReduced<Negated>(d, y);
  return DivUnless(d, hn::Le(x, hn::Set(d, kGeluTanhFlush)), hn::Set(d, -0.0f),
                   x, hn::Add(hn::Set(d, 1.0f), e));
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_GELU_INL_H_
