// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Handles the differences between Highway 1.0.3 and later versions, and between
// Highway's targets, so that no other file has to. It has partial loads and
// stores, masked division, and packing of 32-bit lanes.

// This part is compiled once, not per target.
#ifndef SWITCHYARD_SRC_SIMD_HWY_COMPAT_EXPORT_
#define SWITCHYARD_SRC_SIMD_HWY_COMPAT_EXPORT_

#include "hwy/highway.h"

// HWY_EXPORT for functions that SWITCHYARD_RECORDED defines. A file without
// code for AVX3_DL exports its AVX3 code in that place. See targets.h.
#define SWITCHYARD_HWY_EXPORT HWY_EXPORT
#if (HWY_TARGETS & HWY_AVX3) && !(HWY_TARGETS & HWY_AVX3_DL)
#undef HWY_CHOOSE_AVX3_DL
#define HWY_CHOOSE_AVX3_DL(FUNC) &N_AVX3::FUNC##_AsAvx3Dl
#endif

#endif  // SWITCHYARD_SRC_SIMD_HWY_COMPAT_EXPORT_

#if defined(SWITCHYARD_SRC_SIMD_HWY_COMPAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_HWY_COMPAT_INL_H_
#undef SWITCHYARD_SRC_SIMD_HWY_COMPAT_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_HWY_COMPAT_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// The name of Highway in all kernels.
namespace hn = hwy::HWY_NAMESPACE;

// 1 if masked loads and stores of 32-bit lanes do not touch memory outside of
// the mask. This is 1 for AVX2, although Highway sets HWY_MEM_OPS_MIGHT_FAULT,
// because vmaskmov never faults on a lane that is off. SSE and NEON emulate
// masks with full accesses.
#define SWITCHYARD_MASKED_MEMORY (!HWY_MEM_OPS_MIGHT_FAULT || HWY_CAP_GE256)

// Loads the first n <= Lanes(d) elements from p, and zeros behind them. It
// replaces LoadN, which Highway has from 1.0.6 on. If 32-bit lanes can be
// masked, lanes of 1 and 2 bytes can be masked, too, except on AVX2.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadPartial(D d, const T* HWY_RESTRICT p, size_t n) {
#if SWITCHYARD_MASKED_MEMORY
  if constexpr (sizeof(T) >= 4 || !HWY_MEM_OPS_MIGHT_FAULT) {
    return hn::MaskedLoad(hn::FirstN(d, n), d, p);
  }
#endif
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(buffer, p, n * sizeof(T));
  return hn::Load(d, buffer);
}

// Stores the first n <= Lanes(d) elements to p. It replaces StoreN, which
// Highway has from 1.0.6 on.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StorePartial(hn::Vec<D> v, D d, T* HWY_RESTRICT p, size_t n) {
#if SWITCHYARD_MASKED_MEMORY
  if constexpr (sizeof(T) >= 4 || !HWY_MEM_OPS_MIGHT_FAULT) {
    hn::BlendedStore(v, hn::FirstN(d, n), d, p);
    return;
  }
#endif
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, buffer);
  std::memcpy(p, buffer, n * sizeof(T));
}

// MinOrNaN() and MaxOrNaN() return the minimum or maximum of x and a bound, or
// NaN if x is NaN. The bound is not NaN. This is a single instruction on x86
// only, because Highway's Min and Max are minnm and maxnm on AArch64, which
// return the bound for a NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MinOrNaN(D /*d*/, V bound, V x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Min(bound, x);  // x86 returns the second operand for NaNs
#else
  return hn::IfThenElse(hn::Lt(bound, x), bound, x);
#endif
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V MaxOrNaN(D /*d*/, V bound, V x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(bound, x);
#else
  // Hides the bound from Clang 14, which returns -0 for x = +0, bound = -0.
  asm volatile("" : "+m"(bound));
  return hn::IfThenElse(hn::Gt(bound, x), bound, x);
#endif
}

// Returns the largest lane of v, which has no NaN. Highway's own function
// treats infinities like the largest finite number on targets without vectors.
template <class D>
HWY_INLINE hn::TFromD<D> LargestLane(D d, hn::Vec<D> v) {
#if HWY_TARGET == HWY_EMU128
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  hn::Store(v, d, lanes);
  return *std::max_element(lanes, lanes + hn::Lanes(d));
#else
  return hn::GetLane(hn::MaxOfLanes(d, v));
#endif
}

// Returns m ? no : a / b. On AVX-512, this is one masked division, which
// compilers do not make from a division and a blend. (It makes SiLU in L1 take
// 0.965 times as long.) Highway has MaskedDivOr from 1.2 on, but on other ISAs
// MaskedDivOr also inverts the mask, and takes 1.02 times as long.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V DivUnless(D /*d*/, hn::Mask<D> m, V no, V a, V b) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if constexpr (sizeof(V) == 64) {
    const __mmask16 divide = _knot_mask16(m.raw);
    return V{_mm512_mask_div_ps(no.raw, divide, a.raw, b.raw)};
  }
#endif
  return hn::IfThenElse(m, no, hn::Div(a, b));
}

// InterleaveWhole() stores the first half of a[0], b[0], a[1], b[1], ... to a,
// and the second half to b.
#define SWITCHYARD_INTERLEAVES (HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE)
#if SWITCHYARD_INTERLEAVES
template <class D, class V = hn::Vec<D>>
HWY_INLINE void InterleaveWhole(D d, V& a, V& b) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if constexpr (sizeof(V) == 64) {
    const hn::Full512<int32_t> di;
    const auto i = hn::Iota(di, 0);
    const auto half = hn::ShiftRight<1>(i);
    const auto low = hn::OddEven(hn::Add(half, hn::Set(di, 16)), half);
    const auto high = hn::Add(low, hn::Set(di, 8));
    const V both = a;
    a.raw = _mm512_permutex2var_ps(both.raw, low.raw, b.raw);
    b.raw = _mm512_permutex2var_ps(both.raw, high.raw, b.raw);
    return;
  }
#endif
  const V low = hn::InterleaveLower(d, a, b);
  const V high = hn::InterleaveUpper(d, a, b);
  if constexpr (sizeof(V) == 16) {
    a = low;
    b = high;
  } else {
    a = hn::ConcatLowerLower(d, high, low);
    b = hn::ConcatUpperUpper(d, high, low);
  }
}
#endif

// Replaces NaNs by 0 on targets without vectors. NearestSmallInt() and
// TruncateSmallInt() may return any integer for a NaN, but there Highway would
// cast the NaN, which C++ leaves undefined.
template <class D>
HWY_INLINE hn::Vec<D> WithoutNaN(D /*d*/, hn::Vec<D> v) {
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  return hn::IfThenElseZero(hn::Eq(v, v), v);
#else
  return v;
#endif
}
// NearestSmallInt() rounds values to nearest, ties to even;
// TruncateSmallInt() rounds towards zero. The results must fit in int32.
// (Highway's conversions take two more instructions, because they handle all
// values.)
template <class D, class DI = hn::RebindToSigned<D>>
HWY_INLINE hn::Vec<DI> NearestSmallInt(D d, hn::Vec<D> v) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
#if HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(v) == 64) return {_mm512_cvtps_epi32(v.raw)};
#endif
#if HWY_TARGET <= HWY_AVX2
  if constexpr (sizeof(v) == 32) return {_mm256_cvtps_epi32(v.raw)};
#endif
#endif
  return hn::NearestInt(WithoutNaN(d, v));
}
template <class D, class DI = hn::RebindToSigned<D>>
HWY_INLINE hn::Vec<DI> TruncateSmallInt(D d, hn::Vec<D> v) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
#if HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(v) == 64) return {_mm512_cvttps_epi32(v.raw)};
#endif
#if HWY_TARGET <= HWY_AVX2
  if constexpr (sizeof(v) == 32) return {_mm256_cvttps_epi32(v.raw)};
#endif
#endif
  return hn::ConvertTo(DI(), WithoutNaN(d, v));
}

// Stores the upper 16 bits of the 32-bit lanes of a, then of b.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void StoreUpperHalves(V a, V b, D d, uint16_t* p) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if constexpr (sizeof(V) == 64) {
    const hn::Full512<uint16_t> d16;
    const auto odd = hn::Add(hn::Iota(d16, 0), hn::Iota(d16, 1));
    _mm512_storeu_si512(p, _mm512_permutex2var_epi16(a.raw, odd.raw, b.raw));
    return;
  }
#elif HWY_TARGET == HWY_AVX2
  if constexpr (sizeof(V) == 32) {
    const __m256i both = _mm256_packus_epi32(_mm256_srli_epi32(a.raw, 16),
                                             _mm256_srli_epi32(b.raw, 16));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm256_permute4x64_epi64(both, 0xD8));
    return;
  }
#endif
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToSigned<D> di;
  const auto upper = [&](V v) HWY_ATTR {
    return hn::DemoteTo(d16, hn::BitCast(di, hn::ShiftRight<16>(v)));
  };
  hn::StoreU(upper(a), d16, p);
  hn::StoreU(upper(b), d16, p + hn::Lanes(d));
}

// Stores the lowest bytes of the 32-bit lanes of four vectors, in order. The
// lanes are in the range of int8 (kSigned) or of uint8.
template <bool kSigned, class D, class V = hn::Vec<D>>
HWY_INLINE void StoreBytes(V a, V b, V c, V e, D di, uint8_t* p) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if constexpr (sizeof(V) == 64) {
    const __m512i ab = _mm512_packs_epi32(a.raw, b.raw);
    const __m512i ce = _mm512_packs_epi32(c.raw, e.raw);
    const __m512i all =
        kSigned ? _mm512_packs_epi16(ab, ce) : _mm512_packus_epi16(ab, ce);
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, all));
    return;
  }
#elif HWY_TARGET == HWY_AVX2
  if constexpr (sizeof(V) == 32) {
    const __m256i ab = _mm256_packs_epi32(a.raw, b.raw);
    const __m256i ce = _mm256_packs_epi32(c.raw, e.raw);
    const __m256i all =
        kSigned ? _mm256_packs_epi16(ab, ce) : _mm256_packus_epi16(ab, ce);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm256_permutevar8x32_epi32(all, order));
    return;
  }
#endif
  using T = std::conditional_t<kSigned, int8_t, uint8_t>;
  const hn::Rebind<T, D> d8;
  const size_t N = hn::Lanes(di);
  T* const to = reinterpret_cast<T*>(p);
  hn::StoreU(hn::DemoteTo(d8, a), d8, to);
  hn::StoreU(hn::DemoteTo(d8, b), d8, to + N);
  hn::StoreU(hn::DemoteTo(d8, c), d8, to + 2 * N);
  hn::StoreU(hn::DemoteTo(d8, e), d8, to + 3 * N);
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_HWY_COMPAT_INL_H_
