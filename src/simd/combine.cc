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

#include "src/simd/math-inl.h"
#include "src/simd/simdgroup-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Weights, gates, norm weights.
using Scalar = float;

// The terms of one token's sum, in order: active slots, then the shared expert.
// top_k is at most 22 in any model known; more terms than fit take the slow
// path.
template <class In>
struct Terms {
  static constexpr size_t kMax = 64;
  size_t count = 0;
  const In* rows[kMax];
  float weights[kMax];

  void Add(float weight, const In* row) {
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
template <class In>
HWY_INLINE bool ListTerms(const CombineArgs& args, size_t token,
                          TermCursor& cursor, Terms<In>& terms) {
  const CombineInputs& in = args.inputs;
  const Scalar* const weights = in.topk_weights.Row<Scalar>(token);
  const size_t top_k = in.topk_weights.cols;
  terms.count = 0;
  for (; cursor.next < top_k; ++cursor.next) {
    if (terms.count == Terms<In>::kMax) return false;
    size_t row = token * top_k + cursor.next;
    if (!in.row_index.token_order) {
      const int32_t index = in.row_index.Row<int32_t>(token)[cursor.next];
      row = static_cast<size_t>(index);
      if (index < 0 || row >= in.rows.rows) {
        cursor.skipped += index != -1;
        continue;
      }
    }
    terms.Add(weights[cursor.next], in.rows.Row<In>(row));
  }
  if (cursor.next == top_k && in.shared.rows.data != nullptr) {
    if (terms.count == Terms<In>::kMax) return false;
    float gate = 1.0f;
    if (in.shared.kind != SharedGate::kNone) {
      const ConstAnyMatrix& gates = in.shared.gate;
      gate = gates.rows == 1 ? gates.Row<Scalar>(0)[token]
                             : *gates.Row<Scalar>(token);
    }
    if (in.shared.kind == SharedGate::kLogit) {
      const SimdgroupTag d;
      gate = hn::GetLane(Sigmoid(d, hn::Set(d, gate)));
    }
    terms.Add(gate, in.shared.rows.Row<In>(token));
  }
  cursor.next = top_k + 1;
  return true;
}

// All terms of a token, or those that fit.
template <class In>
struct TokenTerms {
  Terms<In> terms;
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
template <class In, class Out, bool kSquares, size_t kTerms>
struct SumTerms {
  const Terms<In>& terms;
  const In* residual;
  Out* out;

  template <class D, class V>
  HWY_INLINE void Four(D d, size_t i, V& a, V& b, V& c, V& e) const {
    const size_t N = hn::Lanes(d);
    V v0 = hn::Zero(d), v1 = v0, v2 = v0, v3 = v0;
    const size_t count = kTerms != 0 ? kTerms : terms.count;
    for (size_t s = 0; s < count; ++s) {
      const V w = hn::Set(d, terms.weights[s]);
      const In* HWY_RESTRICT row = terms.rows[s] + i;
      v0 = hn::MulAdd(w, Storage<In>::Load(d, row), v0);
      v1 = hn::MulAdd(w, Storage<In>::Load(d, row + N), v1);
      v2 = hn::MulAdd(w, Storage<In>::Load(d, row + 2 * N), v2);
      v3 = hn::MulAdd(w, Storage<In>::Load(d, row + 3 * N), v3);
    }
    if (residual != nullptr) {
      v0 = hn::Add(Storage<In>::Load(d, residual + i), v0);
      v1 = hn::Add(Storage<In>::Load(d, residual + i + N), v1);
      v2 = hn::Add(Storage<In>::Load(d, residual + i + 2 * N), v2);
      v3 = hn::Add(Storage<In>::Load(d, residual + i + 3 * N), v3);
    }
    Storage<Out>::Store(v0, d, out + i);
    Storage<Out>::Store(v1, d, out + i + N);
    Storage<Out>::Store(v2, d, out + i + 2 * N);
    Storage<Out>::Store(v3, d, out + i + 3 * N);
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
                     Storage<In>::LoadPartial(d, terms.rows[s] + i, n), v);
    }
    if (residual != nullptr) {
      v = hn::Add(Storage<In>::LoadPartial(d, residual + i, n), v);
    }
    Storage<Out>::StorePartial(v, d, out + i, n);
    if (kSquares) {
      // weight * 0 is NaN for an infinite weight: keep it out of idle lanes.
      v = hn::IfThenElseZero(hn::FirstN(d, n), v);
      a = hn::MulAdd(v, v, a);
    }
  }
};

template <class In>
HWY_INLINE const In* ResidualRow(const CombineArgs& args, size_t token) {
  const ConstAnyMatrix& residual = args.inputs.residual;
  return residual.data == nullptr ? nullptr : residual.Row<In>(token);
}

// More terms than Terms holds: the same sum in the same order, over a tile of
// columns at a time, whose partial sums stay on the stack between lists. The
// squares into the lanes of a simdgroup: element i to lane i mod 32.
template <class In, class Out>
HWY_NOINLINE float SumManyTerms(const CombineArgs& args, size_t token,
                                size_t& skipped) {
  constexpr size_t kTile = 512;
  const SimdgroupTag d;
  const size_t N = hn::Lanes(d);
  HWY_ALIGN float partial[kTile];
  HWY_ALIGN float squares[kSimdgroup] = {};
  Terms<In> terms;
  const size_t cols = args.outputs.out.cols;
  Out* const out = args.outputs.out.Row<Out>(token);
  const In* const residual = ResidualRow<In>(args, token);
  for (size_t begin = 0; begin < cols; begin += kTile) {
    const size_t n = HWY_MIN(kTile, cols - begin);
    for (size_t i = 0; i < n; i += N) hn::Store(hn::Zero(d), d, partial + i);
    TermCursor cursor;
    bool all = false;
    while (!all) {
      all = ListTerms(args, token, cursor, terms);
      for (size_t s = 0; s < terms.count; ++s) {
        const auto w = hn::Set(d, terms.weights[s]);
        const In* row = terms.rows[s] + begin;
        for (size_t i = 0; i < n; i += N) {
          const size_t count = HWY_MIN(N, n - i);
          hn::Store(hn::MulAdd(w, Storage<In>::LoadPartial(d, row + i, count),
                               hn::Load(d, partial + i)),
                    d, partial + i);
        }
      }
    }
    if (begin == 0) skipped += cursor.skipped;
    for (size_t i = 0; i < n; i += N) {
      const size_t count = HWY_MIN(N, n - i);
      auto v = hn::Load(d, partial + i);
      if (residual != nullptr) {
        v = hn::Add(Storage<In>::LoadPartial(d, residual + begin + i, count),
                    v);
      }
      Storage<Out>::StorePartial(v, d, out + begin + i, count);
      // weight * 0 is NaN for an infinite weight: keep it out of idle lanes.
      if (count < N) v = hn::IfThenElseZero(hn::FirstN(d, count), v);
      float* const lanes = squares + i % kSimdgroup;
      hn::Store(hn::MulAdd(v, v, hn::Load(d, lanes)), d, lanes);
    }
  }
  return FoldLanes(squares);
}

// The loop over the terms of most models is unrolled: 4 % of a token in cache
// (H = 2048, top_k = 8).
template <bool kSquares, class In, class Out>
HWY_INLINE float SumListed(const Terms<In>& terms, const In* residual, Out* out,
                           size_t cols) {
  switch (terms.count) {
#define SWITCHYARD_UNROLLED(n) \
  case n:                      \
    return SimdgroupSum(cols,  \
                        SumTerms<In, Out, kSquares, n>{terms, residual, out});
    SWITCHYARD_UNROLLED(4)
    SWITCHYARD_UNROLLED(6)
    SWITCHYARD_UNROLLED(8)
    SWITCHYARD_UNROLLED(9)
    SWITCHYARD_UNROLLED(10)
#undef SWITCHYARD_UNROLLED
    default:
      return SimdgroupSum(cols,
                          SumTerms<In, Out, kSquares, 0>{terms, residual, out});
  }
}

// One token, whose terms are listed: out, and the sum of its squares if asked
// for.
template <bool kSquares, class Out, class In>
HWY_INLINE float SumToken(const CombineArgs& args, size_t token,
                          const TokenTerms<In>& listed, size_t& skipped) {
  if (HWY_UNLIKELY(!listed.all)) {
    return SumManyTerms<In, Out>(args, token, skipped);
  }
  skipped += listed.cursor.skipped;
  return SumListed<kSquares>(listed.terms, ResidualRow<In>(args, token),
                             args.outputs.out.Row<Out>(token),
                             args.outputs.out.cols);
}

// normed = out * scale * norm_weight, and the first lines of the next token's
// rows on their way: a line per vector, which the loop has time for.
template <class In, class Out>
HWY_INLINE void NormRow(const CombineArgs& args, size_t token, float scale,
                        const Terms<In>& next) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  const size_t cols = args.outputs.out.cols;
  const auto scales = hn::Set(d, scale);
  const Out* HWY_RESTRICT row = args.outputs.out.Row<Out>(token);
  const Scalar* HWY_RESTRICT norm_weight =
      args.inputs.norm_weight.Row<Scalar>(0);
  Out* HWY_RESTRICT normed = args.outputs.normed.Row<Out>(token);
  size_t term = 0;
  size_t ahead = 0;
  size_t i = 0;
  for (; i + N <= cols; i += N) {
    if (term < next.count) {
      hwy::Prefetch(next.rows[term] + ahead);
      if (++term == next.count) {
        term = 0;
        ahead += 64 / sizeof(In);
      }
    }
    Storage<Out>::Store(hn::Mul(hn::Mul(Storage<Out>::Load(d, row + i), scales),
                                Storage<Scalar>::Load(d, norm_weight + i)),
                        d, normed + i);
  }
  if (i < cols) {
    const size_t n = cols - i;
    Storage<Out>::StorePartial(
        hn::Mul(hn::Mul(Storage<Out>::LoadPartial(d, row + i, n), scales),
                Storage<Scalar>::LoadPartial(d, norm_weight + i, n)),
        d, normed + i, n);
  }
}

// Per token one pass over its top_k rows: 4 vectors of columns at a time are
// summed in registers, slot by slot. Bound by the bytes of those rows.
//
// With a norm, the squares are summed on the way, in 32 lanes; then a second
// pass over the sum, 8-28 KB and still in L1, multiplies. Bound by the bytes,
// too: 3 us a token from memory (H = 2048, top_k = 8), 1.01 of the time of a
// loop that only moves them. A lone token in L2 takes 1.12 of it (0.74 us): the
// fold, the root and the divisions are a chain of 70 cycles between the passes,
// and the second pass reads the sum again.
// (Not inlined: with both in one function, they share its registers.)
template <bool kNorm, class In, class Out>
HWY_NOINLINE void CombineTokens(const CombineArgs& args, size_t begin,
                                size_t end) {
  size_t skipped = 0;
  TokenTerms<In> listed;
  for (size_t token = begin; token < end; ++token) {
    if (!kNorm || token == begin) listed.List(args, token);
    const float squares = SumToken<kNorm, Out>(args, token, listed, skipped);
    if (kNorm) {
      const float mean = squares / static_cast<float>(args.outputs.out.cols);
      listed.terms.count = 0;
      if (token + 1 < end) listed.List(args, token + 1);
      NormRow<In, Out>(args, token, 1.0f / std::sqrt(mean + args.options.eps),
                       listed.terms);
    }
  }
  if (skipped != 0) args.skipped->fetch_add(skipped, std::memory_order_relaxed);
}

template <class In, class Out>
void Combine(const CombineArgs& args, size_t begin, size_t end) {
  if (args.outputs.normed.data != nullptr) {
    CombineTokens<true, In, Out>(args, begin, end);
  } else {
    CombineTokens<false, In, Out>(args, begin, end);
  }
}

SWITCHYARD_ROW_FUNCTIONS(Combine, CombineArgs, SWITCHYARD_F32);

}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT_TYPES(CombineRows, Combine, CombineArgs, SWITCHYARD_F32);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
