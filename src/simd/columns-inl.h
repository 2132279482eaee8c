// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The operands of a strip (see strips-inl.h): rows, and a vector of the
// product's columns, either packed or as stored.

#if defined(SWITCHYARD_SRC_SIMD_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_COLUMNS_INL_H_
#undef SWITCHYARD_SRC_SIMD_COLUMNS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_COLUMNS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "src/base/weight_layout.h"

#include "hwy/highway.h"

#include "src/simd/dot-inl.h"
#include "src/simd/weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kTileColumns = 2 * kPackedRows;

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
  // Weights in blocks of 256 columns use these sums of the rows' codes
  // instead of corrections: [rows, blocks, 256 / sub_block()]. Each four sums
  // are in the order 0, 2, 1, 3 (SubSumAt), because SmallDot multiplies the
  // first and the third of four integers together, and the second and the
  // fourth.
  const int16_t* sub_sums;
  size_t blocks;
  size_t row = 0;
  size_t begin, end;
  size_t columns;  // the number of columns to compute
  // Blocks [begin, ...) of each of the two packed groups. For StoredColumns,
  // these are the packed scales alone.
  const uint8_t* packed[2];
  // For StoredColumns: block `begin` of the first of each group's 16 rows of
  // weights, the offsets of all 16 from the first, and the rows to prefetch.
  const uint8_t* stored[2];
  const size_t* offsets;
  const uint8_t* next[2];
  // The distance, in bytes, from the packed weights to the ones to prefetch. If
  // 0, the strip prefetches nothing.
  size_t ahead;
  float* sums;  // [rows of the batch, kTileColumns]
};

// Prefetches `bytes` bytes to the L2 cache. Prefetching to L1 would be slower,
// because only a few lines can be on their way there, 24 on a Zen 4. Products
// would take 1.1 to 1.7 times as long on this CPU.
HWY_INLINE void PrefetchToL2(const uint8_t* p, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
}

// The two classes below tell a strip where the weights of one vector of columns
// are. Codes is the position of the codes of a block. Load() makes the lines of
// a step of this block available to Line(). A line has four codes of each
// column.

template <class Format>
struct PackedColumns {
  static constexpr bool kIsPacked = true;
  static constexpr WeightTraits kTraits = TraitsOf(Format::value);
  // The number of bytes from a block's scales to the next block's.
  static constexpr size_t kScaleStride = kTraits.packed_block();

  using Codes = const uint8_t*;
  static HWY_INLINE Codes Begin(const StripArgs& args, size_t column) {
    return args.packed[column / kPackedRows] + kTraits.packed_scales() +
           column % kPackedRows * 4;
  }
  static HWY_INLINE void Next(Codes& codes) { codes += kTraits.packed_block(); }
  static HWY_INLINE void Load(Codes&, size_t /*step*/) {}
  static HWY_INLINE auto Line(Codes codes, size_t line) {
    return Dot::LoadBytes(codes + 64 * line);
  }
  // Prevents the compiler from loading lines of weights in another order. Where
  // GCC loaded the last line of a block as the second one, the hardware did not
  // prefetch, and two rows of q8_0 took 1.4 times as long. (Zen 4)
  static HWY_INLINE void KeepOrder(Codes& codes) {
    asm volatile("" : "+r"(codes));
  }
};

// True if one row is multiplied by weights of this coding with StoredColumns.
// It was not measured on Arm. q6_K would take 1.1 to 1.3 times as long, because
// it needs 12 lines at once.
constexpr bool HasStoredColumns(const WeightTraits& traits) {
  return (SWITCHYARD_DOT_VNNI || SWITCHYARD_DOT_MADDUBS) &&
         traits.coding != WeightCoding::kQ6_K;
}

#if SWITCHYARD_DOT_VNNI || SWITCHYARD_DOT_MADDUBS

// Transposes the codes of stored rows in registers. One row of a product uses
// each line only once, so storing the lines first would take longer: 1.05 to
// 1.3 times, on a Zen 4. The scales are packed before.
template <class Format>
struct StoredColumns {
  static constexpr bool kIsPacked = false;
  static constexpr WeightTraits kTraits = TraitsOf(Format::value);
  static constexpr size_t kScaleStride = kTraits.packed_scales();
  // A step is a block, or 64 columns of q4_K.
  static constexpr size_t kLines = HWY_MIN(size_t{8}, kTraits.row_codes / 4);
  static constexpr size_t kSteps = kTraits.row_codes / 4 / kLines;

  static_assert(kTransposedRows == hn::MaxLanes(DotTag()),
                "a line has to be a vector of columns");

  struct Codes {
    const uint8_t* first;  // the codes of the first of 16 rows of weights
    const size_t* offsets;
    const uint8_t* next;
    Transposed lines[kLines];
  };
  static HWY_INLINE Codes Begin(const StripArgs& args, size_t column) {
    const size_t group = column / kPackedRows, lane = column % kPackedRows;
    Codes codes;
    codes.first = args.stored[group] + kTraits.stored_codes_at;
    codes.offsets = args.offsets + lane;
    // Only the first vector of 16 columns prefetches.
    codes.next = lane == 0 ? args.next[group] : nullptr;
    return codes;
  }
  static HWY_INLINE void Next(Codes& codes) {
    codes.first += kTraits.stored_block;
    if (codes.next != nullptr) {
      codes.next += kPackedRows * kTraits.stored_block;
    }
  }
  static HWY_INLINE void Load(Codes& codes, size_t step) {
    constexpr uint32_t kFlip =
        kTraits.coding == WeightCoding::kBytes ? 0x80808080 : 0;
    constexpr size_t kNext =
        (kPackedRows * kTraits.stored_block + kSteps - 1) / kSteps;
    if (codes.next != nullptr) PrefetchToL2(codes.next + step * kNext, kNext);
    Transposed* const lines = codes.lines;
    for (size_t i = 0; i < kLines; i += 4) {
      LoadTransposed(codes.first + 4 * (kLines * step + i), codes.offsets,
                     kFlip, lines[i], lines[i + 1], lines[i + 2], lines[i + 3]);
    }
  }
  static HWY_INLINE Transposed Line(const Codes& codes, size_t line) {
    return codes.lines[line % kLines];
  }
  static HWY_INLINE void KeepOrder(Codes&) {}
};

#else

template <class Format>
using StoredColumns = PackedColumns<Format>;  // not used

#endif

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_COLUMNS_INL_H_
