// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What routing recipes are made of: scores, keys and weight rules. The first of
// each are what Router is compiled for (route.cc): softmax, as fast as can be.
// Other scores are those of SWITCHYARD_SCORES, for route_recipe.cc.

// Per-target include guard
#if defined(SWITCHYARD_SRC_SIMD_RECIPES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_RECIPES_INL_H_
#undef SWITCHYARD_SRC_SIMD_RECIPES_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_RECIPES_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "switchyard/route.h"
#include "switchyard/types.h"

#include "hwy/highway.h"

#include "src/simd/candidates-inl.h"
#include "src/simd/floats-inl.h"
#include "src/simd/math-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A score is a functor over a vector of logits, given the largest of their row.
// kFinite: that one is finite. Term() is the score as a term of the sum over
// all experts, where a term below 2^-126 may be raised to that: it vanishes
// against the largest, which is 1.

// exp(logit - max): 1 for logit = max even if that is infinite.
struct SoftmaxScore {
  template <bool kFinite, class D, class V = hn::Vec<D>>
  static HWY_INLINE V BelowMax(D, V logit, V max) {
    const V x = hn::Sub(logit, max);
    return kFinite ? x : hn::IfThenZeroElse(hn::Eq(logit, max), x);
  }
  template <bool kFinite, class D, class V = hn::Vec<D>>
  static HWY_INLINE V Of(D d, V logit, V max) {
    return ExpOfNonPositive(d, BelowMax<kFinite>(d, logit, max));
  }
  template <bool kFinite, class D, class V = hn::Vec<D>>
  static HWY_INLINE V Term(D d, V logit, V max) {
    return ExpTerm(d, BelowMax<kFinite>(d, logit, max));
  }
};

// Keys are the floats that selection compares. Row<T> is a row of them behind
// logits of type T: Load() and LoadPartial() of the keys from the i-th on.

// The logits where they lie: nothing is copied, and the keys of the selected
// are their logits.
struct LogitKeys {
  template <class T>
  struct Row {
    const T* HWY_RESTRICT logits;

    template <class D>
    HWY_INLINE hn::Vec<D> Load(D d, size_t i) const {
      return Storage<T>::Load(d, logits + i);
    }
    template <class D>
    HWY_INLINE hn::Vec<D> LoadPartial(D d, size_t i, size_t n) const {
      return Storage<T>::LoadPartial(d, logits + i, n);
    }
  };

  template <class D>
  static HWY_INLINE hn::Vec<D> Logits(D d, const TopK& best, size_t i) {
    return LogitFromKey(d, hn::Load(TopKIntTag(), best.keys + i));
  }
};

// A weight rule: a weight is the score over a divisor, made of the sum of the
// selected scores and, where RouteNeedsAll() says so, of all experts'.
// kMayNeedAll: whether it ever needs those; if so the score has a Term().

// The score's share of one or the other sum, by RouteOptions::renormalize.
struct ShareOfSum {
  static constexpr bool kMayNeedAll = true;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V Divisor(D, const RouteOptions&, V selected) {
    return selected;
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V Divisor(D d, const RouteOptions& options, V selected,
                              V all) {
    return options.renormalize
               ? hn::Max(selected, hn::Mul(hn::Set(d, options.clamp), all))
               : all;
  }
};

template <class ScoreT, class KeysT, class WeightsT>
struct Recipe {
  using Score = ScoreT;
  using Keys = KeysT;
  using Weights = WeightsT;
};

// The nearest number of that type, as a float.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V RoundTo(Type type, D d, V v) {
  const hn::RebindToUnsigned<D> du;
  switch (type) {
    case Type::kBF16:
      return hn::BitCast(d, hn::And(ToBF16(d, v), hn::Set(du, 0xFFFF0000u)));
    case Type::kF16:
      return FromF16(d, hn::PromoteTo(du, ToF16(d, v)));
    default:
      return v;
  }
}

// Other scores. Of<kEasy>(d, x, max, round), given the largest x of the row: on
// kEasy rows max is finite for softmax, and |x| <= kEasyMost for the others;
// that spares what only matters elsewhere, and gives the same bits. A NaN stays
// one but on easy rows. Steps within are rounded to `round`, not the result.
constexpr float kEasyMost = 87.0f;

struct SoftmaxOf {  // not yet divided
  template <bool kEasy, class D, class V = hn::Vec<D>>
  static HWY_INLINE V Of(D d, V x, V max, Type /*round*/) {
    const V e = SoftmaxScore::Of<kEasy>(d, x, max);
    return kEasy ? e : hn::IfThenElse(hn::IsNaN(x), x, e);
  }
};

struct SigmoidOf {
  template <bool kEasy, class D, class V = hn::Vec<D>>
  static HWY_INLINE V Of(D d, V x, V /*max*/, Type /*round*/) {
    if (!kEasy) return Sigmoid(d, x);
    const V one = hn::Set(d, 1.0f);
    return hn::Div(one, hn::Add(one, ExpReduced<Negated>(d, x)));
  }
};

struct SqrtSoftplusOf {
  template <bool kEasy, class D, class V = hn::Vec<D>>
  static HWY_INLINE V Of(D d, V x, V /*max*/, Type round) {
    if (!kEasy) return hn::Sqrt(RoundTo(round, d, Softplus(d, x)));
    const V e = ExpReduced<Negated>(d, hn::Abs(x));
    const V s = hn::Add(hn::Max(x, hn::Zero(d)), Log1p(d, e));
    return hn::Sqrt(RoundTo(round, d, s));
  }
};

// +0 for -0, so that it does not show which of them a selection came upon.
struct RawOf {
  template <bool kEasy, class D, class V = hn::Vec<D>>
  static HWY_INLINE V Of(D d, V x, V /*max*/, Type /*round*/) {
    return hn::Add(x, hn::Zero(d));
  }
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_RECIPES_INL_H_
