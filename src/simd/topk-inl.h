// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The k best of a row of keys, in the order of candidates-inl.h. A row is a
// class with Load() and LoadPartial() (see KeyRow).
//
// The fast path divides the row into groups. The k-th largest of the groups'
// maxima is a lower bound of the k-th largest element, because k elements reach
// it. A filter keeps the elements that reach the bound: about 1.35 k, if there
// are twice as many groups as k. These candidates are sorted. If too many
// elements equal the bound, FilterTies() picks some of them.
//
// The slow path, SelectNext(), is for harder rows and rows with a NaN.

#if defined(SWITCHYARD_SRC_SIMD_TOPK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_TOPK_INL_H_
#undef SWITCHYARD_SRC_SIMD_TOPK_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_TOPK_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "switchyard/views.h"

#include "hwy/highway.h"

#include "src/simd/candidates-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// In rows of at most this length, every element is a candidate.
constexpr size_t kTopKAll = 16;
// The most rows that go through each phase together. A phase stores pieces that
// the next phase loads as vectors. With a single row, loads would wait until
// stores retire. (E = 128, k = 8 on AVX-512: 57 ns a row instead of 79.)
constexpr size_t kTopKRows = 8;

constexpr size_t NumGroups(size_t k) { return k <= 8 ? 16 : k <= 16 ? 32 : 64; }

// Returns the vector at element i of a row of n elements, padded with -inf.
template <class Row>
HWY_INLINE TopKVec LoadOrLowest(TopKTag d, const Row& row, size_t i, size_t n) {
  if (i + hn::Lanes(d) <= n) return row.Load(d, i);
  const TopKVec lowest = hn::Set(d, -HUGE_VALF);
  if (i >= n) return lowest;
  return hn::IfThenElse(hn::FirstN(d, n - i), row.LoadPartial(d, i, n - i),
                        lowest);
}

// Calls store(g, v): v has the maxima of groups g, g + 1, .... Group g has
// elements g, g + groups, g + 2 * groups, .... With a NaN, v is garbage.
template <class Row, class Store>
SWITCHYARD_PIECE void GroupMaxima(const Row& row, size_t n, size_t groups,
                                  const Store& store) {
  const TopKTag d;
  const size_t N = hn::Lanes(d);
  // Loads four vectors at a time, which gives the maxima of 4 * N groups. If
  // these are too many, they are joined below. If they are too few, there are
  // several passes.
  const size_t step = HWY_MAX(groups, 4 * N);
  for (size_t first = 0; first < step; first += 4 * N) {
    TopKVec m0, m1, m2, m3;
    if (HWY_LIKELY(first + 4 * N <= n)) {
      m0 = row.Load(d, first);
      m1 = row.Load(d, first + N);
      m2 = row.Load(d, first + 2 * N);
      m3 = row.Load(d, first + 3 * N);
    } else {
      m0 = LoadOrLowest(d, row, first, n);
      m1 = LoadOrLowest(d, row, first + N, n);
      m2 = LoadOrLowest(d, row, first + 2 * N, n);
      m3 = LoadOrLowest(d, row, first + 3 * N, n);
    }
    size_t i = first + step;
    for (; i + 4 * N <= n; i += step) {
      m0 = hn::Max(m0, row.Load(d, i));
      m1 = hn::Max(m1, row.Load(d, i + N));
      m2 = hn::Max(m2, row.Load(d, i + 2 * N));
      m3 = hn::Max(m3, row.Load(d, i + 3 * N));
    }
    if (i < n) {
      m0 = hn::Max(m0, LoadOrLowest(d, row, i, n));
      m1 = hn::Max(m1, LoadOrLowest(d, row, i + N, n));
      m2 = hn::Max(m2, LoadOrLowest(d, row, i + 2 * N, n));
      m3 = hn::Max(m3, LoadOrLowest(d, row, i + 3 * N, n));
    }
    if (groups <= 2 * N) {
      m0 = hn::Max(m0, m2);
      m1 = hn::Max(m1, m3);
    }
    if (groups <= N) m0 = hn::Max(m0, m1);
    store(first, m0);
    if (groups > N) store(first + N, m1);
    if (groups > 2 * N) {
      store(first + 2 * N, m2);
      store(first + 3 * N, m3);
    }
  }
}

// Returns the k-th largest of the maxima, which is the smallest maximum with
// fewer than k maxima above it.
SWITCHYARD_PIECE float KthLargest(const float* HWY_RESTRICT maxima,
                                  size_t groups, size_t k) {
  const TopKTag d;
  const TopKIntTag di;
  const TopKIntVec limit = hn::Set(di, static_cast<int32_t>(k));
  TopKVec kth = hn::Set(d, HUGE_VALF);
  for (size_t i = 0; i < groups; i += hn::Lanes(d)) {
    const TopKVec m = hn::Load(d, maxima + i);
    TopKIntVec above = hn::Zero(di);
    for (size_t j = 0; j < groups; j += kTopKUnroll) {
      for (size_t u = 0; u < kTopKUnroll; ++u) {
        const auto gt = hn::Gt(hn::Set(d, maxima[j + u]), m);
        above = AddIf(hn::RebindMask(di, gt), above);
      }
    }
    const auto few = hn::RebindMask(d, hn::Lt(above, limit));
    kth = hn::IfThenElse(few, hn::Min(kth, m), kth);
  }
  return hn::GetLane(hn::MinOfLanes(d, kth));
}

// Collects the ids and logits of the elements that are not below `bound`
// (kAbove: nor equal to it), in ascending order of ids, NaNs included. Returns
// their number or, if that exceeds `limit`, some number above `limit`.
template <bool kAbove, class Row>
SWITCHYARD_PIECE size_t Filter(const Row& row, size_t n, float bound,
                               size_t limit, int32_t* HWY_RESTRICT to,
                               float* HWY_RESTRICT logits) {
  const TopKTag d;
  const TopKIntTag di;
  const size_t N = hn::Lanes(d);
  const TopKVec b = hn::Set(d, bound);
  // Hides from GCC that the step is N, because with a constant step GCC would
  // broadcast i, which takes one more shuffle per vector.
  const auto step = hn::Set(di, static_cast<int32_t>(HWY_MIN(N, n)));
  TopKIntVec ids = FirstIds();
  size_t count = 0;
  size_t i = 0;
  for (; i + N <= n; i += N) {
    const TopKVec v = row.Load(d, i);
    const auto keep = hn::Not(kAbove ? hn::Le(v, b) : hn::Lt(v, b));
    count +=
        StoreIf(hn::RebindMask(di, keep), ids, v, to + count, logits + count);
    if (HWY_UNLIKELY(count > limit)) return count;
    ids = hn::Add(ids, step);
  }
  if (i < n) {
    const TopKVec v = row.LoadPartial(d, i, n - i);
    const auto drop = kAbove ? hn::Le(v, b) : hn::Lt(v, b);
    const auto keep = hn::And(hn::FirstN(d, n - i), hn::Not(drop));
    count +=
        StoreIf(hn::RebindMask(di, keep), ids, v, to + count, logits + count);
  }
  return count;
}

// Replaces Filter() if many elements equal the bound. It collects all elements
// above the bound, then equal elements from the left, up to k in total. Returns
// 0 if more than `limit` elements are above the bound.
template <class Row>
HWY_NOINLINE size_t FilterTies(const Row& row, size_t n, size_t k, float bound,
                               size_t limit, int32_t* HWY_RESTRICT to,
                               float* HWY_RESTRICT logits) {
  const TopKTag d;
  const TopKIntTag di;
  const size_t N = hn::Lanes(d);
  size_t count = Filter<true>(row, n, bound, limit, to, logits);
  if (count > limit) return 0;
  const TopKVec b = hn::Set(d, bound);
  // The partial vector at the end is not needed: more than 16 + 2k elements
  // have passed Filter(), so whole vectors have at least k of these.
  for (size_t i = 0; i + N <= n && count < k; i += N) {
    const auto equal = hn::Eq(row.Load(d, i), b);
    const auto ids = hn::Add(FirstIds(), hn::Set(di, static_cast<int32_t>(i)));
    count +=
        StoreIf(hn::RebindMask(di, equal), ids, b, to + count, logits + count);
  }
  return count;
}

// Collects candidates for the k best of a row, by Filter() or, with ties, by
// FilterTies(). Returns their number, or 0 if the row needs SelectNext().
template <class Row>
SWITCHYARD_PIECE size_t Collect(const Row& row, size_t n, size_t k, float bound,
                                int32_t* HWY_RESTRICT ids,
                                float* HWY_RESTRICT logits) {
  const size_t limit = MaxCandidates(k);
  const size_t count = Filter<false>(row, n, bound, limit, ids, logits);
  if (HWY_LIKELY(count <= limit)) return count;
  return FilterTies(row, n, k, bound, limit, ids, logits);
}

// The slow path, for any row. Finds the first `count` <= kTopKMax elements
// behind (last_key, last_id) in the order.
//
// It collects candidates. If there are too many, it sorts them and keeps the
// best `count`. From then on, it admits only larger keys, because among equal
// keys, the first one found comes first. Each sort but the last makes room for
// 16 + count more candidates, so the time is O(n) for any row.
template <class Row>
HWY_NOINLINE void SelectNext(const Row& row, size_t n, int32_t last_key,
                             int32_t last_id, size_t count, TopK& to) {
  const TopKTag d;
  const TopKIntTag di;
  const size_t N = hn::Lanes(d);
  const TopKIntVec last = hn::Set(di, last_key);
  const TopKIntVec after = hn::Set(di, last_id);
  const TopKIntVec pad = hn::Set(di, kPadKey);
  Candidates list;
  size_t found = 0;
  size_t sorted = 0;
  TopKIntVec floor = pad;
  bool nan = false;
  for (size_t i = 0; i < n; i += N) {
    const TopKVec logit = LoadOrLowest(d, row, i, n);
    TopKIntVec key = KeyFromLogit(di, logit);
    if (i + N > n) key = hn::IfThenElse(hn::FirstN(di, n - i), key, pad);
    nan |= !hn::AllFalse(di, hn::Eq(key, hn::Set(di, kNaNKey)));
    const TopKIntVec id = hn::Iota(di, static_cast<int32_t>(i));
    const auto next = hn::Or(hn::Lt(key, last),
                             hn::And(hn::Eq(key, last), hn::Gt(id, after)));
    const auto admit = hn::And(next, hn::Gt(key, floor));
    if (HWY_LIKELY(hn::AllFalse(di, admit))) continue;
    const auto ids = hn::Add(FirstIds(), hn::Set(di, static_cast<int32_t>(i)));
    found += StoreIf(admit, ids, logit, list.ids + found, list.logits + found);
    if (found > MaxCandidates(count)) {
      Sort(found, list, to);
      std::memcpy(list.ids, to.ids, count * sizeof(int32_t));
      for (size_t j = 0; j < count; j += N) {
        hn::Store(LogitFromKey(d, hn::Load(di, to.keys + j)), d,
                  list.logits + j);
      }
      found = sorted = count;
      floor = hn::Set(di, to.keys[count - 1]);
    }
  }
  if (found != sorted) Sort(found, list, to);
  to.nan = nan;
}

// A row of keys in memory.
template <class T>
struct KeyRow {
  const T* HWY_RESTRICT keys;

  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, size_t i) const {
    return Storage<T>::Load(d, keys + i);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> LoadPartial(D d, size_t i, size_t n) const {
    return Storage<T>::LoadPartial(d, keys + i, n);
  }
};

// Selects the k <= kTopKMax best of each row. There are at most kTopKRows rows.
// kAll: a row has at most kTopKAll columns.
template <bool kAll, class T>
SWITCHYARD_PIECE void SelectTopK(const Matrix<const T>& keys, size_t k,
                                 TopK* HWY_RESTRICT to) {
  const TopKTag d;
  const size_t rows = keys.rows;
  const size_t n = keys.cols;
  const size_t groups = NumGroups(k);
  Candidates lists[kTopKRows];
  // The number of each row's candidates, or 0 if the row needs SelectNext().
  size_t counts[kTopKRows];
  if (kAll) {
    for (size_t r = 0; r < rows; ++r) {
      counts[r] = n;
      for (size_t i = 0; i < n; i += hn::Lanes(d)) {
        hn::Store(LoadOrLowest(d, KeyRow<T>{keys.Row(r)}, i, n), d,
                  lists[r].logits + i);
      }
    }
  } else {
    float bounds[kTopKRows];
    for (size_t r = 0; r < rows; ++r) {
      HWY_ALIGN float maxima[NumGroups(kTopKMax)];
      GroupMaxima(KeyRow<T>{keys.Row(r)}, n, groups,
                  [d, &maxima](size_t g, TopKVec v)
                      HWY_ATTR { hn::Store(v, d, maxima + g); });
      bounds[r] = KthLargest(maxima, groups, k);
    }
    for (size_t r = 0; r < rows; ++r) {
      counts[r] = Collect(KeyRow<T>{keys.Row(r)}, n, k, bounds[r], lists[r].ids,
                          lists[r].logits);
    }
  }
  for (size_t r = 0; r < rows; ++r) {
    to[r].nan = MakeKeys(counts[r], lists[r]);
    // If the row has a NaN, its bound may be too high.
    if (!kAll && HWY_UNLIKELY(to[r].nan)) counts[r] = 0;
  }
  for (size_t r = 0; r < rows; ++r) Rank(counts[r], lists[r]);
  for (size_t r = 0; r < rows; ++r) {
    if (HWY_LIKELY(counts[r] != 0)) {
      Place(lists[r], kAll ? kTopKTables.iota : lists[r].ids, counts[r], to[r]);
    } else {
      SelectNext(KeyRow<T>{keys.Row(r)}, n, INT32_MAX, -1, k, to[r]);
    }
  }
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_TOPK_INL_H_
