// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/route.h"

#include <cmath>
#include <cstring>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/route.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/math-inl.h"
#include "src/simd/simdgroup-inl.h"
#include "src/simd/topk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard {
namespace simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// exp(logit - max), 1 for logit = max even if that is infinite.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpBelowMax(D d, V logit, V max) {
  return Exp(d, hn::IfThenZeroElse(hn::Eq(logit, max), hn::Sub(logit, max)));
}

// Body of SimdgroupSum over a row.
struct RouteSumOfExps {
  const float* HWY_RESTRICT row;
  float max;

  template <class D, class V>
  HWY_INLINE void Four(D d, size_t i, V& a, V& b, V& c, V& e) const {
    const size_t N = hn::Lanes(d);
    const V m = hn::Set(d, max);
    a = hn::Add(a, ExpBelowMax(d, hn::LoadU(d, row + i), m));
    b = hn::Add(b, ExpBelowMax(d, hn::LoadU(d, row + i + N), m));
    c = hn::Add(c, ExpBelowMax(d, hn::LoadU(d, row + i + 2 * N), m));
    e = hn::Add(e, ExpBelowMax(d, hn::LoadU(d, row + i + 3 * N), m));
  }
  template <class D, class V>
  HWY_INLINE void One(D d, size_t i, size_t count, V& a) const {
    const V m = hn::Set(d, max);
    if (count == hn::Lanes(d)) {
      a = hn::Add(a, ExpBelowMax(d, hn::LoadU(d, row + i), m));
    } else {
      const V e = ExpBelowMax(d, LoadPartial(d, row + i, count), m);
      a = hn::Add(a, hn::IfThenElseZero(hn::FirstN(d, count), e));
    }
  }
};

// The first n of v, all of it if n is larger.
template <class D>
HWY_INLINE void RouteStore(hn::Vec<D> v, D d, hn::TFromD<D>* HWY_RESTRICT to,
                           size_t n) {
  if (n >= hn::Lanes(d)) {
    hn::StoreU(v, d, to);
  } else {
    StorePartial(v, d, to, n);
  }
}

HWY_INLINE void RouteIds(const TopK& best, size_t count,
                         int32_t* HWY_RESTRICT ids) {
  const TopKIntTag di;
  for (size_t i = 0; i < count; i += hn::Lanes(di)) {
    RouteStore(hn::Load(di, best.ids + i), di, ids + i, count - i);
  }
}

HWY_INLINE void RouteExps(const TopK& best, size_t count, float max,
                          float* HWY_RESTRICT exps) {
  const TopKTag d;
  const TopKIntTag di;
  const TopKVec m = hn::Set(d, max);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const TopKVec logit = LogitFromKey(d, hn::Load(di, best.keys + i));
    RouteStore(ExpBelowMax(d, logit, m), d, exps + i, count - i);
  }
}

// A row's weights from exp(logit - max) of the selected; exps may be weights.
// `sum_all`: the sum over all experts is needed.
HWY_INLINE void RouteWeights(const RouteArgs& args, size_t row, bool sum_all,
                             bool nan, float max, const float* exps) {
  const TopKTag d;
  const size_t k = args.ids.cols;
  float* weights = args.weights.Row(row);
  if (HWY_UNLIKELY(nan || max == -HUGE_VALF)) {
    // The same for all experts.
    const int32_t bits = nan ? 0x7FC00000 : 0;
    for (size_t i = 0; i < k; ++i) {
      std::memcpy(weights + i, &bits, sizeof(bits));
    }
    return;
  }
  float divisor = exps[0];
  for (size_t i = 1; i < k; ++i) divisor += exps[i];
  if (sum_all) {
    const float all = SimdgroupSum(args.logits.cols,
                                   RouteSumOfExps{args.logits.Row(row), max});
    divisor = args.renormalize ? HWY_MAX(divisor, args.clamp * all) : all;
  }
  const TopKVec v = hn::Set(d, divisor);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= k; i += hn::Lanes(d)) {
    hn::StoreU(hn::Div(hn::LoadU(d, exps + i), v), d, weights + i);
  }
  if (i < k) {
    const TopKVec e = LoadPartial(d, exps + i, k - i);
    StorePartial(hn::Div(e, v), d, weights + i, k - i);
  }
}

// top_k <= kTopKMax, [begin, end) at most kTopKRows rows.
template <bool kAll>
HWY_INLINE void RouteBlock(const RouteArgs& args, size_t begin, size_t end,
                           bool sum_all) {
  const size_t N = hn::Lanes(TopKTag());
  const size_t k = args.ids.cols;
  TopK best[kTopKRows];
  SelectTopK<kAll>(args.logits.RowRange(begin, end), k, best);
  for (size_t row = begin; row < end; ++row) {
    const TopK& b = best[row - begin];
    const float max = LogitFromKey(b.keys[0]);
    HWY_ALIGN float exps[kTopKMax];
    RouteExps(b, (k + N - 1) / N * N, max, exps);
    RouteIds(b, k, args.ids.Row(row));
    RouteWeights(args, row, sum_all, b.nan, max, exps);
  }
}

// Any top_k, in O(experts * top_k / kTopKMax). The weights hold the exps until
// their sum is known.
static HWY_NOINLINE void RouteLarge(const RouteArgs& args, size_t row,
                                    bool sum_all) {
  const float* HWY_RESTRICT logits = args.logits.Row(row);
  float* weights = args.weights.Row(row);
  const size_t k = args.ids.cols;
  TopK best;
  best.nan = false;
  int32_t last_key = INT32_MAX;
  int32_t last_id = -1;
  float max = 0.0f;
  for (size_t slot = 0; slot < k; slot += kTopKMax) {
    const size_t count = HWY_MIN(kTopKMax, k - slot);
    SelectNext(logits, args.logits.cols, last_key, last_id, count, best);
    if (slot == 0) max = LogitFromKey(best.keys[0]);
    RouteExps(best, count, max, weights + slot);
    RouteIds(best, count, args.ids.Row(row) + slot);
    last_key = best.keys[count - 1];
    last_id = best.ids[count - 1];
  }
  RouteWeights(args, row, sum_all, best.nan, max, weights);
}

// Selection is topk-inl.h's. exp is needed of the selected only, unless the
// weights are relative to all experts or the clamp can matter: it cannot where
// clamp <= top_k / experts, as the selected have at least that share of the
// sum. The choice must not depend on values: not on how they round, either.
void RouteRows(const RouteArgs& args, size_t begin, size_t end) {
  RecordTarget(HWY_TARGET);
  const size_t experts = args.logits.cols;
  const size_t k = args.ids.cols;
  const bool sum_all =
      !args.renormalize ||
      static_cast<double>(args.clamp) * static_cast<double>(experts) >
          static_cast<double>(k);
  if (k > kTopKMax) {
    for (size_t row = begin; row < end; ++row) RouteLarge(args, row, sum_all);
    return;
  }
  for (size_t row = begin; row < end; row += kTopKRows) {
    const size_t stop = HWY_MIN(row + kTopKRows, end);
    if (experts <= kTopKAll) {
      RouteBlock<true>(args, row, stop, sum_all);
    } else {
      RouteBlock<false>(args, row, stop, sum_all);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace switchyard
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard {
namespace simd {

HWY_EXPORT(RouteRows);

void RouteRows(const RouteArgs& args, size_t begin, size_t end) {
  SWITCHYARD_DISPATCH(RouteRows)(args, begin, end);
}

}  // namespace simd
}  // namespace switchyard

#endif  // HWY_ONCE
