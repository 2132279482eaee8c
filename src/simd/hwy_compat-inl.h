// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The one place that knows what differs between Highway 1.0.3 and later ones,
// and between its targets: partial loads and stores, masked division.

// Per-target include guard
#if defined(SWITCHYARD_SRC_SIMD_HWY_COMPAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_HWY_COMPAT_INL_H_
#undef SWITCHYARD_SRC_SIMD_HWY_COMPAT_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_HWY_COMPAT_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Whether masked 32-bit loads and stores leave memory outside the mask alone.
// AVX2 counts, although Highway says HWY_MEM_OPS_MIGHT_FAULT: its vmaskmov
// never faults on a lane that is off. SSE and NEON emulate with full accesses.
#undef SWITCHYARD_MASKED_MEMORY
#if !HWY_MEM_OPS_MIGHT_FAULT || HWY_CAP_GE256
#define SWITCHYARD_MASKED_MEMORY 1
#else
#define SWITCHYARD_MASKED_MEMORY 0
#endif

// The first n <= Lanes(d) elements from p, zeros behind. LoadN, before 1.0.6.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadPartial(D d, const T* HWY_RESTRICT p, size_t n) {
  static_assert(sizeof(T) == 4, "masked memory is safe for 32-bit lanes only");
#if SWITCHYARD_MASKED_MEMORY
  return hn::MaskedLoad(hn::FirstN(d, n), d, p);
#else
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(buffer, p, n * sizeof(T));
  return hn::Load(d, buffer);
#endif
}

// Stores the first n <= Lanes(d) elements to p. StoreN, before 1.0.6.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StorePartial(hn::Vec<D> v, D d, T* HWY_RESTRICT p, size_t n) {
  static_assert(sizeof(T) == 4, "masked memory is safe for 32-bit lanes only");
#if SWITCHYARD_MASKED_MEMORY
  hn::BlendedStore(v, hn::FirstN(d, n), d, p);
#else
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, buffer);
  std::memcpy(p, buffer, n * sizeof(T));
#endif
}

// m ? no : a / b. In AVX-512 one masked division, which no compiler makes of a
// division and a blend (SiLU in L1: 0.965 of the time); MaskedDivOr has it from
// Highway 1.2 on, but would cost the others an inversion of the mask (1.02).
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

}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_HWY_COMPAT_INL_H_
