// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A call's rows by a recipe: one alone, a few together, a vector of them with a
// row per lane, and any at a large k.

// Per-target include guard
#if defined(SWITCHYARD_SRC_SIMD_ROUTE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_ROUTE_INL_H_
#undef SWITCHYARD_SRC_SIMD_ROUTE_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_ROUTE_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "src/simd/route.h"
#include "src/simd/targets.h"

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/recipes-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/simdgroup-inl.h"
#include "src/simd/storage-inl.h"
#include "src/simd/topk-inl.h"
#include "src/simd/topk_lanes-inl.h"
#include "src/simd/topk_one-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Body of SimdgroupSum over a row without NaN; kFinite: max is.
template <class Score, bool kFinite, class In>
struct RouteSumOfScores {
  const In* HWY_RESTRICT row;
  float max;

  template <class D, class V>
  HWY_INLINE V Term(D d, V logit) const {
    return Score::template Term<kFinite>(d, logit, hn::Set(d, max));
  }
  template <class D, class V>
  HWY_INLINE void Four(D d, size_t i, V& a, V& b, V& c, V& e) const {
    const size_t N = hn::Lanes(d);
    a = hn::Add(a, Term(d, Storage<In>::Load(d, row + i)));
    b = hn::Add(b, Term(d, Storage<In>::Load(d, row + i + N)));
    c = hn::Add(c, Term(d, Storage<In>::Load(d, row + i + 2 * N)));
    e = hn::Add(e, Term(d, Storage<In>::Load(d, row + i + 3 * N)));
  }
  template <class D, class V>
  HWY_INLINE void One(D d, size_t i, size_t count, V& a) const {
    if (count == hn::Lanes(d)) {
      a = hn::Add(a, Term(d, Storage<In>::Load(d, row + i)));
    } else {
      const V term = Term(d, Storage<In>::LoadPartial(d, row + i, count));
      a = hn::Add(a, hn::IfThenElseZero(hn::FirstN(d, count), term));
    }
  }
};

// A call's matrices and what is decided once for all of its rows.
template <class Recipe, class In>
struct Router {
  using Score = typename Recipe::Score;
  using Keys = typename Recipe::Keys;
  using Weights = typename Recipe::Weights;

  const Matrix<const In> logits;
  const AnyMatrix& ids;
  const Matrix<float> weights;  // not looked at by Large()
  const RouteOptions& options;
  const size_t experts, k;
  const bool raw;  // weights are the logits of the selected: route_recipe.cc
  const bool sum_all;

  explicit HWY_INLINE Router(const RouteArgs& args)
      : logits(args.inputs.logits.As<In>()),
        ids(args.outputs.topk_ids),
        weights(args.outputs.topk_weights.As<float>()),
        options(args.options),
        experts(logits.cols),
        k(weights.cols),
        raw(options.score == ::switchyard::Score::kRaw),
        sum_all(Weights::kMayNeedAll && RouteNeedsAll(options, experts, k)) {
    if (k == 0) __builtin_unreachable();  // or GCC sees nothing initialised
  }

  HWY_INLINE KeyRows<Keys, In> KeysOf(size_t begin, size_t end) const {
    return {logits.RowRange(begin, end)};
  }

  SWITCHYARD_PIECE float SumAll(size_t row, float max) const {
    const In* HWY_RESTRICT l = logits.Row(row);
    if (HWY_UNLIKELY(max == HUGE_VALF)) {
      return SimdgroupSum(experts, RouteSumOfScores<Score, false, In>{l, max});
    }
    return SimdgroupSum(experts, RouteSumOfScores<Score, true, In>{l, max});
  }

  // n ids of a row from slot `first` on; store(to) writes them as int32.
  template <class Store>
  SWITCHYARD_PIECE void PutIds(size_t row, size_t first, size_t n,
                               const Store& store) const {
    if (HWY_LIKELY(ids.type != Type::kI64)) {
      store(ids.Row<int32_t>(row) + first);
      return;
    }
    int32_t narrow[kTopKMax];
    store(narrow);
    int64_t* const to = ids.Row<int64_t>(row) + first;
    for (size_t i = 0; i < n; ++i) to[i] = narrow[i];
  }

  SWITCHYARD_PIECE void PutIds(size_t row, size_t first, const TopK& best,
                               size_t n) const {
    PutIds(row, first, n, [&](int32_t* to) HWY_ATTR {
      const TopKIntTag di;
      for (size_t i = 0; i < n; i += hn::Lanes(di)) {
        const TopKIntVec v = hn::Load(di, best.ids + i);
        if (i + hn::Lanes(di) <= n) {
          hn::StoreU(v, di, to + i);
        } else {
          StorePartial(v, di, to + i, n - i);
        }
      }
    });
  }

  // Of the selected from the i-th on.
  HWY_INLINE TopKVec Scores(const TopK& best, size_t i, float max) const {
    const TopKTag d;
    const TopKVec logits_of = Keys::Logits(d, best, i);
    if (raw) return logits_of;
    return Score::template Of<false>(d, logits_of, hn::Set(d, max));
  }

  // What a row's scores are divided by, `selected` being the sum of those.
  HWY_INLINE TopKVec DivisorOf(size_t row, float max, float selected) const {
    const TopKTag d;
    const TopKVec sum = hn::Set(d, selected);
    if constexpr (Weights::kMayNeedAll) {
      if (sum_all) {
        const TopKVec all = hn::Set(d, SumAll(row, max));
        return Weights::Divisor(d, options, sum, all);
      }
    }
    return Weights::Divisor(d, options, sum);
  }

  // Whether all weights of a row are Same().
  HWY_INLINE bool AllSame(bool nan, float max) const {
    return nan || (max == -HUGE_VALF && !raw);
  }
  // The weights of all experts of a row with a NaN, or of only -inf.
  static HWY_INLINE TopKVec Same(bool nan) {
    return hn::BitCast(TopKTag(),
                       hn::Set(TopKIntTag(), nan ? int32_t{0x7FC00000} : 0));
  }

  // A row's weights from the selected scores.
  // (Of which kind, One() knows at compile time: 64 ns a call instead of 72.)
  SWITCHYARD_PIECE void PutWeights(size_t row, bool nan, float max, bool is_raw,
                                   const float* HWY_RESTRICT scores) const {
    const TopKTag d;
    const size_t N = hn::Lanes(d);
    float* const to = weights.Row(row);
    if (HWY_UNLIKELY(nan || (max == -HUGE_VALF && !is_raw))) {
      for (size_t i = 0; i < k; i += N) {
        StoreUpTo<float>(Same(nan), d, to + i, k - i);
      }
      return;
    }
    float selected = scores[0];
    for (size_t i = 1; i < k; ++i) selected += scores[i];
    const TopKVec divisor =
        is_raw ? hn::Set(d, 1.0f) : DivisorOf(row, max, selected);
    size_t i = 0;
    for (; i + N <= k; i += N) {
      hn::StoreU(hn::Div(hn::LoadU(d, scores + i), divisor), d, to + i);
    }
    if (i < k) {
      const TopKVec e = LoadPartial(d, scores + i, k - i);
      StorePartial(hn::Div(e, divisor), d, to + i, k - i);
    }
  }

#if SWITCHYARD_TOPK_ONE
  // Block for one row, k <= kTopKOneMax; false where it has to be Block's.
  template <bool kRaw>
  HWY_INLINE bool One(size_t row) const {
    const TopKTag d;
    const TopKIntTag di;
    TopKOne best;
    TopKVec maxima;
    if (!SelectTopKOne(KeysOf(row, row + 1).Row(0), experts, k, maxima, best)) {
      return false;
    }
    const TopKVec max = hn::MaxOfLanes(d, maxima);
    const float top = hn::GetLane(max);
    if (HWY_UNLIKELY(!(std::fabs(top) < HUGE_VALF))) return false;
    HWY_ALIGN float scores[kTopKLanes];
    const TopKVec of =
        kRaw ? best.logits : Score::template Of<true>(d, best.logits, max);
    hn::Store(Sorted(of, best), d, scores);
    PutIds(row, 0, k, [&](int32_t* to) HWY_ATTR {
      StorePartial(Sorted(best.ids, best), di, to, k);
    });
    PutWeights(row, false, top, kRaw, scores);
    return true;
  }
#endif

  // k <= kTopKMax, [begin, end) at most kTopKRows rows.
  template <bool kAll>
  SWITCHYARD_PIECE void Block(size_t begin, size_t end) const {
    const TopKTag d;
    TopK best[kTopKRows];
    SelectTopK<kAll>(KeysOf(begin, end), k, best);
    for (size_t row = begin; row < end; ++row) {
      const TopK& b = best[row - begin];
      const float max = LogitFromKey(b.keys[0]);
      HWY_ALIGN float scores[kTopKMax];
      for (size_t i = 0; i < k; i += hn::Lanes(d)) {
        hn::Store(Scores(b, i, max), d, scores + i);
      }
      PutIds(row, 0, b, k);
      PutWeights(row, b.nan, max, raw, scores);
    }
  }

#if HWY_TARGET != HWY_SCALAR
  // The sum of all scores of each lane's row, max finite.
  template <bool kAll>
  SWITCHYARD_PIECE TopKVec SumsOfLanes(size_t begin, size_t end,
                                       const TopKOfLanes& best) const {
    const TopKTag d;
    const size_t N = hn::Lanes(d);
    const TopKVec max = hn::Load(d, best.sorted.at);
    if (kAll) {
      // The columns are the lanes of SimdgroupSum, whose first fold adds zeros.
      Columns<float, kTopKAll> terms;
      for (size_t i = 0; i < kTopKAll; ++i) {
        const TopKVec logit = hn::Load(d, best.columns.at + i * N);
        hn::Store(i < experts ? Score::template Term<true>(d, logit, max)
                              : hn::Zero(d),
                  d, terms.at + i * N);
      }
      for (size_t half = kTopKAll / 2; half != 0; half /= 2) {
        for (size_t i = 0; i < half; ++i) {
          hn::Store(hn::Add(hn::Load(d, terms.at + i * N),
                            hn::Load(d, terms.at + (i + half) * N)),
                    d, terms.at + i * N);
        }
      }
      return hn::Load(d, terms.at);
    }
    HWY_ALIGN float sums[kTopKLanes] = {};
    for (size_t row = begin; row < end; ++row) {
      sums[row - begin] = SumAll(row, best.sorted.at[row - begin]);
    }
    return hn::Load(d, sums);
  }

  // Block for [begin, end) of at most a vector of rows, all in one go but for
  // the hard ones. k <= kTopKMax.
  template <bool kAll>
  SWITCHYARD_PIECE void Lanes(size_t begin, size_t end) const {
    const TopKTag d;
    const TopKIntTag di;
    const size_t N = hn::Lanes(d);
    TopKOfLanes best;
    SelectTopKOfLanes<kAll>(KeysOf(begin, end), k, best);
    const TopKVec max = hn::Load(d, best.sorted.at);
    Columns<float, kTopKMax> scores;
    TopKVec divisor = hn::Zero(d);
    for (size_t i = 0; i < k; ++i) {
      const TopKVec logit = hn::Load(d, best.sorted.at + i * N);
      const TopKVec e = raw ? logit : Score::template Of<true>(d, logit, max);
      hn::Store(e, d, scores.at + i * N);
      divisor = hn::Add(divisor, e);
    }
    if (raw) divisor = hn::Set(d, 1.0f);
    if constexpr (Weights::kMayNeedAll) {
      if (sum_all) {
        divisor = Weights::Divisor(d, options, divisor,
                                   SumsOfLanes<kAll>(begin, end, best));
      }
    }
    if (!sum_all && !raw) divisor = Weights::Divisor(d, options, divisor);
    for (size_t i = 0; i < k; ++i) {
      const TopKVec e = hn::Load(d, scores.at + i * N);
      hn::Store(hn::Div(e, divisor), d, scores.at + i * N);
    }
    for (size_t i = 0; i < k; i += 4) {
      TransposeBlocks(d, scores.at + i * N);
      TransposeBlocks(di, best.ids.at + i * N);
    }
    for (size_t row = begin; row < end; ++row) {
      const size_t r = row - begin;
      if (HWY_UNLIKELY(best.hard[r] != 0)) {
        Block<kAll>(row, row + 1);
      } else {
        TakeRow(N, r, scores.at, weights.Row(row), k);
        PutIds(row, 0, k, [&](int32_t* to) HWY_ATTR {
          TakeRow(N, r, best.ids.at, to, k);
        });
      }
    }
  }
#endif

  // Any k, in O(experts * k / kTopKMax), to weights of any type: a pass over
  // the selected for their sum, and one for what is divided by it.
  HWY_NOINLINE void Large(size_t row, const AnyMatrix& to) const {
    const TopKTag d;
    const auto keys = KeysOf(row, row + 1).Row(0);
    TopKVec divisor = hn::Set(d, 1.0f);
    float selected = 0.0f;
    for (const bool last_pass : {false, true}) {
      TopK best;
      best.nan = false;
      int32_t last_key = INT32_MAX;
      int32_t last_id = -1;
      float max = 0.0f;
      for (size_t slot = 0; slot < k; slot += kTopKMax) {
        const size_t count = HWY_MIN(kTopKMax, k - slot);
        SelectNext(keys, experts, last_key, last_id, count, best);
        if (slot == 0) max = LogitFromKey(best.keys[0]);
        const bool same = AllSame(best.nan, max);
        HWY_ALIGN float values[kTopKMax];
        for (size_t i = 0; i < count; i += hn::Lanes(d)) {
          const TopKVec score = Scores(best, i, max);
          hn::Store(same ? Same(best.nan) : hn::Div(score, divisor), d,
                    values + i);
        }
        if (last_pass) {
          PutIds(row, slot, best, count);
          FloatsToRow(values, count, to, row, slot);
        } else {
          for (size_t i = 0; i < count; ++i) selected += values[i];
        }
        last_key = best.keys[count - 1];
        last_id = best.ids[count - 1];
      }
      if (!last_pass && !raw) divisor = DivisorOf(row, max, selected);
    }
  }

  template <bool kAll>
  SWITCHYARD_PIECE void Rows(size_t begin, size_t end) const {
#if HWY_TARGET != HWY_SCALAR
    const size_t N = hn::Lanes(TopKTag());
    // A few rows take as long as a whole vector of them: with fewer than three
    // quarters, one by one is faster.
    while (end - begin >= N - N / 4) {
      const size_t stop = HWY_MIN(begin + N, end);
      Lanes<kAll>(begin, stop);
      begin = stop;
    }
#endif
    for (size_t row = begin; row < end; row += kTopKRows) {
      Block<kAll>(row, HWY_MIN(row + kTopKRows, end));
    }
  }
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_INL_H_
