// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/pack_weights.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/base/weight_layout.h"
#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/pack_weights.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/formats-inl.h"
#include "src/simd/quantize-inl.h"
#include "src/simd/quantize_weights-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/storage-inl.h"
#include "src/simd/weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The most columns of floats that are quantised to stored weights at once.
constexpr size_t kChunk = 256;

// Sets row `row` of a packed group to codes and scales that give 0.
HWY_NOINLINE void ZeroPackedRow(const WeightTraits& traits, size_t row,
                                size_t blocks, uint8_t* group) {
  // A block's scales are lines of 16 fields, one per row. Fields are f16 or one
  // byte in the first lines, and four bytes in the other lines.
  const size_t width = HWY_MIN(traits.row_scales, sizeof(Float16));
  const size_t first_lines = traits.coding == WeightCoding::kQ4_K ? 2 : 1;
  for (size_t b = 0; b < blocks; ++b) {
    uint8_t* const block = group + b * traits.packed_block();
    size_t line = 0;
    for (size_t i = 0; line < traits.packed_scales(); ++i) {
      const size_t bytes = i < first_lines ? width : 4;
      std::memset(block + line + row * bytes, 0, bytes);
      line += kPackedRows * bytes;
    }
    for (; line < traits.packed_block(); line += 64) {
      std::memset(block + line + 4 * row, traits.zero, 4);
    }
  }
}

// Writes the scales of a group's int8 rows, and moves *to behind them.
HWY_INLINE void PutChannelScales(const WeightTraits& traits, const float* from,
                                 size_t num_rows, uint8_t** to) {
  if (!traits.has_channel_scales()) return;
  std::memset(*to, 0, kPackedRows * sizeof(float));
  std::memcpy(*to, from, num_rows * sizeof(float));
  *to += kPackedRows * sizeof(float);
}

// Quantises a group of 16 rows of floats, a chunk of columns at a time.
template <class Format>
class FloatGroup {
 public:
  FloatGroup(const PackArgs& args, size_t first, size_t num_rows)
      : args_(args), first_(first), num_rows_(num_rows) {
    if (!kTraits.has_channel_scales()) return;
    for (size_t i = 0; i < num_rows; ++i) ScaleRow(i);
  }

  // Quantises n <= kChunk columns. Returns stored rows of n columns.
  const uint8_t* Quantize(size_t begin, size_t n) {
    for (size_t i = 0; i < num_rows_; ++i) {
      Read(i, begin, n);
      QuantizeRow(i, n, stored_ + i * StoredRowBytes(kTraits, n));
    }
    return stored_;
  }
  // Returns the scales of int8 rows.
  const float* scales() const { return scales_; }

 private:
  void Read(size_t row, size_t begin, size_t n) {
    RowToFloats(args_.floats.ColRange(begin, begin + n), first_ + row, floats_);
  }
  void QuantizeRow(size_t row, size_t n, uint8_t* to) {
    constexpr WeightFormat kFormat = Format::value;
    if constexpr (kFormat == WeightFormat::kInt8) {
      if (inverses_[row] == 0.0f) {
        std::memset(to, CodeI8::kZero, n);
      } else {
        PutCodes<CodeI8, false>(floats_, n, inverses_ + row, 0, to);
      }
    } else if constexpr (kFormat == WeightFormat::kQ8_0) {
      PutRow({[](const void* context, size_t, size_t, float*) {
                return static_cast<const float*>(context);
              },
              floats_},
             AnyMatrix(to, Type::kQ8_0, 1, n, n), 0);
    } else if constexpr (kTraits.is_float()) {
      const size_t bytes = StoredRowBytes(kTraits, n);
      if constexpr (kFormat == WeightFormat::kF32) {
        std::memcpy(to, floats_, bytes);
      } else {
        constexpr Type kType =
            kFormat == WeightFormat::kBF16 ? Type::kBF16 : Type::kF16;
        HWY_ALIGN uint16_t rounded[kChunk];
        FloatsToRow(floats_, n,
                    AnyMatrix(static_cast<void*>(rounded), kType, 1, n, n), 0,
                    0);
        std::memcpy(to, rounded, bytes);
      }
    } else {
      for (size_t k = 0; k < n; k += kTraits.block) {
        QuantizeBlock<kFormat>(floats_ + k,
                               to + k / kTraits.block * kTraits.stored_block);
      }
    }
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

  static constexpr WeightTraits kTraits = TraitsOf(Format::value);

  const PackArgs& args_;
  const size_t first_, num_rows_;
  float scales_[kPackedRows];
  float inverses_[kPackedRows];
  HWY_ALIGN float floats_[kChunk];
  HWY_ALIGN uint8_t
      stored_[kPackedRows * (kChunk / kTraits.block) * kTraits.stored_block];
};

template <class Format>
HWY_NOINLINE void PackGroup(const PackArgs& args, size_t group) {
  constexpr WeightTraits traits = TraitsOf(Format::value);
  const size_t blocks = WeightBlocks(traits, args.cols);
  const size_t group_bytes = PackedGroupBytes(traits, blocks);
  const size_t first = group * kPackedRows;
  const size_t num_rows = HWY_MIN(kPackedRows, args.rows - first);
  uint8_t* const packed = args.packed + group * group_bytes;
  uint8_t* end = packed + blocks * traits.packed_block();
  if (args.stored != nullptr) {
    PackBlocks<Format>({args.stored, args.rows, args.cols}, first, 0, blocks,
                       packed);
    PutChannelScales(traits, args.channel_scales + first, num_rows, &end);
  } else {
    FloatGroup<Format> floats(args, first, num_rows);
    for (size_t b = 0; b < blocks; b += kChunk / traits.block) {
      const size_t begin = b * traits.block;
      const size_t n = HWY_MIN(kChunk, args.cols - begin);
      PackBlocks<Format>({floats.Quantize(begin, n), num_rows, n}, 0, 0,
                         WeightBlocks(traits, n),
                         packed + b * traits.packed_block());
    }
    PutChannelScales(traits, floats.scales(), num_rows, &end);
  }
  std::memset(end, 0, static_cast<size_t>(packed + group_bytes - end));
  for (size_t row = num_rows; row < kPackedRows; ++row) {
    ZeroPackedRow(traits, row, blocks, packed);
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
