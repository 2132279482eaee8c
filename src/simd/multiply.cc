// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// For dot-inl.h. (See targets.h.)
#define HWY_WANT_AVX3_DL

#include "src/simd/multiply.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "src/simd/row_format.h"
#include "src/simd/targets.h"
#include "src/simd/weight_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/multiply.cc"
#include "hwy/foreach_target.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "src/simd/dot-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/storage-inl.h"
#include "src/simd/weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Loops, from the outermost: batches of rows, because their scales and sums lie
// on the stack; 32 columns; a few blocks, so that their weights and rows stay
// in the L1 cache; strips of rows, whose sums fit the registers. One or two
// rows take all blocks at once, to read packed weights as one stream of memory.
constexpr size_t kBatchRows = 48;
// float scales and int32 corrections of a batch: 32 KB.
constexpr size_t kBatchBlocks = 4096;
constexpr size_t kTileColumns = 2 * kPackedRows;
constexpr size_t kTileBlocks = 8;
// A strip of so few rows takes memory's time, not the core's.
constexpr size_t kFewRows = 2;

// The most rows of a strip, and whether it has two vectors of columns: as many
// as there are registers for. AVX-512 and AArch64 have 32 of them.
#undef SWITCHYARD_MANY_REGISTERS
#if HWY_CAP_GE512 || HWY_ARCH_ARM_A64
#define SWITCHYARD_MANY_REGISTERS 1
#else
#define SWITCHYARD_MANY_REGISTERS 0
#endif
// CPUs without AVX2 are few and old: short strips keep their code small.
#if SWITCHYARD_MANY_REGISTERS
constexpr size_t kStripRows = 6;
#elif HWY_CAP_GE256
constexpr size_t kStripRows = 4;
#else
constexpr size_t kStripRows = 2;
#endif
// One row reads one stream of packed groups, which a vector of AVX-512 fills.
constexpr bool HasTwoVectors(size_t rows) {
#if HWY_CAP_GE512
  return rows > 1;
#else
  return SWITCHYARD_MANY_REGISTERS || rows <= kFewRows;
#endif
}

// The rows of a batch, as strips read them.
struct BatchRows {
  const int8_t* codes;
  size_t stride;        // bytes
  size_t block_stride;  // bytes from a block's codes to the next's
};
// The operands of a strip: blocks [begin, end) of the rows from `row` on, and
// of two groups of 16 columns.
struct StripArgs {
  BatchRows rows;       // codes: of block `begin`
  const float* scales;  // [rows, blocks]
  const int32_t* corrections;
  size_t blocks;
  size_t row = 0;
  size_t begin, end;
  size_t columns;  // how many of them are wanted
  // Packed blocks [begin, ...) of each 16 columns.
  const uint8_t* packed_codes[2];
  const uint8_t* packed_scales[2];
  float* sums;  // [rows, kTileColumns] of the batch
};

// A strip of rows R... and of one or two vectors of columns from `column` of
// the tile on. Vectors are arguments because SVE's cannot be elements of
// arrays.
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
      AddBlock(args, b, codes0, codes1, scales0, scales1, sum0..., sum1...,
               (static_cast<void>(R), Dot::ZeroState())...,
               (static_cast<void>(R), Dot::ZeroState())...,
               (static_cast<void>(R), Dot::ZeroState())...,
               (static_cast<void>(R), Dot::ZeroState())...);
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

  // One block: states a and b of vector 0, c and e of vector 1.
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
        // Hides memory's latency where only a few rows are multiplied.
        hwy::Prefetch(codes0 + 64 * q + 1024);
      }
      const int8_t* const low = x + 4 * q;
      if constexpr (kTraits.is_nibbles) {
        const auto low0 = Dot::LowNibbles(raw0), low1 = Dot::LowNibbles(raw1);
        ((AddTwo(a, c, low0, low1, Dot::LoadRow(low + R * rows.stride))), ...);
        const auto high0 = Dot::HighNibbles(raw0);
        const auto high1 = Dot::HighNibbles(raw1);
        const int8_t* const high = low + kWeightBlock / 2;
        ((AddTwo(a, c, high0, high1, Dot::LoadRow(high + R * rows.stride))),
         ...);
      } else {
        ((AddTwoBytes(a, b, c, e, raw0, raw1,
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
      // The exact sum of all blocks, which is scaled at the end.
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
  static HWY_INLINE void AddTwoBytes(S& a, S& b, S& c, S& e, Codes w0, Codes w1,
                                     Row x) {
    Dot::AddBytes(a, b, w0, x);
    if constexpr (kTwo) Dot::AddBytes(c, e, w1, x);
  }
  static HWY_INLINE DotInts SumOf(const StripArgs& args, size_t block, size_t r,
                                  S a, S b) {
    const int32_t correction =
        args.corrections[(args.row + r) * args.blocks + block];
    return hn::Add(kTraits.is_nibbles ? Dot::Sum(a) : Dot::SumBytes(a, b),
                   hn::Set(DotIntTag(), correction));
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
    return Storage<Float16>::Load(DotTag(),
                                  reinterpret_cast<const Float16*>(p));
  }

  static constexpr WeightTraits kTraits = TraitsOf(Format::value);
  static constexpr size_t kScale = kTraits.block_scale;
};

template <class Format, bool kTwo, size_t... R>
HWY_INLINE void RunStrip(std::index_sequence<R...>, const StripArgs& args) {
  const size_t step = (kTwo ? 2 : 1) * hn::Lanes(DotTag());
  for (size_t column = 0; column < args.columns; column += step) {
    Strip<Format, kTwo, R...>::Run(args, column);
  }
}
// A strip of kRows rows, or of the fewer that are left.
template <class Format, size_t kRows = kStripRows>
HWY_INLINE void RunStripOf(size_t rows, const StripArgs& args) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return RunStripOf<Format, kRows - 1>(rows, args);
  }
  RunStrip<Format, HasTwoVectors(kRows)>(std::make_index_sequence<kRows>(),
                                         args);
}

// The sum of a block's codes.
HWY_INLINE int32_t SumOfCodes(const int8_t* p) {
  const hn::CappedTag<int32_t, 16> di;
  const hn::Rebind<int8_t, decltype(di)> d8;
  auto sum = hn::Zero(di);
  for (size_t i = 0; i < kWeightBlock; i += hn::Lanes(di)) {
    sum = hn::Add(sum, hn::PromoteTo(di, hn::LoadU(d8, p + i)));
  }
  return hn::GetLane(hn::SumOfLanes(di, sum));
}

// One call's batch of rows.
template <class Format>
class Batch {
 public:
  Batch(const MultiplyArgs& args, size_t begin, size_t count)
      : args_(args),
        begin_(begin),
        count_(count),
        blocks_(WeightBlocks(args.weights.cols)),
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
  // Scales and corrections of all blocks, and the last block where a row ends
  // within it, filled up with zeros.
  void ReadRows() {
    const ConstAnyRows& rows = args_.rows;
    const bool is_blocks = rows.type == Type::kQ8_0;
    const size_t cols = rows.cols;
    const size_t tail = cols % kWeightBlock;
    const size_t group =
        is_blocks ? kWeightBlock : GroupOf(cols, rows.scales.cols);
    for (size_t r = 0; r < count_; ++r) {
      const auto* const row =
          reinterpret_cast<const int8_t*>(RowAt(rows, begin_ + r));
      for (size_t b = 0; b < blocks_; ++b) {
        const size_t at = r * blocks_ + b;
        const int8_t* codes = row + b * kWeightBlock;
        if (is_blocks) {
          const auto* const block = reinterpret_cast<const BlockQ8_0*>(row) + b;
          codes = block->qs;
          scales_[at] = FloatOf(block->d);
        } else {
          scales_[at] =
              rows.scales.Row<float>(begin_ + r)[b * kWeightBlock / group];
        }
        if (tail != 0 && b + 1 == blocks_) {
          int8_t* const filled = tails_ + r * kWeightBlock;
          std::memset(filled, 0, kWeightBlock);
          std::memcpy(filled, codes, tail);
          codes = filled;
        }
        constexpr int kOffset =
            kTraits.is_nibbles ? kTraits.offset : Dot::kOffset;
        corrections_[at] = kOffset == 0 ? 0 : -kOffset * SumOfCodes(codes);
      }
    }
    rows_.codes = reinterpret_cast<const int8_t*>(RowAt(rows, begin_)) +
                  (is_blocks ? offsetof(BlockQ8_0, qs) : 0);
    rows_.stride = BytesOf(rows.type, rows.stride);
    rows_.block_stride = is_blocks ? sizeof(BlockQ8_0) : kWeightBlock;
    whole_blocks_ = tail == 0 ? blocks_ : blocks_ - 1;
    // Blocks of int8 weights that have one scale of each row.
    group_blocks_ =
        rows.scales.cols == 1 && !is_blocks ? blocks_ : group / kWeightBlock;
  }
  static HWY_INLINE float FloatOf(Float16 half) {
    HWY_ALIGN Float16 lanes[HWY_MAX_BYTES / sizeof(float)] = {half};
    return hn::GetLane(Storage<Float16>::Load(DotTag(), lanes));
  }

  // Sums of up to 32 columns from `column` of the weights on, of all rows.
  void MultiplyTileAt(size_t column, size_t columns) {
    std::memset(sums_, 0, count_ * kTileColumns * sizeof(float));
    if constexpr (!kTraits.has_block_scales()) ReadChannelScales(column);
    // All of few rows' blocks in one go: that keeps their sums in registers and
    // reads packed weights as one stream.
    const bool is_packed = args_.weights.layout == WeightLayout::kPacked;
    size_t step = is_packed && count_ <= kFewRows ? blocks_ : kTileBlocks;
    if (!kTraits.has_block_scales() && group_blocks_ != blocks_) {
      step = group_blocks_;
    }
    for (size_t b = 0; b < blocks_;) {
      // A block that is filled up goes by itself.
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
      strip.rows = {tails_, kWeightBlock, kWeightBlock};
    }
    strip.scales = scales_;
    strip.corrections = corrections_;
    strip.blocks = blocks_;
    strip.begin = begin;
    strip.end = end;
    strip.columns = columns;
    strip.sums = sums_;
    for (size_t i = 0; i < 2; ++i) {
      // Columns behind the last are computed from those before, and not used.
      const size_t first = column + i * kPackedRows;
      const size_t from = first < weights.rows ? first : column;
      if (weights.layout == WeightLayout::kPacked) {
        const uint8_t* const group =
            args_.expert + from / kPackedRows * group_bytes_;
        strip.packed_codes[i] = group + begin * kTraits.packed_codes();
        strip.packed_scales[i] = group + blocks_ * kTraits.packed_codes() +
                                 begin * kTraits.packed_scales();
      } else {
        uint8_t* const codes = unpacked_ + i * kUnpackedBytes;
        uint8_t* const scales = codes + kTileBlocks * kTraits.packed_codes();
        PackBlocks<Format>({args_.expert, weights.rows, weights.cols}, from,
                           begin, end, codes, scales);
        strip.packed_codes[i] = codes;
        strip.packed_scales[i] = scales;
      }
    }
    for (; strip.row < count_; strip.row += kStripRows) {
      RunStripOf<Format>(count_ - strip.row, strip);
    }
  }

  // The scales of int8's columns, zeros behind the last.
  void ReadChannelScales(size_t column) {
    for (size_t i = 0; i < kTileColumns; i += kPackedRows) {
      const size_t first = HWY_MIN(column + i, args_.weights.rows);
      const size_t n = HWY_MIN(kPackedRows, args_.weights.rows - first);
      std::memset(channel_scales_ + i, 0, kPackedRows * sizeof(float));
      const void* from = args_.channel_scales + first;
      if (args_.weights.layout == WeightLayout::kPacked && n != 0) {
        from = args_.expert + first / kPackedRows * group_bytes_ +
               blocks_ * kTraits.packed_codes();
      }
      if (n != 0) std::memcpy(channel_scales_ + i, from, n * sizeof(float));
    }
  }
  // Integers to the product's sum: a term for each group of the rows' scales,
  // which ends with `block`.
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
      if (args_.out.type == Type::kF32) {
        std::memcpy(args_.out.Row<float>(begin_ + r) + column, from,
                    n * sizeof(float));
      } else {
        FloatsToRow(from, n, args_.out, begin_ + r, column);
      }
    }
  }

  static constexpr WeightTraits kTraits = TraitsOf(Format::value);
  static constexpr size_t kUnpackedBytes =
      kTileBlocks * (kTraits.packed_codes() + kTraits.packed_scales());
  // Sums of terms beside sums of integers.
  static constexpr size_t kTermRows =
      kTraits.has_block_scales() ? 1 : kBatchRows;

  const MultiplyArgs& args_;
  const size_t begin_, count_, blocks_, group_bytes_;
  size_t whole_blocks_ = 0, group_blocks_ = 0;
  BatchRows rows_ = {};
  HWY_ALIGN float scales_[kBatchBlocks];
  HWY_ALIGN int32_t corrections_[kBatchBlocks];
  HWY_ALIGN float sums_[kBatchRows * kTileColumns];
  HWY_ALIGN float terms_[kTermRows * kTileColumns];
  HWY_ALIGN float channel_scales_[kTileColumns];
  HWY_ALIGN int8_t tails_[kBatchRows * kWeightBlock];
  HWY_ALIGN uint8_t unpacked_[2 * kUnpackedBytes];
};

template <class Format>
HWY_NOINLINE void MultiplyRange(const MultiplyArgs& args, size_t begin,
                                size_t end) {
  const size_t blocks = WeightBlocks(args.weights.cols);
  const size_t most =
      HWY_MIN(kBatchRows,
              HWY_MAX(size_t{1}, kBatchBlocks / HWY_MAX(size_t{1}, blocks)));
  for (size_t r = begin; r < end; r += most) {
    Batch<Format>(args, r, HWY_MIN(most, end - r)).Run();
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
