// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "unpack.h"

#include <cstddef>
#include <cstring>

namespace switchyard_ggml {
namespace {

using switchyard::ExpertWeights;
using switchyard::WeightFormat;

// Version 1 of WeightLayout::kPacked (expert_weights.h): groups of 16 rows.
constexpr size_t kRows = 16;

// The sizes of one block of a row, in bytes.
struct Block {
  size_t cols = 0;
  size_t stored = 0;    // the whole block in the stored form
  size_t codes_at = 0;  // the offset of the codes in the stored form
  size_t codes = 0;
  size_t scales = 0;  // the scales in the packed form
};

Block BlockOf(WeightFormat format) {
  switch (format) {
    case WeightFormat::kQ8_0:
      return {32, 34, 2, 32, 2};
    case WeightFormat::kQ4_0:
      return {32, 18, 2, 16, 2};
    case WeightFormat::kMXFP4:
      return {32, 17, 1, 16, 1};
    case WeightFormat::kQ4_K:
      return {256, 144, 16, 128, 20};
    case WeightFormat::kQ6_K:
      return {256, 210, 0, 192, 18};
    default:
      return {};
  }
}

// Returns the index of the packed line that holds dword `i` of a block's codes.
// A line has 64 bytes: dword `i` of 16 rows.
size_t LineOf(WeightFormat format, size_t i) {
  if (format != WeightFormat::kQ6_K) return i;
  return i < 32 ? i / 16 * 24 + i % 8 * 3 + i / 8 % 2
                : (i - 32) / 8 * 24 + i % 8 * 3 + 2;
}

// Reads the scales of row `row` of a packed block. The block's first lines hold
// the float scales of 16 rows. The next lines hold their integer scales, with
// four bytes of each row in a line.
class Scales {
 public:
  Scales(const uint8_t* block, size_t row) : at_(block), row_(row) {}

  void Take(size_t bytes, uint8_t* to) {
    std::memcpy(to, at_ + row_ * bytes, bytes);
    at_ += kRows * bytes;
  }

 private:
  const uint8_t* at_;
  size_t row_;
};

void PutScales(WeightFormat format, Scales scales, uint8_t* to) {
  if (format == WeightFormat::kQ4_K) {
    scales.Take(2, to);
    scales.Take(2, to + 2);
    uint8_t s[8], m[8];
    scales.Take(4, s);
    scales.Take(4, s + 4);
    scales.Take(4, m);
    scales.Take(4, m + 4);
    uint8_t* six_bits = to + 4;
    for (size_t i = 0; i < 4; ++i) {
      six_bits[i] = static_cast<uint8_t>(s[i] | s[i + 4] >> 4 << 6);
      six_bits[i + 4] = static_cast<uint8_t>(m[i] | m[i + 4] >> 4 << 6);
      six_bits[i + 8] = static_cast<uint8_t>((s[i + 4] & 15) | m[i + 4] << 4);
    }
  } else if (format == WeightFormat::kQ6_K) {
    scales.Take(2, to + 208);
    for (size_t i = 0; i < 4; ++i) scales.Take(4, to + 192 + 4 * i);
  } else {
    scales.Take(format == WeightFormat::kMXFP4 ? 1 : 2, to);
  }
}

}  // namespace

void UnpackExpert(const ExpertWeights& packed, const uint8_t* from,
                  uint8_t* to) {
  const Block block = BlockOf(packed.format);
  const size_t blocks = packed.cols / block.cols;
  const size_t block_bytes = kRows * (block.scales + block.codes);
  const size_t group_bytes = (blocks * block_bytes + 63) / 64 * 64;
  // Packed codes of q8_0 have 128 added, which is subtracted here.
  const bool is_int8 = packed.format == WeightFormat::kQ8_0;
  for (size_t r = 0; r < packed.rows; ++r) {
    const uint8_t* group = from + r / kRows * group_bytes;
    const size_t row = r % kRows;
    for (size_t b = 0; b < blocks; ++b, to += block.stored) {
      const uint8_t* scales = group + b * block_bytes;
      const uint8_t* codes = scales + kRows * block.scales;
      for (size_t i = 0; i < block.codes / 4; ++i) {
        uint32_t dword;
        std::memcpy(&dword, codes + LineOf(packed.format, i) * 64 + row * 4, 4);
        if (is_int8) dword ^= 0x80808080u;
        std::memcpy(to + block.codes_at + i * 4, &dword, 4);
      }
      PutScales(packed.format, {scales, row}, to);
    }
  }
}

}  // namespace switchyard_ggml
