// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/pack_weights.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "src/simd/targets.h"
#include "src/simd/weight_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/pack_weights.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/formats-inl.h"
#include "src/simd/quantize-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/storage-inl.h"
#include "src/simd/weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Columns of floats that become stored weights in one go.
constexpr size_t kChunk = 256;
constexpr float kMaxFloat = std::numeric_limits<float>::max();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Codes and scales for 0 in row `row` of a packed group.
HWY_NOINLINE void ZeroPackedRow(const WeightTraits& traits, size_t row,
                                size_t blocks, uint8_t* codes,
                                uint8_t* scales) {
  const int zero = traits.is_nibbles ? traits.offset * 17 : traits.offset;
  for (size_t line = 0; line < blocks * traits.packed_codes(); line += 64) {
    std::memset(codes + line + 4 * row, zero, 4);
  }
  for (size_t b = 0; b < blocks; ++b) {
    std::memset(scales + b * traits.packed_scales() + row * traits.block_scale,
                0, traits.block_scale);
  }
}

// int8's scales of the group's rows to *to, and that behind them.
HWY_INLINE void PutChannelScales(const WeightTraits& traits, const float* from,
                                 size_t num_rows, uint8_t** to) {
  if (traits.has_block_scales()) return;
  std::memset(*to, 0, kPackedRows * sizeof(float));
  std::memcpy(*to, from, num_rows * sizeof(float));
  *to += kPackedRows * sizeof(float);
}

// GGML's quantize_row_q4_0_ref.
HWY_NOINLINE void QuantizeQ4_0Block(const float* from, uint8_t* to) {
  float largest = 0.0f, signed_largest = 0.0f;
  bool is_finite = true;
  for (size_t i = 0; i < kWeightBlock; ++i) {
    uint32_t bits;
    std::memcpy(&bits, from + i, sizeof(bits));
    is_finite &= (bits & kInfinityBits) != kInfinityBits;
    const float size = from[i] < 0.0f ? -from[i] : from[i];
    if (size > largest) {
      largest = size;
      signed_largest = from[i];
    }
  }
  const float d = signed_largest / -8.0f;
  // 0 where 1 / d overflows, as in Quantize().
  float inverse = is_finite && d != 0.0f ? 1.0f / d : 0.0f;
  if (!(inverse >= -kMaxFloat && inverse <= kMaxFloat)) inverse = 0.0f;
  HWY_ALIGN Float16 half[HWY_MAX_BYTES / sizeof(float)];
  const hn::CappedTag<float, 1> df;
  Storage<Float16>::Store(hn::Set(df, is_finite ? d + 0.0f : kNaN), df, half);
  std::memcpy(to, half, sizeof(Float16));
  const auto code = [&](float x) {
    // The sum is from 0.5 to 16.5: the largest value's is the least.
    const int c = inverse == 0.0f ? 8 : static_cast<int>(x * inverse + 8.5f);
    return static_cast<uint8_t>(HWY_MIN(c, 15));
  };
  constexpr size_t kHalf = kWeightBlock / 2;
  for (size_t i = 0; i < kHalf; ++i) {
    to[sizeof(Float16) + i] =
        static_cast<uint8_t>(code(from[i]) | code(from[i + kHalf]) << 4);
  }
}

// A group of 16 rows of floats, which becomes stored weights a chunk of columns
// at a time.
class FloatGroup {
 public:
  FloatGroup(const PackArgs& args, size_t first, size_t num_rows)
      : args_(args), first_(first), num_rows_(num_rows) {
    if (TraitsOf(args.format).has_block_scales()) return;
    for (size_t i = 0; i < num_rows; ++i) ScaleRow(i);
  }

  // Quantises columns [begin, begin + n), at most kChunk of them. The result
  // has stored rows of n columns.
  const uint8_t* Quantize(size_t begin, size_t n) {
    const size_t row_bytes = StoredRowBytes(TraitsOf(args_.format), n);
    for (size_t i = 0; i < num_rows_; ++i) {
      Read(i, begin, n);
      uint8_t* const to = stored_ + i * row_bytes;
      switch (args_.format) {
        case WeightFormat::kInt8:
          if (inverses_[i] == 0.0f) {
            std::memset(to, CodeI8::kZero, n);
          } else {
            PutCodes<CodeI8, false>(floats_, n, inverses_ + i, 0, to);
          }
          break;
        case WeightFormat::kQ8_0:
          PutRow({[](const void* context, size_t, size_t, float*) {
                    return static_cast<const float*>(context);
                  },
                  floats_},
                 AnyMatrix(to, Type::kQ8_0, 1, n, n), 0);
          break;
        case WeightFormat::kQ4_0:
          for (size_t b = 0; b < n / kWeightBlock; ++b) {
            QuantizeQ4_0Block(
                floats_ + b * kWeightBlock,
                to + b * TraitsOf(WeightFormat::kQ4_0).stored_block);
          }
          break;
      }
    }
    return stored_;
  }
  // int8's scale of each row.
  const float* scales() const { return scales_; }

 private:
  void Read(size_t row, size_t begin, size_t n) {
    RowToFloats(args_.floats.ColRange(begin, begin + n), first_ + row, floats_);
  }
  void ScaleRow(size_t row) {
    Scales s;
    s.largest[0] = 0;
    for (size_t at = 0; at < args_.cols; at += kChunk) {
      const size_t n = HWY_MIN(kChunk, args_.cols - at);
      Read(row, at, n);
      s.largest[0] = HWY_MAX(s.largest[0], LargestOf(floats_, n));
    }
    const bool is_bad = RatioScales<CodeI8>::Put(1, s, scales_ + row);
    inverses_[row] = is_bad ? 0.0f : s.inverse[0];
  }

  const PackArgs& args_;
  const size_t first_, num_rows_;
  float scales_[kPackedRows];
  float inverses_[kPackedRows];
  HWY_ALIGN float floats_[kChunk];
  HWY_ALIGN uint8_t
      stored_[kPackedRows * (kChunk / kWeightBlock) * sizeof(BlockQ8_0)];
};

template <class Format>
HWY_NOINLINE void PackGroup(const PackArgs& args, size_t group) {
  constexpr WeightTraits traits = TraitsOf(Format::value);
  const size_t blocks = WeightBlocks(args.cols);
  const size_t group_bytes = PackedGroupBytes(traits, blocks);
  const size_t first = group * kPackedRows;
  const size_t num_rows = HWY_MIN(kPackedRows, args.rows - first);
  uint8_t* const codes = args.packed + group * group_bytes;
  uint8_t* const scales = codes + blocks * traits.packed_codes();
  uint8_t* end = scales + blocks * traits.packed_scales();
  if (args.stored != nullptr) {
    PackBlocks<Format>({args.stored, args.rows, args.cols}, first, 0, blocks,
                       codes, scales);
    PutChannelScales(traits, args.channel_scales + first, num_rows, &end);
  } else {
    FloatGroup floats(args, first, num_rows);
    for (size_t b = 0; b < blocks; b += kChunk / kWeightBlock) {
      const size_t begin = b * kWeightBlock;
      const size_t n = HWY_MIN(kChunk, args.cols - begin);
      PackBlocks<Format>({floats.Quantize(begin, n), num_rows, n}, 0, 0,
                         WeightBlocks(n), codes + b * traits.packed_codes(),
                         scales + b * traits.packed_scales());
    }
    PutChannelScales(traits, floats.scales(), num_rows, &end);
  }
  std::memset(end, 0, static_cast<size_t>(codes + group_bytes - end));
  for (size_t row = num_rows; row < kPackedRows; ++row) {
    ZeroPackedRow(traits, row, blocks, codes, scales);
  }
}

void Pack(const PackArgs& args, size_t begin, size_t end) {
  for (size_t group = begin; group < end; ++group) {
#define SWITCHYARD_CASE(name, ...)                               \
  case WeightFormat::name:                                       \
    PackGroup<WeightFormatTag<WeightFormat::name>>(args, group); \
    break;
    switch (args.format) { SWITCHYARD_WEIGHT_FORMATS(SWITCHYARD_CASE) }
#undef SWITCHYARD_CASE
  }
}
SWITCHYARD_ROW_FUNCTION(Pack, PackArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(PackGroups, Pack, PackArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
