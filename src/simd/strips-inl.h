// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Strips of a product, for int8 and formats with blocks of 32 columns. A strip
// multiplies a few rows by one or two vectors of the product's columns, and
// keeps its sums in registers.

#if defined(SWITCHYARD_SRC_SIMD_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_STRIPS_INL_H_
#undef SWITCHYARD_SRC_SIMD_STRIPS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_STRIPS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/base/weight_layout.h"
#include "src/simd/multiply.h"

#include "hwy/highway.h"

#include "src/simd/columns-inl.h"
#include "src/simd/dot-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A batch of at most this number of rows takes all blocks of a group of 16
// columns at once, because memory bounds its time, and not the core. It reads
// each packed group as one stream.
constexpr size_t kFewRows = HWY_CAP_GE512 ? 6 : 2;

// kStripRows is the most rows of a strip. HasTwoVectors() returns true if a
// strip of `rows` rows has two vectors of columns. The number of registers
// bounds both: AVX-512 and AArch64 have 32.
#undef SWITCHYARD_MANY_REGISTERS
#if HWY_CAP_GE512 || HWY_ARCH_ARM_A64
#define SWITCHYARD_MANY_REGISTERS 1
#else
#define SWITCHYARD_MANY_REGISTERS 0
#endif
// CPUs without AVX2 are few and old, so their strips are short, which keeps
// their code small.
constexpr size_t kStripRows = SWITCHYARD_MANY_REGISTERS ? 6
                              : HWY_CAP_GE256           ? 4
                                                        : 2;
// Returns the next smaller number of rows of a strip. With AVX-512, strips may
// have any number of rows, because two strips instead of one read the weights
// twice: 3 rows would take 1.2 to 1.5 times as long. On other targets, the
// sizes are 6, 4, 2 and 1, because strips of 3 and 5 rows would take 38 KB more
// code.
constexpr size_t FewerRows(size_t rows) {
  if (HWY_CAP_GE512) return rows - 1;
  return rows > 4 ? 4 : rows / 2;
}
constexpr bool HasTwoVectors(const WeightTraits& traits, size_t rows) {
#if HWY_CAP_GE512
  // A vector holds a whole group of 16 columns. A second vector would read a
  // second stream, which the hardware does not prefetch as well: 2 to 6 rows
  // would take 1.3 to 2.4 times as long. (Zen 4)
  (void)traits, (void)rows;
  return false;
#else
  if (SWITCHYARD_MANY_REGISTERS || rows <= kFewRows) return true;
  // Two vectors of four rows leave no registers except for integer sums. A
  // format that needs more integer sums would keep some of them in memory.
  // (On a Zen 3, two vectors instead of one take 0.9 times as long for q4_0,
  // but 1.2 times as long for q4_K.)
  return !traits.is_super() && traits.coding != WeightCoding::kE2M1;
#endif
}
// True if a strip reads one stream of packed weights: if its vectors have up to
// 16 columns.
constexpr bool IsOneStream(bool has_two_vectors) {
  return !(HWY_CAP_GE512 && has_two_vectors);
}
// Returns the offset of codes of weights in CodeDot::Codes.
constexpr int OffsetOf(const WeightTraits& traits) {
  return traits.has_byte_codes() ? ByteDot::kOffset : traits.offset;
}

// Returns the index in sub_sums of part `part` of a block.
constexpr size_t SubSumAt(size_t part) {
  return part % 4 % 3 == 0 ? part : part ^ 3;
}

// Returns the stored rows of the 16 columns that begin kTileColumns behind
// `first`, or null if the call does not compute these.
HWY_INLINE const uint8_t* NextColumns(const WeightTraits& traits,
                                      const MultiplyArgs& args, size_t first) {
  const size_t next = first + kTileColumns;
  if (next >= args.first_column + args.out.cols) return nullptr;
  return args.expert + next * StoredRowBytes(traits, args.weights.cols);
}
// Writes n sums to a row of `out`, to columns [column, column + n).
HWY_INLINE void WriteSums(const float* sums, size_t n, const AnyMatrix& out,
                          size_t row, size_t column) {
  if (out.type == Type::kF32) {
    std::memcpy(out.Row<float>(row) + column, sums, n * sizeof(float));
  } else {
    FloatsToRow(sums, n, out, row, column);
  }
}

HWY_INLINE DotVec LoadF16Scales(const uint8_t* p) {
  return Storage<Float16>::Load(DotTag(), reinterpret_cast<const Float16*>(p));
}
// Loads e8m0 scales as 2^(bits - 128), which is half of their value, because
// NibbleCodes() gives twice the values of E2M1.
HWY_INLINE DotVec LoadHalfPowers(const uint8_t* p) {
  const DotTag d;
  const DotIntTag di;
  const DotInts bits =
      hn::PromoteTo(di, hn::LoadU(hn::Rebind<uint8_t, DotTag>(), p));
  // `power` is 2^(bits - 127), which is denormal for bits = 0.
  const DotInts power =
      hn::Max(hn::ShiftLeft<23>(bits), hn::Set(di, 0x00400000));
  const DotVec half = hn::Mul(hn::BitCast(d, power), hn::Set(d, 0.5f));
  const auto is_nan = hn::Eq(bits, hn::Set(di, 255));
  return hn::Or(half, hn::BitCast(d, hn::VecFromMask(di, is_nan)));
}

// Multiplies a strip of rows, whose indices are R, by one vector of the
// tile's columns or, with kTwo, by two vectors. The first vector begins at
// column `column` of the tile. Columns is a class of columns-inl.h, and CodeDot
// one of dot-inl.h. Vectors are passed as arguments, because an array cannot
// hold SVE vectors.
template <class Columns, class CodeDot, bool kTwo, size_t... R>
class Strip {
 public:
  static HWY_INLINE void Run(const StripArgs& args, size_t column) {
    Run(args, column, LoadSum(args, R, column)...,
        LoadSum(args, R, kTwo ? column + N() : column)...);
  }

 private:
  template <size_t>
  using Sum = DotVec;
  static constexpr WeightTraits kTraits = Columns::kTraits;
  using Codes = typename Columns::Codes;
  using S = typename CodeDot::State;
  template <size_t>
  using State = S;
  static constexpr bool kIntStates = std::is_same<S, DotInts>::value;

  static HWY_INLINE size_t N() { return hn::Lanes(DotTag()); }
  static HWY_INLINE float* SumAt(const StripArgs& args, size_t r,
                                 size_t column) {
    return args.sums + (args.row + r) * kTileColumns + column;
  }
  static HWY_INLINE DotVec LoadSum(const StripArgs& args, size_t r,
                                   size_t column) {
    return hn::LoadU(DotTag(), SumAt(args, r, column));
  }
  static HWY_INLINE const uint8_t* Scales(const StripArgs& args,
                                          size_t column) {
    return args.packed[column / kPackedRows] +
           column % kPackedRows * kTraits.row_scales;
  }
  static HWY_INLINE void Run(const StripArgs& args, size_t column,
                             Sum<R>... sum0, Sum<R>... sum1) {
    const size_t column1 = kTwo ? column + N() : column;
    Codes codes0 = Columns::Begin(args, column);
    Codes codes1 = Columns::Begin(args, column1);
    const uint8_t* scales0 = Scales(args, column);
    const uint8_t* scales1 = Scales(args, column1);
    for (size_t b = args.begin; b < args.end; ++b) {
      if (args.ahead != 0) {
        Prefetch(args, column, scales0);
        if constexpr (kTwo) Prefetch(args, column1, scales1);
      }
      AddBlock(args, b, column, codes0, codes1, scales0, scales1, sum0...,
               sum1..., Start(args, b, R)..., Start(args, b, R)...,
               Start(args, b, R)..., Start(args, b, R)...);
      Columns::Next(codes0);
      Columns::Next(codes1);
      scales0 += Columns::kScaleStride;
      scales1 += Columns::kScaleStride;
    }
    if constexpr (!kSumsInMemory) {
      ((StoreSums(args, R, column, sum0, sum1)), ...);
    }
  }

  // Adds the products of one block to the sums. For each row, states a and b
  // collect the products of vector 0, and c and e the products of vector 1. b
  // and e are used only if a vector needs two states.
  static HWY_INLINE void AddBlock(const StripArgs& args, size_t block,
                                  size_t column, Codes& codes0, Codes& codes1,
                                  const uint8_t* scales0,
                                  const uint8_t* scales1, Sum<R>&... sum0,
                                  Sum<R>&... sum1, State<R>... a, State<R>... b,
                                  State<R>... c, State<R>... e) {
    const BatchRows& rows = args.rows;
    const int8_t* const x = rows.codes + args.row * rows.stride +
                            (block - args.begin) * rows.block_stride;
    Columns::Load(codes0, 0);
    if constexpr (kTwo) Columns::Load(codes1, 0);
    for (size_t q = 0; q < kTraits.packed_codes() / 64; ++q) {
      if constexpr (kIsOneStream) Columns::KeepOrder(codes0);
      const auto raw0 = Columns::Line(codes0, q);
      const auto raw1 = kTwo ? Columns::Line(codes1, q) : raw0;
      if constexpr (kIsNibbles) {
        const auto low0 = CodeDot::Split(Signless(Dot::LowNibbles(raw0)));
        const auto low1 = CodeDot::Split(Signless(Dot::LowNibbles(raw1)));
        ((AddTwo(a, c, low0, low1, CodeDot::LoadRow(x + R * rows.stride, q))),
         ...);
        // Two vectors with AVX-512 load the codes again, because sums, states
        // and constants leave no registers to keep the codes in: mxfp4 would
        // take 1.06 times as long. (48 rows, Zen 4)
        if constexpr (!kIsOneStream) {
          Columns::KeepOrder(codes0);
          Columns::KeepOrder(codes1);
        }
        const auto same0 = kIsOneStream ? raw0 : Columns::Line(codes0, q);
        const auto same1 = kIsOneStream ? raw1 : Columns::Line(codes1, q);
        const auto high0 = CodeDot::Split(Signless(Dot::HighNibbles(same0)));
        const auto high1 = CodeDot::Split(Signless(Dot::HighNibbles(same1)));
        const size_t high = q + kTraits.block / 8;
        if constexpr (kTwoStates) {
          ((AddTwo(b, e, high0, high1,
                   CodeDot::LoadRow(x + R * rows.stride, high))),
           ...);
        } else {
          ((AddTwo(a, c, high0, high1,
                   CodeDot::LoadRow(x + R * rows.stride, high))),
           ...);
        }
      } else {
        const auto w0 = CodeDot::Split(raw0), w1 = CodeDot::Split(raw1);
        ((AddTwo(a, c, w0, w1, CodeDot::LoadRow(x + R * rows.stride, q))), ...);
      }
    }
    if constexpr (kTraits.has_block_scales()) {
      const DotTag d;
      const auto dw0 = LoadScales(scales0);
      const auto dw1 = kTwo ? LoadScales(scales1) : dw0;
      ((AddTwoTerms(
           args, R, column, sum0, sum1, SumOf(args, block, R, a, b),
           kTwo ? SumOf(args, block, R, c, e) : hn::Zero(DotIntTag()), dw0, dw1,
           hn::Set(d, args.scales[(args.row + R) * args.blocks + block]))),
       ...);
    } else {
      // Adds to the integer sum of all blocks, which is scaled in the end.
      ((AddTwoInts(args, R, column, sum0, sum1, SumOf(args, block, R, a, b),
                   SumOf(args, block, R, c, e))),
       ...);
    }
  }

  // Only the first vector of 16 columns prefetches, because a line has the
  // codes of all 16.
  static HWY_INLINE void Prefetch(const StripArgs& args, size_t column,
                                  const uint8_t* block) {
    if (column % kPackedRows != 0) return;
    PrefetchToL2(block + args.ahead, kTraits.packed_block());
  }

  // Returns a state without products. A state of int32 begins with the
  // correction of the block.
  static HWY_INLINE S Start(const StripArgs& args, size_t block, size_t r) {
    if constexpr (kIntStates) {
      return Correction(args, block, r);
    } else {
      return Dot::ZeroState();
    }
  }
  static HWY_INLINE DotInts Correction(const StripArgs& args, size_t block,
                                       size_t r) {
    if constexpr (OffsetOf(kTraits) == 0) return hn::Zero(DotIntTag());
    return hn::Set(DotIntTag(),
                   args.corrections[(args.row + r) * args.blocks + block]);
  }
  template <class Codes, class Row>
  static HWY_INLINE void AddTwo(S& a, S& c, const Codes& w0, const Codes& w1,
                                const Row& x) {
    a = CodeDot::Add(a, w0, x);
    if constexpr (kTwo) c = CodeDot::Add(c, w1, x);
  }
  static HWY_INLINE DotInts SumOf(const StripArgs& args, size_t block, size_t r,
                                  S a, S b) {
    if constexpr (kIntStates) {
      return a;
    } else {
      DotInts sum = hn::Add(CodeDot::Sum(a), Correction(args, block, r));
      if constexpr (kTwoStates) sum = hn::Add(sum, CodeDot::Sum(b));
      return sum;
    }
  }
  static HWY_INLINE DotVec AddInts(DotVec sum, DotInts dot) {
    return hn::BitCast(DotTag(), hn::Add(hn::BitCast(DotIntTag(), sum), dot));
  }
  static HWY_INLINE void AddTwoInts(const StripArgs& args, size_t r,
                                    size_t column, DotVec& sum0, DotVec& sum1,
                                    DotInts dot0, DotInts dot1) {
    if constexpr (kSumsInMemory) LoadSums(args, r, column, sum0, sum1);
    sum0 = AddInts(sum0, dot0);
    if constexpr (kTwo) sum1 = AddInts(sum1, dot1);
    if constexpr (kSumsInMemory) StoreSums(args, r, column, sum0, sum1);
  }
  static HWY_INLINE void AddTwoTerms(const StripArgs& args, size_t r,
                                     size_t column, DotVec& sum0, DotVec& sum1,
                                     DotInts dot0, DotInts dot1, DotVec dw0,
                                     DotVec dw1, DotVec dx) {
    const DotTag d;
    if constexpr (kSumsInMemory) LoadSums(args, r, column, sum0, sum1);
    sum0 = hn::MulAdd(hn::ConvertTo(d, dot0), hn::Mul(dw0, dx), sum0);
    if constexpr (kTwo) {
      sum1 = hn::MulAdd(hn::ConvertTo(d, dot1), hn::Mul(dw1, dx), sum1);
    }
    if constexpr (kSumsInMemory) StoreSums(args, r, column, sum0, sum1);
  }
  static HWY_INLINE void LoadSums(const StripArgs& args, size_t r,
                                  size_t column, DotVec& sum0, DotVec& sum1) {
    sum0 = LoadSum(args, r, column);
    if constexpr (kTwo) sum1 = LoadSum(args, r, column + N());
  }
  static HWY_INLINE void StoreSums(const StripArgs& args, size_t r,
                                   size_t column, DotVec sum0, DotVec sum1) {
    hn::StoreU(sum0, DotTag(), SumAt(args, r, column));
    if constexpr (kTwo)
      hn::StoreU(sum1, DotTag(), SumAt(args, r, column + N()));
  }
  static HWY_INLINE DotVec LoadScales(const uint8_t* p) {
    if constexpr (kTraits.coding == WeightCoding::kE2M1) {
      return LoadHalfPowers(p);
    } else {
      return LoadF16Scales(p);
    }
  }
  // Converts nibbles to unsigned codes, by a table if the coding has one.
  static HWY_INLINE typename Dot::Codes Signless(typename Dot::Codes nibbles) {
    constexpr const uint8_t* kTable = NibbleCodes(kTraits.coding);
    if constexpr (kTable != nullptr) {
      return Dot::FromTable(kTable, nibbles);
    } else {
      return nibbles;
    }
  }

  // True if each block reads and writes args.sums, because the integer sums
  // of a block take all registers. (On a Zen 3, one such strip of four rows
  // of q8_0 takes 0.8 times as long as two strips of two rows, whose float
  // sums stay in registers.)
  static constexpr bool kSumsInMemory =
      !SWITCHYARD_MANY_REGISTERS && kTwo && sizeof...(R) > kFewRows;
  static constexpr bool kIsOneStream = IsOneStream(kTwo);
  static constexpr bool kIsNibbles = kTraits.coding != WeightCoding::kBytes;
  // True if the high nibbles have their own states, b and e.
  static constexpr bool kTwoStates =
      Dot::kTwoStates && kTraits.coding == WeightCoding::kE2M1;
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_STRIPS_INL_H_
