// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Products with float weights. Each output is one chain of fused multiply-adds
// in the order of columns, so results do not depend on the vectors' width.

#if defined(SWITCHYARD_SRC_SIMD_FLOAT_PRODUCTS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_FLOAT_PRODUCTS_INL_H_
#undef SWITCHYARD_SRC_SIMD_FLOAT_PRODUCTS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_FLOAT_PRODUCTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "src/base/weight_layout.h"
#include "src/simd/multiply.h"

#include "hwy/highway.h"

#include "src/simd/rows-inl.h"
#include "src/simd/storage-inl.h"
#include "src/simd/strips-inl.h"
#include "src/simd/weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// kFloatChunk: the number of the rows' columns that all strips of a batch
// multiply before they go on to the next columns. The floats of 48 rows then
// take only 24 KB.
constexpr size_t kFloatChunk = 128;
constexpr size_t kFloatRows = 48;
// The most floats of a batch that are converted once, and not again for each 32
// columns of the product. (4 rows of bf16 with 2048 columns would take 1.1
// times as long on a Zen 4.)
constexpr size_t kMostFloats = 12288;
static_assert(kMostFloats >= kFloatRows * kFloatChunk);

// The operands of a strip, which multiplies `count` columns of a few rows by up
// to kTileColumns = 32 rows of weights. Each row of weights gives a column of
// the product. packed[0] and packed[1] are the weights for the first and the
// last 16 columns of the product.
struct FloatStripArgs {
  const float* rows;
  size_t stride;
  size_t count;
  const uint8_t* packed[2];
  float* sums;  // [rows, kTileColumns]
};

// Multiplies a few rows, whose indices are R, by kVectors vectors of weights.
// kVectors is 2, or 4 for one or two rows, to have enough independent chains
// to hide their latency, or 1.
template <class Format, size_t kVectors, size_t... R>
class FloatStrip {
 public:
  static HWY_INLINE void Run(const FloatStripArgs& args, size_t column) {
    Run(args, column, Load<0>(args, R, column)..., Load<1>(args, R, column)...,
        Load<2>(args, R, column)..., Load<3>(args, R, column)...);
  }

 private:
  template <size_t>
  using Sum = DotVec;

  static constexpr WeightTraits kTraits = TraitsOf(Format::value);
  static constexpr bool kIsF32 = Format::value == WeightFormat::kF32;
  // For very few rows, the hardware prefetches well, and prefetching here, too,
  // takes up to 1.2 times as long. For more rows, not prefetching takes 1.1 to
  // 1.3 times as long. (Zen 4)
  static constexpr bool kPrefetches = sizeof...(R) > (kIsF32 ? 4 : 1);

  template <size_t kVector>
  static HWY_INLINE float* At(const FloatStripArgs& args, size_t r,
                              size_t column) {
    return args.sums + r * kTileColumns + column +
           kVector * hn::Lanes(DotTag());
  }
  template <size_t kVector>
  static HWY_INLINE DotVec Load(const FloatStripArgs& args, size_t r,
                                size_t column) {
    if constexpr (kVector >= kVectors) return hn::Zero(DotTag());
    return hn::LoadU(DotTag(), At<kVector>(args, r, column));
  }
  template <size_t kVector>
  static HWY_INLINE void Store(const FloatStripArgs& args, size_t r,
                               size_t column, DotVec sum) {
    if constexpr (kVector < kVectors) {
      hn::StoreU(sum, DotTag(), At<kVector>(args, r, column));
    }
  }
  // Returns the packed weights of vector kVector. Vector 0 begins at column
  // `column`.
  template <size_t kVector>
  static HWY_INLINE const uint8_t* Lines(const FloatStripArgs& args,
                                         size_t column) {
    const size_t at =
        column + (kVector < kVectors ? kVector : 0) * hn::Lanes(DotTag());
    return args.packed[at / kPackedRows] + at % kPackedRows * 4;
  }

  static HWY_INLINE void Run(const FloatStripArgs& args, size_t column,
                             Sum<R>... s0, Sum<R>... s1, Sum<R>... s2,
                             Sum<R>... s3) {
    const uint8_t* const p0 = Lines<0>(args, column);
    const uint8_t* const p1 = Lines<1>(args, column);
    const uint8_t* const p2 = Lines<2>(args, column);
    const uint8_t* const p3 = Lines<3>(args, column);
    constexpr size_t kStep = kIsF32 ? 1 : 2;
    size_t k = 0, at = 0;
    for (; k + kStep <= args.count; k += kStep, at += 64) {
      if constexpr (kPrefetches) {
        PrefetchAhead<0>(p0 + at);
        PrefetchAhead<1>(p1 + at);
        PrefetchAhead<2>(p2 + at);
        PrefetchAhead<3>(p3 + at);
      }
      const float* const x = args.rows + k;
      if constexpr (kIsF32) {
        ((AddRow(s0, s1, s2, s3, F32(p0 + at), F32(p1 + at), F32(p2 + at),
                 F32(p3 + at), x[R * args.stride])),
         ...);
      } else {
        AddPair<true>(args, x, p0 + at, p1 + at, p2 + at, p3 + at, s0..., s1...,
                      s2..., s3...);
      }
    }
    if constexpr (!kIsF32) {
      if (k < args.count) {
        AddPair<false>(args, args.rows + k, p0 + at, p1 + at, p2 + at, p3 + at,
                       s0..., s1..., s2..., s3...);
      }
    }
    ((Store<0>(args, R, column, s0)), ...);
    ((Store<1>(args, R, column, s1)), ...);
    ((Store<2>(args, R, column, s2)), ...);
    ((Store<3>(args, R, column, s3)), ...);
  }

  // Prefetches weights of vector kVector if it begins a group. (The other
  // vectors have the same lines.)
  template <size_t kVector>
  static HWY_INLINE void PrefetchAhead(const uint8_t* p) {
    if (kVector < kVectors &&
        kVector * hn::Lanes(DotTag()) % kPackedRows == 0) {
      PrefetchToL2(p + (kVectors == 1 ? 8192 : 4096), 64);
    }
  }
  static HWY_INLINE DotVec F32(const uint8_t* p) {
    return hn::LoadU(DotTag(), reinterpret_cast<const float*>(p));
  }
  // Multiplies column k of the rows and, if kBoth, column k + 1 by their
  // weights, and adds the products to the sums. x points to column k of the
  // first row.
  template <bool kBoth>
  static HWY_INLINE void AddPair(const FloatStripArgs& args, const float* x,
                                 const uint8_t* p0, const uint8_t* p1,
                                 const uint8_t* p2, const uint8_t* p3,
                                 Sum<R>&... s0, Sum<R>&... s1, Sum<R>&... s2,
                                 Sum<R>&... s3) {
    DotVec a0, a1, a2, a3, b0, b1, b2, b3;
    LoadPair(p0, a0, b0);
    LoadPair(p1, a1, b1);
    LoadPair(p2, a2, b2);
    LoadPair(p3, a3, b3);
    ((AddRow(s0, s1, s2, s3, a0, a1, a2, a3, x[R * args.stride])), ...);
    if constexpr (kBoth) {
      ((AddRow(s0, s1, s2, s3, b0, b1, b2, b3, x[R * args.stride + 1])), ...);
    }
  }
  static HWY_INLINE void LoadPair(const uint8_t* p, DotVec& even, DotVec& odd) {
    using T = std::conditional_t<Format::value == WeightFormat::kBF16, BFloat16,
                                 Float16>;
    Storage<T>::LoadPairs(DotTag(), reinterpret_cast<const T*>(p), even, odd);
  }
  static HWY_INLINE void AddRow(DotVec& s0, DotVec& s1, DotVec& s2, DotVec& s3,
                                DotVec w0, DotVec w1, DotVec w2, DotVec w3,
                                float factor) {
    const DotVec x = hn::Set(DotTag(), factor);
    s0 = hn::MulAdd(w0, x, s0);
    s1 = hn::MulAdd(w1, x, s1);
    if constexpr (kVectors == 4) {
      s2 = hn::MulAdd(w2, x, s2);
      s3 = hn::MulAdd(w3, x, s3);
    }
  }
};

template <class Format, size_t... R>
HWY_INLINE void RunFloatStrip(std::index_sequence<R...>,
                              const FloatStripArgs& args, size_t columns) {
  constexpr bool kFour = HWY_MAX_BYTES <= 32 && sizeof...(R) <= 2;
  // Four rows have enough chains with one vector, and then read one stream: two
  // vectors of bf16 take 1.05 to 1.1 times as long. (AVX-512, Zen 4)
  constexpr bool kOne =
      HWY_CAP_GE512 && sizeof...(R) == 4 && Format::value != WeightFormat::kF32;
  constexpr size_t kVectors = kOne ? 1 : kFour ? 4 : 2;
  const size_t step = kVectors * hn::Lanes(DotTag());
  for (size_t column = 0; column < columns; column += step) {
    FloatStrip<Format, kVectors, R...>::Run(args, column);
  }
}
// Runs a strip of kRows rows, or of fewer rows if fewer are left. Returns the
// number of rows in the strip.
template <class Format, size_t kRows>
HWY_INLINE size_t RunFloatStripOf(size_t rows, const FloatStripArgs& args,
                                  size_t columns) {
  if constexpr (kRows > 1) {
    constexpr size_t kFewer = FewerRows(kRows);
    if (rows < kRows) {
      return RunFloatStripOf<Format, kFewer>(rows, args, columns);
    }
  }
  RunFloatStrip<Format>(std::make_index_sequence<kRows>(), args, columns);
  return kRows;
}

// Multiplies a batch of up to kFloatRows rows of a call.
template <class Format>
class FloatBatch {
 public:
  FloatBatch(const MultiplyArgs& args, size_t begin, size_t count)
      : args_(args),
        rows_(args.rows.RowRange(begin, begin + count)),
        begin_(begin),
        count_(count),
        is_converted_(rows_.type != Type::kF32 &&
                      rows_.cols <= kMostFloats / count) {
    if (is_converted_) ConvertRows(0, rows_.cols);
  }

  void Run() {
    for (size_t at = 0; at < args_.out.cols; at += kTileColumns) {
      const size_t columns = HWY_MIN(kTileColumns, args_.out.cols - at);
      std::memset(sums_, 0, count_ * kTileColumns * sizeof(float));
      // Packed weights of few rows are read as streams, without jumps between
      // chunks, which takes 0.95 to 0.98 times as long. (Zen 4)
      const bool is_stream = count_ <= kStreamRows &&
                             args_.weights.layout == WeightLayout::kPacked &&
                             (is_converted_ || rows_.type == Type::kF32);
      const size_t step = is_stream ? rows_.cols : kFloatChunk;
      for (size_t k = 0; k < rows_.cols; k += step) {
        AddChunk(args_.first_column + at, columns, k,
                 HWY_MIN(step, rows_.cols - k));
      }
      for (size_t r = 0; r < count_; ++r) {
        WriteSums(sums_ + r * kTileColumns, columns, args_.out, begin_ + r, at);
      }
    }
  }

 private:
  void AddChunk(size_t column, size_t columns, size_t k, size_t n) {
    FloatStripArgs strip;
    strip.count = n;
    strip.sums = sums_;
    if (rows_.type == Type::kF32) {
      strip.rows = rows_.Row<float>(0) + k;
      strip.stride = rows_.stride;
    } else {
      if (!is_converted_) ConvertRows(k, k + n);
      strip.rows = floats_ + (is_converted_ ? k : 0);
      strip.stride = is_converted_ ? rows_.cols : n;
    }
    const ExpertWeights& weights = args_.weights;
    const size_t blocks = WeightBlocks(kTraits, weights.cols);
    const size_t begin = k / kTraits.block;
    for (size_t i = 0; i < 2; ++i) {
      const size_t first = column + i * kPackedRows;
      const size_t from = first < weights.rows ? first : column;
      if (weights.layout == WeightLayout::kPacked) {
        strip.packed[i] =
            args_.expert +
            from / kPackedRows * PackedGroupBytes(kTraits, blocks) +
            begin * kTraits.packed_codes();
        continue;
      }
      const size_t end = HWY_MIN(begin + kFloatChunk / kTraits.block, blocks);
      PackBlocks<Format>({args_.expert, weights.rows, weights.cols}, from,
                         begin, end, unpacked_[i],
                         NextColumns(kTraits, args_, first));
      strip.packed[i] = unpacked_[i];
    }
    for (size_t row = 0; row < count_;) {
      const size_t done =
          RunFloatStripOf<Format, kRows>(count_ - row, strip, columns);
      row += done;
      strip.rows += done * strip.stride;
      strip.sums += done * kTileColumns;
    }
  }

  // Converts columns [begin, end) of the rows to floats.
  void ConvertRows(size_t begin, size_t end) {
    const ConstAnyRows rows = rows_.ColRange(begin, end);
    for (size_t r = 0; r < count_; ++r) {
      RowToFloats(rows, r, floats_ + r * (end - begin));
    }
  }

  static constexpr WeightTraits kTraits = TraitsOf(Format::value);
  static constexpr size_t kStreamRows = HWY_CAP_GE512 ? 5 : 0;
  static constexpr size_t kRows =
      SWITCHYARD_MANY_REGISTERS || HWY_CAP_GE256 ? 6 : 2;

  const MultiplyArgs& args_;
  const ConstAnyRows rows_;
  const size_t begin_, count_;
  const bool is_converted_;  // true if floats_ has all columns of the rows
  HWY_ALIGN float sums_[kFloatRows * kTileColumns];
  HWY_ALIGN float floats_[kMostFloats];
  HWY_ALIGN uint8_t
      unpacked_[2][kFloatChunk / kTraits.block * kTraits.packed_codes()];
};

template <class Format>
HWY_NOINLINE void MultiplyFloats(const MultiplyArgs& args, size_t begin,
                                 size_t end) {
  for (size_t r = begin; r < end; r += kFloatRows) {
    FloatBatch<Format>(args, r, HWY_MIN(kFloatRows, end - r)).Run();
  }
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_FLOAT_PRODUCTS_INL_H_
