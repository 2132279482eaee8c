// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The functors that SWITCHYARD_SCORES (src/base/enumerators.h) names.

#if defined(SWITCHYARD_SRC_SIMD_ROUTE_SCORES_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_ROUTE_SCORES_INL_H_
#undef SWITCHYARD_SRC_SIMD_ROUTE_SCORES_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_ROUTE_SCORES_INL_H_
#endif

#include "switchyard/types.h"

#include "hwy/highway.h"

#include "src/simd/floats-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// A functor's Compute<kEasy>(d, x, max, round) is the score of a vector of x,
// where `max` is the row's largest x. A row is easy if max is finite
// (kShareOfAll), or if all |x| <= kEasyMost (kOfLogit). kEasy, for easy rows,
// skips steps that would not change the bits. A NaN stays a NaN, except with
// kEasy. Steps within a score are rounded to `round`; the result is not.
constexpr float kEasyMost = 87.0f;

// Computes exp(x - max), which is 1 for x = max, even if max is infinite. The
// caller divides by the sum.
struct SoftmaxOf {
  template <bool kFinite, class D, class V = hn::Vec<D>>
  static HWY_INLINE V BelowMax(D, V x, V max) {
    const V below = hn::Sub(x, max);
    return kFinite ? below : hn::IfThenZeroElse(hn::Eq(x, max), below);
  }
  // Returns exp(x - max) if x is not a NaN. kFinite: max is finite.
  template <bool kFinite, class D, class V = hn::Vec<D>>
  static HWY_INLINE V OfNumber(D d, V x, V max) {
    return ExpOfNonPositive(d, BelowMax<kFinite>(d, x, max));
  }
  // Returns a term of the sum over all experts. It is at least 2^-126, because
  // smaller terms make no difference next to the largest term, which is 1.
  template <bool kFinite, class D, class V = hn::Vec<D>>
  static HWY_INLINE V Term(D d, V x, V max) {
    return ExpTerm(d, BelowMax<kFinite>(d, x, max));
  }
  template <bool kEasy, class D, class V = hn::Vec<D>>
  static HWY_INLINE V Compute(D d, V x, V max, Type /*round*/) {
    const V e = OfNumber<kEasy>(d, x, max);
    return kEasy ? e : hn::IfThenElse(hn::IsNaN(x), x, e);
  }
};

struct SigmoidOf {
  template <bool kEasy, class D, class V = hn::Vec<D>>
  static HWY_INLINE V Compute(D d, V x, V /*max*/, Type /*round*/) {
    if (!kEasy) return Sigmoid(d, x);
    const V one = hn::Set(d, 1.0f);
    return hn::Div(one, hn::Add(one, ExpReduced<Negated>(d, x)));
  }
};

struct SqrtSoftplusOf {
  template <bool kEasy, class D, class V = hn::Vec<D>>
  static HWY_INLINE V Compute(D d, V x, V /*max*/, Type round) {
    if (!kEasy) return hn::Sqrt(RoundTo(round, d, Softplus(d, x)));
    const V e = ExpReduced<Negated>(d, hn::Abs(x));
    const V s = hn::Add(hn::Max(x, hn::Zero(d)), Log1p(d, e));
    return hn::Sqrt(RoundTo(round, d, s));
  }
};

// Returns +0 for -0, so that results do not show which zero was selected.
struct RawOf {
  template <bool kEasy, class D, class V = hn::Vec<D>>
  static HWY_INLINE V Compute(D d, V x, V /*max*/, Type /*round*/) {
    return hn::Add(x, hn::Zero(d));
  }
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_SCORES_INL_H_
