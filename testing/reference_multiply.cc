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

// Returns the code in row r and column k.
int CodeOf(const ConstAnyRows& rows, size_t r, size_t k) {
  if (rows.type == Type::kQ8_K) {
    const auto* block =
        static_cast<const BlockQ8_K*>(rows.data) + (r * rows.stride + k) / 256;
    return block->qs[k % 256];
  }
  if (rows.type == Type::kQ8_0) {
    const auto* block =
        static_cast<const BlockQ8_0*>(rows.data) + (r * rows.stride + k) / 32;
    return block->qs[k % 32];
  }
  return rows.Row<int8_t>(r)[k];
}
// Returns the number of columns that share a scale.
size_t GroupOf(const ConstAnyRows& rows) {
  if (rows.type != Type::kI8) return BlockOf(rows.type);
  if (rows.scales.cols == 1) return rows.cols;
  for (const size_t group : {size_t{32}, size_t{64}}) {
    if ((rows.cols + group - 1) / group == rows.scales.cols) return group;
  }
  return 128;
}
float ScaleOf(const ConstAnyRows& rows, size_t r, size_t k) {
  if (rows.type == Type::kQ8_K) {
    const auto* block =
        static_cast<const BlockQ8_K*>(rows.data) + (r * rows.stride + k) / 256;
    return block->d;
  }
  if (rows.type == Type::kQ8_0) {
    const auto* block =
        static_cast<const BlockQ8_0*>(rows.data) + (r * rows.stride + k) / 32;
    return Widen(block->d);
  }
  return rows.scales.Row<float>(r)[k / GroupOf(rows)];
}

int32_t Dot(const int16_t* a, const int16_t* b, size_t n) {
  int32_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void AddFloats(const StoredFormat& format, const uint8_t* row,
               const ConstAnyRows& rows, size_t r, NaiveProduct* product) {
  float acc = 0.0f;
  double size = 0.0;
  for (size_t k = 0; k < rows.cols; ++k) {
    const float w = format.Float(row, k);
    const float x = WidenAt(rows.type, rows.data, r * rows.stride + k);
    acc = std::fma(w, x, acc);
    size += std::fabs(static_cast<double>(w) * x);
  }
  product->values.push_back(acc);
  product->bounds.push_back(static_cast<float>(
      (static_cast<double>(rows.cols) + 2) * 0x1p-24 * size));
}

}  // namespace

bool Takes(WeightFormat format, const Format& rows) {
  const bool are_floats = rows.type == Type::kF32 || rows.type == Type::kBF16 ||
                          rows.type == Type::kF16;
  if (IsFloatFormat(format) || are_floats) {
    return IsFloatFormat(format) && are_floats;
  }
  if (StoredFormatOf(format).block == 256) {
    return rows.type == Type::kQ8_K || rows.group == kWholeRow;
  }
  return rows.type != Type::kQ8_K;
}
Format ProductRowsOf(WeightFormat format) {
  if (format == WeightFormat::kInt8) return kProductRows[0];
  if (format == WeightFormat::kF32) return kProductRows[6];
  if (format == WeightFormat::kBF16) return kProductRows[7];
  if (format == WeightFormat::kF16) return kProductRows[8];
  return kProductRows[StoredFormatOf(format).block == 256 ? 5 : 1];
}
size_t ColumnsStep(WeightFormat format, const Format& rows) {
  const size_t block = HasAnyColumns(format) ? 1 : StoredFormatOf(format).block;
  return std::max(block, BlockOf(rows.type));
}

FormatRows RandomOperands(const Format& format, size_t rows, size_t cols,
                          uint32_t seed, bool any, int8_t least) {
  FormatRows made(format, rows, cols);
  if (format.group == 0 && BlockOf(format.type) == 1) {
    for (size_t i = 0; i < rows * cols; ++i) {
      RoundAt(format.type, RandomFloatScale(seed, i, any), made.codes.data(),
              i);
    }
    return made;
  }
  for (size_t i = 0; i < made.codes.size(); ++i) {
    const auto code = static_cast<int8_t>(Hash(seed, i) >> 24);
    made.codes[i] = static_cast<uint8_t>(std::max(code, least));
  }
  if (format.type == Type::kQ8_0) {
    for (size_t i = 0; i < made.codes.size(); i += sizeof(BlockQ8_0)) {
      const Float16 d = RandomScale(seed + 1, i, any);
      std::memcpy(&made.codes[i], &d, sizeof(d));
    }
  }
  if (format.type == Type::kQ8_K) {
    for (size_t i = 0; i < made.codes.size(); i += sizeof(BlockQ8_K)) {
      const float d = RandomFloatScale(seed + 1, i, any);
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
  const StoredFormat format = StoredFormatOf(stored.format);
  const bool is_int8 = stored.format == WeightFormat::kInt8;
  const size_t group = is_int8 ? GroupOf(rows) : format.block;
  if (IsFloatFormat(stored.format)) {
    for (size_t r = 0; r < rows.rows; ++r) {
      for (size_t c = first; c < first + count; ++c) {
        AddFloats(format, format.Row(stored, expert, c), rows, r, &product);
      }
    }
    return product;
  }
  // Decodes each integer once. The integers fit in 16 bits. The largest are
  // those of q6_K, which are products of an 8-bit and a 6-bit number.
  const size_t cols = rows.cols;
  std::vector<int16_t> x(rows.rows * cols);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<int16_t>(CodeOf(rows, i / cols, i % cols));
  }
  std::vector<int16_t> weights(cols), mins(cols);
  product.values.resize(rows.rows * count);
  product.bounds.resize(rows.rows * count);
  for (size_t c = 0; c < count; ++c) {
    const uint8_t* const row = format.Row(stored, expert, first + c);
    for (size_t k = 0; k < cols; ++k) {
      weights[k] =
          static_cast<int16_t>(format.Factor(row, k) * format.Code(row, k));
      mins[k] = static_cast<int16_t>(format.Min(row, k));
    }
    for (size_t r = 0; r < rows.rows; ++r) {
      float acc = 0.0f;
      double size = 0.0;
      size_t terms = 0;
      const auto add = [&](int32_t integer, float scale) {
        const auto f = static_cast<float>(integer);
        acc = is_int8 && group >= cols ? f * scale : std::fma(f, scale, acc);
        size += std::fabs(static_cast<double>(f) * scale);
        ++terms;
      };
      for (size_t begin = 0; begin < cols; begin += group) {
        const size_t columns = std::min(group, cols - begin);
        const int16_t* const codes = &x[r * cols + begin];
        const float dx = ScaleOf(rows, r, begin);
        const float dw = is_int8 ? stored.scales.Row<float>(expert)[first + c]
                                 : format.Scale(row, begin);
        add(Dot(codes, &weights[begin], columns), dw * dx);
        if (stored.format == WeightFormat::kQ4_K) {
          add(-Dot(codes, &mins[begin], columns),
              format.MinScale(row, begin) * dx);
        }
      }
      product.values[r * count + c] = acc;
      product.bounds[r * count + c] =
          static_cast<float>((static_cast<double>(terms) + 2) * 0x1p-24 * size);
    }
  }
  return product;
}

}  // namespace switchyard::testing_support
