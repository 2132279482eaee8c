// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Exact integer products of weights' codes and a row's codes. Instructions for
// these products are used only in this file.
//
// The lanes are columns of the product. The four bytes of a column's 32-bit
// lane are four codes of its weights (k, k + 1, ...), and every lane has the
// same four codes of the row. Unsigned codes of weights exceed the signed ones
// by WeightTraits::offset, so the dot product is too large by the offset times
// the sum of the row's codes. Removing this costs nothing here, because the sum
// starts at a correction for each row and block.

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

// Vectors have at most 16 columns, because a packed group of weights has 16.
using DotTag = hn::CappedTag<float, 16>;
using DotIntTag = hn::RebindToSigned<DotTag>;
using DotVec = hn::Vec<DotTag>;
using DotInts = hn::Vec<DotIntTag>;

// Each class Dot below has
//   Codes, Row      vectors of weights' codes, and of four codes of a row
//   State           sums of products
//   kOffset         the offset of a byte's code in Codes: 128, or 0 if signed
//   kTwoStates      true if a state holds no more than 8 products of nibbles
//   kSixBitAdds     the number of six-bit products in a state: 2 or 4
//   LoadBytes, LowNibbles, HighNibbles, FromTable, AddTwoBits, LoadRow
//   Add             adds a product of nibbles, or of six bits, to a state
//   AddBytes        adds a product of bytes to two states, at most 8 times
//   Sum, SumBytes   the int32 sums of a state, or of the two states of bytes
//   Factor, Scaled  prepares 8-bit scales; multiplies a state's sums by them
//   Small, SmallProduct  puts a 16-bit number in all lanes; multiplies lanes of
//                   16-bit numbers by it
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

// The operations common to all targets with vectors of bytes.
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
  static HWY_INLINE Codes FromTable(const uint8_t* table, Codes nibbles) {
    const hn::Repartition<uint8_t, DotTag> d8;
    return hn::TableLookupBytes(hn::LoadDup128(d8, table), nibbles);
  }
  // Puts bits [2 * kField, 2 * kField + 2) of `bits` above each nibble.
  template <int kField>
  static HWY_INLINE Codes AddTwoBits(Codes nibbles, Codes bits) {
    const hn::Repartition<uint16_t, DotTag> d16;
    const hn::Repartition<uint8_t, DotTag> d8;
    auto moved = hn::BitCast(d16, bits);
    if constexpr (kField < 2) moved = hn::ShiftLeft<4 - 2 * kField>(moved);
    if constexpr (kField > 2) moved = hn::ShiftRight<2>(moved);
    return hn::Or(nibbles, hn::And(hn::BitCast(d8, moved), hn::Set(d8, 0x30)));
  }
  static HWY_INLINE Row LoadRow(const int8_t* p) {
    int32_t four;
    std::memcpy(&four, p, sizeof(four));
    return hn::BitCast(hn::Repartition<int8_t, DotTag>(),
                       hn::Set(DotIntTag(), four));
  }
};

#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3

// Multiplies pairs of 16-bit numbers, and adds up the two products (pmaddwd).
HWY_INLINE DotInts MultiplyPairs(DotInts a, DotInts b) {
#if HWY_TARGET <= HWY_AVX3
  return DotInts{_mm512_madd_epi16(a.raw, b.raw)};
#elif HWY_TARGET <= HWY_AVX2
  return DotInts{_mm256_madd_epi16(a.raw, b.raw)};
#else
  return DotInts{_mm_madd_epi16(a.raw, b.raw)};
#endif
}
// Multiplies 32-bit lanes by a 16-bit number with pmaddwd. The upper half of
// each lane of `small` is 0, so pmaddwd ignores the upper half of `a`.
struct SmallDot {
  static HWY_INLINE DotInts Small(int32_t x) {
    return hn::Set(DotIntTag(), x & 0xFFFF);
  }
  static HWY_INLINE DotInts SmallProduct(DotInts a, DotInts small) {
    return MultiplyPairs(a, small);
  }
};

#else

struct SmallDot {
  static HWY_INLINE DotInts Small(int32_t x) { return hn::Set(DotIntTag(), x); }
  static HWY_INLINE DotInts SmallProduct(DotInts a, DotInts small) {
    return hn::Mul(a, small);
  }
};

#endif
// Multiplies sums by scales as 32-bit numbers.
struct WideDot : SmallDot {
  static HWY_INLINE DotInts Factor(DotInts scale) { return scale; }
  static HWY_INLINE DotInts Scaled(DotInts state, DotInts factor) {
    return hn::Mul(state, factor);
  }
};

#if SWITCHYARD_DOT_VNNI

// vpdpbusd multiplies u8 by s8, and adds four products to each lane. It is
// written as asm because Highway 1.0.3 compiles AVX3_DL without AVX512_VNNI,
// which every CPU with AVX3_DL has.
struct Dot : ByteDot, WideDot {
  using State = DotInts;
  static constexpr int kOffset = 128;
  static constexpr bool kTwoStates = false;
  static constexpr size_t kSixBitAdds = 4;

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

// pmaddubsw multiplies u8 by s8, and adds pairs of products to 16 bits. Such
// sums do not overflow if 8 of them are added for codes up to 15 (16 * 15 * 128
// = 30720), 4 for codes up to 24, or 2 for codes up to 63 (4 * 63 * 128 =
// 32256). Bytes are multiplied as two nibbles, which is exact for all codes.
// |code| * sign(code, row) is as long, but not exact for -128.
struct Dot : ByteDot, SmallDot {
  using State = hn::Vec<hn::Repartition<int16_t, DotTag>>;
  static constexpr int kOffset = 128;
  static constexpr bool kTwoStates = true;
  static constexpr size_t kSixBitAdds = 2;

  static HWY_INLINE State ZeroState() {
    return hn::Zero(hn::Repartition<int16_t, DotTag>());
  }
  static HWY_INLINE State Add(State sum, Codes codes, Row row) {
    sum = hn::Add(sum, Pairs(codes, row));
    // Prevents GCC from adding up the products of a block in a tree, in memory:
    // 4 rows of q8_0 take 0.7 times as long. (Zen 3)
    asm("" : "+v"(sum.raw));
    return sum;
  }
  static HWY_INLINE void AddBytes(State& low, State& high, Codes codes,
                                  Row row) {
    low = AddInPlace(low, LowNibbles(codes), row);
    high = AddInPlace(high, HighNibbles(codes), row);
  }
  static HWY_INLINE DotInts Sum(State a) { return SumPairs(a); }
  static HWY_INLINE DotInts SumBytes(State low, State high) {
    return hn::Add(SumPairs(low), hn::ShiftLeft<4>(SumPairs(high)));
  }
  // Puts the scale in both halves of a lane, for both numbers of a pair.
  static HWY_INLINE DotInts Factor(DotInts scale) {
    return hn::Or(hn::And(scale, hn::Set(DotIntTag(), 0xFFFF)),
                  hn::ShiftLeft<16>(scale));
  }
  static HWY_INLINE DotInts Scaled(State state, DotInts factor) {
    return MultiplyPairs(hn::BitCast(DotIntTag(), state), factor);
  }

 private:
  static HWY_INLINE DotInts SumPairs(State a) {
    return Scaled(a, hn::Set(DotIntTag(), 0x10001));
  }
  // Adds products as Add() does, but by an asm instruction that stores the sum
  // in place. Otherwise GCC chooses another register, and copies the sum at the
  // loop's end. With asm, bytes take 0.9 times as long, but nibbles would take
  // 1.03 times as long. (4 and 32 rows, Zen 3)
  static HWY_INLINE State AddInPlace(State sum, Codes codes, Row row) {
#if HWY_TARGET == HWY_AVX2
    asm("vpaddw %1, %0, %0" : "+x"(sum.raw) : "x"(Pairs(codes, row).raw));
    return sum;
#else
    return Add(sum, codes, row);
#endif
  }
#if HWY_TARGET <= HWY_AVX3
  static HWY_INLINE State Pairs(Codes a, Row b) {
    return State{_mm512_maddubs_epi16(a.raw, b.raw)};
  }
#elif HWY_TARGET <= HWY_AVX2
  static HWY_INLINE State Pairs(Codes a, Row b) {
    return State{_mm256_maddubs_epi16(a.raw, b.raw)};
  }
#else
  static HWY_INLINE State Pairs(Codes a, Row b) {
    return State{_mm_maddubs_epi16(a.raw, b.raw)};
  }
#endif
};

#elif SWITCHYARD_DOT_SDOT || SWITCHYARD_DOT_NEON

// For targets that multiply signed codes by signed codes. Codes of a byte are
// stored with an offset of 128, which AddBytes() removes before it multiplies.
struct Dot : ByteDot, WideDot {
  using State = DotInts;
  static constexpr int kOffset = 0;
  static constexpr bool kTwoStates = false;
  static constexpr size_t kSixBitAdds = 4;

  static HWY_INLINE State ZeroState() { return hn::Zero(DotIntTag()); }
  static HWY_INLINE State Add(State sum, Codes codes, Row row) {
    const Row weights = hn::BitCast(hn::Repartition<int8_t, DotTag>(), codes);
#if SWITCHYARD_DOT_SDOT
    return svdot_s32(sum, weights, row);
#else
    // Highway's NEON target includes CPUs without the SDOT instruction.
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

// For targets without vectors of bytes, or without products of bytes.
struct Dot : WideDot {
  struct Codes {
    uint8_t v[64];  // four codes for each lane of State

    template <class Of>
    static HWY_INLINE Codes Each(Of of) {
      Codes codes;
      for (size_t i = 0; i < 4 * hn::Lanes(DotTag()); ++i) {
        codes.v[i] = static_cast<uint8_t>(of(i));
      }
      return codes;
    }
  };
  using Row = const int8_t*;
  using State = DotInts;
  static constexpr int kOffset = 128;
  static constexpr bool kTwoStates = false;
  static constexpr size_t kSixBitAdds = 4;

  static HWY_INLINE Codes LoadBytes(const uint8_t* p) {
    return Codes::Each([=](size_t i) { return p[i]; });
  }
  static HWY_INLINE Codes LowNibbles(const Codes& c) {
    return Codes::Each([&](size_t i) { return c.v[i] & 15; });
  }
  static HWY_INLINE Codes HighNibbles(const Codes& c) {
    return Codes::Each([&](size_t i) { return c.v[i] >> 4; });
  }
  static HWY_INLINE Codes FromTable(const uint8_t* table, const Codes& c) {
    return Codes::Each([&](size_t i) { return table[c.v[i]]; });
  }
  template <int kField>
  static HWY_INLINE Codes AddTwoBits(const Codes& nibbles, const Codes& bits) {
    return Codes::Each([&](size_t i) {
      return nibbles.v[i] | (bits.v[i] >> 2 * kField & 3) << 4;
    });
  }
  static HWY_INLINE Row LoadRow(const int8_t* p) { return p; }
  static HWY_INLINE State ZeroState() { return hn::Zero(DotIntTag()); }
  static HWY_INLINE State Add(State sum, const Codes& codes, Row row) {
    const DotIntTag di;
    HWY_ALIGN int32_t sums[HWY_MAX_BYTES / sizeof(int32_t)];
    hn::Store(sum, di, sums);
    for (size_t i = 0; i < 4 * hn::Lanes(di); ++i) {
      sums[i / 4] += codes.v[i] * row[i % 4];
    }
    return hn::Load(di, sums);
  }
  static HWY_INLINE void AddBytes(State& a, State& /*b*/, const Codes& codes,
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
