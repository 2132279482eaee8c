// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/combine.h"

#include <algorithm>
#include <cstddef>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/combine.cc"
#include "hwy/foreach_target.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "src/simd/combine-inl.h"
#include "src/simd/combine_stages-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/simdgroup-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// A RowSource for PutRow(): columns of a token's sum, which is in memory.
const float* KeptSum(const void* context, size_t begin, size_t, float*) {
  return static_cast<const float*>(context) + begin;
}

// Computes normed = sum * scale * norm_weight. The loop has time to prefetch
// the first cache lines of the next token's rows, too, one line per vector.
// (MulTile() of the stages took 1.03 to 1.10 times as long for 64 tokens.)
struct NormedRow {
  const CombineArgs& args;
  const RowSource& sum;
  float scale;
  const Terms& next;

  template <class Weight, bool kPlusOne>
  HWY_INLINE void Range(const float* from, size_t begin, size_t n,
                        float* to) const {
    const hn::ScalableTag<float> d;
    const size_t N = hn::Lanes(d);
    const auto scales = hn::Set(d, scale);
    const Weight* HWY_RESTRICT weights =
        args.inputs.norm_weight.Row<Weight>(0) + begin;
    const size_t count = next.count;
    size_t term = 0;
    size_t ahead = begin == 0 || count == 0 ? 0 : begin / N / count * 64;
    size_t i = 0;
    for (; i + N <= n; i += N) {
      if (term < count) {
        hwy::Prefetch(static_cast<const char*>(next.rows[term]) + ahead);
        if (++term == count) {
          term = 0;
          ahead += 64;
        }
      }
      auto weight = Storage<Weight>::Load(d, weights + i);
      if (kPlusOne) weight = hn::Add(hn::Set(d, 1.0f), weight);
      hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, from + i), scales), weight), d,
                 to + i);
    }
    if (i < n) {
      const size_t rest = n - i;
      auto weight = Storage<Weight>::LoadPartial(d, weights + i, rest);
      if (kPlusOne) weight = hn::Add(hn::Set(d, 1.0f), weight);
      StorePartial(
          hn::Mul(hn::Mul(LoadPartial(d, from + i, rest), scales), weight), d,
          to + i, rest);
    }
  }

  static const float* Get(const void* context, size_t begin, size_t n,
                          float* buffer) {
    const NormedRow& self = *static_cast<const NormedRow*>(context);
    const CombineArgs& args = self.args;
    const float* const from = self.sum.get(self.sum.context, begin, n, buffer);
    const NormKind kind = args.options.norm;
    if (args.options.round_like_unfused && kind == NormKind::kWeight) {
      // Multiplies by the scale, rounds, then multiplies by the weight.
      TakeTile(TileOperand(from), n, self.scale, buffer);
      RoundTile(args.stages->rounded, n, buffer);
      MulTile({args.inputs.norm_weight, 0, begin}, n, 1.0f, false, buffer,
              buffer);
      return buffer;
    }
    switch (args.inputs.norm_weight.type) {
#define SWITCHYARD_CASE(T, ...)                     \
  case kType<T>:                                    \
    if (kind == NormKind::kPlusOne) {               \
      self.Range<T, true>(from, begin, n, buffer);  \
    } else {                                        \
      self.Range<T, false>(from, begin, n, buffer); \
    }                                               \
    return buffer;
      SWITCHYARD_FLOATS(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
      default:
        return buffer;
    }
  }
};

// Writes a token's sum to `out`, unless it is already there. With kNorm, also
// writes `normed`.
template <bool kNorm>
HWY_INLINE void PutToken(const CombineArgs& args, size_t token,
                         const RowSource& sum, const float* in_place,
                         float squares, const Terms& next) {
  if (kNorm) {
    const float scale = NormScale(squares, args.cols, args.options.eps);
    const NormedRow normed = {args, sum, scale, next};
    const AnyRows& to = args.outputs.normed;
    if (HWY_LIKELY(in_place != nullptr && to.type == Type::kF32 &&
                   args.inputs.norm_weight.type == Type::kF32 &&
                   args.options.norm == NormKind::kWeight &&
                   !args.options.round_like_unfused)) {
      normed.Range<float, false>(in_place, 0, args.cols, to.Row<float>(token));
    } else if (to.type == Type::kF32) {
      NormedRow::Get(&normed, 0, args.cols, to.Row<float>(token));
    } else {
      PutRow({NormedRow::Get, &normed}, to, token);
    }
  }
  // Writes `out` last, because it may be one of the sum's inputs.
  if (in_place == nullptr && args.outputs.out.data != nullptr) {
    PutRow(sum, args.outputs.out, token);
  }
}

// Reads the top_k rows of each token once: sums 4 vectors of columns at a time
// in registers, slot by slot. The bytes of these rows bound the time.
//
// With kNorm, the pass also sums the squares, in 32 lanes. A second pass
// multiplies the sum, which is 8-28 KB and still in L1. The bytes still bound
// the time: a token from memory takes 3 us (H = 2048, top_k = 8), 1.01 times as
// long as a loop that only moves its bytes. A single token in L2 takes 1.12
// times as long as that loop (0.74 us), because the fold, the root and the
// divisions are a chain of 70 cycles between the passes, and the second pass
// reads the sum again.
//
// Only sum_listed is compiled for each type of rows.
template <bool kNorm>
HWY_NOINLINE void CombineTokens(const CombineArgs& args, SumFunction sum_listed,
                                size_t begin, size_t end, float* kept) {
  size_t skipped = 0;
  TokenTerms listed;
  for (size_t token = begin; token < end; ++token) {
    if (!kNorm || token == begin) listed.List(args, token);
    float* const sum =
        kept != nullptr ? kept : args.outputs.out.Row<float>(token);
    skipped += listed.cursor.skipped;
    const float squares =
        sum_listed(listed.terms, TailOf(args, token), sum, args.cols);
    if (kNorm) {
      listed.terms.count = 0;
      if (token + 1 < end) listed.List(args, token + 1);
    }
    if (kNorm || kept != nullptr) {
      PutToken<kNorm>(args, token, {KeptSum, sum},
                      kept == nullptr ? sum : nullptr, squares, listed.terms);
    }
  }
  if (skipped != 0) args.skipped->fetch_add(skipped, std::memory_order_relaxed);
}

template <bool kNorm>
HWY_NOINLINE void CombineOnStack(const CombineArgs& args,
                                 SumFunction sum_listed, size_t begin,
                                 size_t end) {
  HWY_ALIGN float kept[kSumKept];
  CombineTokens<kNorm>(args, sum_listed, begin, end, kept);
}

// A token with stages. Its row is kept between phases or, if it is too wide for
// the stack, computed again for each phase.
struct StagedToken {
  const CombineArgs& args;
  size_t token;
  float* kept;  // the sum of the token's terms, or null
  float* other;
  PhaseScales* scales;
  // Only the first phase uses the next three fields, to compute the sum. It
  // uses them if `kept` is not null and `terms` has all terms.
  SumFunction sum_listed, sum_squares;
  Terms* terms;

  // Computes columns [begin, begin + n): sums the terms, then runs all phases
  // up to phase `last`. Writes whole vectors to `block`.
  StageTile Make(size_t last, size_t begin, size_t n, float* block) const {
    size_t skipped;
    SumSlowly(args, token, begin, n, skipped, block);
    const StageTile tile = {args, token, begin, n, block, other};
    for (size_t phase = 0; phase <= last; ++phase) {
      tile.RunPhase(phase, scales);
    }
    return tile;
  }
  static const float* Get(const void* context, size_t begin, size_t n,
                          float* buffer) {
    const StagedToken& self = *static_cast<const StagedToken*>(context);
    const size_t last = self.args.stages->num_phases - 1;
    HWY_ALIGN SumTile block;
    for (size_t i = 0; i < n; i += kSumTile) {
      const size_t count = HWY_MIN(kSumTile, n - i);
      self.Make(last, begin + i, count, block);
      std::copy_n(block, count, buffer + i);
    }
    return buffer;
  }

  // Computes the scales of all phases. Returns the last sum of squares.
  float Run() const {
    HWY_ALIGN SumTile made;
    float squares_of_sum = 0.0f;
    for (size_t phase = 0; phase < args.stages->num_phases; ++phase) {
      const CombinePhase& what = args.stages->phases[phase];
      // Skips a phase that needs no squares if no columns are kept.
      const bool any = what.block_squares || what.other_squares;
      if (kept == nullptr && !any) continue;
      PhaseSquares squares;
      if (kept != nullptr && terms != nullptr && phase == 0 && what.end == 0) {
        // No stage runs before this norm, so one pass computes the sum of the
        // terms and the sum of its squares.
        squares_of_sum = sum_squares(*terms, Tail(), kept, args.cols);
        scales[0].block =
            NormScale(squares_of_sum, args.cols, args.options.block_eps);
        continue;
      }
      for (size_t i = 0; i < args.cols; i += kSumTile) {
        const size_t n = HWY_MIN(kSumTile, args.cols - i);
        if (kept != nullptr) {
          if (phase == 0 && terms != nullptr) {
            sum_listed(*terms, Tail(), kept + i, n);
            terms->Advance(BytesOf(args.rows_type, n));
          }
          const StageTile tile = {args, token, i, n, kept + i, other};
          tile.RunPhase(phase, scales);
          tile.AddPhaseSquares(phase, squares);
        } else {
          Make(phase, i, n, made).AddPhaseSquares(phase, squares);
        }
      }
      if (!any) continue;
      squares_of_sum = FoldLanes(squares.block);
      const float eps = args.options.block_eps;
      scales[phase] = {NormScale(squares_of_sum, args.cols, eps),
                       NormScale(FoldLanes(squares.other), args.cols, eps)};
    }
    return squares_of_sum;
  }
};

// Sums the terms of each token, then runs the stages. The sum is kept in
// `out` if `out` is f32 and is not also an input of a stage. Otherwise it is
// kept in a buffer.
HWY_NOINLINE void CombineStaged(const CombineArgs& args, SumFunction sum_listed,
                                SumFunction sum_squares, size_t begin,
                                size_t end) {
  HWY_ALIGN float kept[kSumKept];
  HWY_ALIGN SumTile other;
  PhaseScales scales[CombineStages::kMaxPhases];
  const AnyMatrix& out = args.outputs.out;
  const bool keeps = args.cols <= kSumKept;
  const bool in_out = keeps && out.data != nullptr && out.type == Type::kF32 &&
                      out.data != args.inputs.residual.data &&
                      out.data != args.inputs.shared.rows.data;
  const bool norm = args.outputs.normed.data != nullptr;
  size_t skipped = 0;
  TokenTerms listed;
  for (size_t token = begin; token < end; ++token) {
    if (token == begin) listed.List(args, token);
    size_t skipped_here = listed.cursor.skipped;
    const float* in_place = nullptr;
    float* row = kept;
    if (keeps && listed.all) {
      if (in_out) in_place = row = out.Row<float>(token);
    } else {
      for (size_t i = 0; i < (keeps ? args.cols : 1); i += kSumTile) {
        SumSlowly(args, token, i, HWY_MIN(kSumTile, args.cols - i),
                  skipped_here, kept + i);
      }
    }
    skipped += skipped_here;
    const bool all = listed.all;
    Terms terms = listed.terms;
    listed.terms.count = 0;
    if (token + 1 < end) listed.List(args, token + 1);
    const StagedToken staged = {
        args,   token,      keeps ? row : nullptr, other,
        scales, sum_listed, sum_squares,           all ? &terms : nullptr};
    const float squares = staged.Run();
    const RowSource sum =
        keeps ? RowSource{KeptSum, row} : RowSource{StagedToken::Get, &staged};
    if (norm) {
      PutToken<true>(args, token, sum, in_place, squares, listed.terms);
    } else {
      PutToken<false>(args, token, sum, in_place, squares, listed.terms);
    }
  }
  if (skipped != 0) args.skipped->fetch_add(skipped, std::memory_order_relaxed);
}

template <bool kNorm>
HWY_INLINE void CombineUnstaged(const CombineArgs& args, SumFunction sum_listed,
                                size_t begin, size_t end) {
  const AnyMatrix& out = args.outputs.out;
  if (HWY_LIKELY(out.type == Type::kF32 && out.data != nullptr)) {
    CombineTokens<kNorm>(args, sum_listed, begin, end, nullptr);
  } else {
    CombineOnStack<kNorm>(args, sum_listed, begin, end);
  }
}

template <class In>
void Combine(const CombineArgs& args, size_t begin, size_t end) {
  if (HWY_UNLIKELY(args.stages != nullptr)) {
    CombineStaged(args, SumListed<In, false>, SumListed<In, true>, begin, end);
  } else if (args.outputs.normed.data != nullptr) {
    CombineUnstaged<true>(args, SumListed<In, true>, begin, end);
  } else {
    CombineUnstaged<false>(args, SumListed<In, false>, begin, end);
  }
}

SWITCHYARD_ROW_FUNCTIONS(Combine, CombineArgs, SWITCHYARD_FLOATS_AND_CODES);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT_TYPES(CombineRows, Combine, CombineArgs,
                        SWITCHYARD_FLOATS_AND_CODES);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
