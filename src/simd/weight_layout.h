// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The layouts of expert_weights.h in numbers: one row of a table per format.

#ifndef SWITCHYARD_SRC_SIMD_WEIGHT_LAYOUT_H_
#define SWITCHYARD_SRC_SIMD_WEIGHT_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/expert_weights.h"

namespace switchyard::simd {

// Columns of a block, and rows that are packed together.
constexpr size_t kWeightBlock = 32;
constexpr size_t kPackedRows = 16;

// Each WeightFormat: X(name, text, two codes a byte, unsigned code minus signed
// code, bytes of a stored block, bytes of a row's scale in each block). The
// int8 format has a scale for all of a row instead.
#define SWITCHYARD_WEIGHT_FORMATS(X)  \
  X(kInt8, "int8", false, 128, 32, 0) \
  X(kQ8_0, "q8_0", false, 128, 34, 2) \
  X(kQ4_0, "q4_0", true, 8, 18, 2)

struct WeightTraits {
  const char* name = nullptr;
  bool is_nibbles = false;
  int offset = 0;
  size_t stored_block = 0;
  size_t block_scale = 0;

  constexpr bool has_block_scales() const { return block_scale != 0; }
  // Bytes of the packed codes of a block of 16 rows.
  constexpr size_t packed_codes() const {
    return kPackedRows * kWeightBlock / (is_nibbles ? 2 : 1);
  }
  // Bytes of the packed scales of a block of 16 rows.
  constexpr size_t packed_scales() const { return kPackedRows * block_scale; }
};
constexpr WeightTraits TraitsOf(WeightFormat format) {
#define SWITCHYARD_CASE(name, ...) \
  case WeightFormat::name:         \
    return {__VA_ARGS__};
  switch (format) { SWITCHYARD_WEIGHT_FORMATS(SWITCHYARD_CASE) }
#undef SWITCHYARD_CASE
  return {};
}

constexpr size_t WeightBlocks(size_t cols) {
  return (cols + kWeightBlock - 1) / kWeightBlock;
}
// Bytes of a packed group of 16 rows, of so many blocks.
constexpr size_t PackedGroupBytes(const WeightTraits& traits, size_t blocks) {
  const size_t scales = traits.has_block_scales()
                            ? blocks * traits.packed_scales()
                            : kPackedRows * sizeof(float);
  return (blocks * traits.packed_codes() + scales + 63) / 64 * 64;
}
// Bytes of a stored row.
constexpr size_t StoredRowBytes(const WeightTraits& traits, size_t cols) {
  return traits.has_block_scales() ? WeightBlocks(cols) * traits.stored_block
                                   : cols;
}

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_WEIGHT_LAYOUT_H_
