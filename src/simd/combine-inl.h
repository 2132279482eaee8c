// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sums a token's terms (rows of any type, times their weights) to floats.

#if defined(SWITCHYARD_SRC_SIMD_COMBINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_COMBINE_INL_H_
#undef SWITCHYARD_SRC_SIMD_COMBINE_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_COMBINE_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "src/base/type_list.h"
#include "src/simd/combine.h"
#include "src/simd/targets.h"

#include "hwy/highway.h"

#include "src/simd/combine_terms-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/simdgroup-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// AddTermFour() and AddFour() add a row to four vectors of a sum. AddTermFour()
// computes v = fma(w, row[i..], v), and leaves sums of 16-bit rows in the order
// of LoadShuffled(). AddFour() computes v = row[i..] + v.
template <class T, class D, class V>
SWITCHYARD_PIECE void AddTermFour(D d, V w, const T* HWY_RESTRICT row, V& v0,
                                  V& v1, V& v2, V& v3) {
  const size_t N = hn::Lanes(d);
  if constexpr (sizeof(T) == 2) {
    V x0, x1, x2, x3;
    Storage<T>::LoadShuffled(d, row, x0, x1);
    Storage<T>::LoadShuffled(d, row + 2 * N, x2, x3);
    v0 = hn::MulAdd(w, x0, v0);
    v1 = hn::MulAdd(w, x1, v1);
    v2 = hn::MulAdd(w, x2, v2);
    v3 = hn::MulAdd(w, x3, v3);
    return;
  }
  v0 = hn::MulAdd(w, Storage<T>::Load(d, row), v0);
  v1 = hn::MulAdd(w, Storage<T>::Load(d, row + N), v1);
  v2 = hn::MulAdd(w, Storage<T>::Load(d, row + 2 * N), v2);
  v3 = hn::MulAdd(w, Storage<T>::Load(d, row + 3 * N), v3);
}
template <class T, class D, class V>
SWITCHYARD_PIECE void AddFour(D d, const T* row, V& v0, V& v1, V& v2, V& v3) {
  const size_t N = hn::Lanes(d);
  v0 = hn::Add(Storage<T>::Load(d, row), v0);
  v1 = hn::Add(Storage<T>::Load(d, row + N), v1);
  v2 = hn::Add(Storage<T>::Load(d, row + 2 * N), v2);
  v3 = hn::Add(Storage<T>::Load(d, row + 3 * N), v3);
}
// Loads n <= Lanes(d) elements, beginning at column i, and zeros behind them.
template <class D>
SWITCHYARD_PIECE hn::Vec<D> LoadAny(D d, Type type, const void* row, size_t i,
                                    size_t n) {
  switch (type) {
#define SWITCHYARD_CASE(T, ...)                           \
  case kType<T>: {                                        \
    const T* const from = static_cast<const T*>(row) + i; \
    return HWY_LIKELY(n == hn::Lanes(d))                  \
               ? Storage<T>::Load(d, from)                \
               : Storage<T>::LoadPartial(d, from, n);     \
  }
    SWITCHYARD_FLOATS_AND_CODES(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
    default:
      return hn::Zero(d);
  }
}
// Adds a residual to four vectors. (It is inlined. A call in the loop, even if
// it is never made, would keep rows and weights out of registers: f32 would
// take 1.15 times as long.)
template <class D, class V>
SWITCHYARD_PIECE void AddResidualFour(D d, const void* residual, Type type,
                                      size_t i, V& v0, V& v1, V& v2, V& v3) {
  if (residual == nullptr) return;
  if (HWY_LIKELY(type == Type::kF32)) {
    AddFour(d, static_cast<const float*>(residual) + i, v0, v1, v2, v3);
    return;
  }
  switch (type) {
#define SWITCHYARD_CASE(T, ...)                                      \
  case kType<T>:                                                     \
    AddFour(d, static_cast<const T*>(residual) + i, v0, v1, v2, v3); \
    return;
    SWITCHYARD_HALVES(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
    default:
      return;
  }
}

template <class D, class V>
SWITCHYARD_PIECE void ScaleFour(D d, float factor, V& v0, V& v1, V& v2, V& v3) {
  const V factors = hn::Set(d, factor);
  v0 = hn::Mul(v0, factors);
  v1 = hn::Mul(v1, factors);
  v2 = hn::Mul(v2, factors);
  v3 = hn::Mul(v3, factors);
}
// Computes n elements of a sum, beginning at column i: one vector or less. Also
// stores them to `values`, followed by zeros, because behind the row's end an
// infinite weight times 0 gives NaN. (The function is not inlined, because each
// kind of sum calls it from eight places.)
template <class In>
HWY_NOINLINE void SumVector(const Terms& terms, const Tail& tail, size_t i,
                            size_t n, float* sum, float* HWY_RESTRICT values) {
  const SimdgroupTag d;
  auto v = hn::Zero(d);
  const CombineScales none, &scales = tail.scales ? *tail.scales : none;
  const size_t scaled = terms.count - tail.unscaled;
  for (size_t s = 0; s < terms.count; ++s) {
    if (s == scaled) v = hn::Mul(v, hn::Set(d, scales.routed));
    const In* const row = static_cast<const In*>(terms.rows[s]) + i;
    v = hn::MulAdd(hn::Set(d, terms.weights[s]),
                   Storage<In>::LoadPartial(d, row, n), v);
  }
  if (tail.unscaled == 0) v = hn::Mul(v, hn::Set(d, scales.routed));
  v = hn::Mul(v, hn::Set(d, scales.block));
  if (tail.residual != nullptr) {
    v = hn::Add(hn::Mul(LoadAny(d, tail.residual_type, tail.residual, i, n),
                        hn::Set(d, scales.residual)),
                v);
  }
  v = hn::Mul(v, hn::Set(d, scales.out));
  v = hn::IfThenElseZero(hn::FirstN(d, n), v);
  hn::Store(v, d, values);
  StoreUpTo<float>(v, d, sum + i, n);
}

// A body for SimdgroupSum(). It computes sum[i], the sum of the terms and the
// residual. With kSquares, it adds the square of sum[i] to an accumulator.
// `sum` may be the residual or the row of a term.
// kTerms: the number of terms, or 0 if it is only known at run time.
// kScaled: applies the scales of `tail`. With kTerms = 0, the code tests at
// run time whether there are scales. This test would slow down unrolled sums.
template <class In, bool kSquares, size_t kTerms, bool kScaled = false>
struct SumTerms {
  const Terms& terms;
  const Tail& tail;
  float* sum;
  // Copies stay in registers, because no store to `sum` can change them.
  // Without copies, the sum takes 1.08 to 1.17 times as long.
  const In* rows[kTerms + 1];
  float weights[kTerms + 1];
  const void* residual;
  Type residual_type;

  HWY_INLINE SumTerms(const Terms& terms_in, const Tail& tail_in, float* sum_in)
      : terms(terms_in),
        tail(tail_in),
        sum(sum_in),
        residual(tail_in.residual),
        residual_type(tail_in.residual_type) {
    for (size_t s = 0; s < kTerms; ++s) {
      rows[s] = static_cast<const In*>(terms.rows[s]);
      weights[s] = terms.weights[s];
    }
  }

  template <class D, class V>
  HWY_INLINE void Four(D d, size_t i, V& a, V& b, V& c, V& e) const {
    const size_t N = hn::Lanes(d);
    const bool scaled =
        kScaled || (kTerms == 0 && HWY_UNLIKELY(tail.scales != nullptr));
    V v0 = hn::Zero(d), v1 = v0, v2 = v0, v3 = v0;
    if constexpr (kTerms != 0) {
      for (size_t s = 0; s < kTerms; ++s) {
        AddTermFour(d, hn::Set(d, weights[s]), rows[s] + i, v0, v1, v2, v3);
      }
    } else {
      for (size_t s = 0; s < terms.count; ++s) {
        if (scaled && s + tail.unscaled == terms.count) {
          ScaleFour(d, tail.scales->routed, v0, v1, v2, v3);
        }
        AddTermFour(d, hn::Set(d, terms.weights[s]),
                    static_cast<const In*>(terms.rows[s]) + i, v0, v1, v2, v3);
      }
    }
    // An unrolled sum applies `routed` to all terms. If some terms must not be
    // scaled, SumListed() uses an unrolled sum only if `routed` is 1.
    if (scaled && (kTerms != 0 || tail.unscaled == 0)) {
      ScaleFour(d, tail.scales->routed, v0, v1, v2, v3);
    }
    if constexpr (sizeof(In) == 2) {
      Storage<In>::Unshuffle(d, v0, v1);
      Storage<In>::Unshuffle(d, v2, v3);
    }
    V y0 = v0, y1 = v1, y2 = v2, y3 = v3;
    if (scaled) {
      ScaleFour(d, tail.scales->block, y0, y1, y2, y3);
      v0 = v1 = v2 = v3 = hn::Set(d, -0.0f);  // changes no sum
    }
    AddResidualFour(d, residual, residual_type, i, v0, v1, v2, v3);
    if (scaled) {
      const float factor = residual == nullptr ? 1.0f : tail.scales->residual;
      ScaleFour(d, factor, v0, v1, v2, v3);
      v0 = hn::Add(v0, y0);
      v1 = hn::Add(v1, y1);
      v2 = hn::Add(v2, y2);
      v3 = hn::Add(v3, y3);
      ScaleFour(d, tail.scales->out, v0, v1, v2, v3);
    }
    hn::StoreU(v0, d, sum + i);
    hn::StoreU(v1, d, sum + i + N);
    hn::StoreU(v2, d, sum + i + 2 * N);
    hn::StoreU(v3, d, sum + i + 3 * N);
    if (kSquares) {
      a = hn::MulAdd(v0, v0, a);
      b = hn::MulAdd(v1, v1, b);
      c = hn::MulAdd(v2, v2, c);
      e = hn::MulAdd(v3, v3, e);
    }
  }

  template <class D, class V>
  HWY_INLINE void One(D d, size_t i, size_t n, V& a) const {
    HWY_ALIGN float values[hn::MaxLanes(D())];
    SumVector<In>(terms, tail, i, n, sum, values);
    if (kSquares) {
      const V v = hn::Load(d, values);
      a = hn::MulAdd(v, v, a);
    }
  }
};

// The type of SumListed(), which writes the sum of the listed terms and the
// residual to `sum`. With kSquares, it returns the sum of the squares of `sum`.
using SumFunction = float (*)(const Terms& terms, const Tail& tail, float* sum,
                              size_t cols);

// The loop over terms is unrolled for the numbers of terms in most models,
// which saves 4 % of a token in cache (f32, H = 2048, top_k = 8). For 16-bit
// rows, it is unrolled only for the most frequent number, because their loads
// take extra instructions. For codes, it is not unrolled.
template <class In, bool kSquares>
HWY_NOINLINE float SumListed(const Terms& terms, const Tail& tail, float* sum,
                             size_t cols) {
#define SWITCHYARD_UNROLLED(n, kScaled)                                        \
  if (terms.count == n) {                                                      \
    return SimdgroupSum(cols,                                                  \
                        SumTerms<In, kSquares, n, kScaled>(terms, tail, sum)); \
  }
  const bool scaled = tail.scales != nullptr;
  if constexpr (sizeof(In) > 1) {
    if (!scaled) {
      SWITCHYARD_UNROLLED(8, false)
    } else if (tail.unscaled == 0 || tail.scales->routed == 1.0f) {
      SWITCHYARD_UNROLLED(8, true)
    }
  }
  if constexpr (sizeof(In) > 2) {
    if (!scaled) {
      SWITCHYARD_UNROLLED(4, false)
      SWITCHYARD_UNROLLED(6, false)
      SWITCHYARD_UNROLLED(9, false)
      SWITCHYARD_UNROLLED(10, false)
    }
  }
#undef SWITCHYARD_UNROLLED
  return SimdgroupSum(cols, SumTerms<In, kSquares, 0>(terms, tail, sum));
}

// The slow path, SumSlowly(), sums any number of terms, a tile of columns at a
// time. It adds the same numbers in the same order as SumListed().
constexpr size_t kSumTile = 512;
using SumTile = float[kSumTile];

// Computes columns [begin, begin + n) of the sum of a token's terms, n <=
// kSumTile. Writes whole vectors to `sum`, which is aligned.
HWY_NOINLINE void SumSlowly(const CombineArgs& args, size_t token, size_t begin,
                            size_t n, size_t& skipped, float* sum) {
  const SimdgroupTag d;
  const size_t N = hn::Lanes(d);
  for (size_t i = 0; i < n; i += N) hn::Store(hn::Zero(d), d, sum + i);
  Terms terms;
  TermCursor cursor;
  bool all = false;
  while (!all) {
    all = ListTerms(args, token, cursor, terms);
    for (size_t s = 0; s < terms.count; ++s) {
      for (size_t i = 0; i < n; i += N) {
        const auto row = LoadAny(d, args.rows_type, terms.rows[s], begin + i,
                                 HWY_MIN(N, n - i));
        hn::Store(
            hn::MulAdd(hn::Set(d, terms.weights[s]), row, hn::Load(d, sum + i)),
            d, sum + i);
      }
    }
  }
  skipped = cursor.skipped;
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_COMBINE_INL_H_
