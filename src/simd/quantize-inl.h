// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Quantises floats: finds each group's largest magnitude, then its scale, then
// the codes. Each step is a pass over a tile in the L1 cache.

#if defined(SWITCHYARD_SRC_SIMD_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_QUANTIZE_INL_H_
#undef SWITCHYARD_SRC_SIMD_QUANTIZE_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_QUANTIZE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"

#include "src/simd/floats-inl.h"
#include "src/simd/hwy_compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Vectors with a number of lanes that divides 32, the smallest group size.
using QuantizeTag = hn::CappedTag<float, 32>;
using QuantizeIntTag = hn::RebindToSigned<QuantizeTag>;
using QuantizeVec = hn::Vec<QuantizeTag>;
using QuantizeIntVec = hn::Vec<QuantizeIntTag>;

// The most groups that get scales in one pass. Arrays of groups are longer,
// because whole vectors are stored to them.
constexpr size_t kMaxGroups = 32;

// Magnitudes are compared as bits: finite numbers < infinity < NaN.
constexpr int32_t kInfinityBits = 0x7F800000;
HWY_INLINE QuantizeIntVec Magnitude(QuantizeVec v) {
  const QuantizeIntTag di;
  return hn::And(hn::BitCast(di, v), hn::Set(di, 0x7FFFFFFF));
}

// Returns the bits of the largest magnitude of n floats.
HWY_INLINE int32_t LargestOf(const float* HWY_RESTRICT p, size_t n) {
  const QuantizeTag d;
  const QuantizeIntTag di;
  const size_t N = hn::Lanes(d);
  QuantizeIntVec m0 = hn::Zero(di), m1 = m0, m2 = m0, m3 = m0;
  size_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    m0 = hn::Max(m0, Magnitude(hn::LoadU(d, p + i)));
    m1 = hn::Max(m1, Magnitude(hn::LoadU(d, p + i + N)));
    m2 = hn::Max(m2, Magnitude(hn::LoadU(d, p + i + 2 * N)));
    m3 = hn::Max(m3, Magnitude(hn::LoadU(d, p + i + 3 * N)));
  }
  for (; i < n; i += N) {
    const size_t count = HWY_MIN(N, n - i);
    m0 = hn::Max(m0, Magnitude(LoadPartial(d, p + i, count)));
  }
  m0 = hn::Max(hn::Max(m0, m1), hn::Max(m2, m3));
  return hn::GetLane(hn::MaxOfLanes(di, m0));
}

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
// Returns four lanes. Lane i is the largest of lanes i, i + 4, i + 8, ... of v.
template <class D>
HWY_INLINE hn::Vec<hn::Full128<int32_t>> FoldToFour(D /* tag */, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return FoldToFour(half,
                      hn::Max(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}
// Writes LargestOf() for each of four groups of 32 floats. It folds the lanes
// of all four groups at once (13 instructions instead of 36 on AVX-512).
HWY_INLINE void LargestOfFour(const float* HWY_RESTRICT p, int32_t* to) {
  const QuantizeTag d;
  const QuantizeIntTag di;
  const hn::RepartitionToWide<QuantizeIntTag> d64;
  const auto largest = [&](const float* HWY_RESTRICT group) HWY_ATTR {
    QuantizeIntVec a = Magnitude(hn::LoadU(d, group));
    for (size_t i = hn::Lanes(d); i < 32; i += hn::Lanes(d)) {
      a = hn::Max(a, Magnitude(hn::LoadU(d, group + i)));
    }
    return a;
  };
  const auto fold = [&](QuantizeIntVec x, QuantizeIntVec y) HWY_ATTR {
    return hn::BitCast(d64, hn::Max(hn::InterleaveLower(di, x, y),
                                    hn::InterleaveUpper(di, x, y)));
  };
  const auto ab = fold(largest(p), largest(p + 32));
  const auto ce = fold(largest(p + 64), largest(p + 96));
  const QuantizeIntVec four =
      hn::Max(hn::BitCast(di, hn::InterleaveLower(d64, ab, ce)),
              hn::BitCast(di, hn::InterleaveUpper(d64, ab, ce)));
  hn::StoreU(FoldToFour(di, four), hn::Full128<int32_t>(), to);
}
#endif

// Writes LargestOf() for each group of `group` floats (up to kMaxGroups).
HWY_INLINE void LargestOfGroups(const float* HWY_RESTRICT p, size_t n,
                                size_t group, int32_t* HWY_RESTRICT to) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
  if (group == 32) {
    for (; i + 128 <= n; i += 128, to += 4) LargestOfFour(p + i, to);
  }
#endif
  for (; i < n; i += group) *to++ = LargestOf(p + i, HWY_MIN(group, n - i));
}

// The largest magnitudes and the scales of a tile's groups.
struct Scales {
  HWY_ALIGN int32_t largest[kMaxGroups + hn::MaxLanes(QuantizeTag())];
  HWY_ALIGN float scale[kMaxGroups + hn::MaxLanes(QuantizeTag())];
  HWY_ALIGN float inverse[kMaxGroups + hn::MaxLanes(QuantizeTag())];
};

// Returns a / b, or 0 if that is not finite or b = 0.
HWY_INLINE QuantizeVec FiniteRatio(QuantizeVec a, QuantizeVec b) {
  const QuantizeTag d;
  const auto zero = hn::Eq(b, hn::Zero(d));
  const QuantizeVec ratio =
      hn::Div(a, hn::IfThenElse(zero, hn::Set(d, 1.0f), b));
  const auto finite =
      hn::Le(hn::Abs(ratio), hn::Set(d, std::numeric_limits<float>::max()));
  return hn::IfThenElseZero(hn::AndNot(zero, finite), ratio);
}

// Calls set(d, largest, scale, inverse) for vectors of groups. If a group has
// a NaN or an infinity, its scale becomes NaN, and SetScales() returns true.
template <class Set>
HWY_INLINE bool SetScales(size_t groups, Scales& s, const Set& set) {
  const QuantizeTag d;
  const QuantizeIntTag di;
  const size_t N = hn::Lanes(d);
  for (size_t i = groups; i % N != 0; ++i) s.largest[i] = 0;
  bool any = false;
  for (size_t i = 0; i < groups; i += N) {
    const QuantizeIntVec largest = hn::Load(di, s.largest + i);
    QuantizeVec scale, inverse;
    set(d, hn::BitCast(d, largest), scale, inverse);
    const auto bad = hn::Gt(largest, hn::Set(di, kInfinityBits - 1));
    any |= !hn::AllFalse(di, bad);
    hn::Store(hn::IfThenElse(
                  hn::RebindMask(d, bad),
                  hn::Set(d, std::numeric_limits<float>::quiet_NaN()), scale),
              d, s.scale + i);
    hn::Store(inverse, d, s.inverse + i);
  }
  return any;
}

// The kinds of codes. Encode() returns the code of a scaled value in the low
// byte of a 32-bit lane. kSigned: the code is an int8.
struct CodeI8 {
  static constexpr bool kSigned = true;
  static constexpr uint8_t kZero = 0;
  static constexpr float kMax = 127.0f;
  // Needs no clamp: a magnitude times 127 / largest rounds to <= 127.
  static HWY_INLINE QuantizeIntVec Encode(QuantizeVec v) {
    return NearestSmallInt(QuantizeTag(), v);
  }
};
struct CodeU8 {
  static constexpr bool kSigned = false;
  static constexpr uint8_t kZero = 128;
  static constexpr float kMax = 127.0f;
  static HWY_INLINE QuantizeIntVec Encode(QuantizeVec v) {
    const QuantizeIntTag di;
    return hn::Add(NearestSmallInt(QuantizeTag(), v), hn::Set(di, 128));
  }
};
// Rounds halves away from zero, as GGML's roundf does.
struct CodeI8Away {
  static constexpr bool kSigned = true;
  static constexpr uint8_t kZero = 0;
  static constexpr float kMax = 127.0f;
  static HWY_INLINE QuantizeIntVec Encode(QuantizeVec v) {
    const QuantizeTag d;
    // `half` is just below 1/2, because 1/2 would round up values just below
    // 1/2.
    const QuantizeVec half = hn::Set(d, 0x1.fffffep-2f);
    return TruncateSmallInt(d, hn::Add(v, hn::CopySignToAbs(half, v)));
  }
};
template <class Float8>
struct CodeF8 {
  static constexpr bool kSigned = false;
  static constexpr uint8_t kZero = 0;
  static constexpr float kMax = Float8::kMax;
  static HWY_INLINE QuantizeIntVec Encode(QuantizeVec v) {
    return hn::BitCast(QuantizeIntTag(), Float8::To(QuantizeTag(), v));
  }
};
// CodeF8 for values that may be above kMax, which are clamped to it.
template <class Float8>
struct CodeMx : CodeF8<Float8> {
  static constexpr int kMaxExponent = Float8::kMaxExponent;
  static HWY_INLINE QuantizeIntVec Encode(QuantizeVec v) {
    const QuantizeTag d;
    const QuantizeVec max = hn::Set(d, Float8::kMax);
    return CodeF8<Float8>::Encode(hn::Min(hn::Max(v, hn::Neg(max)), max));
  }
};

// Stores the codes of n floats. With kGroups, float i is multiplied by
// inverse[i >> shift], and groups have 32 or more floats. Without kGroups, all
// floats are multiplied by inverse[0].
template <class Code, bool kGroups>
HWY_INLINE void PutCodes(const float* HWY_RESTRICT p, size_t n,
                         const float* HWY_RESTRICT inverse, size_t shift,
                         uint8_t* HWY_RESTRICT to) {
  const QuantizeTag d;
  const QuantizeIntTag di;
  const size_t N = hn::Lanes(d);
  const QuantizeVec one = hn::Set(d, inverse[0]);
  size_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    QuantizeVec s0 = one, s1 = one, s2 = one, s3 = one;
    if (kGroups) {
      s0 = hn::Set(d, inverse[i >> shift]);
      s1 = hn::Set(d, inverse[(i + N) >> shift]);
      s2 = hn::Set(d, inverse[(i + 2 * N) >> shift]);
      s3 = hn::Set(d, inverse[(i + 3 * N) >> shift]);
    }
    const auto c0 = Code::Encode(hn::Mul(hn::LoadU(d, p + i), s0));
    const auto c1 = Code::Encode(hn::Mul(hn::LoadU(d, p + i + N), s1));
    const auto c2 = Code::Encode(hn::Mul(hn::LoadU(d, p + i + 2 * N), s2));
    const auto c3 = Code::Encode(hn::Mul(hn::LoadU(d, p + i + 3 * N), s3));
    StoreBytes<Code::kSigned>(c0, c1, c2, c3, di, to + i);
  }
  for (; i < n; i += N) {
    const size_t count = HWY_MIN(N, n - i);
    const QuantizeVec s = kGroups ? hn::Set(d, inverse[i >> shift]) : one;
    const QuantizeIntVec c =
        Code::Encode(hn::Mul(LoadPartial(d, p + i, count), s));
    HWY_ALIGN int32_t codes[hn::MaxLanes(QuantizeTag())];
    hn::Store(c, di, codes);
    for (size_t j = 0; j < count; ++j) {
      to[i + j] = static_cast<uint8_t>(codes[j]);
    }
  }
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_QUANTIZE_INL_H_
