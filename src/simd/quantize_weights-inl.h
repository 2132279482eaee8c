// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Quantises floats to stored blocks of weights, as expert_weights.h defines
// them. Operations have one order, so that the bytes are equal on every ISA.

#if defined(SWITCHYARD_SRC_SIMD_QUANTIZE_WEIGHTS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_QUANTIZE_WEIGHTS_INL_H_
#undef SWITCHYARD_SRC_SIMD_QUANTIZE_WEIGHTS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_QUANTIZE_WEIGHTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "src/base/weight_layout.h"

#include "hwy/highway.h"

#include "src/simd/quantize-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr float kMaxFloat = std::numeric_limits<float>::max();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Writes x as f16 and returns the rounded value.
HWY_INLINE float PutF16(float x, uint8_t* to) {
  const hn::CappedTag<float, 1> d;
  HWY_ALIGN Float16 half[HWY_MAX_BYTES / sizeof(float)];
  Storage<Float16>::Store(hn::Set(d, x), d, half);
  std::memcpy(to, half, sizeof(Float16));
  return hn::GetLane(Storage<Float16>::Load(d, half));
}
// Returns the bits of the largest magnitude, as LargestOf() does. (GCC 12 warns
// about LargestOf() if n is a constant.)
HWY_INLINE int32_t LargestBits(const float* from, size_t n) {
  int32_t largest = 0;
  for (size_t i = 0; i < n; ++i) {
    int32_t bits;
    std::memcpy(&bits, from + i, sizeof(bits));
    largest = HWY_MAX(largest, bits & 0x7FFFFFFF);
  }
  return largest;
}
HWY_INLINE bool AllFinite(const float* from, size_t n) {
  return LargestBits(from, n) < kInfinityBits;
}
// Returns the first value with the largest magnitude.
HWY_INLINE float LargestMagnitude(const float* from, size_t n) {
  float largest = 0.0f, with_sign = 0.0f;
  for (size_t i = 0; i < n; ++i) {
    const float size = from[i] < 0.0f ? -from[i] : from[i];
    if (size > largest) {
      largest = size;
      with_sign = from[i];
    }
  }
  return with_sign;
}
// Returns the nearest integer, ties to even, within the bounds; `low` for NaN.
HWY_INLINE int NearestWithin(float x, int low, int high) {
  if (!(x > static_cast<float>(low))) return low;
  if (x > static_cast<float>(high)) return high;
  // The addition rounds to an integer, because the sum's last bit has value 1.
  const float magic = 12582912.0f;
  return static_cast<int>((x + magic) - magic);
}

// Quantises a block as GGML's quantize_row_q4_0_ref does.
HWY_NOINLINE void QuantizeQ4_0(const float* from, uint8_t* to) {
  constexpr size_t kBlock = 32;
  const bool is_finite = AllFinite(from, kBlock);
  const float d = is_finite ? LargestMagnitude(from, kBlock) / -8.0f : kNaN;
  // The inverse is 0 if 1 / d overflows, as in FiniteRatio().
  float inverse = is_finite && d != 0.0f ? 1.0f / d : 0.0f;
  if (!(inverse >= -kMaxFloat && inverse <= kMaxFloat)) inverse = 0.0f;
  PutF16(d + 0.0f, to);
  const auto code = [&](float x) {
    // The sum is between 0.5 (for the value of the largest magnitude) and 16.5.
    const int c = inverse == 0.0f ? 8 : static_cast<int>(x * inverse + 8.5f);
    return static_cast<uint8_t>(HWY_MIN(c, 15));
  };
  for (size_t i = 0; i < kBlock / 2; ++i) {
    to[sizeof(Float16) + i] =
        static_cast<uint8_t>(code(from[i]) | code(from[i + kBlock / 2]) << 4);
  }
}

HWY_NOINLINE void QuantizeMxfp4(const float* from, uint8_t* to) {
  constexpr size_t kBlock = 32;
  constexpr int kMaxExponent = 2;
  const int32_t largest = LargestBits(from, kBlock);
  const bool is_finite = largest < kInfinityBits;
  const int32_t bits = HWY_MAX((largest >> 23) - kMaxExponent, 0);
  const int32_t inverse_bits = (254 - bits) << 23;
  float inverse;
  std::memcpy(&inverse, &inverse_bits, sizeof(inverse));
  to[0] = static_cast<uint8_t>(is_finite ? bits : 255);
  const auto code = [&](float x) -> uint8_t {
    const float v = x < 0.0f ? -x * inverse : x * inverse;
    // Values halfway between two codes get the even code.
    const int c = (v > 0.25f) + (v >= 0.75f) + (v > 1.25f) + (v >= 1.75f) +
                  (v > 2.5f) + (v >= 3.5f) + (v > 5.0f);
    if (!is_finite || c == 0) return 0;
    return static_cast<uint8_t>(x < 0.0f ? c | 8 : c);
  };
  for (size_t i = 0; i < kBlock / 2; ++i) {
    to[1 + i] =
        static_cast<uint8_t>(code(from[i]) | code(from[i + kBlock / 2]) << 4);
  }
}

// The scale and minimum of a part of q4_K. Weights are scale * code - min.
struct PartFit {
  float scale, min;
};
// A sum over a part, in eight lanes, with element i in lane i mod 8. The order
// of additions is fixed, because results depend on it.
struct PartSums {
  float lanes[8] = {};
  HWY_INLINE float Total() const {
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  }
};
HWY_INLINE float NearestCode(float x) {
  const float magic = 12582912.0f;  // as in NearestWithin()
  const float from_0 = x > 0.0f ? x : 0.0f;
  return ((from_0 < 15.0f ? from_0 : 15.0f) + magic) - magic;
}
HWY_NOINLINE PartFit FitQ4_KPart(const float* x) {
  constexpr size_t kPart = 32;
  float low = HWY_MIN(x[0], 0.0f), high = x[0];
  for (size_t i = 1; i < kPart; ++i) {
    low = HWY_MIN(low, x[i]);
    high = HWY_MAX(high, x[i]);
  }
  // Divides before it subtracts, because high - low may overflow.
  PartFit best = {(high / 15.0f) - (low / 15.0f), 0.0f - low};
  const float first = best.scale;
  float least = 0.0f;
  // The ratio 1 only measures the error of the first fit.
  for (const float ratio : {1.0f, 0.94f, 0.965f, 0.99f, 1.02f}) {
    const float inverse = ratio / first;
    float codes[kPart];
    PartSums sum_c, sum_cc, sum_x, sum_cx, error;
    for (size_t i = 0; i < kPart; i += 8) {
      for (size_t j = 0; j < 8; ++j) {
        const float c = NearestCode((x[i + j] - low) * inverse);
        codes[i + j] = c;
        sum_c.lanes[j] += c;
        sum_cc.lanes[j] += c * c;
        sum_x.lanes[j] += x[i + j];
        sum_cx.lanes[j] += c * x[i + j];
      }
    }
    const float c1 = sum_c.Total(), c2 = sum_cc.Total();
    const float x1 = sum_x.Total(), cx = sum_cx.Total();
    PartFit fit = best;
    if (ratio != 1.0f) {
      const float det = 32.0f * c2 - c1 * c1;
      fit.scale = (32.0f * cx - x1 * c1) / det;
      fit.min = 0.0f - (c2 * x1 - c1 * cx) / det;
      if (fit.min < 0.0f) fit = {cx / c2, 0.0f};
    }
    for (size_t i = 0; i < kPart; i += 8) {
      for (size_t j = 0; j < 8; ++j) {
        const float e = (codes[i + j] * fit.scale - fit.min) - x[i + j];
        error.lanes[j] += e * e;
      }
    }
    const float total = error.Total();
    // (For NaNs, the comparisons are false.)
    if (ratio == 1.0f || (total < least && fit.scale > 0.0f)) {
      least = total;
      best = fit;
    }
  }
  return best;
}

HWY_NOINLINE void QuantizeQ4_K(const float* from, uint8_t* to) {
  constexpr size_t kParts = 8, kPart = 32;
  std::memset(to, 0, TraitsOf(WeightFormat::kQ4_K).stored_block);
  if (!AllFinite(from, kParts * kPart)) {
    PutF16(kNaN, to);
    PutF16(kNaN, to + 2);
    return;
  }
  float scales[kParts], mins[kParts], scale = 0.0f, min = 0.0f;
  for (size_t j = 0; j < kParts; ++j) {
    const PartFit fit = FitQ4_KPart(from + j * kPart);
    scales[j] = fit.scale;
    mins[j] = fit.min;
    scale = HWY_MAX(scale, scales[j]);
    min = HWY_MAX(min, mins[j]);
  }
  const float d = PutF16(scale / 63.0f, to);
  const float dmin = PutF16(min / 63.0f, to + 2);
  for (size_t j = 0; j < kParts; ++j) {
    const int s = NearestWithin(scales[j] / scale * 63.0f, 0, 63);
    const int m = NearestWithin(mins[j] / min * 63.0f, 0, 63);
    uint8_t* const q = to + 4;
    if (j < 4) {
      q[j] = static_cast<uint8_t>(q[j] | s);
      q[j + 4] = static_cast<uint8_t>(q[j + 4] | m);
    } else {
      q[j + 4] = static_cast<uint8_t>((s & 15) | (m & 15) << 4);
      q[j - 4] = static_cast<uint8_t>(q[j - 4] | (s >> 4) << 6);
      q[j] = static_cast<uint8_t>(q[j] | (m >> 4) << 6);
    }
    const float step = d * static_cast<float>(s);
    const float offset = m == 0 ? 0.0f : dmin * static_cast<float>(m);
    uint8_t* const codes = to + 16 + j / 2 * kPart;
    for (size_t i = 0; i < kPart; ++i) {
      const float x = from[j * kPart + i] + offset;
      const int c = step > 0.0f ? NearestWithin(x / step, 0, 15) : 0;
      codes[i] = static_cast<uint8_t>(codes[i] | c << (j % 2 * 4));
    }
  }
}

HWY_NOINLINE void QuantizeQ6_K(const float* from, uint8_t* to) {
  constexpr size_t kParts = 16, kPart = 16;
  constexpr size_t kHighAt = 128, kScalesAt = 192, kDAt = 208;
  const bool is_finite = AllFinite(from, kParts * kPart);
  float scales[kParts] = {};
  for (size_t j = 0; j < kParts && is_finite; ++j) {
    scales[j] = LargestMagnitude(from + j * kPart, kPart) / -32.0f;
  }
  const float scale = LargestMagnitude(scales, kParts);
  const float d = PutF16(is_finite ? scale / -128.0f + 0.0f : kNaN, to + kDAt);
  std::memset(to, 0, kScalesAt);
  for (size_t j = 0; j < kParts; ++j) {
    const int s = scale == 0.0f
                      ? 0
                      : NearestWithin(scales[j] / scale * -128.0f, -128, 127);
    to[kScalesAt + j] = static_cast<uint8_t>(s);
    const float step = d * static_cast<float>(s);
    for (size_t i = 0; i < kPart; ++i) {
      const size_t k = j * kPart + i;
      const bool has_step = step > 0.0f || step < 0.0f;
      const int c = has_step ? NearestWithin(from[k] / step, -32, 31) + 32 : 32;
      uint8_t* const low = to + k / 128 * 64 + k % 64;
      uint8_t* const high = to + kHighAt + k / 128 * 32 + k % 32;
      *low = static_cast<uint8_t>(*low | (c & 15) << (k % 128 / 64 * 4));
      *high = static_cast<uint8_t>(*high | (c >> 4) << (k % 128 / 32 * 2));
    }
  }
}

// Quantises a block of a format with scales in its blocks, except for q8_0.
template <WeightFormat kFormat>
HWY_INLINE void QuantizeBlock(const float* from, uint8_t* to) {
  if constexpr (kFormat == WeightFormat::kQ4_0) QuantizeQ4_0(from, to);
  if constexpr (kFormat == WeightFormat::kMXFP4) QuantizeMxfp4(from, to);
  if constexpr (kFormat == WeightFormat::kQ4_K) QuantizeQ4_K(from, to);
  if constexpr (kFormat == WeightFormat::kQ6_K) QuantizeQ6_K(from, to);
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_QUANTIZE_WEIGHTS_INL_H_
