// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What routing recipes are made of (SWITCHYARD_RECIPES in route.h): scores,
// keys and weight rules.

// Per-target include guard
#if defined(SWITCHYARD_SRC_SIMD_RECIPES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_RECIPES_INL_H_
#undef SWITCHYARD_SRC_SIMD_RECIPES_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_RECIPES_INL_H_
#endif

#include <cstddef>

#include "switchyard/route.h"

#include "hwy/highway.h"

#include "src/simd/candidates-inl.h"
#include "src/simd/math-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {

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

}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_RECIPES_INL_H_
