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

#include "src/base/weight_layout.h"
#include "src/simd/multiply.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "src/simd/dot-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kTileColumns = 2 * kPackedRows;
// A strip of at most kFewRows rows prefetches, because memory bounds its time.
constexpr size_t kFewRows = 2;
constexpr size_t kPrefetchBytes = 1024;

// kStripRows is the most rows of a strip, and HasTwoVectors() says whether a
// strip has two vectors of columns. The number of registers bounds both:
// AVX-512 and AArch64 have 32.
#undef SWITCHYARD_MANY_REGISTERS
#if HWY_CAP_GE512 || HWY_ARCH_ARM_A64
#define SWITCHYARD_MANY_REGISTERS 1
#else
#define SWITCHYARD_MANY_REGISTERS 0
#endif
// CPUs without AVX2 are few and old, so short strips keep their code small.
#if SWITCHYARD_MANY_REGISTERS
constexpr size_t kStripRows = 6;
#elif HWY_CAP_GE256
constexpr size_t kStripRows = 4;
#else
constexpr size_t kStripRows = 2;
#endif
// With one row, AVX-512 uses one vector: it holds a whole group of 16 columns,
// so packed groups are read as one stream.
constexpr bool HasTwoVectors(size_t rows) {
#if HWY_CAP_GE512
  return rows > 1;
#else
  return SWITCHYARD_MANY_REGISTERS || rows <= kFewRows;
#endif
}

// Where the codes of a batch's rows are.
struct BatchRows {
  const int8_t* codes;
  size_t stride;        // bytes from a row's codes to the next row's codes
  size_t block_stride;  // bytes from a block's codes to the next block's
};
// The operands of a strip. It multiplies a few rows of the batch, from `row`
// on, by up to two groups of 16 columns, but only in the blocks [begin, end).
struct StripArgs {
  BatchRows rows;              // rows.codes is at block `begin`
  const float* scales;         // [rows, blocks]
  const int32_t* corrections;  // [rows, blocks]
  // If blocks have 256 columns: the sums of the rows' codes, instead of
  // corrections. [rows, blocks, 256 / sub_block()].
  const int16_t* sub_sums;
  size_t blocks;
  size_t row = 0;
  size_t begin, end;
  size_t columns;  // the number of columns to compute
  // Blocks [begin, ...) of each of the two packed groups.
  const uint8_t* packed_codes[2];
  const uint8_t* packed_scales[2];
  float* sums;  // [rows of the batch, kTileColumns]
};

// Returns the stored weights of the 16 columns that begin kTileColumns behind
// `first`, or null if the call does not compute these columns.
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
// Loads half of each e8m0 scale, 2^(bits - 128), because NibbleCodes() gives
// twice the values of E2M1.
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

// A strip of rows R..., with one or two vectors, from column `column` of the
// tile on. Vectors are arguments, because arrays cannot have SVE vectors.
template <class Format, bool kTwo, size_t... R>
class Strip {
 public:
  static HWY_INLINE void Run(const StripArgs& args, size_t column) {
    Run(args, column, LoadSum(args, R, column)...,
        LoadSum(args, R, kTwo ? column + N() : column)...);
  }

 private:
  template <size_t>
  using Sum = DotVec;
  template <size_t>
  using State = typename Dot::State;

  static HWY_INLINE size_t N() { return hn::Lanes(DotTag()); }
  static HWY_INLINE float* SumAt(const StripArgs& args, size_t r,
                                 size_t column) {
    return args.sums + (args.row + r) * kTileColumns + column;
  }
  static HWY_INLINE DotVec LoadSum(const StripArgs& args, size_t r,
                                   size_t column) {
    return hn::LoadU(DotTag(), SumAt(args, r, column));
  }
  static HWY_INLINE const uint8_t* At(const uint8_t* const (&groups)[2],
                                      size_t column, size_t bytes) {
    return groups[column / kPackedRows] + column % kPackedRows * bytes;
  }

  static HWY_INLINE void Run(const StripArgs& args, size_t column,
                             Sum<R>... sum0, Sum<R>... sum1) {
    const size_t column1 = kTwo ? column + N() : column;
    const uint8_t* codes0 = At(args.packed_codes, column, 4);
    const uint8_t* codes1 = At(args.packed_codes, column1, 4);
    const uint8_t* scales0 = At(args.packed_scales, column, kScale);
    const uint8_t* scales1 = At(args.packed_scales, column1, kScale);
    for (size_t b = args.begin; b < args.end; ++b) {
      if constexpr (kSumsInMemory) {
        // Prevents GCC from keeping the stored sums in registers.
        asm("" : : : "memory");
        ((sum0 = LoadSum(args, R, column)), ...);
      }
      AddBlock(args, b, codes0, codes1, scales0, scales1, sum0..., sum1...,
               (static_cast<void>(R), Dot::ZeroState())...,
               (static_cast<void>(R), Dot::ZeroState())...,
               (static_cast<void>(R), Dot::ZeroState())...,
               (static_cast<void>(R), Dot::ZeroState())...);
      if constexpr (kSumsInMemory) {
        (hn::StoreU(sum0, DotTag(), SumAt(args, R, column)), ...);
      }
      codes0 += kTraits.packed_codes();
      codes1 += kTraits.packed_codes();
      scales0 += kTraits.packed_scales();
      scales1 += kTraits.packed_scales();
    }
    (hn::StoreU(sum0, DotTag(), SumAt(args, R, column)), ...);
    if constexpr (kTwo) {
      (hn::StoreU(sum1, DotTag(), SumAt(args, R, column1)), ...);
    }
  }

  // Adds the products of one block to the sums. For each row, states a and b
  // collect the products of vector 0, and c and e the products of vector 1. b
  // and e are used only if a vector needs two states.
  static HWY_INLINE void AddBlock(const StripArgs& args, size_t block,
                                  const uint8_t* codes0, const uint8_t* codes1,
                                  const uint8_t* scales0,
                                  const uint8_t* scales1, Sum<R>&... sum0,
                                  Sum<R>&... sum1, State<R>... a, State<R>... b,
                                  State<R>... c, State<R>... e) {
    const BatchRows& rows = args.rows;
    const int8_t* const x = rows.codes + args.row * rows.stride +
                            (block - args.begin) * rows.block_stride;
    for (size_t q = 0; q < kTraits.packed_codes() / 64; ++q) {
      const auto raw0 = Dot::LoadBytes(codes0 + 64 * q);
      const auto raw1 = Dot::LoadBytes(codes1 + 64 * q);
      if constexpr (sizeof...(R) <= kFewRows) {
        // Hides the latency of memory, which bounds the time of few rows.
        hwy::Prefetch(codes0 + 64 * q + kPrefetchBytes);
      }
      const int8_t* const low = x + 4 * q;
      if constexpr (kIsNibbles) {
        const auto low0 = Signless(Dot::LowNibbles(raw0));
        const auto low1 = Signless(Dot::LowNibbles(raw1));
        ((AddTwoCodes(a, b, c, e, low0, low1,
                      Dot::LoadRow(low + R * rows.stride))),
         ...);
        const auto high0 = Signless(Dot::HighNibbles(raw0));
        const auto high1 = Signless(Dot::HighNibbles(raw1));
        const int8_t* const high = low + kTraits.block / 2;
        if constexpr (kTwoStates) {
          ((AddTwo(b, e, high0, high1, Dot::LoadRow(high + R * rows.stride))),
           ...);
        } else {
          ((AddTwoCodes(a, b, c, e, high0, high1,
                        Dot::LoadRow(high + R * rows.stride))),
           ...);
        }
      } else {
        ((AddTwoCodes(a, b, c, e, raw0, raw1,
                      Dot::LoadRow(low + R * rows.stride))),
         ...);
      }
    }
    if constexpr (kTraits.has_block_scales()) {
      const DotTag d;
      const auto dw0 = LoadScales(scales0);
      const auto dw1 = kTwo ? LoadScales(scales1) : dw0;
      ((AddTwoTerms(
           sum0, sum1, SumOf(args, block, R, a, b),
           kTwo ? SumOf(args, block, R, c, e) : hn::Zero(DotIntTag()), dw0, dw1,
           hn::Set(d, args.scales[(args.row + R) * args.blocks + block]))),
       ...);
    } else {
      // Adds to the integer sum of all blocks, which is scaled in the end.
      ((sum0 = AddInts(sum0, SumOf(args, block, R, a, b))), ...);
      if constexpr (kTwo) {
        ((sum1 = AddInts(sum1, SumOf(args, block, R, c, e))), ...);
      }
    }
  }

  using S = typename Dot::State;
  template <class Codes, class Row>
  static HWY_INLINE void AddTwo(S& a, S& c, Codes w0, Codes w1, Row x) {
    a = Dot::Add(a, w0, x);
    if constexpr (kTwo) c = Dot::Add(c, w1, x);
  }
  template <class Codes, class Row>
  static HWY_INLINE void AddTwoCodes(S& a, S& b, S& c, S& e, Codes w0, Codes w1,
                                     Row x) {
    if constexpr (kTraits.has_byte_codes()) {
      Dot::AddBytes(a, b, w0, x);
      if constexpr (kTwo) Dot::AddBytes(c, e, w1, x);
    } else {
      AddTwo(a, c, w0, w1, x);
    }
  }
  static HWY_INLINE DotInts SumOf(const StripArgs& args, size_t block, size_t r,
                                  S a, S b) {
    const int32_t correction =
        args.corrections[(args.row + r) * args.blocks + block];
    const DotInts start = hn::Set(DotIntTag(), correction);
    if constexpr (kTraits.has_byte_codes()) {
      return hn::Add(Dot::SumBytes(a, b), start);
    }
    if constexpr (kTwoStates) {
      return hn::Add(hn::Add(Dot::Sum(a), Dot::Sum(b)), start);
    }
    return hn::Add(Dot::Sum(a), start);
  }
  static HWY_INLINE DotVec AddInts(DotVec sum, DotInts dot) {
    return hn::BitCast(DotTag(), hn::Add(hn::BitCast(DotIntTag(), sum), dot));
  }
  static HWY_INLINE void AddTwoTerms(DotVec& sum0, DotVec& sum1, DotInts dot0,
                                     DotInts dot1, DotVec dw0, DotVec dw1,
                                     DotVec dx) {
    const DotTag d;
    sum0 = hn::MulAdd(hn::ConvertTo(d, dot0), hn::Mul(dw0, dx), sum0);
    if constexpr (kTwo) {
      sum1 = hn::MulAdd(hn::ConvertTo(d, dot1), hn::Mul(dw1, dx), sum1);
    }
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

  static constexpr WeightTraits kTraits = TraitsOf(Format::value);
  static constexpr size_t kScale = kTraits.row_scales;
  static constexpr bool kIsNibbles = kTraits.coding != WeightCoding::kBytes;
  // True if the high nibbles have their own states, b and e.
  static constexpr bool kTwoStates =
      Dot::kTwoStates && kTraits.coding == WeightCoding::kE2M1;
  // True if a strip's sums are in memory, and are read and stored once a block.
  // Codes of one byte need two states per row. With four rows, the states and
  // the sums need 12 registers, and the codes do not fit in the other 4. GCC
  // then kept two states in memory, where each addition waits for the last
  // store. With sums in memory, products take 0.8 times as long. (q8_0, 32
  // rows, Zen 3)
  static constexpr bool kSumsInMemory = Dot::kTwoStates &&
                                        !SWITCHYARD_MANY_REGISTERS && !kTwo &&
                                        kTraits.has_byte_codes();
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_STRIPS_INL_H_
