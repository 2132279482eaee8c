// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Converts floats to and from types of fewer bits. Rounds to nearest even and
// keeps denormals, on every ISA and with every Highway version. Uses integer
// arithmetic, or native instructions that give the same bits. (Highway's bf16
// truncates before 1.2. Its f16 without native instructions flushes denormals
// and rounds differently.)

#if defined(SWITCHYARD_SRC_SIMD_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_FLOATS_INL_H_
#undef SWITCHYARD_SRC_SIMD_FLOATS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_FLOATS_INL_H_
#endif

#include <cstdint>

#include "src/simd/targets.h"
#include "switchyard/types.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// 1 if the target has instructions for f16 (F16C on x86, or Arm's). On all 2^32
// floats, they give the bits of integer arithmetic, except for payloads of
// NaNs.
#undef SWITCHYARD_NATIVE_F16
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)) || \
    HWY_ARCH_ARM_A64
#define SWITCHYARD_NATIVE_F16 1
#else
#define SWITCHYARD_NATIVE_F16 0
#endif

// Returns bf16 in the upper halves of 32-bit lanes, and garbage in the others.
template <class D, class DU = hn::RebindToUnsigned<D>>
HWY_INLINE hn::Vec<DU> ToBF16(D /*d*/, hn::Vec<D> v) {
  const DU du;
  const auto bits = hn::BitCast(du, v);
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  const auto half = hn::IfThenElse(hn::TestBit(bits, hn::Set(du, 0x10000)),
                                   hn::Set(du, 0x8000), hn::Set(du, 0x7FFF));
  const auto rounded = hn::Add(bits, half);
#else
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7FFF)), odd);
#endif
  // Replaces NaNs, because rounding could carry them into an infinity or zero.
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)),
                        hn::Set(du, 0x7FC00000), rounded);
}

// 1 to use AVX512_BF16, which converts two vectors with one instruction, not
// 11. Highway 1.0.3 has no target for it, so a file's best AVX-512 code asks
// whether the CPU has it. The instruction gives the same bits, but flushes
// denormals, so only vectors without denormals use it.
#define SWITCHYARD_NATIVE_BF16                   \
  (HWY_ARCH_X86 && (HWY_TARGET <= HWY_AVX3_DL || \
                    (HWY_TARGET == HWY_AVX3 && !(HWY_TARGETS & HWY_AVX3_DL))))
#if SWITCHYARD_NATIVE_BF16
// Converts the floats of a, then the floats of b. Returns false if the caller
// has to use ToBF16() instead.
HWY_INLINE bool NativeToBF16(hn::Vec512<float> a, hn::Vec512<float> b,
                             hn::Vec512<uint16_t>& to) {
  if (!g_cpu_has_bf16) return false;
  asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(to.raw) : "v"(b.raw), "v"(a.raw));
  constexpr int kDenormal = 0x20;
  return HWY_LIKELY((_mm512_fpclass_ps_mask(a.raw, kDenormal) |
                     _mm512_fpclass_ps_mask(b.raw, kDenormal)) == 0);
}
#endif

// Converts f16, zero-extended to 32 bits, to floats.
template <class D, class VU>
HWY_INLINE hn::Vec<D> FromF16(D d, VU bits) {
#if SWITCHYARD_NATIVE_F16
  const hn::Rebind<uint16_t, D> narrow;
  const auto half =
      hn::DemoteTo(narrow, hn::BitCast(hn::RebindToSigned<D>(), bits));
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), half));
#else
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)));
  const auto size = hn::And(bits, hn::Set(du, 0x7FFF));
  const auto signed_size = hn::BitCast(di, size);
  // Denormals are multiples of 2^-24. The exponents of infinities and NaNs have
  // only ones, in f16 and in float.
  const auto denormal = hn::BitCast(
      du, hn::Mul(hn::ConvertTo(d, signed_size), hn::Set(d, 0x1p-24f)));
  auto value = hn::Add(hn::ShiftLeft<13>(size), hn::Set(du, 112u << 23));
  const auto special = hn::Gt(signed_size, hn::Set(di, 0x7BFF));
  value = hn::Add(value, hn::IfThenElseZero(hn::RebindMask(du, special),
                                            hn::Set(du, 112u << 23)));
  const auto small = hn::Lt(signed_size, hn::Set(di, 0x0400));
  value = hn::IfThenElse(hn::RebindMask(du, small), denormal, value);
  return hn::BitCast(d, hn::Or(value, sign));
#endif
}

template <class D, class D16 = hn::Rebind<uint16_t, D>>
HWY_INLINE hn::Vec<D16> ToF16(D d, hn::Vec<D> v) {
  const D16 narrow;
#if SWITCHYARD_NATIVE_F16
  (void)d;
  const hn::Rebind<hwy::float16_t, D> half;
  return hn::BitCast(narrow, hn::DemoteTo(half, v));
#else
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(du, v);
  const auto size = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
  const auto signed_size = hn::BitCast(di, size);
  const auto odd = hn::And(hn::ShiftRight<13>(size), hn::Set(du, 1));
  auto value = hn::Sub(
      hn::ShiftRight<13>(hn::Add(hn::Add(size, hn::Set(du, 0xFFF)), odd)),
      hn::Set(du, 112u << 10));
  // Adding 1/2 rounds to a denormal of f16, because floats in [0.5, 1) have the
  // spacing of f16's denormals.
  const auto half = hn::Set(d, 0.5f);
  const auto denormal =
      hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, size), half)),
              hn::BitCast(du, half));
  const auto small = hn::Lt(signed_size, hn::Set(di, 113 << 23));
  value = hn::IfThenElse(hn::RebindMask(du, small), denormal, value);
  const auto large = hn::Gt(signed_size, hn::Set(di, 0x477FFFFF));
  value = hn::IfThenElse(hn::RebindMask(du, large), hn::Set(du, 0x7C00), value);
  value = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Set(du, 0x7E00),
                         value);
  value = hn::Or(value, hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000)));
  return hn::DemoteTo(narrow, hn::BitCast(di, value));
#endif
}

// Rounds to the nearest number of a type, which is returned as a float.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V RoundTo(Type type, D d, V v) {
  const hn::RebindToUnsigned<D> du;
  switch (type) {
    case Type::kBF16:
      return hn::BitCast(d, hn::And(ToBF16(d, v), hn::Set(du, 0xFFFF0000u)));
    case Type::kF16:
#if SWITCHYARD_NATIVE_F16
      return hn::PromoteTo(
          d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), ToF16(d, v)));
#else
      return FromF16(d, hn::PromoteTo(du, ToF16(d, v)));
#endif
    default:
      return v;
  }
}

// Converts floats of 8 bits: a sign, kMantissa bits of mantissa, and the
// exponent in the other bits. Each 8-bit float is in the low byte of a 32-bit
// lane.
template <int kMantissa, int kBias>
struct Float8 {
  // The exponent of the smallest normal number, as float stores it.
  static constexpr uint32_t kLowest = 128 - kBias;

  // Converts floats that are finite and that round to at most FormatOf::kMax.
  template <class D, class DU = hn::RebindToUnsigned<D>>
  static HWY_INLINE hn::Vec<DU> To(D d, hn::Vec<D> v) {
    const DU du;
    const hn::RebindToSigned<D> di;
    const auto bits = hn::BitCast(du, v);
    const auto size = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
    const auto exponent = hn::BitCast(
        du, hn::Max(hn::BitCast(di, hn::And(bits, hn::Set(du, 0x7F800000))),
                    hn::Set(di, static_cast<int32_t>(kLowest << 23))));
    // `magic` is a float with the spacing of the result. So adding it rounds,
    // and leaves mantissa and hidden bit in the low bits of the sum.
    const auto magic =
        hn::Add(exponent, hn::Set(du, uint32_t{23 - kMantissa} << 23));
    const auto sum = hn::Add(hn::BitCast(d, size), hn::BitCast(d, magic));
    const auto mantissa = hn::Sub(hn::BitCast(du, sum), magic);
    const auto code =
        hn::Add(mantissa, hn::Sub(hn::ShiftRight<23 - kMantissa>(exponent),
                                  hn::Set(du, kLowest << kMantissa)));
    return hn::Or(code, hn::And(hn::ShiftRight<24>(bits), hn::Set(du, 0x80)));
  }

  template <class D, class VU>
  static HWY_INLINE hn::Vec<D> From(D d, VU bits) {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const auto sign = hn::ShiftLeft<24>(hn::And(bits, hn::Set(du, 0x80)));
    const auto size = hn::And(bits, hn::Set(du, 0x7F));
    const auto signed_size = hn::BitCast(di, size);
    // Denormals are multiples of the smallest denormal.
    const auto denormal = hn::BitCast(
        du, hn::Mul(hn::ConvertTo(d, signed_size),
                    hn::BitCast(d, hn::Set(du, (kLowest - kMantissa) << 23))));
    auto value = hn::Add(hn::ShiftLeft<23 - kMantissa>(size),
                         hn::Set(du, (kLowest - 1) << 23));
    // e4m3 has one NaN and no infinity; e5m2 has NaNs and infinities.
    constexpr int32_t kFinite = kMantissa == 3 ? 0x7E : 0x7B;
    const auto special = hn::Gt(signed_size, hn::Set(di, kFinite));
    const auto as_float = kMantissa == 3
                              ? hn::Set(du, 0x7FC00000)
                              : hn::Or(hn::ShiftLeft<23 - kMantissa>(size),
                                       hn::Set(du, 0x7F800000));
    value = hn::IfThenElse(hn::RebindMask(du, special), as_float, value);
    const auto small = hn::Lt(signed_size, hn::Set(di, 1 << kMantissa));
    value = hn::IfThenElse(hn::RebindMask(du, small), denormal, value);
    return hn::BitCast(d, hn::Or(value, sign));
  }
};
template <class T>
struct FormatOf;
template <>
struct FormatOf<Float8E4M3> : Float8<3, 7> {
  static constexpr float kMax = 448.0f;
  static constexpr int kMaxExponent = 8;
};
template <>
struct FormatOf<Float8E5M2> : Float8<2, 15> {
  static constexpr float kMax = 57344.0f;
  static constexpr int kMaxExponent = 15;
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_FLOATS_INL_H_
