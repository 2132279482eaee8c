// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Exact integer products of weights' codes and a row's codes, the only place
// that knows each target's instructions for them.
//
// The lanes are columns of the product: of each, four codes (k, k + 1, ...) lie
// in the four bytes of a 32-bit lane, and those of the row are in every lane.
// Unsigned codes of weights are above the signed ones by WeightTraits::offset,
// which costs nothing here: the dot product is too large by the offset times
// the sum of the row's codes, so a correction for each row and block starts it.

// Per-target include guard
#if defined(SWITCHYARD_SRC_SIMD_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_DOT_INL_H_
#undef SWITCHYARD_SRC_SIMD_DOT_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_DOT_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors of 16 columns at most, because a packed group has 16.
using DotTag = hn::CappedTag<float, 16>;
using DotIntTag = hn::RebindToSigned<DotTag>;
using DotVec = hn::Vec<DotTag>;
using DotInts = hn::Vec<DotIntTag>;

// Each way has
//   Codes, Row  vectors of weights' codes and of four codes of a row
//   State       sums of products, of one block
//   kOffset     of codes of a byte as they are in Codes: 128, or 0 if signed
//   LoadBytes, LoadNibbles, LoadRow
//   Add         a product of nibbles to a state: at most 8 a block
//   AddBytes    a product of bytes: at most 8 a block, to two states
//   Sum         of two states, of bytes and of nibbles
#undef SWITCHYARD_DOT_VNNI
#undef SWITCHYARD_DOT_MADDUBS
#undef SWITCHYARD_DOT_SDOT
#undef SWITCHYARD_DOT_NEON
#define SWITCHYARD_DOT_VNNI 0
#define SWITCHYARD_DOT_MADDUBS 0
#define SWITCHYARD_DOT_SDOT 0
#define SWITCHYARD_DOT_NEON 0
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
#undef SWITCHYARD_DOT_VNNI
#define SWITCHYARD_DOT_VNNI 1
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
#undef SWITCHYARD_DOT_MADDUBS
#define SWITCHYARD_DOT_MADDUBS 1
#elif HWY_HAVE_SCALABLE && HWY_ARCH_ARM_A64
#undef SWITCHYARD_DOT_SDOT
#define SWITCHYARD_DOT_SDOT 1
#elif HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
#undef SWITCHYARD_DOT_NEON
#define SWITCHYARD_DOT_NEON 1
#endif

#if SWITCHYARD_DOT_VNNI || SWITCHYARD_DOT_MADDUBS || SWITCHYARD_DOT_SDOT || \
    SWITCHYARD_DOT_NEON

// Operations of all targets that have vectors of bytes.
struct ByteDot {
  using Codes = hn::Vec<hn::Repartition<uint8_t, DotTag>>;
  using Row = hn::Vec<hn::Repartition<int8_t, DotTag>>;

  static HWY_INLINE Codes LoadBytes(const uint8_t* p) {
    return hn::LoadU(hn::Repartition<uint8_t, DotTag>(), p);
  }
  static HWY_INLINE Codes LowNibbles(Codes bytes) {
    return hn::And(bytes, hn::Set(hn::Repartition<uint8_t, DotTag>(), 15));
  }
  static HWY_INLINE Codes HighNibbles(Codes bytes) {
    const hn::Repartition<uint16_t, DotTag> d16;
    const hn::Repartition<uint8_t, DotTag> d8;
    return LowNibbles(
        hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, bytes))));
  }
  static HWY_INLINE Row LoadRow(const int8_t* p) {
    int32_t four;
    std::memcpy(&four, p, sizeof(four));
    return hn::BitCast(hn::Repartition<int8_t, DotTag>(),
                       hn::Set(DotIntTag(), four));
  }
};

#endif

#if SWITCHYARD_DOT_VNNI

// vpdpbusd: u8 * s8, four of them to a lane. Highway 1.0.3 compiles AVX3_DL
// without AVX512_VNNI, which every such CPU has.
struct Dot : ByteDot {
  using State = DotInts;
  static constexpr int kOffset = 128;
  static constexpr bool kTwoStates = false;

  static HWY_INLINE State ZeroState() { return hn::Zero(DotIntTag()); }
  static HWY_INLINE State Add(State sum, Codes codes, Row row) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(codes.raw), "v"(row.raw));
    return sum;
  }
  static HWY_INLINE void AddBytes(State& a, State& /*b*/, Codes codes,
                                  Row row) {
    a = Add(a, codes, row);
  }
  static HWY_INLINE DotInts Sum(State a) { return a; }
  static HWY_INLINE DotInts SumBytes(State a, State /*b*/) { return a; }
};

#elif SWITCHYARD_DOT_MADDUBS

// pmaddubsw: u8 * s8, pairs to 16 bits. Sums of 8 of them fit for codes up to
// 15: 16 * 15 * 128 = 30720. Bytes are two nibbles of 4 bits each, so that they
// are exact for all codes; |code| * sign(code, row) would not be for -128, and
// takes as many instructions.
struct Dot : ByteDot {
  using State = hn::Vec<hn::Repartition<int16_t, DotTag>>;
  static constexpr int kOffset = 128;
  static constexpr bool kTwoStates = true;

  static HWY_INLINE State ZeroState() {
    return hn::Zero(hn::Repartition<int16_t, DotTag>());
  }
  static HWY_INLINE State Add(State sum, Codes codes, Row row) {
    sum = hn::Add(sum, Pairs(codes, row));
    // Keeps GCC from adding all products of a block up in a tree, which holds
    // them in memory meanwhile: 4 rows of q8_0 take 0.7 of the time. (Zen 3)
    asm("" : "+v"(sum.raw));
    return sum;
  }
  static HWY_INLINE void AddBytes(State& low, State& high, Codes codes,
                                  Row row) {
    low = Add(low, LowNibbles(codes), row);
    high = Add(high, HighNibbles(codes), row);
  }
  static HWY_INLINE DotInts Sum(State a) { return SumPairs(a); }
  static HWY_INLINE DotInts SumBytes(State low, State high) {
    return hn::Add(SumPairs(low), hn::ShiftLeft<4>(SumPairs(high)));
  }

 private:
#if HWY_TARGET <= HWY_AVX3
  static HWY_INLINE State Pairs(Codes a, Row b) {
    return State{_mm512_maddubs_epi16(a.raw, b.raw)};
  }
  static HWY_INLINE DotInts SumPairs(State a) {
    return DotInts{_mm512_madd_epi16(a.raw, _mm512_set1_epi16(1))};
  }
#elif HWY_TARGET <= HWY_AVX2
  static HWY_INLINE State Pairs(Codes a, Row b) {
    return State{_mm256_maddubs_epi16(a.raw, b.raw)};
  }
  static HWY_INLINE DotInts SumPairs(State a) {
    return DotInts{_mm256_madd_epi16(a.raw, _mm256_set1_epi16(1))};
  }
#else
  static HWY_INLINE State Pairs(Codes a, Row b) {
    return State{_mm_maddubs_epi16(a.raw, b.raw)};
  }
  static HWY_INLINE DotInts SumPairs(State a) {
    return DotInts{_mm_madd_epi16(a.raw, _mm_set1_epi16(1))};
  }
#endif
};

#elif SWITCHYARD_DOT_SDOT || SWITCHYARD_DOT_NEON

// Signed products: bytes lose their 128 when they are loaded.
struct Dot : ByteDot {
  using State = DotInts;
  static constexpr int kOffset = 0;
  static constexpr bool kTwoStates = false;

  static HWY_INLINE State ZeroState() { return hn::Zero(DotIntTag()); }
  static HWY_INLINE State Add(State sum, Codes codes, Row row) {
    const Row weights = hn::BitCast(hn::Repartition<int8_t, DotTag>(), codes);
#if SWITCHYARD_DOT_SDOT
    return svdot_s32(sum, weights, row);
#else
    // Without SDOT, which Highway's NEON does not count on.
    const int16x8_t low =
        vmull_s8(vget_low_s8(weights.raw), vget_low_s8(row.raw));
    const int16x8_t high = vmull_high_s8(weights.raw, row.raw);
    return State(
        vaddq_s32(sum.raw, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high))));
#endif
  }
  static HWY_INLINE void AddBytes(State& a, State& /*b*/, Codes codes,
                                  Row row) {
    const auto flip = hn::Set(hn::Repartition<uint8_t, DotTag>(), 128);
    a = Add(a, hn::Xor(codes, flip), row);
  }
  static HWY_INLINE DotInts Sum(State a) { return a; }
  static HWY_INLINE DotInts SumBytes(State a, State /*b*/) { return a; }
};

#else

// Without vectors of bytes, or with none that multiply: codes stay in memory.
struct Dot {
  struct Codes {
    const uint8_t* p;
    int shift, mask;
  };
  using Row = const int8_t*;
  using State = DotInts;
  static constexpr int kOffset = 128;
  static constexpr bool kTwoStates = false;

  static HWY_INLINE Codes LoadBytes(const uint8_t* p) { return {p, 0, 255}; }
  static HWY_INLINE Codes LowNibbles(Codes c) { return {c.p, 0, 15}; }
  static HWY_INLINE Codes HighNibbles(Codes c) { return {c.p, 4, 15}; }
  static HWY_INLINE Row LoadRow(const int8_t* p) { return p; }
  static HWY_INLINE State ZeroState() { return hn::Zero(DotIntTag()); }
  static HWY_INLINE State Add(State sum, Codes codes, Row row) {
    const DotIntTag di;
    HWY_ALIGN int32_t sums[HWY_MAX_BYTES / sizeof(int32_t)];
    hn::Store(sum, di, sums);
    for (size_t lane = 0; lane < hn::Lanes(di); ++lane) {
      for (size_t i = 0; i < 4; ++i) {
        sums[lane] +=
            (codes.p[4 * lane + i] >> codes.shift & codes.mask) * row[i];
      }
    }
    return hn::Load(di, sums);
  }
  static HWY_INLINE void AddBytes(State& a, State& /*b*/, Codes codes,
                                  Row row) {
    a = Add(a, codes, row);
  }
  static HWY_INLINE DotInts Sum(State a) { return a; }
  static HWY_INLINE DotInts SumBytes(State a, State /*b*/) { return a; }
};

#endif

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_DOT_INL_H_
