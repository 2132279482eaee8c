// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "testing/reference_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "testing/inputs.h"

namespace switchyard::reference {
namespace {

using testing_support::kNaN;

template <class T>
void Put(std::vector<uint8_t>& bytes, size_t i, T value) {
  std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
}
template <class T>
T Get(const std::vector<uint8_t>& bytes, size_t i) {
  T value;
  std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
  return value;
}

// Returns the largest magnitude, or NaN if an element is NaN or infinite.
float Amax(const float* x, size_t n) {
  float amax = 0.0f;
  for (size_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return kNaN;
    amax = std::max(amax, std::fabs(x[i]));
  }
  return amax;
}

// Returns the factor by which values are multiplied: `inverse`, or 0 if it is
// not finite. With 0, codes keep the signs of the values.
float Factor(float inverse) { return std::isfinite(inverse) ? inverse : 0.0f; }

uint8_t Byte(int code) { return static_cast<uint8_t>(code); }

// Returns the largest number that a code of the type can hold, for types with
// f32 scales.
float LargestCode(Type type) {
  const SmallFloat* const small = SmallFloatOf(type);
  return small == nullptr ? 127.0f : small->Decode(small->largest);
}

uint8_t Code(Type type, double x) {
  if (const SmallFloat* const small = SmallFloatOf(type)) {
    return static_cast<uint8_t>(small->Encode(x));
  }
  const int code = static_cast<int>(std::nearbyint(x));
  return Byte(type == Type::kU8 ? code + 128 : code);
}

// Quantises a group of a format with f32 scales. Returns its scale.
float Scaled(Type type, const float* x, size_t n, uint8_t* codes) {
  const float amax = Amax(x, n), largest = LargestCode(type);
  const float factor = Factor(largest / amax);
  for (size_t i = 0; i < n; ++i) {
    codes[i] = Code(type, std::isnan(amax) ? 0.0f : x[i] * factor);
  }
  return amax / largest;
}

// Quantises a group of mxfp8. Returns its scale.
uint8_t Microscaled(Type type, const float* x, size_t n, uint8_t* codes) {
  const float amax = Amax(x, n);
  int exponent = -127;
  if (amax > 0.0f) {
    const int largest = std::ilogb(LargestCode(type));
    exponent = std::max(exponent, std::ilogb(amax) - largest);
  }
  for (size_t i = 0; i < n; ++i) {
    codes[i] =
        Code(type, std::isnan(amax) ? 0 : std::ldexp(double{x[i]}, -exponent));
  }
  return Byte(std::isnan(amax) ? 255 : exponent + 127);
}

// A block of 32 elements in q8_0 or q8_1. q8_0 does not store `s`.
struct Block32 {
  float d, s;
  int8_t qs[32];
};
Block32 ToBlock32(const float* x) {
  Block32 block;
  block.d = Amax(x, 32) / 127.0f;
  const float factor = Factor(1.0f / block.d);
  int sum = 0;
  for (size_t i = 0; i < 32; ++i) {
    block.qs[i] =
        static_cast<int8_t>(factor == 0.0f ? 0.0f : std::round(x[i] * factor));
    sum += block.qs[i];
  }
  block.s = static_cast<float>(sum) * block.d;
  return block;
}

using testing_support::Round;

void PutQ8_0(const float* x, std::vector<uint8_t>& bytes, size_t i) {
  const Block32 from = ToBlock32(x);
  BlockQ8_0 block = {Round<Float16>(from.d), {}};
  std::copy_n(from.qs, 32, block.qs);
  Put(bytes, i, block);
}

void PutQ8_1(const float* x, std::vector<uint8_t>& bytes, size_t i) {
  const Block32 from = ToBlock32(x);
  BlockQ8_1 block = {Round<Float16>(from.d), Round<Float16>(from.s), {}};
  std::copy_n(from.qs, 32, block.qs);
  Put(bytes, i, block);
}

void PutQ8_K(const float* x, std::vector<uint8_t>& bytes, size_t i) {
  BlockQ8_K block = {};
  const float amax = Amax(x, 256);
  if (std::isnan(amax)) {
    block.d = kNaN;
  } else if (amax > 0.0f) {
    // `max` is the first element with the largest magnitude, including its
    // sign.
    const float max = *std::find_if(
        x, x + 256, [amax](float v) { return std::fabs(v) == amax; });
    const float inverse = -127.0f / max;
    const float factor = Factor(inverse);
    for (size_t j = 0; j < 256; ++j) {
      const int code = static_cast<int>(std::nearbyint(x[j] * factor));
      block.qs[j] = static_cast<int8_t>(std::min(127, code));
      block.bsums[j / 16] =
          static_cast<int16_t>(block.bsums[j / 16] + block.qs[j]);
    }
    block.d = 1.0f / inverse;
  }
  Put(bytes, i, block);
}

void QuantizeRow(const float* x, size_t row, FormatRows& to) {
  const Format& format = to.format;
  if (format.group != 0) {
    const size_t num_scales = format.NumScales(to.cols);
    for (size_t g = 0; g < num_scales; ++g) {
      const size_t begin = g == 0 ? 0 : g * format.group;
      const size_t n = std::min(format.group, to.cols - begin);
      uint8_t* const codes = &to.codes[row * to.cols + begin];
      const size_t at = row * num_scales + g;
      if (format.scales == Type::kE8M0) {
        to.scales[at] = Microscaled(format.type, x + begin, n, codes);
      } else {
        Put(to.scales, at, Scaled(format.type, x + begin, n, codes));
      }
    }
    if (!format.sums) return;
    int32_t sum = 0;
    for (size_t c = 0; c < to.cols; ++c) {
      const uint8_t code = to.codes[row * to.cols + c];
      sum += format.type == Type::kU8 ? code - 128 : static_cast<int8_t>(code);
    }
    return Put(to.sums, row, sum);
  }
  const size_t step = BlockOf(format.type);
  for (size_t c = 0; c < to.cols; c += step) {
    const size_t at = (row * to.cols + c) / step;
    switch (format.type) {
      case Type::kF32:
        Put(to.codes, at, x[c]);
        break;
      case Type::kQ8_0:
        PutQ8_0(x + c, to.codes, at);
        break;
      case Type::kQ8_1:
        PutQ8_1(x + c, to.codes, at);
        break;
      case Type::kQ8_K:
        PutQ8_K(x + c, to.codes, at);
        break;
      default:
        Put(to.codes, at,
            static_cast<uint16_t>(SmallFloatOf(format.type)->Encode(x[c])));
    }
  }
}

}  // namespace

std::vector<float> Dequantize(const FormatRows& rows) {
  const Format& format = rows.format;
  const size_t num_scales = format.NumScales(rows.cols);
  std::vector<float> values(rows.rows * rows.cols);
  for (size_t i = 0; i < values.size(); ++i) {
    // f32 is copied without arithmetic, because arithmetic could change a
    // NaN's bits.
    values[i] = testing_support::WidenAt(format.type, rows.codes.data(), i);
    if (format.group == 0) continue;
    const size_t row = i / rows.cols, group = i % rows.cols / format.group;
    values[i] *= Get<float>(rows.scales, row * num_scales + group);
  }
  return values;
}

FormatRows Quantize(const std::vector<float>& values, size_t rows, size_t cols,
                    const Format& to) {
  FormatRows result(to, rows, cols);
  for (size_t r = 0; r < rows && cols != 0; ++r) {
    QuantizeRow(&values[r * cols], r, result);
  }
  return result;
}

FormatRows Quantize(const FormatRows& rows, const Format& to) {
  if (rows.format.CopiesTo(to, rows.cols)) {
    FormatRows copy = rows;
    copy.format = to;
    if (!to.sums) copy.sums.clear();
    return copy;
  }
  return Quantize(Dequantize(rows), rows.rows, rows.cols, to);
}

FormatRows Pick(const FormatRows& rows, const std::vector<int64_t>& indices) {
  FormatRows picked = Quantize(std::vector<float>(indices.size() * rows.cols),
                               indices.size(), rows.cols, rows.format);
  const auto copy = [&](const std::vector<uint8_t>& from,
                        std::vector<uint8_t>& to) {
    const size_t bytes = rows.RowBytes(from);
    for (size_t i = 0; i < indices.size() && bytes != 0; ++i) {
      if (indices[i] < 0 || indices[i] >= static_cast<int64_t>(rows.rows)) {
        continue;
      }
      std::copy_n(&from[static_cast<size_t>(indices[i]) * bytes], bytes,
                  &to[i * bytes]);
    }
  };
  copy(rows.codes, picked.codes);
  copy(rows.scales, picked.scales);
  copy(rows.sums, picked.sums);
  return picked;
}

}  // namespace switchyard::reference
