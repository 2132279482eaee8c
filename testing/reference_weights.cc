// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <cstring>

#include "switchyard/types.h"
#include "testing/floats.h"
#include "testing/inputs.h"
#include "testing/reference_multiply.h"

namespace switchyard::testing_support {
namespace {

constexpr int kE2M1[8] = {0, 1, 2, 3, 4, 6, 8, 12};  // doubled

float HalfAt(const uint8_t* p) {
  Float16 half;
  std::memcpy(&half, p, sizeof(half));
  return Widen(half);
}
void PutHalf(float f, uint8_t* to) {
  const auto half = Round<Float16>(f);
  std::memcpy(to, &half, sizeof(half));
}
// Returns 2^(byte - 127 + more), or NaN for byte 255.
float PowerAt(const uint8_t* p, int more) {
  return *p == 255 ? kNaN : std::ldexp(1.0f, *p - 127 + more);
}

// Returns the scale fields of a block of one row, in the order of the packed
// scales. Packed scales store each field of 16 rows together.
std::vector<std::vector<uint8_t>> PackedFields(const StoredFormat& format,
                                               const uint8_t* block) {
  std::vector<std::vector<uint8_t>> fields;
  switch (format.format) {
    case WeightFormat::kInt8:
    case WeightFormat::kF32:
    case WeightFormat::kBF16:
    case WeightFormat::kF16:
      break;
    case WeightFormat::kQ8_0:
    case WeightFormat::kQ4_0:
      fields.push_back({block[0], block[1]});
      break;
    case WeightFormat::kMXFP4:
      fields.push_back({block[0]});
      break;
    case WeightFormat::kQ4_K:
      fields.push_back({block[0], block[1]});
      fields.push_back({block[2], block[3]});
      for (const bool is_min : {false, true}) {
        for (size_t half = 0; half < 256; half += 128) {
          std::vector<uint8_t> four;
          for (size_t k = half; k < half + 128; k += 32) {
            four.push_back(static_cast<uint8_t>(
                is_min ? format.Min(block, k) : format.Factor(block, k)));
          }
          fields.push_back(four);
        }
      }
      break;
    case WeightFormat::kQ6_K:
      fields.push_back({block[208], block[209]});
      for (size_t j = 192; j < 208; j += 4) {
        fields.push_back({block + j, block + j + 4});
      }
      break;
  }
  return fields;
}

// Returns the number of bytes of one row's scales in a block.
size_t ScaleBytes(const StoredFormat& format) {
  const std::vector<uint8_t> block(format.bytes);
  size_t bytes = 0;
  for (const auto& field : PackedFields(format, block.data())) {
    bytes += field.size();
  }
  return bytes;
}

// Returns x rounded to an integer, with ties to even, and clamped to [low,
// high].
int Nearest(float x, int low, int high) {
  if (std::isnan(x)) return low;
  return static_cast<int>(std::clamp(std::nearbyint(x), static_cast<float>(low),
                                     static_cast<float>(high)));
}
bool AreFinite(const float* x, size_t n) {
  return std::all_of(x, x + n, [](float f) { return std::isfinite(f); });
}
float LargestOf(const float* x, size_t n) {
  float m = 0.0f;
  for (size_t i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(m)) m = x[i];
  }
  return m;
}

void QuantizeQ4_0(const float* x, uint8_t* to) {
  const bool is_finite = AreFinite(x, 32);
  const float d = LargestOf(x, 32) / -8.0f;
  const float inverse = d == 0.0f ? 0.0f : 1.0f / d;
  const bool has_codes = is_finite && d != 0.0f && std::isfinite(inverse);
  PutHalf(is_finite ? d + 0.0f : kNaN, to);
  const auto code = [&](float f) {
    const float shifted = f * inverse + 8.5f;
    return has_codes ? std::min(15, static_cast<int>(shifted)) : 8;
  };
  for (size_t i = 0; i < 16; ++i) {
    to[2 + i] = static_cast<uint8_t>(code(x[i]) | code(x[i + 16]) << 4);
  }
}
void QuantizeMxfp4(const float* x, uint8_t* to) {
  const float largest = std::fabs(LargestOf(x, 32));
  const bool is_finite = AreFinite(x, 32);
  const int exponent = largest == 0.0f ? -200 : std::ilogb(largest) - 2;
  const int bits = std::max(exponent + 127, 0);
  to[0] = static_cast<uint8_t>(is_finite ? bits : 255);
  const auto code = [&](float f) {
    const double size = std::fabs(std::ldexp(double{f}, 127 - bits + 1));
    int best = 0;
    for (int c = 1; c < 8 && is_finite; ++c) {
      const double now = std::fabs(size - kE2M1[c]);
      const double then = std::fabs(size - kE2M1[best]);
      if (now < then || (now == then && c % 2 == 0)) best = c;
    }
    return f < 0.0f && best != 0 ? best | 8 : best;
  };
  for (size_t i = 0; i < 16; ++i) {
    to[1 + i] = static_cast<uint8_t>(code(x[i]) | code(x[i + 16]) << 4);
  }
}
// Returns the sum of 32 terms in the order that the header defines: first the
// terms with equal i mod 8 are added.
template <class Term>
float PartSum(Term term) {
  float lanes[8] = {};
  for (size_t i = 0; i < 32; ++i) lanes[i % 8] += term(i);
  for (const size_t half : {size_t{4}, size_t{2}, size_t{1}}) {
    for (size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}
void FitPart(const float* x, float* scale, float* min) {
  const auto bounds = std::minmax_element(x, x + 32);
  const float low = std::min(0.0f, *bounds.first);
  const float first = *bounds.second / 15.0f - low / 15.0f;
  *scale = first;
  *min = -low;
  const auto code = [&](size_t i, float ratio) {
    return static_cast<float>(Nearest((x[i] - low) * (ratio / first), 0, 15));
  };
  const auto error = [&](float ratio, float s, float m) {
    return PartSum([&](size_t i) {
      const float e = code(i, ratio) * s - m - x[i];
      return e * e;
    });
  };
  float least = error(1.0f, *scale, *min);
  for (const float ratio : {0.94f, 0.965f, 0.99f, 1.02f}) {
    const float c1 = PartSum([&](size_t i) { return code(i, ratio); });
    const float c2 =
        PartSum([&](size_t i) { return code(i, ratio) * code(i, ratio); });
    const float x1 = PartSum([&](size_t i) { return x[i]; });
    const float cx = PartSum([&](size_t i) { return code(i, ratio) * x[i]; });
    const float det = 32.0f * c2 - c1 * c1;
    float s = (32.0f * cx - x1 * c1) / det;
    float m = -((c2 * x1 - c1 * cx) / det);
    if (m < 0.0f) {
      s = cx / c2;
      m = 0.0f;
    }
    const float e = error(ratio, s, m);
    if (e < least && s > 0.0f) {
      least = e;
      *scale = s;
      *min = m;
    }
  }
}

void QuantizeQ4_K(const float* x, uint8_t* to) {
  std::fill(to, to + 144, uint8_t{0});
  if (!AreFinite(x, 256)) {
    PutHalf(kNaN, to);
    PutHalf(kNaN, to + 2);
    return;
  }
  float scales[8], mins[8];
  for (size_t j = 0; j < 8; ++j) {
    FitPart(x + 32 * j, &scales[j], &mins[j]);
  }
  const float scale = *std::max_element(scales, scales + 8);
  const float min = std::max(0.0f, *std::max_element(mins, mins + 8));
  PutHalf(scale / 63.0f, to);
  PutHalf(min / 63.0f, to + 2);
  for (size_t j = 0; j < 8; ++j) {
    const int s = Nearest(scales[j] / scale * 63.0f, 0, 63);
    const int m = Nearest(mins[j] / min * 63.0f, 0, 63);
    if (j < 4) {
      to[4 + j] = static_cast<uint8_t>(to[4 + j] + s);
      to[8 + j] = static_cast<uint8_t>(to[8 + j] + m);
    } else {
      to[8 + j] = static_cast<uint8_t>(s % 16 + m % 16 * 16);
      to[j] = static_cast<uint8_t>(to[j] + s / 16 * 64);
      to[4 + j] = static_cast<uint8_t>(to[4 + j] + m / 16 * 64);
    }
    const float step = HalfAt(to) * static_cast<float>(s);
    const float offset = m == 0 ? 0.0f : HalfAt(to + 2) * static_cast<float>(m);
    for (size_t i = 0; i < 32; ++i) {
      const float shifted = x[32 * j + i] + offset;
      const int c = step == 0.0f ? 0 : Nearest(shifted / step, 0, 15);
      uint8_t* const byte = to + 16 + 32 * (j / 2) + i;
      *byte = static_cast<uint8_t>(*byte + (j % 2 == 0 ? c : 16 * c));
    }
  }
}
void QuantizeQ6_K(const float* x, uint8_t* to) {
  std::fill(to, to + 210, uint8_t{0});
  const bool is_finite = AreFinite(x, 256);
  float scales[16] = {};
  for (size_t j = 0; j < 16 && is_finite; ++j) {
    scales[j] = LargestOf(x + 16 * j, 16) / -32.0f;
  }
  const float scale = LargestOf(scales, 16);
  PutHalf(is_finite ? scale / -128.0f + 0.0f : kNaN, to + 208);
  for (size_t k = 0; k < 256; ++k) {
    const int s = scale == 0.0f
                      ? 0
                      : Nearest(scales[k / 16] / scale * -128.0f, -128, 127);
    to[192 + k / 16] = static_cast<uint8_t>(s);
    const float step = HalfAt(to + 208) * static_cast<float>(s);
    const bool has_step = step < 0.0f || step > 0.0f;
    const int c = has_step ? Nearest(x[k] / step, -32, 31) + 32 : 32;
    const size_t half = k / 128, i = k % 128;
    uint8_t* const low = to + 64 * half + i % 64;
    uint8_t* const high = to + 128 + 32 * half + i % 32;
    *low = static_cast<uint8_t>(*low + (i < 64 ? c % 16 : c % 16 * 16));
    *high = static_cast<uint8_t>(*high + ((c / 16) << (i / 32 * 2)));
  }
}

}  // namespace

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

Type FloatTypeOf(WeightFormat format) {
  return format == WeightFormat::kF32    ? Type::kF32
         : format == WeightFormat::kBF16 ? Type::kBF16
                                         : Type::kF16;
}
bool IsFloatFormat(WeightFormat format) {
  return format == WeightFormat::kF32 || format == WeightFormat::kBF16 ||
         format == WeightFormat::kF16;
}
bool HasAnyColumns(WeightFormat format) {
  return format == WeightFormat::kInt8 || IsFloatFormat(format);
}

StoredFormat StoredFormatOf(WeightFormat format) {
  switch (format) {
    case WeightFormat::kInt8:
      return {format, 32, 32, 0, 32};
    case WeightFormat::kQ8_0:
      return {format, 32, 34, 2, 32};
    case WeightFormat::kQ4_0:
      return {format, 32, 18, 2, 16};
    case WeightFormat::kMXFP4:
      return {format, 32, 17, 1, 16};
    case WeightFormat::kQ4_K:
      return {format, 256, 144, 16, 128};
    case WeightFormat::kQ6_K:
      return {format, 256, 210, 0, 192};
    case WeightFormat::kF32:
      return {format, 32, 128, 0, 128};
    case WeightFormat::kBF16:
    case WeightFormat::kF16:
      return {format, 32, 64, 0, 64};
  }
  return {};
}
const uint8_t* StoredFormat::Row(const ExpertWeights& w, size_t expert,
                                 size_t row) const {
  const size_t row_bytes =
      HasAnyColumns(format) ? w.cols * (bytes / block) : w.cols / block * bytes;
  return w.data.Row<uint8_t>(expert) + row * row_bytes;
}
int StoredFormat::Code(const uint8_t* row, size_t k) const {
  const uint8_t* const codes_of = row + k / block * bytes + codes_at;
  const size_t i = k % block;
  switch (format) {
    case WeightFormat::kInt8:
    case WeightFormat::kQ8_0:
      return static_cast<int8_t>(codes_of[i]);
    case WeightFormat::kQ4_0:
    case WeightFormat::kMXFP4: {
      const int c = i < 16 ? codes_of[i] % 16 : codes_of[i - 16] / 16;
      if (format == WeightFormat::kQ4_0) return c - 8;
      return c < 8 ? kE2M1[c] : -kE2M1[c - 8];
    }
    case WeightFormat::kQ4_K: {
      const uint8_t byte = codes_of[i / 64 * 32 + i % 32];
      return i % 64 < 32 ? byte % 16 : byte / 16;
    }
    case WeightFormat::kQ6_K: {
      const size_t half = i / 128, at = i % 128;
      const uint8_t byte = codes_of[64 * half + at % 64];
      const int low = at < 64 ? byte % 16 : byte / 16;
      const int high = codes_of[128 + 32 * half + at % 32] >> (at / 32 * 2) & 3;
      return low + 16 * high - 32;
    }
    default:
      return 0;
  }
}
float StoredFormat::Float(const uint8_t* row, size_t k) const {
  return WidenAt(FloatTypeOf(format), row, k);
}
int StoredFormat::Factor(const uint8_t* row, size_t k) const {
  const uint8_t* const p = row + k / block * bytes;
  const size_t j = k % block / 32;
  if (format == WeightFormat::kQ6_K) {
    return static_cast<int8_t>(p[192 + k % 256 / 16]);
  }
  if (format != WeightFormat::kQ4_K) return 1;
  return j < 4 ? p[4 + j] % 64 : p[8 + j] % 16 + p[j] / 64 * 16;
}
int StoredFormat::Min(const uint8_t* row, size_t k) const {
  const uint8_t* const p = row + k / block * bytes;
  const size_t j = k % block / 32;
  if (format != WeightFormat::kQ4_K) return 0;
  return j < 4 ? p[8 + j] % 64 : p[8 + j] / 16 + p[4 + j] / 64 * 16;
}
float StoredFormat::Scale(const uint8_t* row, size_t k) const {
  const uint8_t* const p = row + k / block * bytes;
  if (format == WeightFormat::kMXFP4) return PowerAt(p, -1);
  return HalfAt(format == WeightFormat::kQ6_K ? p + 208 : p);
}
float StoredFormat::MinScale(const uint8_t* row, size_t k) const {
  return format == WeightFormat::kQ4_K ? HalfAt(row + k / block * bytes + 2)
                                       : 0.0f;
}

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
  const StoredFormat stored = StoredFormatOf(format);
  const size_t all_rows = num_experts * rows;
  w.data.resize(HasAnyColumns(format)
                    ? all_rows * cols * (stored.bytes / stored.block)
                    : all_rows * (cols / stored.block) * stored.bytes);
  if (IsFloatFormat(format)) {
    for (size_t i = 0; i < all_rows * cols; ++i) {
      RoundAt(FloatTypeOf(format), RandomFloatScale(seed, i, any),
              w.data.data(), i);
    }
    return w;
  }
  for (size_t i = 0; i < w.data.size(); ++i) {
    w.data[i] = static_cast<uint8_t>(Hash(seed, i) >> 24);
  }
  if (format == WeightFormat::kInt8) {
    for (size_t i = 0; i < all_rows; ++i) {
      w.scales.push_back(RandomFloatScale(seed + 1, i, any));
    }
    return w;
  }
  for (size_t i = 0; i < w.data.size(); i += stored.bytes) {
    const auto put = [&](size_t at, uint32_t number) {
      const Float16 d = RandomScale(number, i, any);
      std::memcpy(&w.data[i + at], &d, sizeof(d));
    };
    switch (format) {
      case WeightFormat::kMXFP4:  // the scales are from 1/64 to 4
        if (!any) {
          w.data[i] = static_cast<uint8_t>(121 + Hash(seed + 1, i) % 9);
        }
        break;
      case WeightFormat::kQ4_K:
        put(0, seed + 1);
        put(2, seed + 2);
        break;
      case WeightFormat::kQ6_K:
        put(208, seed + 1);
        break;
      default:
        put(0, seed + 1);
    }
  }
  return w;
}

// Returns the order in which packing stores the dwords of the codes.
std::vector<size_t> PackedOrder(const StoredFormat& format) {
  std::vector<size_t> order;
  if (format.format != WeightFormat::kQ6_K) {
    for (size_t i = 0; i < format.codes / 4; ++i) order.push_back(i);
    return order;
  }
  for (const size_t half : {size_t{0}, size_t{1}}) {
    for (size_t q = 0; q < 8; ++q) {
      for (const size_t part : {16 * half, 16 * half + 8, 32 + 8 * half}) {
        order.push_back(part + q);
      }
    }
  }
  return order;
}

std::vector<uint8_t> PackNaively(const ExpertWeights& stored, size_t expert) {
  const StoredFormat format = StoredFormatOf(stored.format);
  const bool is_int8 = stored.format == WeightFormat::kInt8;
  const bool is_bytes = is_int8 || stored.format == WeightFormat::kQ8_0;
  const size_t row_bytes = stored.cols * (format.bytes / format.block);
  const size_t blocks = (stored.cols + format.block - 1) / format.block;
  const uint8_t zero = is_bytes                               ? 128
                       : stored.format == WeightFormat::kQ4_0 ? 0x88
                                                              : 0;
  const std::vector<size_t> order = PackedOrder(format);
  std::vector<uint8_t> packed;
  for (size_t group = 0; group < stored.rows; group += 16) {
    const auto code = [&](size_t row, size_t b, size_t i) {
      if (row >= stored.rows ||
          (HasAnyColumns(stored.format) && format.bytes * b + i >= row_bytes)) {
        return zero;
      }
      const uint8_t byte = format.Row(
          stored, expert, row)[b * format.bytes + format.codes_at + i];
      return static_cast<uint8_t>(is_bytes ? byte ^ 128 : byte);
    };
    for (size_t b = 0; b < blocks; ++b) {
      const auto fields = [&](size_t row) {
        return PackedFields(format,
                            format.Row(stored, expert, row) + b * format.bytes);
      };
      const size_t count = fields(group).size();
      for (size_t f = 0; f < count; ++f) {
        const size_t width = fields(group)[f].size();
        for (size_t row = group; row < group + 16; ++row) {
          const auto field =
              row < stored.rows ? fields(row)[f] : std::vector<uint8_t>(width);
          packed.insert(packed.end(), field.begin(), field.end());
        }
      }
      for (const size_t i : order) {
        for (size_t row = group; row < group + 16; ++row) {
          for (size_t j = 0; j < 4; ++j) {
            packed.push_back(code(row, b, 4 * i + j));
          }
        }
      }
    }
    for (size_t row = group; row < group + 16 && is_int8; ++row) {
      uint8_t scale[4] = {};
      if (row < stored.rows) {
        std::memcpy(scale, stored.scales.Row<float>(expert) + row, 4);
      }
      packed.insert(packed.end(), scale, scale + 4);
    }
    packed.resize((packed.size() + 63) / 64 * 64);
  }
  return packed;
}

std::vector<float> DequantizePacked(const ExpertWeights& packed,
                                    size_t expert) {
  const StoredFormat format = StoredFormatOf(packed.format);
  const bool is_int8 = packed.format == WeightFormat::kInt8;
  const bool is_bytes = is_int8 || packed.format == WeightFormat::kQ8_0;
  const size_t blocks = (packed.cols + format.block - 1) / format.block;
  const size_t groups = (packed.rows + 15) / 16;
  const uint8_t* const data = packed.data.Row<uint8_t>(expert);
  const size_t scale_bytes = 16 * ScaleBytes(format);
  const size_t block_bytes = scale_bytes + 16 * format.codes;
  const std::vector<size_t> order = PackedOrder(format);
  std::vector<float> values;
  for (size_t row = 0; row < packed.rows; ++row) {
    const uint8_t* const group = data + row / 16 * (packed.data.cols / groups);
    const size_t lane = row % 16;
    float channel = 0.0f;
    if (is_int8) {
      std::memcpy(&channel, group + blocks * block_bytes + 4 * lane,
                  sizeof(channel));
    }
    // Puts the block's codes back in stored order. Scales are read from their
    // packed place.
    std::vector<uint8_t> block(format.bytes);
    for (size_t k = 0; k < packed.cols; ++k) {
      const uint8_t* const scales = group + k / format.block * block_bytes;
      const size_t i = k % format.block;
      if (i == 0) {
        for (size_t line = 0; line < order.size(); ++line) {
          for (size_t j = 0; j < 4; ++j) {
            const uint8_t byte = scales[scale_bytes + line * 64 + lane * 4 + j];
            block[format.codes_at + 4 * order[line] + j] =
                static_cast<uint8_t>(is_bytes ? byte ^ 128 : byte);
          }
        }
      }
      const auto code = static_cast<float>(format.Code(block.data(), i));
      const auto half = [&](const uint8_t* lines) {
        return HalfAt(lines + 2 * lane);
      };
      switch (packed.format) {
        case WeightFormat::kInt8:
          values.push_back(code * channel);
          break;
        case WeightFormat::kQ8_0:
        case WeightFormat::kQ4_0:
          values.push_back(code * half(scales));
          break;
        case WeightFormat::kMXFP4:
          values.push_back(code * PowerAt(scales + lane, -1));
          break;
        case WeightFormat::kQ4_K: {
          const size_t part = i / 128 * 64 + lane * 4 + i / 32 % 4;
          values.push_back(
              half(scales) * static_cast<float>(scales[64 + part]) * code -
              half(scales + 32) * static_cast<float>(scales[192 + part]));
          break;
        }
        case WeightFormat::kQ6_K: {
          const auto s = static_cast<int8_t>(
              scales[32 + i / 64 * 64 + lane * 4 + i / 16 % 4]);
          values.push_back(half(scales) * static_cast<float>(s) * code);
          break;
        }
        default:
          values.push_back(format.Float(block.data(), i));
      }
    }
  }
  return values;
}

std::vector<uint8_t> QuantizeWeightsNaively(WeightFormat format,
                                            const std::vector<float>& floats) {
  const StoredFormat stored = StoredFormatOf(format);
  if (IsFloatFormat(format)) {
    std::vector<uint8_t> rounded(floats.size() * (stored.bytes / stored.block));
    for (size_t i = 0; i < floats.size(); ++i) {
      RoundAt(FloatTypeOf(format), floats[i], rounded.data(), i);
    }
    return rounded;
  }
  std::vector<uint8_t> blocks(floats.size() / stored.block * stored.bytes);
  uint8_t* to = blocks.data();
  for (size_t at = 0; at < floats.size(); at += stored.block) {
    const float* const x = &floats[at];
    if (format == WeightFormat::kQ4_0) QuantizeQ4_0(x, to);
    if (format == WeightFormat::kMXFP4) QuantizeMxfp4(x, to);
    if (format == WeightFormat::kQ4_K) QuantizeQ4_K(x, to);
    if (format == WeightFormat::kQ6_K) QuantizeQ6_K(x, to);
    to += stored.bytes;
  }
  return blocks;
}

}  // namespace switchyard::testing_support
