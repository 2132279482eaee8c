// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "testing/reference_multiply.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "switchyard/types.h"
#include "testing/floats.h"
#include "testing/inputs.h"

namespace switchyard::testing_support {
namespace {

constexpr size_t kBlock = 32;

// f16 bits, any or finite and from 1/64 to 4 in size.
Float16 RandomScale(uint32_t seed, size_t i, bool any) {
  const uint32_t bits = Hash(seed, i);
  if (any) return {static_cast<uint16_t>(bits >> 16)};
  const uint32_t exponent = 9 + (bits >> 8) % 8;
  return {static_cast<uint16_t>((bits & 0x8000) | exponent << 10 |
                                (bits >> 20 & 0x3FF))};
}
float RandomFloatScale(uint32_t seed, size_t i, bool any) {
  return any ? AnyFloat(seed, i) : Uniform(seed, i, 2.0f);
}

// Bytes of 32 stored columns.
size_t StoredBlock(WeightFormat format) {
  switch (format) {
    case WeightFormat::kInt8:
      return 32;
    case WeightFormat::kQ8_0:
      return sizeof(BlockQ8_0);
    case WeightFormat::kQ4_0:
      return 18;
  }
  return 0;
}
const uint8_t* RowOf(const ExpertWeights& w, size_t expert, size_t row) {
  const size_t bytes = w.format == WeightFormat::kInt8
                           ? w.cols
                           : w.cols / kBlock * StoredBlock(w.format);
  return w.data.Row<uint8_t>(expert) + row * bytes;
}
float HalfAt(const uint8_t* p) {
  Float16 half;
  std::memcpy(&half, p, sizeof(half));
  return Widen(half);
}
// The signed code of weight k of a row, and its scale.
int CodeOf(WeightFormat format, const uint8_t* row, size_t k) {
  const uint8_t* const block = row + k / kBlock * StoredBlock(format);
  const size_t i = k % kBlock;
  switch (format) {
    case WeightFormat::kInt8:
      return static_cast<int8_t>(row[k]);
    case WeightFormat::kQ8_0:
      return static_cast<int8_t>(block[2 + i]);
    case WeightFormat::kQ4_0: {
      const int byte = block[2 + i % 16];
      return (i < 16 ? byte & 15 : byte >> 4) - 8;
    }
  }
  return 0;
}
float ScaleOf(const ExpertWeights& w, size_t expert, size_t row, size_t k) {
  if (w.format == WeightFormat::kInt8) {
    return w.scales.Row<float>(expert)[row];
  }
  return HalfAt(RowOf(w, expert, row) + k / kBlock * StoredBlock(w.format));
}

// Rows that are multiplied, likewise.
int CodeOf(const ConstAnyRows& rows, size_t r, size_t k) {
  if (rows.type == Type::kQ8_0) {
    const auto* block = static_cast<const BlockQ8_0*>(rows.data) +
                        (r * rows.stride + k) / kBlock;
    return block->qs[k % kBlock];
  }
  return rows.Row<int8_t>(r)[k];
}
// Columns of a scale.
size_t GroupOf(const ConstAnyRows& rows) {
  if (rows.type == Type::kQ8_0) return kBlock;
  if (rows.scales.cols == 1) return rows.cols;
  for (const size_t group : {size_t{32}, size_t{64}}) {
    if ((rows.cols + group - 1) / group == rows.scales.cols) return group;
  }
  return 128;
}
float ScaleOf(const ConstAnyRows& rows, size_t r, size_t k) {
  if (rows.type == Type::kQ8_0) {
    const auto* block = static_cast<const BlockQ8_0*>(rows.data) +
                        (r * rows.stride + k) / kBlock;
    return Widen(block->d);
  }
  return rows.scales.Row<float>(r)[k / GroupOf(rows)];
}

}  // namespace

ExpertWeights WeightBytes::View() const {
  ExpertWeights w;
  w.format = format;
  w.rows = rows;
  w.cols = cols;
  w.data = {data.data(), num_experts, data.size() / num_experts};
  if (!scales.empty()) w.scales = {scales.data(), num_experts, rows};
  return w;
}

WeightBytes RandomWeights(WeightFormat format, size_t num_experts, size_t rows,
                          size_t cols, uint32_t seed, bool any) {
  WeightBytes w;
  w.format = format;
  w.num_experts = num_experts;
  w.rows = rows;
  w.cols = cols;
  const size_t block = StoredBlock(format);
  const size_t all_rows = num_experts * rows;
  w.data.resize(format == WeightFormat::kInt8
                    ? all_rows * cols
                    : all_rows * (cols / kBlock) * block);
  for (size_t i = 0; i < w.data.size(); ++i) {
    w.data[i] = static_cast<uint8_t>(Hash(seed, i) >> 24);
  }
  if (format == WeightFormat::kInt8) {
    for (size_t i = 0; i < all_rows; ++i) {
      w.scales.push_back(RandomFloatScale(seed + 1, i, any));
    }
    return w;
  }
  for (size_t i = 0; i < w.data.size(); i += block) {
    const Float16 d = RandomScale(seed + 1, i, any);
    std::memcpy(&w.data[i], &d, sizeof(d));
  }
  return w;
}

FormatRows RandomOperands(const Format& format, size_t rows, size_t cols,
                          uint32_t seed, bool any) {
  FormatRows made(format, rows, cols);
  for (size_t i = 0; i < made.codes.size(); ++i) {
    made.codes[i] = static_cast<uint8_t>(Hash(seed, i) >> 24);
  }
  if (format.type == Type::kQ8_0) {
    for (size_t i = 0; i < made.codes.size(); i += sizeof(BlockQ8_0)) {
      const Float16 d = RandomScale(seed + 1, i, any);
      std::memcpy(&made.codes[i], &d, sizeof(d));
    }
  }
  for (size_t i = 0; i < made.scales.size() / sizeof(float); ++i) {
    const float d = RandomFloatScale(seed + 1, i, any);
    std::memcpy(&made.scales[i * sizeof(float)], &d, sizeof(d));
  }
  return made;
}

NaiveProduct MultiplyNaively(const ExpertWeights& stored, size_t expert,
                             const ConstAnyRows& rows, size_t first,
                             size_t count) {
  NaiveProduct product;
  const bool is_int8 = stored.format == WeightFormat::kInt8;
  const size_t group = is_int8 ? GroupOf(rows) : kBlock;
  for (size_t r = 0; r < rows.rows; ++r) {
    for (size_t c = first; c < first + count; ++c) {
      const uint8_t* const row = RowOf(stored, expert, c);
      float acc = 0.0f;
      double size = 0.0;
      size_t terms = 0;
      for (size_t begin = 0; begin < rows.cols; begin += group, ++terms) {
        int32_t dot = 0;
        for (size_t k = begin; k < std::min(begin + group, rows.cols); ++k) {
          dot += CodeOf(stored.format, row, k) * CodeOf(rows, r, k);
        }
        const float scale =
            ScaleOf(stored, expert, c, begin) * ScaleOf(rows, r, begin);
        const auto sum = static_cast<float>(dot);
        acc = is_int8 && group >= rows.cols ? sum * scale
                                            : std::fma(sum, scale, acc);
        size += std::fabs(static_cast<double>(sum) * scale);
      }
      product.values.push_back(acc);
      product.bounds.push_back(static_cast<float>(
          (static_cast<double>(terms) + 2) * 0x1p-24 * size));
    }
  }
  return product;
}

std::vector<uint8_t> PackNaively(const ExpertWeights& stored, size_t expert) {
  const bool is_int8 = stored.format == WeightFormat::kInt8;
  const bool is_nibbles = stored.format == WeightFormat::kQ4_0;
  const size_t blocks = (stored.cols + kBlock - 1) / kBlock;
  const int offset = is_nibbles ? 8 : 128;
  std::vector<uint8_t> packed;
  for (size_t group = 0; group < stored.rows; group += 16) {
    const auto code = [&](size_t row, size_t k) {
      const bool is_there = row < stored.rows && k < stored.cols;
      return offset +
             (is_there ? CodeOf(stored.format, RowOf(stored, expert, row), k)
                       : 0);
    };
    for (size_t b = 0; b < blocks; ++b) {
      for (size_t q = 0; q < (is_nibbles ? 4 : 8); ++q) {
        for (size_t row = group; row < group + 16; ++row) {
          for (size_t k = b * kBlock + 4 * q; k < b * kBlock + 4 * q + 4; ++k) {
            packed.push_back(static_cast<uint8_t>(
                is_nibbles ? code(row, k) | code(row, k + 16) << 4
                           : code(row, k)));
          }
        }
      }
    }
    for (size_t b = 0; b < (is_int8 ? 1 : blocks); ++b) {
      for (size_t row = group; row < group + 16; ++row) {
        uint8_t scale[4] = {};
        const size_t bytes = is_int8 ? 4 : 2;
        if (row < stored.rows) {
          const void* from =
              is_int8
                  ? static_cast<const void*>(stored.scales.Row<float>(expert) +
                                             row)
                  : RowOf(stored, expert, row) + b * StoredBlock(stored.format);
          std::memcpy(scale, from, bytes);
        }
        packed.insert(packed.end(), scale, scale + bytes);
      }
    }
    packed.resize((packed.size() + 63) / 64 * 64);
  }
  return packed;
}

std::vector<float> DequantizePacked(const ExpertWeights& packed,
                                    size_t expert) {
  const bool is_int8 = packed.format == WeightFormat::kInt8;
  const bool is_nibbles = packed.format == WeightFormat::kQ4_0;
  const size_t blocks = (packed.cols + kBlock - 1) / kBlock;
  const size_t block_bytes = 16 * (is_nibbles ? 16 : 32);
  const size_t groups = (packed.rows + 15) / 16;
  const uint8_t* const data = packed.data.Row<uint8_t>(expert);
  std::vector<float> values;
  for (size_t row = 0; row < packed.rows; ++row) {
    const uint8_t* const group = data + row / 16 * (packed.data.cols / groups);
    const uint8_t* const scales = group + blocks * block_bytes;
    for (size_t k = 0; k < packed.cols; ++k) {
      const size_t b = k / kBlock, i = is_nibbles ? k % 16 : k % 32;
      const int byte =
          group[b * block_bytes + i / 4 * 64 + row % 16 * 4 + i % 4];
      const int code =
          is_nibbles ? (k % 32 < 16 ? byte & 15 : byte >> 4) - 8 : byte - 128;
      float scale;
      if (is_int8) {
        std::memcpy(&scale, scales + row % 16 * 4, sizeof(scale));
      } else {
        scale = HalfAt(scales + (b * 16 + row % 16) * 2);
      }
      values.push_back(static_cast<float>(code) * scale);
    }
  }
  return values;
}

std::vector<uint8_t> QuantizeQ4_0Naively(const std::vector<float>& floats) {
  std::vector<uint8_t> blocks;
  for (size_t at = 0; at < floats.size(); at += kBlock) {
    const float* const x = &floats[at];
    float m = 0.0f;
    bool is_finite = true;
    for (size_t i = 0; i < kBlock; ++i) {
      if (std::fabs(x[i]) > std::fabs(m)) m = x[i];
      is_finite = is_finite && std::isfinite(x[i]);
    }
    const float d = m / -8.0f;
    const float inverse = d == 0.0f ? 0.0f : 1.0f / d;
    const bool has_codes = is_finite && d != 0.0f && std::isfinite(inverse);
    const auto half = Round<Float16>(is_finite ? d + 0.0f : kNaN);
    blocks.push_back(static_cast<uint8_t>(half.bits & 255));
    blocks.push_back(static_cast<uint8_t>(half.bits >> 8));
    const auto code = [&](float f) {
      const float shifted = f * inverse + 8.5f;
      return has_codes ? std::min(15, static_cast<int>(shifted)) : 8;
    };
    for (size_t i = 0; i < 16; ++i) {
      blocks.push_back(static_cast<uint8_t>(code(x[i]) | code(x[i + 16]) << 4));
    }
  }
  return blocks;
}

}  // namespace switchyard::testing_support
