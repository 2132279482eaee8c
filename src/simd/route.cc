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
#include "src/simd/topk_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard {
namespace simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// logit - max, 0 for logit = max even if that is infinite; kFinite: it is not.
template <bool kFinite, class D, class V = hn::Vec<D>>
HWY_INLINE V BelowMax(D, V logit, V max) {
  const V x = hn::Sub(logit, max);
  return kFinite ? x : hn::IfThenZeroElse(hn::Eq(logit, max), x);
}

// Body of SimdgroupSum over a row without NaN; kFinite: max is.
template <bool kFinite>
struct RouteSumOfExps {
  const float* HWY_RESTRICT row;
  float max;

  template <class D, class V>
  HWY_INLINE V Term(D d, V logit) const {
    return ExpTerm(d, BelowMax<kFinite>(d, logit, hn::Set(d, max)));
  }
  template <class D, class V>
  HWY_INLINE void Four(D d, size_t i, V& a, V& b, V& c, V& e) const {
    const size_t N = hn::Lanes(d);
    a = hn::Add(a, Term(d, hn::LoadU(d, row + i)));
    b = hn::Add(b, Term(d, hn::LoadU(d, row + i + N)));
    c = hn::Add(c, Term(d, hn::LoadU(d, row + i + 2 * N)));
    e = hn::Add(e, Term(d, hn::LoadU(d, row + i + 3 * N)));
  }
  template <class D, class V>
  HWY_INLINE void One(D d, size_t i, size_t count, V& a) const {
    if (count == hn::Lanes(d)) {
      a = hn::Add(a, Term(d, hn::LoadU(d, row + i)));
    } else {
      const V term = Term(d, LoadPartial(d, row + i, count));
      a = hn::Add(a, hn::IfThenElseZero(hn::FirstN(d, count), term));
    }
  }
};

HWY_INLINE float RouteSum(const RouteArgs& args, size_t row, float max) {
  const float* HWY_RESTRICT logits = args.logits.Row(row);
  if (HWY_UNLIKELY(max == HUGE_VALF)) {
    return SimdgroupSum(args.logits.cols, RouteSumOfExps<false>{logits, max});
  }
  return SimdgroupSum(args.logits.cols, RouteSumOfExps<true>{logits, max});
}

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
    RouteStore(ExpOfNonPositive(d, BelowMax<false>(d, logit, m)), d, exps + i,
               count - i);
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
    const float all = RouteSum(args, row, max);
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

#if HWY_TARGET != HWY_SCALAR
// The sum of exp(logit - max) of each lane's row, max finite.
template <bool kAll>
HWY_INLINE TopKVec RouteSums(const RouteArgs& args, size_t begin, size_t end,
                             const TopKOfLanes& best) {
  const TopKTag d;
  const size_t N = hn::Lanes(d);
  const TopKVec max = hn::Load(d, best.sorted.at);
  if (kAll) {
    // The columns are the lanes of SimdgroupSum, whose first fold adds zeros.
    Columns<float, kTopKAll> exps;
    for (size_t i = 0; i < kTopKAll; ++i) {
      const TopKVec logit = hn::Load(d, best.columns.at + i * N);
      hn::Store(
          i < args.logits.cols ? ExpTerm(d, hn::Sub(logit, max)) : hn::Zero(d),
          d, exps.at + i * N);
    }
    for (size_t half = kTopKAll / 2; half != 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) {
        hn::Store(hn::Add(hn::Load(d, exps.at + i * N),
                          hn::Load(d, exps.at + (i + half) * N)),
                  d, exps.at + i * N);
      }
    }
    return hn::Load(d, exps.at);
  }
  HWY_ALIGN float sums[kTopKLanes] = {};
  for (size_t row = begin; row < end; ++row) {
    sums[row - begin] = RouteSum(args, row, best.sorted.at[row - begin]);
  }
  return hn::Load(d, sums);
}

// RouteBlock for [begin, end) of at most a vector of rows, all in one go but
// for the hard ones. top_k <= kTopKMax.
template <bool kAll>
HWY_INLINE void RouteLanes(const RouteArgs& args, size_t begin, size_t end,
                           bool sum_all) {
  const TopKTag d;
  const TopKIntTag di;
  const size_t N = hn::Lanes(d);
  const size_t k = args.ids.cols;
  TopKOfLanes best;
  SelectTopKOfLanes<kAll>(args.logits.RowRange(begin, end), k, best);
  const TopKVec max = hn::Load(d, best.sorted.at);
  Columns<float, kTopKMax> weights;
  TopKVec divisor = hn::Zero(d);
  for (size_t i = 0; i < k; ++i) {
    const TopKVec logit = hn::Load(d, best.sorted.at + i * N);
    const TopKVec e = ExpOfNonPositive(d, hn::Sub(logit, max));
    hn::Store(e, d, weights.at + i * N);
    divisor = hn::Add(divisor, e);
  }
  if (sum_all) {
    const TopKVec all = RouteSums<kAll>(args, begin, end, best);
    divisor = args.renormalize
                  ? hn::Max(divisor, hn::Mul(hn::Set(d, args.clamp), all))
                  : all;
  }
  for (size_t i = 0; i < k; ++i) {
    const TopKVec e = hn::Load(d, weights.at + i * N);
    hn::Store(hn::Div(e, divisor), d, weights.at + i * N);
  }
  for (size_t i = 0; i < k; i += 4) {
    TransposeBlocks(d, weights.at + i * N);
    TransposeBlocks(di, best.ids.at + i * N);
  }
  for (size_t row = begin; row < end; ++row) {
    const size_t r = row - begin;
    if (HWY_UNLIKELY(best.hard[r] != 0)) {
      RouteBlock<kAll>(args, row, row + 1, sum_all);
    } else {
      TakeRow(N, r, weights.at, args.weights.Row(row), k);
      TakeRow(N, r, best.ids.at, args.ids.Row(row), k);
    }
  }
}
#endif

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

// Rows are taken a vector of them at a time, a row per lane (topk_lanes-inl.h):
// lower bounds of the k-th largest, a filter, insertion of what passes; then
// exp, sum and division of the selected. Hard rows and the rest of a batch go
// one by one, or a few at a time (topk-inl.h). Bound by the two ports of the
// vector units: of 40 ns a row (E = 128, k = 8, 512 rows, AVX-512; 56 on AVX2)
// the filter, with a comparison and two compressions a vector on one of them,
// takes 35 %, the bounds 18 %, the insertion 16 %. An E-wide sum of exps adds 3
// ns a vector. A row alone takes 130 ns, a chain of latencies.
//
// exp is needed of the selected only, unless the
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
#if HWY_TARGET != HWY_SCALAR
  const size_t N = hn::Lanes(TopKTag());
  // A few rows take as long as a whole vector of them: with fewer than three
  // quarters, one by one is faster.
  for (; end - begin >= N - N / 4; begin += HWY_MIN(N, end - begin)) {
    const size_t stop = HWY_MIN(begin + N, end);
    if (experts <= kTopKAll) {
      RouteLanes<true>(args, begin, stop, sum_all);
    } else {
      RouteLanes<false>(args, begin, stop, sum_all);
    }
  }
#endif
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
