// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The quantised formats: how a group's scale is computed and stored.

#if defined(SWITCHYARD_SRC_SIMD_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_FORMATS_INL_H_
#undef SWITCHYARD_SRC_SIMD_FORMATS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_FORMATS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "switchyard/types.h"

#include "hwy/highway.h"

#include "src/simd/quantize-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Returns the sum of a row's codes, after subtracting 128 from codes of u8.
template <class Code>
HWY_INLINE int32_t SumOf(const uint8_t* codes, size_t n) {
  int32_t sum = 0;
  for (size_t i = 0; i < n; ++i) {
    sum += Code::kSigned ? static_cast<int8_t>(codes[i])
                         : codes[i] - int32_t{Code::kZero};
  }
  return sum;
}

// RatioScales and PowerScales are for formats with codes in one matrix and
// scales in another.

// The scale is the largest magnitude, divided by kMax.
template <class Code>
struct RatioScales {
  using T = float;

  static HWY_INLINE bool Put(size_t groups, Scales& s, float* to) {
    const bool bad =
        SetScales(groups, s,
                  [](QuantizeTag d, QuantizeVec largest, QuantizeVec& scale,
                     QuantizeVec& inverse) HWY_ATTR {
                    const QuantizeVec max = hn::Set(d, Code::kMax);
                    scale = hn::Div(largest, max);
                    inverse = FiniteRatio(max, largest);
                  });
    std::memcpy(to, s.scale, groups * sizeof(float));
    return bad;
  }
};

// The scale is the power of two just below (or equal to) the largest magnitude,
// divided by 2^kMaxExponent.
template <class Code>
struct PowerScales {
  using T = uint8_t;

  static HWY_INLINE bool Put(size_t groups, Scales& s, uint8_t* to) {
    bool bad = false;
    for (size_t g = 0; g < groups; ++g) {
      const int32_t exponent = (s.largest[g] >> 23) - Code::kMaxExponent;
      const int32_t bits = HWY_MAX(exponent, 0);
      const int32_t inverse = (254 - bits) << 23;
      std::memcpy(&s.inverse[g], &inverse, sizeof(inverse));
      const bool this_one = s.largest[g] >= kInfinityBits;
      to[g] = static_cast<uint8_t>(this_one ? 255 : bits);
      bad |= this_one;
    }
    return bad;
  }
};

// GGML's formats: a block stores its scale next to its codes.

struct Q8_0 {
  using Block = BlockQ8_0;
  using Code = CodeI8Away;

  static HWY_INLINE bool SetAll(const float*, size_t groups, Scales& s) {
    return SetScales(groups, s,
                     [](QuantizeTag d, QuantizeVec largest, QuantizeVec& scale,
                        QuantizeVec& inverse) HWY_ATTR {
                       scale = hn::Div(largest, hn::Set(d, Code::kMax));
                       inverse = FiniteRatio(hn::Set(d, 1.0f), scale);
                     });
  }
  static HWY_INLINE void Finish(size_t groups, const Scales& s, Block* to) {
    HWY_ALIGN Float16 scales[kMaxGroups];
    FromFloats(s.scale, groups, scales);
    for (size_t g = 0; g < groups; ++g) to[g].d = scales[g];
  }
};
struct Q8_1 {
  using Block = BlockQ8_1;
  using Code = CodeI8Away;

  static HWY_INLINE bool SetAll(const float* p, size_t groups, Scales& s) {
    return Q8_0::SetAll(p, groups, s);
  }
  static HWY_INLINE void Finish(size_t groups, const Scales& s, Block* to) {
    HWY_ALIGN Float16 scales[kMaxGroups];
    HWY_ALIGN Float16 sums[kMaxGroups];
    HWY_ALIGN float products[kMaxGroups];
    for (size_t g = 0; g < groups; ++g) {
      const auto* const codes = reinterpret_cast<const uint8_t*>(to[g].qs);
      products[g] = static_cast<float>(SumOf<Code>(codes, 32)) * s.scale[g];
    }
    FromFloats(s.scale, groups, scales);
    FromFloats(products, groups, sums);
    for (size_t g = 0; g < groups; ++g) {
      to[g].d = scales[g];
      to[g].s = sums[g];
    }
  }
};
struct Q8_K {
  using Block = BlockQ8_K;
  using Code = CodeI8;

  // The first value of the largest magnitude gets code -127.
  static HWY_INLINE bool SetAll(const float* p, size_t groups, Scales& s) {
    bool bad = false;
    for (size_t g = 0; g < groups; ++g) {
      s.scale[g] = s.inverse[g] = 0.0f;
      if (s.largest[g] == 0) continue;
      if (s.largest[g] >= kInfinityBits) {
        s.scale[g] = std::numeric_limits<float>::quiet_NaN();
        bad = true;
        continue;
      }
      const float inverse = -127.0f / FirstOf(p + g * 256, s.largest[g]);
      s.scale[g] = 1.0f / inverse;
      const float most = std::numeric_limits<float>::max();
      s.inverse[g] = inverse >= -most && inverse <= most ? inverse : 0.0f;
    }
    return bad;
  }
  static HWY_INLINE void Finish(size_t groups, const Scales& s, Block* to) {
    for (size_t g = 0; g < groups; ++g) {
      to[g].d = s.scale[g];
      const auto* const codes = reinterpret_cast<const uint8_t*>(to[g].qs);
      for (size_t i = 0; i < 16; ++i) {
        to[g].bsums[i] = static_cast<int16_t>(SumOf<Code>(codes + 16 * i, 16));
      }
    }
  }

 private:
  static HWY_INLINE float FirstOf(const float* p, int32_t magnitude) {
    const QuantizeTag d;
    const QuantizeIntTag di;
    for (size_t i = 0;; i += hn::Lanes(d)) {
      const auto is =
          hn::Eq(Magnitude(hn::LoadU(d, p + i)), hn::Set(di, magnitude));
      const intptr_t at = hn::FindFirstTrue(di, is);
      if (at >= 0) return p[i + static_cast<size_t>(at)];
    }
  }
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_FORMATS_INL_H_
