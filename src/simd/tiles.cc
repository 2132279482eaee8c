// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/tiles.cc"
#include "src/base/type_list.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/simdgroup-inl.h"
#include "src/simd/storage-inl.h"
#include "src/simd/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {

namespace {

// Each struct below computes a vector of the new tile from the old tile's
// vector v and the operand's vector x.
struct Take {
  float factor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V, V x) const {
    return hn::Mul(hn::Set(d, factor), x);
  }
};
struct Add {
  float v_factor, x_factor, factor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v, V x) const {
    return hn::Mul(hn::Add(hn::Mul(hn::Set(d, v_factor), v),
                           hn::Mul(hn::Set(d, x_factor), x)),
                   hn::Set(d, factor));
  }
};
template <bool kPlusOne>
struct Mul {
  float factor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v, V x) const {
    if (kPlusOne) x = hn::Add(hn::Set(d, 1.0f), x);
    return hn::Mul(hn::Mul(hn::Set(d, factor), v), x);
  }
};
struct MulAdd {
  float weight, factor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v, V x) const {
    return hn::MulAdd(hn::Set(d, weight), x, hn::Mul(hn::Set(d, factor), v));
  }
};
template <class T>
struct Round {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V, V x) const {
    return RoundTo(kType<T>, d, x);
  }
};

template <class T, class Make>
HWY_INLINE void EachVector(const T* x, size_t n, Make make, const float* from,
                           float* tile) {
  const SimdgroupTag d;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    hn::StoreU(make(d, hn::LoadU(d, from + i), Storage<T>::Load(d, x + i)), d,
               tile + i);
  }
  if (i < n) {
    const size_t rest = n - i;
    StorePartial(make(d, LoadPartial(d, from + i, rest),
                      Storage<T>::LoadPartial(d, x + i, rest)),
                 d, tile + i, rest);
  }
}
template <class Make>
HWY_INLINE void EachOf(const TileOperand& x, size_t n, Make make,
                       const float* from, float* tile) {
  switch (x.type) {
#define SWITCHYARD_CASE(T, ...) \
  case kType<T>:                \
    return EachVector(static_cast<const T*>(x.data), n, make, from, tile);
    SWITCHYARD_FLOATS(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
    default:
      return;
  }
}

}  // namespace

void TakeTile(const TileOperand& x, size_t n, float factor, float* tile) {
  EachOf(x, n, Take{factor}, tile, tile);
}
void AddTile(const TileOperand& x, size_t n, float tile_factor, float x_factor,
             float factor, float* tile) {
  EachOf(x, n, Add{tile_factor, x_factor, factor}, tile, tile);
}
void MulTile(const TileOperand& x, size_t n, float factor, bool plus_one,
             const float* from, float* tile) {
  if (plus_one) return EachOf(x, n, Mul<true>{factor}, from, tile);
  EachOf(x, n, Mul<false>{factor}, from, tile);
}
void MulAddTile(const TileOperand& x, size_t n, float weight, float factor,
                float* tile) {
  EachOf(x, n, MulAdd{weight, factor}, tile, tile);
}
void MulAddTiles(const float* a, const float* b, size_t n, float* tile) {
  const SimdgroupTag d;
  const size_t N = hn::Lanes(d);
  for (size_t i = 0; i < n; i += N) {
    const size_t count = HWY_MIN(N, n - i);
    const auto v =
        hn::MulAdd(LoadPartial(d, a + i, count), LoadPartial(d, b + i, count),
                   LoadPartial(d, tile + i, count));
    StoreUpTo<float>(v, d, tile + i, count);
  }
}

void RoundTile(Type type, size_t n, float* tile) {
  if (type == Type::kBF16) EachVector(tile, n, Round<BFloat16>(), tile, tile);
  if (type == Type::kF16) EachVector(tile, n, Round<Float16>(), tile, tile);
}

void AddSquares(const float* tile, size_t n, float* lanes) {
  const SimdgroupTag d;
  const size_t N = hn::Lanes(d);
  for (size_t lane = 0; lane < kSimdgroup; lane += N) {
    auto sum = hn::Load(d, lanes + lane);
    size_t i = lane;
    for (; i + N <= n; i += kSimdgroup) {
      const auto v = hn::LoadU(d, tile + i);
      sum = hn::MulAdd(v, v, sum);
    }
    if (i < n) {
      const auto v = LoadPartial(d, tile + i, n - i);
      sum = hn::MulAdd(v, v, sum);
    }
    hn::Store(sum, d, lanes + lane);
  }
}

}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
