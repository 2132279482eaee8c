// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Strips (see strips-inl.h) of q4_K and q6_K. Their blocks have 256 columns, in
// parts with integer scales. The integer sums of a block are in registers; its
// float sums are loaded and stored.

#if defined(SWITCHYARD_SRC_SIMD_SUPER_STRIPS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_SUPER_STRIPS_INL_H_
#undef SWITCHYARD_SRC_SIMD_SUPER_STRIPS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_SUPER_STRIPS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/base/weight_layout.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "src/simd/dot-inl.h"
#include "src/simd/strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class Source, bool kTwo, size_t... R>
class SuperStrip {
 public:
  static HWY_INLINE void Run(const StripArgs& args, size_t column) {
    const size_t column1 = kTwo ? column + hn::Lanes(DotTag()) : column;
    Columns w0(args, column), w1(args, column1);
    for (size_t b = args.begin; b < args.end; ++b) {
      AddBlock(args, b, w0, w1,
               (static_cast<void>(R), hn::Zero(DotIntTag()))...,
               (static_cast<void>(R), hn::Zero(DotIntTag()))...);
      w0.Next();
      w1.Next();
    }
  }

 private:
  template <size_t>
  using Ints = DotInts;
  template <size_t>
  using State = typename Dot::State;
  using S = typename Dot::State;

  static constexpr WeightTraits kTraits = Source::kTraits;
  static constexpr bool kIsQ6 = kTraits.coding == WeightCoding::kQ6_K;
  using Small = SmallDot<kIsQ6>;
  // kParts: the number of a block's parts. kFactorsAt and kMinsAt: where the
  // integer scales and minima begin in the packed scales of 16 rows.
  static constexpr size_t kParts = kTraits.block / kTraits.sub_block();
  static constexpr size_t kFactorsAt = kIsQ6 ? 32 : 64;
  static constexpr size_t kMinsAt = kFactorsAt + kParts * kPackedRows;

  // The weights of a block, for one vector of columns.
  struct Columns {
    typename Source::Codes codes;
    const uint8_t* scales;  // the scales of 16 rows of weights
    size_t lane;            // the vector's first row of these 16
    float* sums;            // the sums of the batch's first row

    HWY_INLINE Columns(const StripArgs& args, size_t column)
        : codes(Source::Begin(args, column)),
          scales(args.packed[column / kPackedRows]),
          lane(column % kPackedRows),
          sums(args.sums + column) {}
    HWY_INLINE void Next() {
      Source::Next(codes);
      scales += Source::kScaleStride;
    }
    HWY_INLINE void Load(size_t step) { Source::Load(codes, step); }
    HWY_INLINE typename Dot::Codes Line(size_t line) const {
      return Source::Line(codes, line);
    }
    HWY_INLINE DotVec F16Scales(size_t i) const {
      return LoadF16Scales(scales + sizeof(Float16) * (i * kPackedRows + lane));
    }
    // Returns the integers of parts [4 * line, 4 * line + 4). Each lane has
    // the four integers of one row of weights, in one byte each. The lines of
    // integers begin at scales + at.
    HWY_INLINE DotInts Four(size_t at, size_t line) const {
      const uint8_t* const p = scales + at + line * 64 + 4 * lane;
#if HWY_TARGET == HWY_SCALAR
      int32_t lanes;
      std::memcpy(&lanes, p, sizeof(lanes));
      return hn::Set(DotIntTag(), lanes);
#else
      return hn::BitCast(DotIntTag(),
                         hn::LoadU(hn::Repartition<uint8_t, DotIntTag>(), p));
#endif
    }
    HWY_INLINE DotInts Factor(size_t part) const {
      return Dot::template Factor<kIsQ6>(Four(kFactorsAt, part / 4), part % 4);
    }
  };

  // Adds one block. A row has integer sums i0 (vector 0) and i1 (vector 1).
  static HWY_INLINE void AddBlock(const StripArgs& args, size_t block,
                                  Columns& w0, Columns& w1, Ints<R>... i0,
                                  Ints<R>... i1) {
    const int8_t* const x = args.rows.codes + args.row * args.rows.stride +
                            (block - args.begin) * args.rows.block_stride;
    if constexpr (kIsQ6) {
      // Subtracts 32 times the sums of the rows' codes, because the stored
      // codes of weights are 32 above the signed codes.
      static_assert(kTraits.offset == 1 << 5);
      AddSums(args, block, kFactorsAt, w0, w1, i0..., i1...);
      ((i0 = hn::ShiftLeft<5>(hn::Sub(hn::Zero(DotIntTag()), i0))), ...);
      ((i1 = hn::ShiftLeft<5>(hn::Sub(hn::Zero(DotIntTag()), i1))), ...);
      for (size_t half = 0; half < 2; ++half) {
        for (size_t part = 0; part < 2; ++part) {
          Prefetch(args, w0, 2 * half + part);
          w0.Load(2 * half + part);
          if constexpr (kTwo) {
            Prefetch(args, w1, 2 * half + part);
            w1.Load(2 * half + part);
          }
          AddSixBits<0>(args, w0, w1, x, half, part, i0..., i1...);
          AddSixBits<1>(args, w0, w1, x, half, part, i0..., i1...);
          AddSixBits<2>(args, w0, w1, x, half, part, i0..., i1...);
          AddSixBits<3>(args, w0, w1, x, half, part, i0..., i1...);
        }
      }
      ((AddTerms(args, block, w0, w1, R, i0, i1)), ...);
    } else {
      for (size_t pair = 0; pair < 4; ++pair) {
        Prefetch(args, w0, pair);
        w0.Load(pair);
        if constexpr (kTwo) {
          Prefetch(args, w1, pair);
          w1.Load(pair);
        }
        AddNibbles<false>(args, w0, w1, x, pair, i0..., i1...,
                          (static_cast<void>(R), Dot::ZeroState())...,
                          (static_cast<void>(R), Dot::ZeroState())...);
        AddNibbles<true>(args, w0, w1, x, pair, i0..., i1...,
                         (static_cast<void>(R), Dot::ZeroState())...,
                         (static_cast<void>(R), Dot::ZeroState())...);
      }
      ((AddTerms(args, block, w0, w1, R, i0, i1)), ...);
      SubtractMins(args, block, w0, w1,
                   (static_cast<void>(R), hn::Zero(DotIntTag()))...,
                   (static_cast<void>(R), hn::Zero(DotIntTag()))...);
    }
  }

  // q4_K: multiplies the low or the high nibbles of 64 columns.
  template <bool kHigh>
  static HWY_INLINE void AddNibbles(const StripArgs& args, const Columns& w0,
                                    const Columns& w1, const int8_t* x,
                                    size_t pair, Ints<R>&... i0, Ints<R>&... i1,
                                    State<R>... a, State<R>... c) {
    const size_t part = 2 * pair + kHigh;
    for (size_t q = 0; q < 8; ++q) {
      const size_t line = 8 * pair + q;
      const auto raw0 = w0.Line(line);
      const auto raw1 = kTwo ? w1.Line(line) : raw0;
      const auto c0 = kHigh ? Dot::HighNibbles(raw0) : Dot::LowNibbles(raw0);
      const auto c1 = kHigh ? Dot::HighNibbles(raw1) : Dot::LowNibbles(raw1);
      const int8_t* const at = x + part * kTraits.sub_block();
      ((AddTwo(a, c, c0, c1, Dot::LoadRow(at + R * args.rows.stride, q))), ...);
    }
    const DotInts f0 = w0.Factor(part);
    const DotInts f1 = kTwo ? w1.Factor(part) : f0;
    ((AddScaled(i0, i1, a, c, f0, f1)), ...);
  }

  // q6_K: multiplies the 16 columns that begin at
  // 128 * half + 32 * kField + 16 * part.
  template <int kField>
  static HWY_INLINE void AddSixBits(const StripArgs& args, const Columns& w0,
                                    const Columns& w1, const int8_t* x,
                                    size_t half, size_t part, Ints<R>&... i0,
                                    Ints<R>&... i1) {
    const size_t factor = 8 * half + 2 * kField + part;
    const DotInts f0 = w0.Factor(factor);
    const DotInts f1 = kTwo ? w1.Factor(factor) : f0;
    for (size_t q = 0; q < 4; q += Dot::kSixBitAdds) {
      AddSixBitLines<kField>(args, w0, w1,
                             x + factor * kTraits.sub_block() + 4 * q, half,
                             4 * part + q, f0, f1, i0..., i1...,
                             (static_cast<void>(R), Dot::ZeroState())...,
                             (static_cast<void>(R), Dot::ZeroState())...);
    }
  }
  template <int kField>
  static HWY_INLINE void AddSixBitLines(const StripArgs& args,
                                        const Columns& w0, const Columns& w1,
                                        const int8_t* x, size_t half, size_t q,
                                        DotInts f0, DotInts f1, Ints<R>&... i0,
                                        Ints<R>&... i1, State<R>... a,
                                        State<R>... c) {
    for (size_t i = 0; i < Dot::kSixBitAdds; ++i) {
      const size_t bits = 24 * half + 3 * (q + i) + 2;
      const size_t line = bits - 2 + (kField & 1);
      const auto c0 = SixBits<kField>(w0, line, bits);
      const auto c1 = kTwo ? SixBits<kField>(w1, line, bits) : c0;
      ((AddTwo(a, c, c0, c1, Dot::LoadRow(x + R * args.rows.stride, i))), ...);
    }
    ((AddScaled(i0, i1, a, c, f0, f1)), ...);
  }
  template <int kField>
  static HWY_INLINE typename Dot::Codes SixBits(const Columns& w, size_t line,
                                                size_t bits) {
    const auto raw = w.Line(line);
    return Dot::template AddTwoBits<kField>(
        kField < 2 ? Dot::LowNibbles(raw) : Dot::HighNibbles(raw),
        w.Line(bits));
  }

  // For each part of a block, multiplies the part's integers at `at` (q6_K's
  // scales or q4_K's minima) by the sum of each row's codes in that part. Adds
  // the products to i0 and i1.
  static HWY_INLINE void AddSums(const StripArgs& args, size_t block, size_t at,
                                 const Columns& w0, const Columns& w1,
                                 Ints<R>&... i0, Ints<R>&... i1) {
    const int16_t* const sums =
        args.sub_sums + (args.row * args.blocks + block) * kParts;
    for (size_t line = 0; line < kParts / 4; ++line) {
      const DotInts four0 = w0.Four(at, line);
      const DotInts four1 = kTwo ? w1.Four(at, line) : four0;
      AddPairs<0>(args, four0, four1, sums + 4 * line, i0..., i1...);
      AddPairs<1>(args, four0, four1, sums + 4 * line + 2, i0..., i1...);
    }
  }
  template <int kOdd>
  static HWY_INLINE void AddPairs(const StripArgs& args, DotInts four0,
                                  DotInts four1, const int16_t* two,
                                  Ints<R>&... i0, Ints<R>&... i1) {
    const DotInts f0 = Small::template Pair<kOdd>(four0);
    const DotInts f1 = Small::template Pair<kOdd>(four1);
    ((Small::AddPair(i0, f0, two + R * args.blocks * kParts)), ...);
    if constexpr (kTwo) {
      ((Small::AddPair(i1, f1, two + R * args.blocks * kParts)), ...);
    }
  }

  template <class Codes, class Row>
  static HWY_INLINE void AddTwo(S& a, S& c, const Codes& c0, const Codes& c1,
                                Row x) {
    a = Dot::Add(a, c0, x);
    if constexpr (kTwo) c = Dot::Add(c, c1, x);
  }
  static HWY_INLINE void AddScaled(DotInts& i0, DotInts& i1, S a, S c,
                                   DotInts f0, DotInts f1) {
    AddTo(i0, Dot::Scaled(a, f0));
    if constexpr (kTwo) AddTo(i1, Dot::Scaled(c, f1));
  }
  // Prefetches a quarter of a block that is args.ahead bytes away. A strip that
  // reads one stream also prefetches the lines that it uses next, in their
  // order, because it uses them in another order, which the hardware does not
  // prefetch. (Without this, up to two rows take 1.05 to 1.2 times as long on
  // a Zen 4.)
  static HWY_INLINE void Prefetch(const StripArgs& args, const Columns& w,
                                  size_t quarter) {
    if constexpr (Source::kIsPacked) {
      constexpr size_t kQuarter = kTraits.packed_block() / 4;
      constexpr size_t kCodes = kTraits.packed_codes() / 4;
      if (w.lane != 0) return;
      if (args.ahead != 0) {
        PrefetchToL2(w.scales + args.ahead + quarter * kQuarter, kQuarter);
      }
      if constexpr (IsOneStream(kTwo)) {
        if (quarter == 0) PrefetchToL1(w.scales, kTraits.packed_scales());
        if constexpr (kIsQ6) PrefetchToL1(w.codes + quarter * kCodes, kCodes);
      }
    }
  }
  static HWY_INLINE void PrefetchToL1(const uint8_t* p, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) hwy::Prefetch(p + i);
  }

  // Computes sum = fma(float(integers), d * dx, sum).
  static HWY_INLINE void AddTerms(const StripArgs& args, size_t block,
                                  const Columns& w0, const Columns& w1,
                                  size_t r, DotInts i0, DotInts i1) {
    const DotTag d;
    const DotVec dx = Scale(args, block, r);
    float* const s0 = SumsOf(args, w0, r);
    hn::StoreU(hn::MulAdd(hn::ConvertTo(d, i0), hn::Mul(w0.F16Scales(0), dx),
                          hn::LoadU(d, s0)),
               d, s0);
    if constexpr (kTwo) {
      float* const s1 = SumsOf(args, w1, r);
      hn::StoreU(hn::MulAdd(hn::ConvertTo(d, i1), hn::Mul(w1.F16Scales(0), dx),
                            hn::LoadU(d, s1)),
                 d, s1);
    }
  }
  // Computes sum = fma(-float(integers), dmin * dx, sum).
  static HWY_INLINE void SubtractMins(const StripArgs& args, size_t block,
                                      const Columns& w0, const Columns& w1,
                                      Ints<R>... i0, Ints<R>... i1) {
    AddSums(args, block, kMinsAt, w0, w1, i0..., i1...);
    ((SubtractTerms(args, block, w0, R, i0)), ...);
    if constexpr (kTwo) ((SubtractTerms(args, block, w1, R, i1)), ...);
  }
  static HWY_INLINE void SubtractTerms(const StripArgs& args, size_t block,
                                       const Columns& w, size_t r,
                                       DotInts ints) {
    const DotTag d;
    float* const sums = SumsOf(args, w, r);
    const DotVec scale = hn::Mul(w.F16Scales(1), Scale(args, block, r));
    hn::StoreU(hn::NegMulAdd(hn::ConvertTo(d, ints), scale, hn::LoadU(d, sums)),
               d, sums);
  }
  static HWY_INLINE DotVec Scale(const StripArgs& args, size_t block,
                                 size_t r) {
    return hn::Set(DotTag(), args.scales[(args.row + r) * args.blocks + block]);
  }
  static HWY_INLINE float* SumsOf(const StripArgs& args, const Columns& w,
                                  size_t r) {
    return w.sums + (args.row + r) * kTileColumns;
  }
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_SUPER_STRIPS_INL_H_
