// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// From a row's logits to what selection compares, and what is known of the row
// then: a pass each, over a piece of the row that stays in the L1 cache, with
// all choices outside of the loops.

// Per-target include guard
#if defined(SWITCHYARD_SRC_SIMD_ROUTE_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_ROUTE_KEYS_INL_H_
#undef SWITCHYARD_SRC_SIMD_ROUTE_KEYS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_ROUTE_KEYS_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/simd/route_recipe.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

#include "hwy/highway.h"

#include "src/simd/recipes-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/simdgroup-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Rows that are made, selected among and weighed together, at most.
constexpr size_t kRecipeBatch = 32;

using RowTag = hn::ScalableTag<float>;
using RowVec = hn::Vec<RowTag>;

// What the weights of a row need to know of all of it.
struct RowFacts {
  float max = 0.0f;         // of x, the NaNs aside; any number if no one asks
  bool nan = false;         // one x is
  bool none = false;        // all are -inf
  float sum_exp = 1.0f;     // over all of exp(x - max), for keys or weights
  float sum_values = 1.0f;  // over all of v, for a share of it
};

// to[i] = f(d, x[i]) for whole vectors, then for the rest; x may be `to`.
template <class F>
HWY_INLINE void ForRow(const float* x, size_t n, float* to, const F& f) {
  const RowTag d;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, to + i);
  if (i < n) {
    StorePartial(f(d, LoadPartial(d, x + i, n - i)), d, to + i, n - i);
  }
}

// The logit that all else sees, but for a bias.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MapLogit(const RouteOptions& o, D d, V x) {
  if (o.logit_scale != 1.0f) x = hn::Mul(x, hn::Set(d, o.logit_scale));
  if (o.logit_softcap != 0.0f) {
    const V cap = hn::Set(d, o.logit_softcap);
    x = hn::Mul(cap, Tanh(d, hn::Div(x, cap)));
  }
  if (o.logit_clip != 0.0f) {
    const V clip = hn::Set(d, o.logit_clip), low = hn::Neg(clip);
    x = hn::IfThenElse(hn::Gt(x, clip), clip, x);
    x = hn::IfThenElse(hn::Lt(x, low), low, x);
  }
  return x;
}
struct MapRow {
  const RouteOptions& o;
  HWY_INLINE RowVec operator()(RowTag d, RowVec x) const {
    return MapLogit(o, d, x);
  }
};

// a[i] += b[i]
inline HWY_NOINLINE void AddRow(const float* HWY_RESTRICT b, size_t n,
                                float* HWY_RESTRICT a) {
  const RowTag d;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, a + i);
  }
  if (i < n) {
    const RowVec sum =
        hn::Add(LoadPartial(d, a + i, n - i), LoadPartial(d, b + i, n - i));
    StorePartial(sum, d, a + i, n - i);
  }
}
// a[i] += row[begin + i] of any float type.
inline HWY_NOINLINE void AddColumns(const ConstAnyMatrix& m, size_t row,
                                    size_t begin, size_t n, float* a) {
  if (m.type == Type::kF32) return AddRow(m.Row<float>(row) + begin, n, a);
  constexpr size_t kPiece = 256;
  HWY_ALIGN float piece[kPiece];
  for (size_t at = 0; at < n; at += kPiece) {
    const size_t count = HWY_MIN(kPiece, n - at);
    RowToFloats(m.ColRange(begin + at, begin + at + count), row, piece);
    AddRow(piece, count, a + at);
  }
}

// Scores of x, rounded, and with a bias of floats added if there is one. For
// kEasy (see recipes-inl.h) of scores that look at no maximum, whether all of
// the row was so; if not, `to` is garbage.
template <class F, bool kEasy, bool kBias>
HWY_INLINE bool ScoreLoop(const float* x, size_t n, float max, Type round,
                          const float* HWY_RESTRICT bias, float* to) {
  const RowTag d;
  const hn::RebindToSigned<RowTag> di;
  const size_t N = hn::Lanes(d);
  const auto size_bits = hn::Set(di, INT32_MAX);
  auto most = hn::Zero(di);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    const RowVec v = hn::LoadU(d, x + i);
    if (kEasy) most = hn::Max(most, hn::And(hn::BitCast(di, v), size_bits));
    RowVec s =
        RoundTo(round, d, F::template Of<kEasy>(d, v, hn::Set(d, max), round));
    if (kBias) s = hn::Add(s, hn::LoadU(d, bias + i));
    hn::StoreU(s, d, to + i);
  }
  if (i < n) {
    const RowVec v = LoadPartial(d, x + i, n - i);
    if (kEasy) most = hn::Max(most, hn::And(hn::BitCast(di, v), size_bits));
    RowVec s =
        RoundTo(round, d, F::template Of<kEasy>(d, v, hn::Set(d, max), round));
    if (kBias) s = hn::Add(s, LoadPartial(d, bias + i, n - i));
    StorePartial(s, d, to + i, n - i);
  }
  const auto limit = hn::BitCast(di, hn::Set(d, kEasyMost));
  return hn::AllFalse(di, hn::Gt(most, limit));
}
template <class F>
HWY_NOINLINE bool ScoreRow(const float* x, size_t n, float max, bool easy,
                           Type round, const float* bias, float* to) {
  // The type is a constant where it matters: in the loop without rounding.
  if (round == Type::kF32 && easy) {
    return bias != nullptr
               ? ScoreLoop<F, true, true>(x, n, max, Type::kF32, bias, to)
               : ScoreLoop<F, true, false>(x, n, max, Type::kF32, bias, to);
  }
  ScoreLoop<F, false, false>(x, n, max, round, nullptr, to);
  if (bias != nullptr) AddRow(bias, n, to);
  return true;
}
inline bool ScoreRowBy(Score score, const float* x, size_t n, float max,
                       bool easy, Type round, const float* bias, float* to) {
  switch (score) {
#define SWITCHYARD_CASE(name, F, ...) \
  case Score::name:                   \
    return ScoreRow<F>(x, n, max, easy, round, bias, to);
    SWITCHYARD_SCORES(SWITCHYARD_CASE)
#undef SWITCHYARD_CASE
  }
  return true;
}

// to[i] = round(e[i] / sum)
struct ShareOf {
  float sum;
  Type round;
  HWY_INLINE RowVec operator()(RowTag d, RowVec e) const {
    return RoundTo(round, d, hn::Div(e, hn::Set(d, sum)));
  }
};
// to[i] = e[i] / sum + bias[i]
inline HWY_NOINLINE void ShareRow(const float* e, size_t n, float sum,
                                  const float* HWY_RESTRICT bias, float* to) {
  const RowTag d;
  const size_t N = hn::Lanes(d);
  const RowVec s = hn::Set(d, sum);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    const RowVec share = hn::Div(hn::LoadU(d, e + i), s);
    hn::StoreU(hn::Add(share, hn::LoadU(d, bias + i)), d, to + i);
  }
  if (i < n) {
    const RowVec share = hn::Div(LoadPartial(d, e + i, n - i), s);
    StorePartial(hn::Add(share, LoadPartial(d, bias + i, n - i)), d, to + i,
                 n - i);
  }
}

// exp(x - max) of what is not below max by more than 2 eps, relatively.
struct NearTo {
  float max, eps;
  Type round;
  HWY_INLINE RowVec operator()(RowTag d, RowVec x) const {
    const RowVec top = hn::Set(d, max), size = hn::Abs(x);
    const RowVec factor = hn::IfThenElse(hn::Lt(size, top), top, size);
    const RowVec below = RoundTo(round, d, hn::Sub(top, x));
    const auto far = hn::Gt(RoundTo(round, d, hn::Div(below, factor)),
                            RoundTo(round, d, hn::Set(d, 2.0f * eps)));
    return hn::IfThenZeroElse(far, SoftmaxOf::Of<false>(d, x, top, Type::kF32));
  }
};

// The largest of a piece of a row, into what is known already. (Two at a time:
// each maximum waits for the one before.)
inline HWY_NOINLINE void LookAt(const float* x, size_t n, RowFacts& facts) {
  const RowTag d;
  const size_t N = hn::Lanes(d);
  RowVec max = hn::Set(d, facts.max), max2 = max;
  auto nan = hn::MaskFromVec(hn::Zero(d)), nan2 = nan;
  size_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    const RowVec v = hn::LoadU(d, x + i), v2 = hn::LoadU(d, x + i + N);
    nan = hn::Or(nan, hn::IsNaN(v));
    nan2 = hn::Or(nan2, hn::IsNaN(v2));
    max = hn::IfThenElse(hn::Gt(v, max), v, max);
    max2 = hn::IfThenElse(hn::Gt(v2, max2), v2, max2);
  }
  max = hn::IfThenElse(hn::Gt(max2, max), max2, max);
  nan = hn::Or(nan, nan2);
  for (; i < n; i += N) {
    RowVec v = max;
    if (i + N <= n) {
      v = hn::LoadU(d, x + i);
    } else {
      v = hn::IfThenElse(hn::FirstN(d, n - i), LoadPartial(d, x + i, n - i),
                         max);
    }
    nan = hn::Or(nan, hn::IsNaN(v));
    max = hn::IfThenElse(hn::Gt(v, max), v, max);
  }
  facts.max = LargestLane(d, max);
  facts.nan |= !hn::AllFalse(d, nan);
}

// A row of floats that is made as it is read, from left to right, in pieces:
// for rows that are longer than what is kept, as a row of topk-inl.h.
struct Pieces {
  void (*make)(const void* context, size_t begin, size_t n, float* to);
  const void* context;
  size_t size;
  float* buffer;
  size_t room;  // of the buffer: a multiple of 4 vectors of any length
  mutable size_t begin = 0, end = 0;

  HWY_INLINE const float* At(size_t i) const {
    if (HWY_UNLIKELY(i - begin >= end - begin)) Make(i);
    return buffer + (i - begin);
  }
  HWY_NOINLINE void Make(size_t i) const {
    begin = i / room * room;
    end = HWY_MIN(begin + room, size);
    make(context, begin, end - begin, buffer);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, size_t i) const {
    return hn::LoadU(d, At(i));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> LoadPartial(D d, size_t i, size_t n) const {
    return simd::HWY_NAMESPACE::LoadPartial(d, At(i), n);
  }
};

// Body of SimdgroupSum: of what is no NaN.
struct SumOfNumbers {
  const Pieces& row;

  template <class D, class V>
  HWY_INLINE V Number(D, V v) const {
    return hn::IfThenZeroElse(hn::IsNaN(v), v);
  }
  template <class D, class V>
  HWY_INLINE void Four(D d, size_t i, V& a, V& b, V& c, V& e) const {
    const size_t N = hn::Lanes(d);
    const float* const p = row.At(i);
    a = hn::Add(a, Number(d, hn::LoadU(d, p)));
    b = hn::Add(b, Number(d, hn::LoadU(d, p + N)));
    c = hn::Add(c, Number(d, hn::LoadU(d, p + 2 * N)));
    e = hn::Add(e, Number(d, hn::LoadU(d, p + 3 * N)));
  }
  template <class D, class V>
  HWY_INLINE void One(D d, size_t i, size_t count, V& a) const {
    a = hn::Add(
        a, Number(d, simd::HWY_NAMESPACE::LoadPartial(d, row.At(i), count)));
  }
};
inline HWY_NOINLINE float SumOf(const Pieces& row) {
  return SimdgroupSum(row.size, SumOfNumbers{row});
}

// Body of SimdgroupSum: of exp(x - max), which is stored as well. For rows that
// are easy for SoftmaxOf.
struct SumOfExps {
  const float* x;
  float max;
  float* to;

  template <class D, class V>
  HWY_INLINE void Four(D d, size_t i, V& a, V& b, V& c, V& e) const {
    const size_t N = hn::Lanes(d);
    a = hn::Add(a, Put(d, i));
    b = hn::Add(b, Put(d, i + N));
    c = hn::Add(c, Put(d, i + 2 * N));
    e = hn::Add(e, Put(d, i + 3 * N));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> Put(D d, size_t i) const {
    const auto v = Exp(d, hn::LoadU(d, x + i));
    hn::StoreU(v, d, to + i);
    return v;
  }
  template <class D, class V>
  HWY_INLINE void One(D d, size_t i, size_t count, V& a) const {
    const V v = Exp(d, LoadPartial(d, x + i, count));
    StorePartial(v, d, to + i, count);
    a = hn::Add(a, hn::IfThenElseZero(hn::FirstN(d, count), v));
  }
  template <class D, class V>
  HWY_INLINE V Exp(D d, V v) const {
    return SoftmaxOf::Of<true>(d, v, hn::Set(d, max), Type::kF32);
  }
};
inline HWY_NOINLINE float ExpRow(const float* x, size_t n, float max,
                                 float* to) {
  return SimdgroupSum(n, SumOfExps{x, max, to});
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_KEYS_INL_H_
