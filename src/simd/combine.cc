// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/combine.h"

#include <cmath>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/combine.cc"
#include "hwy/foreach_target.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/math-inl.h"
#include "src/simd/simdgroup-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard {
namespace simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The terms of one token's sum, in order: active slots, then the shared expert.
// top_k is at most 22 in any model known; more terms than fit take the slow
// path.
struct Terms {
  static constexpr size_t kMax = 64;
  size_t count = 0;
  const float* rows[kMax];
  float weights[kMax];

  void Add(float weight, const float* row) {
    weights[count] = weight;
    rows[count] = row;
    ++count;
  }
};

// Where ListTerms is in a token's terms: slots, then the shared expert.
struct TermCursor {
  size_t next = 0;     // slot; top_k: the shared expert; top_k + 1: done
  size_t skipped = 0;  // row indices out of range so far
};

// Appends terms from the cursor on until `terms` is full or there are no more;
// returns whether that was all.
HWY_INLINE bool ListTerms(const CombineArgs& args, size_t token,
                          TermCursor& cursor, Terms& terms) {
  const CombineInputs& in = args.inputs;
  const size_t top_k = in.weights.cols;
  terms.count = 0;
  for (; cursor.next < top_k; ++cursor.next) {
    if (terms.count == Terms::kMax) return false;
    size_t row = token * top_k + cursor.next;
    if (in.row_index.data != nullptr) {
      const int32_t index = in.row_index.Row(token)[cursor.next];
      row = static_cast<size_t>(index);
      if (index < 0 || row >= in.rows.rows) {
        cursor.skipped += index != -1;
        continue;
      }
    }
    terms.Add(in.weights.Row(token)[cursor.next], in.rows.Row(row));
  }
  if (cursor.next == top_k && in.shared.rows.data != nullptr) {
    if (terms.count == Terms::kMax) return false;
    float gate = 1.0f;
    if (in.shared.kind != SharedGate::kNone) gate = in.shared.gate.data[token];
    if (in.shared.kind == SharedGate::kLogit) {
      const SimdgroupTag d;
      gate = hn::GetLane(Sigmoid(d, hn::Set(d, gate)));
    }
    terms.Add(gate, in.shared.rows.Row(token));
  }
  cursor.next = top_k + 1;
  return true;
}

// All terms of a token, or those that fit.
struct TokenTerms {
  Terms terms;
  TermCursor cursor;
  bool all;

  HWY_INLINE void List(const CombineArgs& args, size_t token) {
    cursor = TermCursor();
    all = ListTerms(args, token, cursor, terms);
  }
};

// out[i] = [residual[i] +] sum over terms, and the square of that into an
// accumulator: a body for SimdgroupSum. residual may be null; out may be
// residual or a term's row.
// kTerms: how many terms, or 0 for as many as there are.
template <bool kSquares, size_t kTerms>
struct SumTerms {
  const Terms& terms;
  const float* residual;
  float* out;

  template <class D, class V>
  HWY_INLINE void Four(D d, size_t i, V& a, V& b, V& c, V& e) const {
    const size_t N = hn::Lanes(d);
    V v0 = hn::Zero(d), v1 = v0, v2 = v0, v3 = v0;
    const size_t count = kTerms != 0 ? kTerms : terms.count;
    for (size_t s = 0; s < count; ++s) {
      const V w = hn::Set(d, terms.weights[s]);
      const float* HWY_RESTRICT row = terms.rows[s] + i;
      v0 = hn::MulAdd(w, hn::LoadU(d, row), v0);
      v1 = hn::MulAdd(w, hn::LoadU(d, row + N), v1);
      v2 = hn::MulAdd(w, hn::LoadU(d, row + 2 * N), v2);
      v3 = hn::MulAdd(w, hn::LoadU(d, row + 3 * N), v3);
    }
    if (residual != nullptr) {
      v0 = hn::Add(hn::LoadU(d, residual + i), v0);
      v1 = hn::Add(hn::LoadU(d, residual + i + N), v1);
      v2 = hn::Add(hn::LoadU(d, residual + i + 2 * N), v2);
      v3 = hn::Add(hn::LoadU(d, residual + i + 3 * N), v3);
    }
    hn::StoreU(v0, d, out + i);
    hn::StoreU(v1, d, out + i + N);
    hn::StoreU(v2, d, out + i + 2 * N);
    hn::StoreU(v3, d, out + i + 3 * N);
    if (kSquares) {
      a = hn::MulAdd(v0, v0, a);
      b = hn::MulAdd(v1, v1, b);
      c = hn::MulAdd(v2, v2, c);
      e = hn::MulAdd(v3, v3, e);
    }
  }

  template <class D, class V>
  HWY_INLINE void One(D d, size_t i, size_t n, V& a) const {
    V v = hn::Zero(d);
    for (size_t s = 0; s < terms.count; ++s) {
      v = hn::MulAdd(hn::Set(d, terms.weights[s]),
                     LoadPartial(d, terms.rows[s] + i, n), v);
    }
    if (residual != nullptr) {
      v = hn::Add(LoadPartial(d, residual + i, n), v);
    }
    StorePartial(v, d, out + i, n);
    if (kSquares) {
      // weight * 0 is NaN for an infinite weight: keep it out of idle lanes.
      v = hn::IfThenElseZero(hn::FirstN(d, n), v);
      a = hn::MulAdd(v, v, a);
    }
  }
};

// More terms than Terms holds: the same sum in the same order, over a tile of
// columns at a time, whose partial sums stay on the stack between lists.
HWY_NOINLINE void SumManyTerms(const CombineArgs& args, size_t token,
                               size_t& skipped) {
  constexpr size_t kTile = 512;
  HWY_ALIGN float partial[kTile];
  Terms terms;
  const size_t cols = args.out.cols;
  for (size_t begin = 0; begin < cols; begin += kTile) {
    const size_t n = HWY_MIN(kTile, cols - begin);
    for (size_t i = 0; i < n; ++i) partial[i] = 0.0f;
    TermCursor cursor;
    bool all = false;
    while (!all) {
      all = ListTerms(args, token, cursor, terms);
      for (size_t s = 0; s < terms.count; ++s) {
        const SimdgroupTag d;
        const size_t N = hn::Lanes(d);
        const auto w = hn::Set(d, terms.weights[s]);
        const float* row = terms.rows[s] + begin;
        for (size_t i = 0; i < n; i += N) {
          const size_t count = HWY_MIN(N, n - i);
          hn::Store(hn::MulAdd(w, LoadPartial(d, row + i, count),
                               hn::Load(d, partial + i)),
                    d, partial + i);
        }
      }
    }
    if (begin == 0) skipped += cursor.skipped;
    const float* residual = args.inputs.residual.data == nullptr
                                ? nullptr
                                : args.inputs.residual.Row(token) + begin;
    float* out = args.out.Row(token) + begin;
    for (size_t i = 0; i < n; ++i) {
      out[i] = residual == nullptr ? partial[i] : residual[i] + partial[i];
    }
  }
}

// The squares of a row that is already there.
struct Squares {
  const float* row;

  template <class D, class V>
  HWY_INLINE void Four(D d, size_t i, V& a, V& b, V& c, V& e) const {
    const size_t N = hn::Lanes(d);
    One(d, i, N, a);
    One(d, i + N, N, b);
    One(d, i + 2 * N, N, c);
    One(d, i + 3 * N, N, e);
  }
  template <class D, class V>
  HWY_INLINE void One(D d, size_t i, size_t n, V& a) const {
    const V v = LoadPartial(d, row + i, n);
    a = hn::MulAdd(v, v, a);
  }
};

// The loop over the terms of most models is unrolled: 4 % of a token in cache
// (H = 2048, top_k = 8).
template <bool kSquares>
HWY_INLINE float SumListed(const Terms& terms, const float* residual,
                           float* out, size_t cols) {
  switch (terms.count) {
    case 4:
      return SimdgroupSum(cols, SumTerms<kSquares, 4>{terms, residual, out});
    case 6:
      return SimdgroupSum(cols, SumTerms<kSquares, 6>{terms, residual, out});
    case 8:
      return SimdgroupSum(cols, SumTerms<kSquares, 8>{terms, residual, out});
    case 9:
      return SimdgroupSum(cols, SumTerms<kSquares, 9>{terms, residual, out});
    case 10:
      return SimdgroupSum(cols, SumTerms<kSquares, 10>{terms, residual, out});
    default:
      return SimdgroupSum(cols, SumTerms<kSquares, 0>{terms, residual, out});
  }
}

// One token, whose terms are listed: out, and the sum of its squares if asked
// for.
template <bool kSquares>
HWY_INLINE float SumToken(const CombineArgs& args, size_t token,
                          const TokenTerms& listed, size_t& skipped) {
  float* out = args.out.Row(token);
  const size_t cols = args.out.cols;
  if (HWY_LIKELY(listed.all)) {
    skipped += listed.cursor.skipped;
    const float* residual = args.inputs.residual.data == nullptr
                                ? nullptr
                                : args.inputs.residual.Row(token);
    return SumListed<kSquares>(listed.terms, residual, out, cols);
  }
  SumManyTerms(args, token, skipped);
  return kSquares ? SimdgroupSum(cols, Squares{out}) : 0.0f;
}

// Per token one pass over its top_k rows: 4 vectors of columns at a time are
// summed in registers, slot by slot. Bound by the bytes of those rows.
void WeightedSumRows(const CombineArgs& args, size_t begin, size_t end) {
  RecordTarget(HWY_TARGET);
  size_t skipped = 0;
  TokenTerms listed;
  for (size_t token = begin; token < end; ++token) {
    listed.List(args, token);
    SumToken<false>(args, token, listed, skipped);
  }
  if (skipped != 0) args.skipped->fetch_add(skipped, std::memory_order_relaxed);
}

// normed = out * scale * norm_weight, and the first lines of the next token's
// rows on their way: a line per vector, which the loop has time for.
HWY_INLINE void NormRow(const CombineArgs& args, size_t token, float scale,
                        const Terms& next) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  const size_t cols = args.out.cols;
  const auto scales = hn::Set(d, scale);
  const float* HWY_RESTRICT row = args.out.Row(token);
  const float* HWY_RESTRICT norm_weight = args.norm_weight;
  float* HWY_RESTRICT normed = args.normed.Row(token);
  size_t term = 0;
  size_t ahead = 0;
  size_t i = 0;
  for (; i + N <= cols; i += N) {
    if (term < next.count) {
      hwy::Prefetch(next.rows[term] + ahead);
      if (++term == next.count) {
        term = 0;
        ahead += 64 / sizeof(float);
      }
    }
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, row + i), scales),
                       hn::LoadU(d, norm_weight + i)),
               d, normed + i);
  }
  if (i < cols) {
    const size_t n = cols - i;
    StorePartial(hn::Mul(hn::Mul(LoadPartial(d, row + i, n), scales),
                         LoadPartial(d, norm_weight + i, n)),
                 d, normed + i, n);
  }
}

// The same with the squares summed on the way, in 32 lanes; then a second pass
// over the sum, 8-28 KB and still in L1, which multiplies. Bound by the bytes,
// too: 3 us a token from memory (H = 2048, top_k = 8), 1.01 of the time of a
// loop that only moves them. A lone token in L2 takes 1.12 of it (0.74 us): the
// fold, the root and the divisions are a chain of 70 cycles between the passes,
// and the second pass reads the sum again.
void WeightedSumRmsNormRows(const CombineArgs& args, size_t begin, size_t end) {
  RecordTarget(HWY_TARGET);
  size_t skipped = 0;
  TokenTerms listed;
  for (size_t token = begin; token < end; ++token) {
    if (token == begin) listed.List(args, token);
    const float squares = SumToken<true>(args, token, listed, skipped);
    const float mean = squares / static_cast<float>(args.out.cols);
    listed.terms.count = 0;
    if (token + 1 < end) listed.List(args, token + 1);
    NormRow(args, token, 1.0f / std::sqrt(mean + args.eps), listed.terms);
  }
  if (skipped != 0) args.skipped->fetch_add(skipped, std::memory_order_relaxed);
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace switchyard
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard {
namespace simd {

HWY_EXPORT(WeightedSumRows);
HWY_EXPORT(WeightedSumRmsNormRows);

void WeightedSumRows(const CombineArgs& args, size_t begin, size_t end) {
  SWITCHYARD_DISPATCH(WeightedSumRows)(args, begin, end);
}
void WeightedSumRmsNormRows(const CombineArgs& args, size_t begin, size_t end) {
  SWITCHYARD_DISPATCH(WeightedSumRmsNormRows)(args, begin, end);
}

}  // namespace simd
}  // namespace switchyard

#endif  // HWY_ONCE
