// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Row data in memory and as vectors of float: every load and store of it.

// Per-target include guard
#if defined(SWITCHYARD_SRC_SIMD_STORAGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_STORAGE_INL_H_
#undef SWITCHYARD_SRC_SIMD_STORAGE_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_STORAGE_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Elements of type T at any address. The partial forms are for the first n <=
// Lanes(d) and touch no others; behind them, a load gives zeros.
template <class T>
struct Storage;

template <>
struct Storage<float> {
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
  // Past the caches; p is aligned to vectors.
  template <class D>
  static HWY_INLINE void Stream(hn::Vec<D> v, D d, float* p) {
    hn::Stream(v, d, p);
  }
  // Of 2 * Lanes(d) elements, those at even and those at odd places.
  template <class D>
  static HWY_INLINE void LoadPairs(D d, const float* p, hn::Vec<D>& even,
                                   hn::Vec<D>& odd) {
    hn::LoadInterleaved2(d, p, even, odd);
  }
};

// The first n elements of v, all of it if n is larger.
template <class T, class D>
HWY_INLINE void StoreUpTo(hn::Vec<D> v, D d, T* p, size_t n) {
  if (n >= hn::Lanes(d)) {
    Storage<T>::Store(v, d, p);
  } else {
    Storage<T>::StorePartial(v, d, p, n);
  }
}

// Storage<T>::LoadPairs for the first n < Lanes(d) pairs.
template <class T, class D>
HWY_INLINE void LoadPairsPartial(D d, const T* p, size_t n, hn::Vec<D>& even,
                                 hn::Vec<D>& odd) {
  HWY_ALIGN T pairs[2 * HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(pairs, p, 2 * n * sizeof(T));
  Storage<T>::LoadPairs(d, pairs, even, odd);
}

}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_STORAGE_INL_H_
