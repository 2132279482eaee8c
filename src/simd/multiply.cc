// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compiles AVX3_DL code, too, for dot-inl.h. (See targets.h.)
#define HWY_WANT_AVX3_DL

#include "src/simd/multiply.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "src/base/row_format.h"
#include "src/base/weight_layout.h"
#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/multiply.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/columns-inl.h"
#include "src/simd/float_products-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/storage-inl.h"
#include "src/simd/strips-inl.h"
#include "src/simd/super_strips-inl.h"
#include "src/simd/weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The loops, from the outermost on, are over:
// * batches of rows, because the scales and sums of rows are on the stack;
// * 32 columns of the product;
// * a few blocks, so that weights and rows stay in the L1 cache;
// * strips of rows, so that sums fit in registers.
// One or two rows take all blocks at once, to read packed weights as a single
// stream from memory.
constexpr size_t kBatchRows = 48;
// The most blocks in all rows of a batch. Each block has a float scale and an
// int32 correction: 32 KB. Blocks of 256 columns have no correction, but
// 16-bit sums of their parts. A batch has at most 2 * kBatchBlocks of these
// sums.
constexpr size_t kBatchBlocks = 4096;
constexpr size_t kTileWidth = 256;  // the columns of "a few blocks"

template <class Columns, class CodeDot, bool kTwo, size_t... R>
HWY_INLINE void RunStrip(std::index_sequence<R...>, const StripArgs& args) {
  using AnyStrip = std::conditional_t<Columns::kTraits.is_super(),
                                      SuperStrip<Columns, kTwo, R...>,
                                      Strip<Columns, CodeDot, kTwo, R...>>;
  const size_t step = (kTwo ? 2 : 1) * hn::Lanes(DotTag());
  for (size_t column = 0; column < args.columns; column += step) {
    AnyStrip::Run(args, column);
  }
}
// Multiplies a strip of kRows rows or, if fewer are left, of the next smaller
// size. Returns the number of rows.
template <class Format, class CodeDot, size_t kRows = kStripRows>
HWY_INLINE size_t RunStripOf(size_t rows, const StripArgs& args) {
  if constexpr (kRows > 1) {
    constexpr size_t kFewer = FewerRows(kRows);
    if (rows < kRows) return RunStripOf<Format, CodeDot, kFewer>(rows, args);
  }
  constexpr bool kTwo = HasTwoVectors(TraitsOf(Format::value), kRows);
  RunStrip<PackedColumns<Format>, CodeDot, kTwo>(
      std::make_index_sequence<kRows>(), args);
  return kRows;
}

template <size_t kCodes>
HWY_INLINE int32_t SumOfCodes(const int8_t* p) {
  const hn::CappedTag<int32_t, 16> di;
  const hn::Rebind<int8_t, decltype(di)> d8;
  auto sum = hn::Zero(di);
  for (size_t i = 0; i < kCodes; i += hn::Lanes(di)) {
    sum = hn::Add(sum, hn::PromoteTo(di, hn::LoadU(d8, p + i)));
  }
  return hn::GetLane(hn::SumOfLanes(di, sum));
}

template <size_t kCodes>
HWY_INLINE bool HasLowestCode(const int8_t* p) {
  const hn::CappedTag<int8_t, kCodes> d8;
  bool found = false;
  for (size_t i = 0; i < kCodes; i += hn::Lanes(d8)) {
    const auto is_lowest = hn::Eq(hn::LoadU(d8, p + i), hn::Set(d8, -128));
    found = found || !hn::AllFalse(d8, is_lowest);
  }
  return found;
}

// Multiplies a batch of up to kBatchRows rows of a call.
template <class Format>
class Batch {
 public:
  Batch(const MultiplyArgs& args, size_t begin, size_t count)
      : args_(args),
        begin_(begin),
        count_(count),
        blocks_(WeightBlocks(kTraits, args.weights.cols)),
        group_bytes_(PackedGroupBytes(kTraits, blocks_)) {
    ReadRows();
  }

  void Run() {
    const size_t columns = args_.out.cols;
    for (size_t at = 0; at < columns; at += kTileColumns) {
      const size_t n = HWY_MIN(kTileColumns, columns - at);
      MultiplyTileAt(args_.first_column + at, n);
      WriteTile(at, n);
    }
  }

 private:
  // Reads the scales and corrections of all blocks. If rows end within a block,
  // copies the rows' last blocks, and fills them up with zeros.
  void ReadRows() {
    const ConstAnyRows& rows = args_.rows;
    const bool is_blocks = BlockOf(rows.type) != 1;
    const size_t cols = rows.cols;
    const size_t tail = cols % kTraits.block;
    const size_t group =
        is_blocks ? BlockOf(rows.type) : GroupOf(cols, rows.scales.cols);
    for (size_t r = 0; r < count_; ++r) {
      const auto* const row =
          reinterpret_cast<const int8_t*>(RowAt(rows, begin_ + r));
      for (size_t b = 0; b < blocks_; ++b) {
        const size_t at = r * blocks_ + b;
        const int8_t* codes = row + b * kTraits.block;
        if (rows.type == Type::kQ8_0) {
          const auto* const block = reinterpret_cast<const BlockQ8_0*>(row) + b;
          codes = block->qs;
          scales_[at] = FloatOf(block->d);
        } else if (rows.type == Type::kQ8_K) {
          const auto* const block = reinterpret_cast<const BlockQ8_K*>(row) + b;
          codes = block->qs;
          scales_[at] = block->d;
        } else {
          scales_[at] =
              rows.scales.Row<float>(begin_ + r)[b * kTraits.block / group];
        }
        if (tail != 0 && b + 1 == blocks_) {
          int8_t* const filled = tails_ + r * kTraits.block;
          std::memset(filled, 0, kTraits.block);
          std::memcpy(filled, codes, tail);
          codes = filled;
        }
        PutSums(codes, at);
      }
    }
    rows_.codes = reinterpret_cast<const int8_t*>(RowAt(rows, begin_));
    if (rows.type == Type::kQ8_0) rows_.codes += offsetof(BlockQ8_0, qs);
    if (rows.type == Type::kQ8_K) rows_.codes += offsetof(BlockQ8_K, qs);
    rows_.stride = BytesOf(rows.type, rows.stride);
    rows_.block_stride = is_blocks ? SizeOf(rows.type) : kTraits.block;
    whole_blocks_ = tail == 0 ? blocks_ : blocks_ - 1;
    // Blocks per scale of int8 rows: all blocks if each row has one scale.
    group_blocks_ =
        rows.scales.cols == 1 && !is_blocks ? blocks_ : group / kTraits.block;
  }
  // For blocks of 256 columns, stores the sum of the codes of each part. For
  // other blocks, stores the correction, which is -offset times the sum of
  // the block's codes.
  HWY_INLINE void PutSums(const int8_t* codes, size_t at) {
    if constexpr (kTraits.is_super()) {
      constexpr size_t kSub = kTraits.sub_block();
      for (size_t i = 0; i < kTraits.block / kSub; ++i) {
        sub_sums_[at * (kTraits.block / kSub) + SubSumAt(i)] =
            static_cast<int16_t>(SumOfCodes<kSub>(codes + i * kSub));
      }
    } else {
      if constexpr (OffsetOf(kTraits) != 0) {
        corrections_[at] =
            -OffsetOf(kTraits) * SumOfCodes<kTraits.block>(codes);
      }
      if constexpr (kHasAnyDot) {
        has_lowest_ = has_lowest_ || HasLowestCode<kTraits.block>(codes);
      }
    }
  }
  static HWY_INLINE float FloatOf(Float16 half) {
    HWY_ALIGN Float16 lanes[HWY_MAX_BYTES / sizeof(float)] = {half};
    return hn::GetLane(Storage<Float16>::Load(DotTag(), lanes));
  }

  // Computes the sums of all rows for up to 32 columns of the product, which
  // begin at column `column` of the weights.
  void MultiplyTileAt(size_t column, size_t columns) {
    std::memset(sums_, 0, count_ * kTileColumns * sizeof(float));
    if constexpr (!kTraits.has_block_scales()) ReadChannelScales(column);
    // Few rows take all blocks at once, to keep their sums in registers, and to
    // read packed weights as a single stream.
    const bool is_packed = args_.weights.layout == WeightLayout::kPacked;
    size_t step = is_packed && count_ <= kFewRows ? blocks_
                  : TakesStored(column)           ? kStoredBlocks
                                                  : kTileBlocks;
    if (!kTraits.has_block_scales() && group_blocks_ != blocks_) {
      step = group_blocks_;
    }
    for (size_t b = 0; b < blocks_;) {
      // If the last block is filled up with zeros, it lies in tails_, so a
      // separate call multiplies it.
      const size_t most = b < whole_blocks_ ? whole_blocks_ : blocks_;
      const size_t end = HWY_MIN(b + step, most);
      MultiplyBlocks(column, columns, b, end);
      b = end;
      if constexpr (!kTraits.has_block_scales()) {
        if (b == blocks_ || b % group_blocks_ == 0) ScaleInts(b - 1);
      }
    }
  }

  void MultiplyBlocks(size_t column, size_t columns, size_t begin, size_t end) {
    const ExpertWeights& weights = args_.weights;
    StripArgs strip;
    strip.rows = rows_;
    strip.rows.codes += begin * rows_.block_stride;
    if (begin >= whole_blocks_) {
      strip.rows = {tails_, kTraits.block, kTraits.block};
    }
    strip.scales = scales_;
    strip.corrections = corrections_;
    strip.sub_sums = sub_sums_;
    strip.blocks = blocks_;
    strip.begin = begin;
    strip.end = end;
    strip.columns = columns;
    strip.sums = sums_;
    if constexpr (HasStoredColumns(kTraits)) {
      if (TakesStored(column) && end <= whole_blocks_) {
        MultiplyStored(column, &strip);
        return;
      }
    }
    for (size_t i = 0; i < 2; ++i) {
      // If the weights end with the first group of columns, the strip computes
      // this group twice, and the second result is not used.
      const size_t first = column + i * kPackedRows;
      const size_t from = first < weights.rows ? first : column;
      if (weights.layout == WeightLayout::kPacked) {
        strip.packed[i] = args_.expert + from / kPackedRows * group_bytes_ +
                          begin * kTraits.packed_block();
      } else {
        uint8_t* const blocks = unpacked_ + i * kUnpackedBytes;
        PackBlocks<Format>({args_.expert, weights.rows, weights.cols}, from,
                           begin, end, blocks,
                           NextColumns(kTraits, args_, first));
        strip.packed[i] = blocks;
      }
    }
    strip.ahead =
        weights.layout == WeightLayout::kPacked ? AheadOf(begin, end) : 0;
    while (strip.row < count_) {
      strip.row += RunOneStrip(count_ - strip.row, strip);
      strip.ahead = 0;  // the other strips read the same weights
    }
  }

  // True if MultiplyStored() multiplies the 32 columns that begin at `column`.
  bool TakesStored(size_t column) const {
    return HasStoredColumns(kTraits) && count_ == 1 && !has_lowest_ &&
           args_.weights.layout == WeightLayout::kStored &&
           column + kTileColumns <= args_.weights.rows;
  }
  // Multiplies one row by 32 columns as stored. A call of its own, because GCC
  // would keep more of the other strips' pointers in memory: 48 rows of packed
  // q8_0 would take 1.03 times as long. (Zen 4)
  HWY_NOINLINE void MultiplyStored(size_t column, StripArgs* strip) {
    const size_t row_bytes = StoredRowBytes(kTraits, args_.weights.cols);
    size_t offsets[kPackedRows];
    for (size_t i = 0; i < kPackedRows; ++i) offsets[i] = i * row_bytes;
    strip->offsets = offsets;
    for (size_t i = 0; i < 2; ++i) {
      const size_t first = column + i * kPackedRows;
      const size_t at = strip->begin * kTraits.stored_block;
      strip->stored[i] = args_.expert + first * row_bytes + at;
      strip->next[i] = NextColumns(kTraits, args_, first);
      if (strip->next[i] != nullptr) strip->next[i] += kPackedRows * at;
      uint8_t* to = unpacked_ + i * kUnpackedBytes;
      strip->packed[i] = to;
      const uint8_t* from = strip->stored[i];
      for (size_t b = strip->begin; b < strip->end; ++b) {
        PackScales<Format>(from, offsets, to);
        from += kTraits.stored_block;
        to += kTraits.packed_scales();
      }
    }
    RunStrip<StoredColumns<Format>, CodeDot, false>(
        std::make_index_sequence<1>(), *strip);
  }

  HWY_INLINE size_t RunOneStrip(size_t rows, const StripArgs& strip) const {
    if constexpr (kHasAnyDot) {
      // Batches with a code of -128 are rare. They take strips of one row,
      // which keeps their code small.
      if (has_lowest_) {
        return RunStripOf<Format, typename CodeDot::Any, 1>(rows, strip);
      }
    }
    if constexpr (HWY_CAP_GE512) {
      // In a large batch, most strips read their weights from the L1 cache.
      // There, two vectors take 0.92 to 0.98 times as long, because they share
      // the loads of the rows' codes. (Zen 4)
      if (count_ > kFewRows && rows >= kStripRows) {
        RunStrip<PackedColumns<Format>, CodeDot, true>(
            std::make_index_sequence<kStripRows>(), strip);
        return kStripRows;
      }
    }
    return RunStripOf<Format, CodeDot>(rows, strip);
  }

  // Returns StripArgs::ahead for blocks [begin, end).
  size_t AheadOf(size_t begin, size_t end) const {
    if (count_ <= kFewRows) {
      // If a strip takes little time for a line, the hardware prefetches well,
      // and prefetching here, too, takes up to 1.5 times as long. Otherwise the
      // hardware does not keep up: without prefetching, 4 rows of nibbles take
      // 1.7 times as long. (Zen 4)
      const size_t most = kTraits.has_byte_codes() ? 3 : 2;
      return count_ <= most ? 0 : 8192;
    }
    // Prefetches the next blocks or, at the last block, the first blocks of
    // the next 32 columns.
    return end == blocks_ ? 2 * group_bytes_ - begin * kTraits.packed_block()
                          : (end - begin) * kTraits.packed_block();
  }

  // Reads the scales of int8's columns, with zeros behind the last column.
  void ReadChannelScales(size_t column) {
    for (size_t i = 0; i < kTileColumns; i += kPackedRows) {
      const size_t first = HWY_MIN(column + i, args_.weights.rows);
      const size_t n = HWY_MIN(kPackedRows, args_.weights.rows - first);
      std::memset(channel_scales_ + i, 0, kPackedRows * sizeof(float));
      const void* from = args_.channel_scales + first;
      if (args_.weights.layout == WeightLayout::kPacked && n != 0) {
        from = args_.expert + first / kPackedRows * group_bytes_ +
               blocks_ * kTraits.packed_block();
      }
      if (n != 0) std::memcpy(channel_scales_ + i, from, n * sizeof(float));
    }
  }
  // Multiplies the integer sums of a group of blocks by their scales, and
  // adds the results to the product. The blocks of a group have the same row
  // scale. `block` is the last block of the group.
  void ScaleInts(size_t block) {
    const DotTag d;
    const DotIntTag di;
    const bool is_only = group_blocks_ == blocks_;
    for (size_t r = 0; r < count_; ++r) {
      const auto dx = hn::Set(d, scales_[r * blocks_ + block]);
      for (size_t c = 0; c < kTileColumns; c += hn::Lanes(d)) {
        float* const ints = sums_ + r * kTileColumns + c;
        float* const terms = terms_ + r * kTileColumns + c;
        const auto dot = hn::ConvertTo(d, hn::BitCast(di, hn::LoadU(d, ints)));
        const auto scale = hn::Mul(hn::LoadU(d, channel_scales_ + c), dx);
        if (is_only) {
          hn::StoreU(hn::Mul(dot, scale), d, terms);
        } else {
          const auto sum =
              block < group_blocks_ ? hn::Zero(d) : hn::LoadU(d, terms);
          hn::StoreU(hn::MulAdd(dot, scale, sum), d, terms);
          hn::StoreU(hn::Zero(d), d, ints);
        }
      }
    }
  }

  void WriteTile(size_t column, size_t n) const {
    const float* from = kTraits.has_block_scales() ? sums_ : terms_;
    for (size_t r = 0; r < count_; ++r, from += kTileColumns) {
      WriteSums(from, n, args_.out, begin_ + r, column);
    }
  }

  static constexpr WeightTraits kTraits = TraitsOf(Format::value);
  static constexpr size_t kTileBlocks = kTileWidth / kTraits.block;
  static constexpr size_t kUnpackedBytes = kTileBlocks * kTraits.packed_block();
  // One row takes more blocks of stored weights at once, to start
  // MultiplyStored() less often: with 8 blocks, q4_0 and q4_K take 1.1 times as
  // long. The scales are read first, so the blocks have to stay in the L1
  // cache. For q8_0, 18 blocks take 1.1 times as long as 8. int8 has no scales
  // to read. (Zen 4)
  static constexpr size_t kStoredBlocks =
      !kTraits.has_block_scales() ? kBatchBlocks
      : kTraits.has_byte_codes()  ? kTileBlocks
                                  : 640 / kTraits.stored_block;
  static_assert(kStoredBlocks * kTraits.packed_scales() <= kUnpackedBytes,
                "the scales have to fit in unpacked_");
  using CodeDot = std::conditional_t<kTraits.has_byte_codes(), ByteDot, Dot>;
  // True if CodeDot cannot multiply rows with codes of -128.
  static constexpr bool kHasAnyDot =
      !std::is_same<CodeDot, typename CodeDot::Any>::value;
  // The number of rows in terms_, which has the float sums of int8, separate
  // from the integer sums.
  static constexpr size_t kTermRows =
      kTraits.has_block_scales() ? 1 : kBatchRows;

  const MultiplyArgs& args_;
  const size_t begin_, count_, blocks_, group_bytes_;
  size_t whole_blocks_ = 0, group_blocks_ = 0;
  bool has_lowest_ = false;  // true if a row has a code of -128
  BatchRows rows_ = {};
  HWY_ALIGN float scales_[kBatchBlocks];
  HWY_ALIGN int32_t corrections_[kTraits.is_super() ? 1 : kBatchBlocks];
  HWY_ALIGN int16_t sub_sums_[kTraits.is_super() ? 2 * kBatchBlocks : 1];
  HWY_ALIGN float sums_[kBatchRows * kTileColumns];
  HWY_ALIGN float terms_[kTermRows * kTileColumns];
  HWY_ALIGN float channel_scales_[kTileColumns];
  HWY_ALIGN int8_t tails_[kTraits.is_super() ? 1 : kBatchRows * kTraits.block];
  HWY_ALIGN uint8_t unpacked_[2 * kUnpackedBytes];
};

template <class Format>
HWY_NOINLINE void MultiplyCodes(const MultiplyArgs& args, size_t begin,
                                size_t end) {
  constexpr WeightTraits kTraits = TraitsOf(Format::value);
  size_t row_sums = WeightBlocks(kTraits, args.weights.cols);
  size_t batch_sums = kBatchBlocks;
  if (kTraits.is_super()) {
    row_sums *= kTraits.block / kTraits.sub_block();
    batch_sums *= 2;
  }
  const size_t most =
      HWY_MIN(kBatchRows,
              HWY_MAX(size_t{1}, batch_sums / HWY_MAX(size_t{1}, row_sums)));
  for (size_t r = begin; r < end; r += most) {
    Batch<Format>(args, r, HWY_MIN(most, end - r)).Run();
  }
}

template <class Format>
HWY_INLINE void MultiplyRange(const MultiplyArgs& args, size_t begin,
                              size_t end) {
  if constexpr (TraitsOf(Format::value).is_float()) {
    MultiplyFloats<Format>(args, begin, end);
  } else {
    MultiplyCodes<Format>(args, begin, end);
  }
}

void Multiply(const MultiplyArgs& args, size_t begin, size_t end) {
#define SWITCHYARD_CASE(name, ...) \
  case WeightFormat::name:         \
    return MultiplyRange<WeightFormatTag<WeightFormat::name>>(args, begin, end);
  switch (args.weights.format) { SWITCHYARD_WEIGHT_FORMATS(SWITCHYARD_CASE) }
#undef SWITCHYARD_CASE
}
SWITCHYARD_ROW_FUNCTION(Multiply, MultiplyArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(MultiplyRows, Multiply, MultiplyArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
