// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The layouts of expert_weights.h in numbers, with a line for each format.

#ifndef SWITCHYARD_SRC_BASE_WEIGHT_LAYOUT_H_
#define SWITCHYARD_SRC_BASE_WEIGHT_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/expert_weights.h"

namespace switchyard::internal {

// The number of rows of weights that are packed together.
constexpr size_t kPackedRows = 16;

// The order of codes in a block of a row. Packing moves whole dwords, so a
// dword of a stored block is also a dword of a packed block. k is a column,
// counted from the start of the block.
enum class WeightCoding : uint8_t {
  kBytes,    // int8
  kNibbles,  // byte i has k = i, and k = i + 16 in its high nibble
  // As kNibbles. A nibble has a sign bit, and an index into 0 1 2 3 4 6 8 12.
  kE2M1,
  // For each 64 columns: byte i has k = i, and k = i + 32 in its high nibble.
  kQ4_K,
  // 64 bytes for each 128 columns: byte i has the low four bits of k = i, and
  // in its high nibble those of k = i + 64. Then 32 bytes for each 128 columns:
  // byte i has the high two bits of k = i, i + 32, i + 64 and i + 96.
  kQ6_K,
  kFloats  // a code is a float of stored_block / 32 bytes
};

// The unsigned code of each e2m1 nibble: twice the nibble's value, plus 12.
alignas(16) inline constexpr uint8_t kE2M1Codes[16] = {
    12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
// Returns the table from nibbles to unsigned codes; null for the identity.
constexpr const uint8_t* NibbleCodes(WeightCoding coding) {
  return coding == WeightCoding::kE2M1 ? kE2M1Codes : nullptr;
}

// A line for each WeightFormat: X(enumerator, the members of its WeightTraits).
// These are: the name; the coding; the unsigned code minus the signed code; the
// columns of a block; the bytes of a stored block of one row, of its part
// before the codes, of its codes, and of its packed scales; the packed byte for
// a code of 0. int8 has one scale for a whole row, not for blocks. Rows of int8
// and floats may end within a block.
#define SWITCHYARD_WEIGHT_FORMATS(X)                                 \
  X(kInt8, "int8", WeightCoding::kBytes, 128, 32, 32, 0, 32, 0, 128) \
  X(kQ8_0, "q8_0", WeightCoding::kBytes, 128, 32, 34, 2, 32, 2, 128) \
  X(kQ4_0, "q4_0", WeightCoding::kNibbles, 8, 32, 18, 2, 16, 2, 136) \
  X(kMXFP4, "mxfp4", WeightCoding::kE2M1, 12, 32, 17, 1, 16, 1, 0)   \
  X(kQ4_K, "q4_K", WeightCoding::kQ4_K, 0, 256, 144, 16, 128, 20, 0) \
  X(kQ6_K, "q6_K", WeightCoding::kQ6_K, 32, 256, 210, 0, 192, 18, 0) \
  X(kF32, "f32", WeightCoding::kFloats, 0, 32, 128, 0, 128, 0, 0)    \
  X(kBF16, "bf16", WeightCoding::kFloats, 0, 32, 64, 0, 64, 0, 0)    \
  X(kF16, "f16", WeightCoding::kFloats, 0, 32, 64, 0, 64, 0, 0)

struct WeightTraits {
  const char* name = nullptr;
  WeightCoding coding = WeightCoding::kBytes;
  int offset = 0;
  size_t block = 0;
  size_t stored_block = 0;
  size_t stored_codes_at = 0;
  size_t row_codes = 0;
  size_t row_scales = 0;
  uint8_t zero = 0;

  constexpr bool has_block_scales() const { return row_scales != 0; }
  // True for 8-bit codes, which kernels multiply as bytes.
  constexpr bool has_byte_codes() const { return offset == 128; }
  constexpr bool is_float() const { return coding == WeightCoding::kFloats; }
  constexpr bool has_channel_scales() const {
    return !has_block_scales() && !is_float();
  }
  // True for blocks of 256 columns, which have parts with integer scales.
  constexpr bool is_super() const { return block == 256; }
  // Returns the number of columns that share an integer scale.
  constexpr size_t sub_block() const {
    return coding == WeightCoding::kQ6_K ? 16 : 32;
  }
  // Return the number of bytes of the packed codes or scales in a block of 16
  // rows.
  constexpr size_t packed_codes() const { return kPackedRows * row_codes; }
  constexpr size_t packed_scales() const { return kPackedRows * row_scales; }
  // Returns the number of bytes of a packed block: scales, then codes.
  constexpr size_t packed_block() const {
    return packed_codes() + packed_scales();
  }
};
constexpr WeightTraits TraitsOf(WeightFormat format) {
#define SWITCHYARD_CASE(name, ...) \
  case WeightFormat::name:         \
    return {__VA_ARGS__};
  switch (format) { SWITCHYARD_WEIGHT_FORMATS(SWITCHYARD_CASE) }
#undef SWITCHYARD_CASE
  return {};
}

// Returns the index of the 64-byte line that has dword `i` of a block's codes,
// for all 16 rows. Dwords keep their order, except for kQ6_K: there the three
// dwords for each 4 columns of a half block are adjacent, so that a kernel
// reads one stream of memory.
constexpr size_t PackedLine(WeightCoding coding, size_t i) {
  if (coding != WeightCoding::kQ6_K) return i;
  return i < 32 ? i / 16 * 24 + i % 8 * 3 + i / 8 % 2
                : (i - 32) / 8 * 24 + i % 8 * 3 + 2;
}

constexpr size_t WeightBlocks(const WeightTraits& traits, size_t cols) {
  return (cols + traits.block - 1) / traits.block;
}
// Returns the number of bytes of a packed group of 16 rows with `blocks` blocks
// each.
constexpr size_t PackedGroupBytes(const WeightTraits& traits, size_t blocks) {
  const size_t channel_scales =
      traits.has_channel_scales() ? kPackedRows * sizeof(float) : 0;
  return (blocks * traits.packed_block() + channel_scales + 63) / 64 * 64;
}
// Returns the number of bytes of a stored row.
constexpr size_t StoredRowBytes(const WeightTraits& traits, size_t cols) {
  return traits.has_block_scales()
             ? WeightBlocks(traits, cols) * traits.stored_block
             : cols * (traits.stored_block / traits.block);
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BASE_WEIGHT_LAYOUT_H_
