// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Turns a row's logits into x, and x into the keys that selection compares.
// Also finds facts about the row that its weights need. Each step is a pass
// over a piece of the row that stays in the L1 cache. All choices are outside
// of the loops.

#if defined(SWITCHYARD_SRC_SIMD_ROUTE_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_ROUTE_KEYS_INL_H_
#undef SWITCHYARD_SRC_SIMD_ROUTE_KEYS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_ROUTE_KEYS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "src/simd/route.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

#include "hwy/highway.h"

#include "src/simd/route_scores-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/simdgroup-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// The keys of longer rows are computed in pieces, each time they are read.
constexpr size_t kKeyTile = 16384;

using RowTag = hn::ScalableTag<float>;
using RowVec = hn::Vec<RowTag>;

// Facts about a row that its weights need. (The fields have no initialisers,
// because initialising a batch would cost a single row 130 stores.)
struct RowFacts {
  float max;         // of x without NaNs; only set if needed
  float sum_exp;     // of exp(x - max), if keys or weights use it
  float sum_values;  // of v, if the divisor may be a share of it
  bool has_nan;      // x has a NaN
  bool is_empty;     // all x are -inf
};
constexpr RowFacts kNoFacts = {0.0f, 1.0f, 1.0f, false, false};

// Sets to[i] = f(d, x[i]), in whole vectors and a remainder. x may be `to`.
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

// Turns logits (the argument) into x (see route.h). If x includes the bias,
// the caller adds the bias to the result.
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

// Adds b[i] to a[i].
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
// Adds row[begin + i] to a[i], for a row of any float type.
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

// Sets `to` to the scores of x, rounded to `round`. If kBias, adds `bias` to
// the rounded scores. kEasy (see route_scores-inl.h) is allowed only for
// scores that do not depend on `max`. With kEasy, returns false if the row
// was not easy; `to` then has garbage.
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
    RowVec s = RoundTo(
        round, d, F::template Compute<kEasy>(d, v, hn::Set(d, max), round));
    if (kBias) s = hn::Add(s, hn::LoadU(d, bias + i));
    hn::StoreU(s, d, to + i);
  }
  if (i < n) {
    const RowVec v = LoadPartial(d, x + i, n - i);
    if (kEasy) most = hn::Max(most, hn::And(hn::BitCast(di, v), size_bits));
    RowVec s = RoundTo(
        round, d, F::template Compute<kEasy>(d, v, hn::Set(d, max), round));
    if (kBias) s = hn::Add(s, LoadPartial(d, bias + i, n - i));
    StorePartial(s, d, to + i, n - i);
  }
  const auto limit = hn::BitCast(di, hn::Set(d, kEasyMost));
  return hn::AllFalse(di, hn::Gt(most, limit));
}
template <class F>
HWY_NOINLINE bool ScoreRow(const float* x, size_t n, float max, bool easy,
                           Type round, const float* bias, float* to) {
  // Without rounding, the loop must be fast, so the type is a constant.
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
#define SWITCHYARD_CASE(name, text, F, ...) \
  case Score::name:                         \
    return ScoreRow<F>(x, n, max, easy, round, bias, to);
    SWITCHYARD_SCORES(SWITCHYARD_CASE)
#undef SWITCHYARD_CASE
  }
  return true;
}

// Divides e by a row's sum, and rounds the result.
struct ShareOf {
  float sum;
  Type round;
  HWY_INLINE RowVec operator()(RowTag d, RowVec e) const {
    return RoundTo(round, d, hn::Div(e, hn::Set(d, sum)));
  }
};
// Computes to[i] = e[i] / sum + bias[i].
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

// Computes exp(x - max) if x is near max, otherwise 0. Near means below max by
// at most 2 eps times the larger of |x| and max.
struct NearTo {
  float max, eps;
  Type round;
  HWY_INLINE RowVec operator()(RowTag d, RowVec x) const {
    const RowVec top = hn::Set(d, max), size = hn::Abs(x);
    const RowVec factor = hn::IfThenElse(hn::Lt(size, top), top, size);
    const RowVec below = RoundTo(round, d, hn::Sub(top, x));
    const auto far = hn::Gt(RoundTo(round, d, hn::Div(below, factor)),
                            RoundTo(round, d, hn::Set(d, 2.0f * eps)));
    return hn::IfThenZeroElse(far,
                              SoftmaxOf::Compute<false>(d, x, top, Type::kF32));
  }
};

// Updates a row's maximum and has_nan with a piece of the row. (It handles two
// vectors at a time, because each maximum waits for the previous one.)
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
  facts.has_nan |= !hn::AllFalse(d, nan);
}

// A row of floats for topk-inl.h that is too long for the stack. It is computed
// in pieces while it is read from left to right.
struct Pieces {
  void (*make)(const void* context, size_t begin, size_t n, float* to);
  const void* context;
  size_t size;
  float* buffer;
  size_t room;  // the buffer's size: a multiple of 4 vectors of any length
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

// A body for SimdgroupSum(): sums all elements except NaNs.
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

// A body for SimdgroupSum(): sums exp(x - max) of a row with a finite max and
// no NaN, and stores each exp(x - max).
struct StoredExps {
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
    return SoftmaxOf::Compute<true>(d, v, hn::Set(d, max), Type::kF32);
  }
};
inline HWY_NOINLINE float ExpRow(const float* x, size_t n, float max,
                                 float* to) {
  return SimdgroupSum(n, StoredExps{x, max, to});
}

// Returns element i of a matrix [n, 1] or [1, n].
inline int64_t IndexAt(const ConstAnyMatrix& m, size_t i) {
  const size_t at = m.cols == 1 ? i * m.stride : i;
  switch (m.type) {
    case Type::kU8:
      return static_cast<const uint8_t*>(m.data)[at];
    case Type::kI64:
      return static_cast<const int64_t*>(m.data)[at];
    case Type::kU32:
      return static_cast<const uint32_t*>(m.data)[at];
    default:
      return static_cast<const int32_t*>(m.data)[at];
  }
}
// Returns a token's row of correction_bias, or SIZE_MAX if it has none.
inline size_t BiasRow(const RouteInputs& in, size_t token) {
  if (in.correction_bias.data == nullptr) return SIZE_MAX;
  if (in.bias_index.data == nullptr) return 0;
  const int64_t i = IndexAt(in.bias_index, token);
  const bool is_valid = static_cast<uint64_t>(i) < in.correction_bias.rows;
  return is_valid ? static_cast<size_t>(i) : SIZE_MAX;
}

// Computes the keys of a call's rows, and facts about the rows.
class RowMaker {
 public:
  RowMaker(const RouteArgs& args, const RoutePlan& plan)
      : in_(args.inputs), options_(args.options), plan_(plan) {}

  // Computes columns [begin, begin + n) of the keys; drops no groups.
  void Keys(size_t row, const RowFacts& facts, size_t begin, size_t n,
            float* to) const {
    const float* const x = X(row, begin, n, to);
    if (plan_.selects_by_x) {
      if (x != to) std::copy_n(x, n, to);
      return;
    }
    const Type round = plan_.keys_need_sum ? Type::kF32 : plan_.key_round;
    ScoreRowBy(plan_.key_score, x, n, facts.max, false, round, nullptr, to);
    if (plan_.keys_need_sum) {
      ForRow(to, n, to, ShareOf{facts.sum_exp, plan_.key_round});
    }
    if (plan_.bias_in_key) AddBias(row, begin, n, to);
  }

  // Keys() for a whole row of at most kKeyTile columns. Sets only the facts
  // that it finds on the way.
  void RowKeys(size_t row, float* to, RowFacts& facts) const {
    const size_t n = plan_.columns;
    if (plan_.selects_by_x) {
      X(row, 0, n, to);
    } else if (plan_.keys_need_sum) {
      const float* const x = X(row, 0, n, to);
      facts.max = -HUGE_VALF;
      LookAt(x, n, facts);
      facts.is_empty = !facts.has_nan && facts.max == -HUGE_VALF;
      if (HWY_LIKELY(!facts.has_nan && std::fabs(facts.max) < HUGE_VALF)) {
        facts.sum_exp = ExpRow(x, n, facts.max, to);
      } else {
        ScoreRowBy(plan_.key_score, x, n, facts.max, false, Type::kF32, nullptr,
                   to);
        facts.sum_exp = SumOf({nullptr, nullptr, n, to, n, 0, n});
      }
      const float* const bias = FloatBias(row);
      if (HWY_LIKELY(bias != nullptr && plan_.key_round == Type::kF32)) {
        ShareRow(to, n, facts.sum_exp, bias, to);
      } else {
        ForRow(to, n, to, ShareOf{facts.sum_exp, plan_.key_round});
        if (plan_.bias_in_key) AddBias(row, 0, n, to);
      }
    } else if (!EasyKeys(row, to)) {
      Look(row, facts, to);
      Keys(row, facts, 0, n, to);
    }
  }
  // True if weights need facts that RowKeys() does not find.
  bool WeightsNeedMore() const {
    return plan_.keys_need_sum ? plan_.bounded_by_all && !plan_.is_softmax
                               : WeightsNeedSums() || plan_.is_softmax;
  }
  bool WeightsNeedSums() const {
    return plan_.is_share || plan_.bounded_by_all;
  }

  // Finds all facts that a row's weights need. Leaves garbage in the buffer.
  void LookForWeights(size_t row, RowFacts& facts, float* buffer) const {
    Look(row, facts, buffer);
    if (plan_.is_share || (plan_.bounded_by_all && plan_.is_softmax)) {
      facts.sum_exp = SumOfExps(row, facts.max, buffer);
    }
    if (plan_.bounded_by_all && !plan_.is_softmax) {
      facts.sum_values =
          SumOver({*this, row, plan_.value_score, options_.round_to, facts.max},
                  buffer);
    }
  }
  float SumOfExps(size_t row, float max, float* buffer) const {
    return SumOver({*this, row, Score::kSoftmax, Type::kF32, max}, buffer);
  }
  // Finds a row's largest x, and whether it has a NaN or is empty.
  void Look(size_t row, RowFacts& facts, float* buffer) const {
    facts.max = -HUGE_VALF;
    facts.has_nan = false;
    for (size_t i = 0; i < plan_.columns; i += kKeyTile) {
      const size_t n = HWY_MIN(kKeyTile, plan_.columns - i);
      LookAt(X(row, i, n, buffer), n, facts);
    }
    facts.is_empty = !facts.has_nan && facts.max == -HUGE_VALF;
  }

  // Computes the weights of kSparsemixer's two slots. On entry, `x` has the
  // largest x of each round; on return, the weights.
  void WeighRounds(size_t row, const RowFacts& facts, const int32_t* ids,
                   float* x, float* buffer) const {
    size_t without = SIZE_MAX;
    for (size_t i = 0; i < 2 && !facts.has_nan; ++i) {
      if (x[i] == -HUGE_VALF) {
        x[i] = 0.0f;
        continue;
      }
      x[i] = 1.0f / SumOver({*this, row, Score::kSparsemixer, options_.round_to,
                             x[i], without},
                            buffer);
      without = static_cast<size_t>(ids[0]);
    }
  }

 private:
  // Returns x of columns [begin, begin + n) of a row: a pointer to the logits
  // if these are x, otherwise `to`.
  const float* X(size_t row, size_t begin, size_t n, float* to) const {
    const ConstAnyMatrix& logits = in_.logits;
    if (logits.type == Type::kF32 && !plan_.maps_logits) {
      return logits.Row<float>(row) + begin;
    }
    RowToFloats(logits.ColRange(begin, begin + n), row, to);
    if (plan_.maps_logits) ForRow(to, n, to, MapRow{options_});
    if (plan_.bias_in_x) AddBias(row, begin, n, to);
    return to;
  }
  void AddBias(size_t row, size_t begin, size_t n, float* to) const {
    const size_t bias = BiasRow(in_, row);
    if (bias == SIZE_MAX || begin >= plan_.experts) return;
    AddColumns(in_.correction_bias, bias, begin,
               HWY_MIN(n, plan_.experts - begin), to);
  }
  // Returns the bias of keys if it has floats for all columns, otherwise null.
  const float* FloatBias(size_t row) const {
    const ConstAnyMatrix& all = in_.correction_bias;
    if (!plan_.bias_in_key || all.type != Type::kF32 ||
        plan_.columns != plan_.experts) {
      return nullptr;
    }
    const size_t bias = BiasRow(in_, row);
    return bias == SIZE_MAX ? nullptr : all.Row<float>(bias);
  }
  // Computes the keys of a row of easy logits. Returns false for other rows.
  bool EasyKeys(size_t row, float* to) const {
    if (plan_.key_round != Type::kF32) return false;
    const float* const x = X(row, 0, plan_.columns, to);
    const float* const bias = FloatBias(row);
    if (!ScoreRowBy(plan_.key_score, x, plan_.columns, 0.0f, true, Type::kF32,
                    bias, to)) {
      return false;
    }
    if (plan_.bias_in_key && bias == nullptr) {
      AddBias(row, 0, plan_.columns, to);
    }
    return true;
  }

  // The terms of a sum over a row: scores or, for kInRounds, the results of
  // NearTo.
  struct Terms {
    const RowMaker& maker;
    size_t row;
    Score score;
    Type round;
    float max;
    size_t without = SIZE_MAX;  // for kInRounds: the column to leave out

    static void Make(const void* context, size_t begin, size_t n, float* to) {
      const Terms& t = *static_cast<const Terms*>(context);
      const float* const x = t.maker.X(t.row, begin, n, to);
      if (KindOf(t.score) == ScoreKind::kInRounds) {
        ForRow(x, n, to, NearTo{t.max, t.maker.options_.jitter_eps, t.round});
        if (t.without - begin < n) to[t.without - begin] = 0.0f;
      } else {
        ScoreRowBy(t.score, x, n, t.max, false, t.round, nullptr, to);
      }
    }
  };
  float SumOver(const Terms& terms, float* buffer) const {
    return SumOf({Terms::Make, &terms, plan_.columns, buffer, kKeyTile});
  }

  const RouteInputs& in_;
  const RouteOptions& options_;
  const RoutePlan& plan_;
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_KEYS_INL_H_
