// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compiles AVX3_DL code, too, for topk_one-inl.h. (See targets.h.)
#define HWY_WANT_AVX3_DL

#include "src/simd/route_select.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/route_select.cc"
#include "src/base/type_list.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/route_scores-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/simdgroup-inl.h"
#include "src/simd/storage-inl.h"
#include "src/simd/topk-inl.h"
#include "src/simd/topk_lanes-inl.h"
#include "src/simd/topk_one-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Selects from as many rows at a time as a vector has lanes (topk_lanes-inl.h):
// * computes lower bounds of the k-th largest keys,
// * collects candidates: the keys that reach their row's bound,
// * inserts the candidates into sorted lists,
// * computes exp, sum and quotients of the selected keys.
// Hard rows (see TopKOfLanes) and the rest of a batch are handled one by one,
// or a few at a time (topk-inl.h). For k above kTopKMax, all rows are handled
// one by one (Large()).
//
// The two ports of the vector units bound the time. A row takes 40 ns (E = 128,
// k = 8, 512 rows, AVX-512; 56 on AVX2). Collecting takes 35 % of this, with a
// comparison and two compressions per vector on one of the ports; the bounds
// take 18 %, the insertion 16 %. A sum of exps over all experts adds 3 ns per
// vector. A single row is a chain of latencies: see topk_one-inl.h.

// A body for SimdgroupSum() over a row without NaN: sums exp(key - max).
// kFinite: max is finite.
template <bool kFinite, class In>
struct SumOfExps {
  const In* HWY_RESTRICT row;
  float max;

  template <class D, class V>
  HWY_INLINE V Term(D d, V key) const {
    return SoftmaxOf::Term<kFinite>(d, key, hn::Set(d, max));
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

// Selects from the rows of a call. The mode selects branches outside of loops.
// (The fields are copied one by one, because the views of a single row have
// just been made, and a copy of two fields at once would wait until both have
// reached the cache: 20 ns per call on SSE4.)
template <class In>
struct Selector {
  const In* const HWY_RESTRICT keys;
  float* const values;  // not used by Large(), whose values have any type
  const size_t experts, k;
  const size_t key_stride, value_stride;
  const AnyMatrix& ids;
  const SelectMode& mode;
  const bool gives_keys;
  const bool needs_all;

  explicit HWY_INLINE Selector(const SelectArgs& args)
      : keys(static_cast<const In*>(args.keys.data)),
        values(static_cast<float*>(args.values.data)),
        experts(args.keys.cols),
        k(args.values.cols),
        key_stride(args.keys.stride),
        value_stride(args.values.stride),
        ids(args.ids),
        mode(args.mode),
        gives_keys(mode.values == SelectMode::kKeys),
        needs_all(NeedsAll(mode, experts, k)) {
    if (k == 0) __builtin_unreachable();  // or GCC warns: uninitialised
  }

  HWY_INLINE KeyRow<In> Keys(size_t row) const {
    return {keys + row * key_stride};
  }
  HWY_INLINE Matrix<const In> KeysOf(size_t begin, size_t end) const {
    return {Keys(begin).keys, end - begin, experts, key_stride};
  }
  HWY_INLINE float* Values(size_t row) const {
    return values + row * value_stride;
  }

  SWITCHYARD_PIECE float SumAll(size_t row, float max) const {
    const In* HWY_RESTRICT from = Keys(row).keys;
    if (HWY_UNLIKELY(max == HUGE_VALF)) {
      return SimdgroupSum(experts, SumOfExps<false, In>{from, max});
    }
    return SimdgroupSum(experts, SumOfExps<true, In>{from, max});
  }

  // Writes n ids of a row to its slots, beginning at slot `first`. store(to)
  // stores them to `to`, an int32_t*.
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

  // Returns the keys or exps of a vector of selected experts, beginning at
  // element i of `best`.
  HWY_INLINE TopKVec Terms(const TopK& best, size_t i, float max) const {
    const TopKTag d;
    const TopKVec key = LogitFromKey(d, hn::Load(TopKIntTag(), best.keys + i));
    if (gives_keys) return key;
    return SoftmaxOf::OfNumber<false>(d, key, hn::Set(d, max));
  }

  // Returns the divisor of the exps of a row. `selected` is the sum of the
  // selected exps, `all` the sum of all exps.
  HWY_INLINE TopKVec Divisor(TopKVec selected, TopKVec all) const {
    if (mode.values == SelectMode::kShareOfAll) return all;
    return hn::Max(selected, hn::Mul(hn::Set(TopKTag(), mode.clamp), all));
  }
  HWY_INLINE TopKVec DivisorOf(size_t row, float max, float selected) const {
    const TopKTag d;
    const TopKVec sum = hn::Set(d, selected);
    return needs_all ? Divisor(sum, hn::Set(d, SumAll(row, max))) : sum;
  }

  // True if all slots of the row have the value Same(nan).
  HWY_INLINE bool AllSame(bool nan, float max) const {
    return nan || (max == -HUGE_VALF && !gives_keys);
  }
  // Returns the value of all slots of a special row: NaN if the row has a NaN,
  // 0 if all its keys are -inf.
  static HWY_INLINE TopKVec Same(bool nan) {
    return hn::BitCast(TopKTag(),
                       hn::Set(TopKIntTag(), nan ? int32_t{0x7FC00000} : 0));
  }

  // Computes a row's values from the terms of the selected experts, keys or
  // exps. (In One(), are_keys is constant: 64 ns per call instead of 72.)
  SWITCHYARD_PIECE void PutValues(size_t row, bool nan, float max,
                                  bool are_keys,
                                  const float* HWY_RESTRICT terms) const {
    const TopKTag d;
    const size_t N = hn::Lanes(d);
    float* const to = Values(row);
    if (HWY_UNLIKELY(nan || (max == -HUGE_VALF && !are_keys))) {
      for (size_t i = 0; i < k; i += N) {
        StoreUpTo<float>(Same(nan), d, to + i, k - i);
      }
      return;
    }
    float selected = terms[0];
    for (size_t i = 1; i < k; ++i) selected += terms[i];
    const TopKVec divisor =
        are_keys ? hn::Set(d, 1.0f) : DivisorOf(row, max, selected);
    size_t i = 0;
    for (; i + N <= k; i += N) {
      hn::StoreU(hn::Div(hn::LoadU(d, terms + i), divisor), d, to + i);
    }
    if (i < k) {
      const TopKVec e = LoadPartial(d, terms + i, k - i);
      StorePartial(hn::Div(e, divisor), d, to + i, k - i);
    }
  }

#if SWITCHYARD_TOPK_ONE
  // Selects from a row with k <= kTopKOneMax. Returns false if the row needs
  // Block().
  template <bool kGivesKeys>
  HWY_INLINE bool One(size_t row) const {
    const TopKTag d;
    const TopKIntTag di;
    TopKOne best;
    TopKVec maxima;
    const KeyRow<In> from = Keys(row);
    if (!SelectTopKOne(from, experts, k, maxima, best)) return false;
    const TopKVec max = hn::MaxOfLanes(d, maxima);
    const float top = hn::GetLane(max);
    if (HWY_UNLIKELY(!(std::fabs(top) < HUGE_VALF))) return false;
    HWY_ALIGN float terms[kTopKLanes];
    const TopKVec of = kGivesKeys
                           ? best.logits
                           : SoftmaxOf::OfNumber<true>(d, best.logits, max);
    hn::Store(Sorted(of, best), d, terms);
    PutIds(row, 0, k, [&](int32_t* to) HWY_ATTR {
      StorePartial(Sorted(best.ids, best), di, to, k);
    });
    PutValues(row, false, top, kGivesKeys, terms);
    return true;
  }
#endif

  // Selects from at most kTopKRows rows with k <= kTopKMax.
  template <bool kAll>
  SWITCHYARD_PIECE void Block(size_t begin, size_t end) const {
    const TopKTag d;
    TopK best[kTopKRows];
    SelectTopK<kAll>(KeysOf(begin, end), k, best);
    for (size_t row = begin; row < end; ++row) {
      const TopK& b = best[row - begin];
      const float max = LogitFromKey(b.keys[0]);
      HWY_ALIGN float terms[kTopKMax];
      for (size_t i = 0; i < k; i += hn::Lanes(d)) {
        hn::Store(Terms(b, i, max), d, terms + i);
      }
      PutIds(row, 0, b, k);
      PutValues(row, b.nan, max, gives_keys, terms);
    }
  }

#if HWY_TARGET != HWY_SCALAR
  // Returns the sum of all exps of each lane's row. A row's max must be finite.
  template <bool kAll>
  SWITCHYARD_PIECE TopKVec SumsOfLanes(size_t begin, size_t end,
                                       const TopKOfLanes& best) const {
    const TopKTag d;
    const size_t N = hn::Lanes(d);
    const TopKVec max = hn::Load(d, best.sorted.at);
    if (kAll) {
      // Adds up columns as SimdgroupSum() adds up lanes. (Its first step adds
      // the upper 16 lanes, which would be zeros here.)
      Columns<float, kTopKAll> terms;
      for (size_t i = 0; i < kTopKAll; ++i) {
        const TopKVec key = hn::Load(d, best.columns.at + i * N);
        hn::Store(
            i < experts ? SoftmaxOf::Term<true>(d, key, max) : hn::Zero(d), d,
            terms.at + i * N);
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

  // Selects from rows [begin, end) at once, with k <= kTopKMax. There are at
  // most as many rows as a vector has lanes. Hard rows then go to Block().
  template <bool kAll>
  SWITCHYARD_PIECE void Lanes(size_t begin, size_t end) const {
    const TopKTag d;
    const TopKIntTag di;
    const size_t N = hn::Lanes(d);
    TopKOfLanes best;
    SelectTopKOfLanes<kAll>(KeysOf(begin, end), k, best);
    const TopKVec max = hn::Load(d, best.sorted.at);
    Columns<float, kTopKMax> terms;
    TopKVec divisor = hn::Zero(d);
    for (size_t i = 0; i < k; ++i) {
      const TopKVec key = hn::Load(d, best.sorted.at + i * N);
      const TopKVec e =
          gives_keys ? key : SoftmaxOf::OfNumber<true>(d, key, max);
      hn::Store(e, d, terms.at + i * N);
      divisor = hn::Add(divisor, e);
    }
    if (gives_keys) divisor = hn::Set(d, 1.0f);
    if (needs_all) {
      divisor = Divisor(divisor, SumsOfLanes<kAll>(begin, end, best));
    }
    for (size_t i = 0; i < k; ++i) {
      const TopKVec e = hn::Load(d, terms.at + i * N);
      hn::Store(hn::Div(e, divisor), d, terms.at + i * N);
    }
    for (size_t i = 0; i < k; i += 4) {
      TransposeBlocks(d, terms.at + i * N);
      TransposeBlocks(di, best.ids.at + i * N);
    }
    for (size_t row = begin; row < end; ++row) {
      const size_t r = row - begin;
      if (HWY_UNLIKELY(best.hard[r] != 0)) {
        Block<kAll>(row, row + 1);
      } else {
        TakeRow(N, r, terms.at, Values(row), k);
        PutIds(row, 0, k, [&](int32_t* to) HWY_ATTR {
          TakeRow(N, r, best.ids.at, to, k);
        });
      }
    }
  }
#endif

  // Selects from a row with any k, in O(experts * k / kTopKMax), and writes
  // values of any type. The first pass sums the terms of the selected experts,
  // the second pass divides by the sum.
  HWY_NOINLINE void Large(size_t row, const AnyMatrix& to) const {
    const TopKTag d;
    const KeyRow<In> from = Keys(row);
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
        SelectNext(from, experts, last_key, last_id, count, best);
        if (slot == 0) max = LogitFromKey(best.keys[0]);
        const bool same = AllSame(best.nan, max);
        HWY_ALIGN float shares[kTopKMax];
        for (size_t i = 0; i < count; i += hn::Lanes(d)) {
          const TopKVec term = Terms(best, i, max);
          hn::Store(same ? Same(best.nan) : hn::Div(term, divisor), d,
                    shares + i);
        }
        if (last_pass) {
          PutIds(row, slot, best, count);
          FloatsToRow(shares, count, to, row, slot);
        } else {
          for (size_t i = 0; i < count; ++i) selected += shares[i];
        }
        last_key = best.keys[count - 1];
        last_id = best.ids[count - 1];
      }
      if (!last_pass && !gives_keys) divisor = DivisorOf(row, max, selected);
    }
  }

  template <bool kAll>
  SWITCHYARD_PIECE void Rows(size_t begin, size_t end) const {
#if HWY_TARGET != HWY_SCALAR
    const size_t N = hn::Lanes(TopKTag());
    // Lanes() takes as long for a few rows as for a row in each lane. If fewer
    // than three quarters of the lanes would have a row, Block() is faster.
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

// Selects from rows of floats. It is not inlined, because its stack frame is
// forty times as large as the frame of SelectOne().
HWY_NOINLINE void SelectMany(const SelectArgs& args, size_t begin, size_t end) {
  const Selector<float> selector(args);
  if (selector.k > kTopKMax) {
    for (size_t row = begin; row < end; ++row) selector.Large(row, args.values);
  } else if (selector.experts <= kTopKAll) {
    selector.Rows<true>(begin, end);
  } else {
    selector.Rows<false>(begin, end);
  }
}

#if SWITCHYARD_TOPK_ONE
template <bool kGivesKeys>
HWY_NOINLINE void SelectOne(const SelectArgs& args, size_t row) {
  const Selector<float> selector(args);
  if (selector.k <= kTopKOneMax && selector.One<kGivesKeys>(row)) return;
  SelectMany(args, row, row + 1);
}
#endif

SWITCHYARD_PIECE void SelectFloats(const SelectArgs& args, size_t begin,
                                   size_t end) {
#if SWITCHYARD_TOPK_ONE
  if (end - begin == 1) {
    return args.mode.values == SelectMode::kKeys
               ? SelectOne<true>(args, begin)
               : SelectOne<false>(args, begin);
  }
#endif
  SelectMany(args, begin, end);
}

// If keys or values are not f32, SelectConverted() converts rows on the stack,
// in batches. If rows have more than kKeysTile keys or kTopKMax slots, Large()
// reads them in place instead, which is slow but has no limits.
constexpr size_t kKeysTile = 16384;

template <size_t kTile>
HWY_NOINLINE void SelectConverted(const SelectArgs& args, size_t begin,
                                  size_t end) {
  const size_t experts = args.keys.cols;
  HWY_ALIGN float key_tile[kTile];
  HWY_ALIGN float value_tile[kSelectBatch * kTopKMax];
  const size_t batch = SelectBatch<kTile>(experts);
  const bool widens = args.keys.type != Type::kF32;
  const bool narrows = args.values.type != Type::kF32;
  for (size_t row = begin; row < end; row += batch) {
    const size_t n = HWY_MIN(batch, end - row);
    if (widens) RowsToFloats(args.keys, row, n, key_tile);
    const ConstAnyMatrix keys = widens ? ConstAnyMatrix(key_tile, n, experts)
                                       : args.keys.RowRange(row, row + n);
    const AnyMatrix ids = args.ids.RowRange(row, row + n);
    const AnyMatrix values = narrows
                                 ? AnyMatrix(value_tile, n, args.values.cols)
                                 : args.values.RowRange(row, row + n);
    SelectFloats({keys, ids, values, args.mode}, 0, n);
    if (narrows) FloatsToRows(value_tile, args.values, row, n);
  }
}

void Select(const SelectArgs& args, size_t begin, size_t end) {
  const size_t experts = args.keys.cols;
  const bool floats = args.keys.type == Type::kF32;
  if (HWY_LIKELY(floats && args.values.type == Type::kF32)) {
    return SelectFloats(args, begin, end);
  }
  if (args.values.cols <= kTopKMax && (floats || experts <= kKeysTile)) {
    return experts * kSelectVector <= kSelectCached
               ? SelectConverted<kSelectCached>(args, begin, end)
               : SelectConverted<kKeysTile>(args, begin, end);
  }
  switch (args.keys.type) {
#define SWITCHYARD_CASE(T, ...)                  \
  case kType<T>:                                 \
    for (size_t row = begin; row < end; ++row) { \
      Selector<T>(args).Large(row, args.values); \
    }                                            \
    return;
    SWITCHYARD_FLOATS(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
    default:
      return;
  }
}

SWITCHYARD_ROW_FUNCTION(Select, SelectArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(SelectRows, Select, SelectArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
