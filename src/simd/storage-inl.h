// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Loads row data as vectors of float, and stores vectors of float as row data.
// All loads and stores of rows are here.

#if defined(SWITCHYARD_SRC_SIMD_STORAGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_STORAGE_INL_H_
#undef SWITCHYARD_SRC_SIMD_STORAGE_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_STORAGE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "switchyard/types.h"

#include "hwy/highway.h"

#include "src/simd/floats-inl.h"
#include "src/simd/hwy_compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Loads and stores elements of type T at any address. The partial forms handle
// only the first n <= Lanes(d) elements; a partial load gives zeros behind
// them. Types that are only stored in whole rows (rows.cc) have no stores here.
template <class T>
struct Storage;

// The base of types for which memory order is cheapest. The derived class
// `Self` has Load() and Store().
template <class T, class Self>
struct StoredInOrder {
  // Stores 2 * Lanes(d) elements.
  template <class D>
  static HWY_INLINE void StoreTwo(hn::Vec<D> a, hn::Vec<D> b, D d, T* p) {
    Self::Store(a, d, p);
    Self::Store(b, d, p + hn::Lanes(d));
  }
  // Both shuffled forms use the cheapest order for 2 * Lanes(d) elements, which
  // may differ from memory order. Unshuffle() restores memory order.
  template <class D>
  static HWY_INLINE void LoadShuffled(D d, const T* p, hn::Vec<D>& a,
                                      hn::Vec<D>& b) {
    a = Self::Load(d, p);
    b = Self::Load(d, p + hn::Lanes(d));
  }
  template <class D>
  static HWY_INLINE void StoreShuffled(hn::Vec<D> a, hn::Vec<D> b, D d, T* p) {
    StoreTwo(a, b, d, p);
  }
  template <class D>
  static HWY_INLINE void Unshuffle(D, hn::Vec<D>&, hn::Vec<D>&) {}
};

template <>
struct Storage<float> : StoredInOrder<float, Storage<float>> {
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const float* p) {
    return hn::LoadU(d, p);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> LoadPartial(D d, const float* p, size_t n) {
    return simd::HWY_NAMESPACE::LoadPartial(d, p, n);
  }
  template <class D>
  static HWY_INLINE void Store(hn::Vec<D> v, D d, float* p) {
    hn::StoreU(v, d, p);
  }
  template <class D>
  static HWY_INLINE void StorePartial(hn::Vec<D> v, D d, float* p, size_t n) {
    simd::HWY_NAMESPACE::StorePartial(v, d, p, n);
  }
  // Loads 2 * Lanes(d) elements: even ones to `even`, odd ones to `odd`.
  template <class D>
  static HWY_INLINE void LoadPairs(D d, const float* p, hn::Vec<D>& even,
                                   hn::Vec<D>& odd) {
    hn::LoadInterleaved2(d, p, even, odd);
  }
};

// The base of types with fewer bits than float, stored as Bits. Self::Widen()
// converts Bits, zero-extended to 32 bits, to floats.
template <class T, class Bits, class Self>
struct NarrowStorage {
  static_assert(sizeof(T) == sizeof(Bits));

  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const T* p) {
    const hn::Rebind<Bits, D> narrow;
    return Self::Widen(d, hn::PromoteTo(hn::RebindToUnsigned<D>(),
                                        hn::LoadU(narrow, &p->bits)));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> LoadPartial(D d, const T* p, size_t n) {
    const hn::Rebind<Bits, D> narrow;
    return Self::Widen(d, hn::PromoteTo(hn::RebindToUnsigned<D>(),
                                        simd::HWY_NAMESPACE::LoadPartial(
                                            narrow, &p->bits, n)));
  }
  template <class D>
  static HWY_INLINE void LoadPairs(D d, const T* p, hn::Vec<D>& even,
                                   hn::Vec<D>& odd) {
#if HWY_TARGET == HWY_SCALAR
    even = Load(d, p);
    odd = Load(d, p + 1);
#else
    const hn::Repartition<Bits, D> twice;
    const hn::RebindToUnsigned<D> du;
    const auto pairs = hn::BitCast(du, hn::LoadU(twice, &p->bits));
    even = Self::Widen(d, hn::And(pairs, hn::Set(du, 0xFFFF)));
    odd = Self::Widen(d, hn::ShiftRight<16>(pairs));
#endif
  }
};

template <>
struct Storage<BFloat16>
    : NarrowStorage<BFloat16, uint16_t, Storage<BFloat16>> {
  template <class D, class VU>
  static HWY_INLINE hn::Vec<D> Widen(D d, VU bits) {
    return hn::BitCast(d, hn::ShiftLeft<16>(bits));
  }
#if HWY_TARGET != HWY_SCALAR
  // Takes two instructions fewer than Widen() would take.
  template <class D>
  static HWY_INLINE void LoadPairs(D d, const BFloat16* p, hn::Vec<D>& even,
                                   hn::Vec<D>& odd) {
    const hn::Repartition<uint16_t, D> twice;
    const hn::RebindToUnsigned<D> du;
    const auto pairs = hn::BitCast(du, hn::LoadU(twice, &p->bits));
    even = hn::BitCast(d, hn::ShiftLeft<16>(pairs));
    odd = hn::BitCast(d, hn::And(pairs, hn::Set(du, 0xFFFF0000)));
  }
#endif
  template <class D>
  static HWY_INLINE auto Narrow(D d, hn::Vec<D> v) {
    const hn::Rebind<uint16_t, D> narrow;
    return hn::DemoteTo(narrow, hn::BitCast(hn::RebindToSigned<D>(),
                                            hn::ShiftRight<16>(ToBF16(d, v))));
  }
  template <class D>
  static HWY_INLINE void Store(hn::Vec<D> v, D d, BFloat16* p) {
    hn::StoreU(Narrow(d, v), hn::Rebind<uint16_t, D>(), &p->bits);
  }
  template <class D>
  static HWY_INLINE void StorePartial(hn::Vec<D> v, D d, BFloat16* p,
                                      size_t n) {
    simd::HWY_NAMESPACE::StorePartial(Narrow(d, v), hn::Rebind<uint16_t, D>(),
                                      &p->bits, n);
  }
  template <class D>
  static HWY_INLINE void StoreTwo(hn::Vec<D> a, hn::Vec<D> b, D d,
                                  BFloat16* p) {
#if SWITCHYARD_NATIVE_BF16
    if constexpr (sizeof(a) == 64) {
      hn::Vec512<uint16_t> both;
      if (NativeToBF16(a, b, both)) {
        return hn::StoreU(both, hn::Full512<uint16_t>(), &p->bits);
      }
    }
#endif
    StoreUpperHalves(ToBF16(d, a), ToBF16(d, b), hn::RebindToUnsigned<D>(),
                     &p->bits);
  }
  // Loads the even elements to a, and the odd elements to b, because a pair of
  // elements is the two halves of a 32-bit lane.
  template <class D>
  static HWY_INLINE void LoadShuffled(D d, const BFloat16* p, hn::Vec<D>& a,
                                      hn::Vec<D>& b) {
#if !SWITCHYARD_INTERLEAVES
    a = NarrowStorage::Load(d, p);
    b = NarrowStorage::Load(d, p + hn::Lanes(d));
#else
    LoadPairs(d, p, a, b);
#endif
  }
  template <class D>
  static HWY_INLINE void StoreShuffled(hn::Vec<D> a, hn::Vec<D> b, D d,
                                       BFloat16* p) {
#if !SWITCHYARD_INTERLEAVES
    StoreTwo(a, b, d, p);
#else
    const hn::Repartition<uint16_t, D> twice;
#if SWITCHYARD_NATIVE_BF16
    if constexpr (sizeof(a) == 64) {
      hn::Vec512<uint16_t> both;
      if (NativeToBF16(a, b, both)) {
        const auto i = hn::Iota(twice, 0);
        const auto half = hn::ShiftRight<1>(i);
        const auto order = hn::OddEven(hn::Add(half, hn::Set(twice, 16)), half);
        both.raw = _mm512_permutexvar_epi16(order.raw, both.raw);
        return hn::StoreU(both, twice, &p->bits);
      }
    }
#endif
    const auto even = hn::BitCast(twice, hn::ShiftRight<16>(ToBF16(d, a)));
    const auto odd = hn::BitCast(twice, ToBF16(d, b));
    hn::StoreU(hn::OddEven(odd, even), twice, &p->bits);
#endif
  }
  template <class D>
  static HWY_INLINE void Unshuffle(D d, hn::Vec<D>& a, hn::Vec<D>& b) {
#if SWITCHYARD_INTERLEAVES
    InterleaveWhole(d, a, b);
#else
    (void)d, (void)a, (void)b;
#endif
  }
};

template <>
struct Storage<Float16> : NarrowStorage<Float16, uint16_t, Storage<Float16>>,
                          StoredInOrder<Float16, Storage<Float16>> {
#if SWITCHYARD_NATIVE_F16
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const Float16* p) {
    const hn::Rebind<uint16_t, D> narrow;
    const hn::Rebind<hwy::float16_t, D> half;
    return hn::PromoteTo(d, hn::BitCast(half, hn::LoadU(narrow, &p->bits)));
  }
#endif
  template <class D, class VU>
  static HWY_INLINE hn::Vec<D> Widen(D d, VU bits) {
    return FromF16(d, bits);
  }
  template <class D>
  static HWY_INLINE void Store(hn::Vec<D> v, D d, Float16* p) {
    hn::StoreU(ToF16(d, v), hn::Rebind<uint16_t, D>(), &p->bits);
  }
  template <class D>
  static HWY_INLINE void StorePartial(hn::Vec<D> v, D d, Float16* p, size_t n) {
    simd::HWY_NAMESPACE::StorePartial(ToF16(d, v), hn::Rebind<uint16_t, D>(),
                                      &p->bits, n);
  }
};

// Loads codes as floats, which the caller multiplies by a scale.
template <>
struct Storage<int8_t> {
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const int8_t* p) {
    return Widen(d, hn::LoadU(hn::Rebind<int8_t, D>(), p));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> LoadPartial(D d, const int8_t* p, size_t n) {
    return Widen(
        d, simd::HWY_NAMESPACE::LoadPartial(hn::Rebind<int8_t, D>(), p, n));
  }

 private:
  template <class D, class V8>
  static HWY_INLINE hn::Vec<D> Widen(D d, V8 codes) {
    return hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<D>(), codes));
  }
};
template <>
struct Storage<uint8_t> {
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const uint8_t* p) {
    return Widen(d, hn::LoadU(hn::Rebind<uint8_t, D>(), p));
  }
  // Replaces the values behind the first n elements by 0, because there the
  // partial load gives the code 0, which is the value -128.
  template <class D>
  static HWY_INLINE hn::Vec<D> LoadPartial(D d, const uint8_t* p, size_t n) {
    return hn::IfThenElseZero(hn::FirstN(d, n),
                              Widen(d, simd::HWY_NAMESPACE::LoadPartial(
                                           hn::Rebind<uint8_t, D>(), p, n)));
  }

 private:
  template <class D, class V8>
  static HWY_INLINE hn::Vec<D> Widen(D d, V8 codes) {
    const hn::RebindToSigned<D> di;
    return hn::ConvertTo(d,
                         hn::Sub(hn::PromoteTo(di, codes), hn::Set(di, 128)));
  }
};
template <class T>
struct Float8Storage : NarrowStorage<T, uint8_t, Float8Storage<T>> {
  template <class D, class VU>
  static HWY_INLINE hn::Vec<D> Widen(D d, VU bits) {
    return FormatOf<T>::From(d, bits);
  }
};
#define SWITCHYARD_STORAGE(T, ...) \
  template <>                      \
  struct Storage<T> : Float8Storage<T> {};
SWITCHYARD_FLOAT_CODES(SWITCHYARD_STORAGE, )
#undef SWITCHYARD_STORAGE

// Stores the first n elements of v, or all elements if n is larger.
template <class T, class D>
HWY_INLINE void StoreUpTo(hn::Vec<D> v, D d, T* p, size_t n) {
  if (n >= hn::Lanes(d)) {
    Storage<T>::Store(v, d, p);
  } else {
    Storage<T>::StorePartial(v, d, p, n);
  }
}

// LoadPairs() for the first n < Lanes(d) pairs, and zeros behind them.
template <class T, class D>
HWY_INLINE void LoadPairsPartial(D d, const T* p, size_t n, hn::Vec<D>& even,
                                 hn::Vec<D>& odd) {
  HWY_ALIGN T pairs[2 * HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(pairs, p, 2 * n * sizeof(T));
  Storage<T>::LoadPairs(d, pairs, even, odd);
}

// Converts n elements to floats. Codes of one byte are multiplied by `scale`.
template <class T>
HWY_INLINE void ToFloats(const T* HWY_RESTRICT from, size_t n, float scale,
                         float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  constexpr bool kScaled = sizeof(T) == 1;
  const auto scales = hn::Set(d, scale);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    auto v = Storage<T>::Load(d, from + i);
    if (kScaled) v = hn::Mul(scales, v);
    hn::StoreU(v, d, to + i);
  }
  if (i < n) {
    auto v = Storage<T>::LoadPartial(d, from + i, n - i);
    if (kScaled) v = hn::Mul(scales, v);
    StoreUpTo<float>(v, d, to + i, n - i);
  }
}

// Converts floats to types of fewer bits, rounded to nearest even.
template <class T>
HWY_NOINLINE void FromFloats(const float* HWY_RESTRICT from, size_t n,
                             T* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    Storage<T>::StoreTwo(hn::LoadU(d, from + i), hn::LoadU(d, from + i + N), d,
                         to + i);
  }
  for (; i < n; i += N) {
    const size_t count = HWY_MIN(N, n - i);
    StoreUpTo<T>(LoadPartial(d, from + i, count), d, to + i, count);
  }
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_STORAGE_INL_H_
