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
HWY_INLINE int32_t BitsOfMagnitude(float x) {
  int32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits & 0x7FFFFFFF;
}
// Returns the bits of the largest magnitude, as LargestOf() does. (GCC 12 warns
// about LargestOf() if n is a constant.)
HWY_INLINE int32_t LargestBits(const float* from, size_t n) {
  int32_t largest = 0;
  for (size_t i = 0; i < n; ++i) {
    largest = HWY_MAX(largest, BitsOfMagnitude(from[i]));
  }
  return largest;
}
HWY_INLINE bool AllFinite(const float* from, size_t n) {
  return LargestBits(from, n) < kInfinityBits;
}
// Returns the first value with the largest magnitude, or 0 if all are 0.
HWY_INLINE float LargestMagnitude(const float* from, size_t n) {
  const int32_t largest = LargestBits(from, n);
  if (largest == 0) return 0.0f;
  size_t i = 0;
  while (BitsOfMagnitude(from[i]) != largest) ++i;
  return from[i];
}
// Returns the nearest integers, ties to even, within the bounds; `low` for NaN.
template <class D>
HWY_INLINE hn::Vec<D> NearestWithin(D d, hn::Vec<D> x, float low, float high) {
  const auto least = hn::Set(d, low), most = hn::Set(d, high);
  x = hn::IfThenElse(hn::Gt(x, least), x, least);
  x = hn::IfThenElse(hn::Gt(x, most), most, x);
  // The addition rounds to integers, because the sum's last bit has value 1.
  const auto magic = hn::Set(d, 12582912.0f);
  return hn::Sub(hn::Add(x, magic), magic);
}
HWY_INLINE int NearestWithin(float x, float low, float high) {
  const hn::CappedTag<float, 1> d;
  return static_cast<int>(
      hn::GetLane(NearestWithin(d, hn::Set(d, x), low, high)));
}
// Parts of blocks are multiples of 8 values, so vectors have at most 8 lanes.
using PartTag = hn::CappedTag<float, 8>;
using PartVec = hn::Vec<PartTag>;
// Converts integers in [0, 256) to bytes.
HWY_INLINE void StoreCodes(PartVec codes, uint8_t* to) {
  const hn::RebindToSigned<PartTag> di;
  const hn::Rebind<uint8_t, PartTag> d8;
  hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(di, codes)), d8, to);
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
  HWY_ALIGN uint8_t codes[kBlock] = {};
  const PartTag d;
  const PartVec one = hn::Set(d, 1.0f), zero = hn::Zero(d);
  for (size_t i = 0; i < kBlock && is_finite; i += hn::Lanes(d)) {
    const PartVec x = hn::LoadU(d, from + i);
    const PartVec v = hn::Mul(hn::Abs(x), hn::Set(d, inverse));
    PartVec c = zero;
    // Values halfway between two codes get the even code.
    for (const float odd : {0.25f, 1.25f, 2.5f, 5.0f}) {
      c = hn::Add(c, hn::IfThenElseZero(hn::Gt(v, hn::Set(d, odd)), one));
    }
    for (const float even : {0.75f, 1.75f, 3.5f}) {
      c = hn::Add(c, hn::IfThenElseZero(hn::Ge(v, hn::Set(d, even)), one));
    }
    const auto is_negative = hn::And(hn::Lt(x, zero), hn::Gt(c, zero));
    const PartVec sign = hn::IfThenElseZero(is_negative, hn::Set(d, 8.0f));
    StoreCodes(hn::Add(c, sign), codes + i);
  }
  for (size_t i = 0; i < kBlock / 2; ++i) {
    to[1 + i] = static_cast<uint8_t>(codes[i] | codes[i + kBlock / 2] << 4);
  }
}

// The scale and minimum of a part of q4_K. Weights are scale * code - min.
struct PartFit {
  float scale, min;
};
// A sum over a part, in eight lanes, with element i in lane i mod 8. The order
// of additions is fixed, because results depend on it.
struct PartSum {
  HWY_ALIGN float lanes[8];
  HWY_INLINE float Total() const {
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  }
};
constexpr size_t kQ4_KPart = 32;

// Writes the nearest codes of (x - low) * inverse. Returns the fit with the
// least squared error for these codes.
HWY_INLINE PartFit FitCodes(const float* x, float low, float inverse,
                            float* codes) {
  const PartTag d;
  PartSum sum_c, sum_cc, sum_x, sum_cx;
  for (size_t j = 0; j < 8; j += hn::Lanes(d)) {
    PartVec c1 = hn::Zero(d), c2 = c1, x1 = c1, cx = c1;
    for (size_t i = j; i < kQ4_KPart; i += 8) {
      const PartVec v = hn::LoadU(d, x + i);
      const PartVec from_low = hn::Sub(v, hn::Set(d, low));
      const PartVec c =
          NearestWithin(d, hn::Mul(from_low, hn::Set(d, inverse)), 0.0f, 15.0f);
      hn::Store(c, d, codes + i);
      c1 = hn::Add(c1, c);
      c2 = hn::Add(c2, hn::Mul(c, c));
      x1 = hn::Add(x1, v);
      cx = hn::Add(cx, hn::Mul(c, v));
    }
    hn::Store(c1, d, sum_c.lanes + j);
    hn::Store(c2, d, sum_cc.lanes + j);
    hn::Store(x1, d, sum_x.lanes + j);
    hn::Store(cx, d, sum_cx.lanes + j);
  }
  const float c1 = sum_c.Total(), c2 = sum_cc.Total();
  const float x1 = sum_x.Total(), cx = sum_cx.Total();
  const float det = 32.0f * c2 - c1 * c1;
  const PartFit fit = {(32.0f * cx - x1 * c1) / det,
                       0.0f - (c2 * x1 - c1 * cx) / det};
  return fit.min < 0.0f ? PartFit{cx / c2, 0.0f} : fit;
}
// Returns the sum of the squared differences between weights and x.
HWY_INLINE float SquaredError(const PartFit& fit, const float* codes,
                              const float* x) {
  const PartTag d;
  PartSum sum;
  for (size_t j = 0; j < 8; j += hn::Lanes(d)) {
    PartVec squares = hn::Zero(d);
    for (size_t i = j; i < kQ4_KPart; i += 8) {
      const PartVec scaled =
          hn::Mul(hn::Load(d, codes + i), hn::Set(d, fit.scale));
      const PartVec error =
          hn::Sub(hn::Sub(scaled, hn::Set(d, fit.min)), hn::LoadU(d, x + i));
      squares = hn::Add(squares, hn::Mul(error, error));
    }
    hn::Store(squares, d, sum.lanes + j);
  }
  return sum.Total();
}
HWY_NOINLINE PartFit FitQ4_KPart(const float* x) {
  const PartTag d;
  PartVec lows = hn::Zero(d), highs = hn::LoadU(d, x);
  for (size_t i = 0; i < kQ4_KPart; i += hn::Lanes(d)) {
    lows = hn::Min(lows, hn::LoadU(d, x + i));
    highs = hn::Max(highs, hn::LoadU(d, x + i));
  }
  const float low = hn::GetLane(hn::MinOfLanes(d, lows));
  const float high = hn::GetLane(hn::MaxOfLanes(d, highs));
  // Computes all fits before their errors, because a fit is a long chain of
  // operations, and the core computes several chains at once.
  constexpr size_t kFits = 5;
  constexpr float kRatios[kFits] = {1.0f, 0.94f, 0.965f, 0.99f, 1.02f};
  HWY_ALIGN float codes[kFits][kQ4_KPart];
  PartFit fits[kFits];
  float errors[kFits];
  // Divides before it subtracts, because high - low may overflow.
  const float first = (high / 15.0f) - (low / 15.0f);
  for (size_t f = 0; f < kFits; ++f) {
    fits[f] = FitCodes(x, low, kRatios[f] / first, codes[f]);
  }
  fits[0] = {first, 0.0f - low};
  for (size_t f = 0; f < kFits; ++f) {
    errors[f] = SquaredError(fits[f], codes[f], x);
  }
  size_t best = 0;
  for (size_t f = 1; f < kFits; ++f) {
    // (For NaNs, the comparisons are false.)
    if (errors[f] < errors[best] && fits[f].scale > 0.0f) best = f;
  }
  return fits[best];
}

HWY_NOINLINE void QuantizeQ4_K(const float* from, uint8_t* to) {
  constexpr size_t kParts = 8, kPart = kQ4_KPart;
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
    HWY_ALIGN uint8_t nibbles[kPart] = {};
    const PartTag df;
    for (size_t i = 0; i < kPart && step > 0.0f; i += hn::Lanes(df)) {
      const PartVec x =
          hn::Add(hn::LoadU(df, from + j * kPart + i), hn::Set(df, offset));
      const PartVec c = hn::Div(x, hn::Set(df, step));
      StoreCodes(NearestWithin(df, c, 0.0f, 15.0f), nibbles + i);
    }
    for (size_t i = 0; i < kPart; ++i) {
      codes[i] = static_cast<uint8_t>(codes[i] | nibbles[i] << (j % 2 * 4));
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
  HWY_ALIGN uint8_t codes[kParts * kPart];
  for (size_t j = 0; j < kParts; ++j) {
    const int s = scale == 0.0f
                      ? 0
                      : NearestWithin(scales[j] / scale * -128.0f, -128, 127);
    to[kScalesAt + j] = static_cast<uint8_t>(s);
    const float step = d * static_cast<float>(s);
    const bool has_step = step > 0.0f || step < 0.0f;
    std::memset(codes + j * kPart, 32, kPart);
    const PartTag df;
    for (size_t i = j * kPart; i < (j + 1) * kPart && has_step;
         i += hn::Lanes(df)) {
      const PartVec c = hn::Div(hn::LoadU(df, from + i), hn::Set(df, step));
      const PartVec with_sign = NearestWithin(df, c, -32.0f, 31.0f);
      StoreCodes(hn::Add(with_sign, hn::Set(df, 32.0f)), codes + i);
    }
  }
  for (size_t half = 0; half < 2; ++half) {
    const uint8_t* const c = codes + 128 * half;
    for (size_t i = 0; i < 64; ++i) {
      to[64 * half + i] = static_cast<uint8_t>((c[i] & 15) | c[i + 64] << 4);
    }
    for (size_t i = 0; i < 32; ++i) {
      to[kHighAt + 32 * half + i] =
          static_cast<uint8_t>(c[i] >> 4 | c[i + 32] >> 4 << 2 |
                               c[i + 64] >> 4 << 4 | c[i + 96] >> 4 << 6);
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
