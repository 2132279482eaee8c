// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Exact integer products of weights' codes and a row's codes. Instructions for
// these products are used only in this file.
//
// The lanes are columns of the product. The four bytes of a column's 32-bit
// lane are four codes of its weights (k, k + 1, ...), and every lane has the
// same four codes of the row. Unsigned codes of weights exceed the signed ones
// by WeightTraits::offset, so the dot product is too large by the offset times
// the sum of the row's codes. Subtracting the excess costs no time here,
// because the sum starts at a correction for each row and block.

#if defined(SWITCHYARD_SRC_SIMD_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_DOT_INL_H_
#undef SWITCHYARD_SRC_SIMD_DOT_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_DOT_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

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

// The class Dot below multiplies codes of up to six bits, and ByteDot codes of
// eight bits. Both have
//   Codes           weights' codes, four for each lane
//   Row             four codes of a row, which all lanes use
//   State           sums of products
//   Split           prepares weights' codes
//   LoadRow         loads codes 4 * quad to 4 * quad + 3 of a row's block
//   Add             adds products to a state
//   Sum             the int32 sums of a state, if a state is not int32 itself
//   Any             a class that also multiplies a row's codes of -128; the
//                   class itself can do so if Any is another name for it
// Dot also has
//   kTwoStates      true if a state holds no more than 8 products of nibbles
//   kSixBitAdds     the number of six-bit products in a state: 2 or 4
//   LoadBytes, LowNibbles, HighNibbles, FromTable, AddTwoBits
//   Factor, Scaled  prepares scales of 8 bits; multiplies a state's sums by
//                   them
// ByteDot also has
//   kOffset         the offset of a byte's code in Codes: 128, or 0 if signed
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
struct VectorDot {
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
  static HWY_INLINE Codes Split(Codes codes) { return codes; }
  // Subtracts 128 from stored bytes, which gives signed codes.
  static HWY_INLINE Row WithoutOffset(Codes codes) {
    const hn::Repartition<uint8_t, DotTag> d8;
    return hn::BitCast(hn::Repartition<int8_t, DotTag>(),
                       hn::Xor(codes, hn::Set(d8, 128)));
  }
  static HWY_INLINE Row LoadRow(const int8_t* block, size_t quad) {
    int32_t four;
    std::memcpy(&four, block + 4 * quad, sizeof(four));
    return hn::BitCast(hn::Repartition<int8_t, DotTag>(),
                       hn::Set(DotIntTag(), four));
  }
};

#endif

// Adds to a sum. The asm lines prevent GCC from adding up the terms of a block
// in a tree, which would keep the terms in memory. Without these lines, q8_0
// takes 1.3 times as long, and q6_K 1.1 times. (2 to 48 rows, Zen 3)
template <class Ints>
HWY_INLINE void AddTo(Ints& sum, Ints term) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  // The asm line does the addition, because GCC would copy each sum before an
  // empty asm line. For 16-bit sums, an empty line is faster: 1.1 times for
  // q6_K.
  if constexpr (sizeof(hn::TFromV<Ints>) == sizeof(int32_t)) {
    asm("vpaddd %1, %0, %0" : "+v"(sum.raw) : "v"(term.raw));
    return;
  }
#endif
  sum = hn::Add(sum, term);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  asm("" : "+v"(sum.raw));
#endif
}

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
#endif

// Multiplies small integers, which are the four bytes of each lane, two at a
// time: the first and the third (kOdd = 0), or the second and the fourth.
template <bool kSigned>
struct SmallDot {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  template <int kOdd>
  static HWY_INLINE DotInts Pair(DotInts four) {
    using D = std::conditional_t<kSigned, hn::Repartition<int16_t, DotTag>,
                                 hn::Repartition<uint16_t, DotTag>>;
    auto pairs = hn::BitCast(D(), four);
    if constexpr (kOdd == 0) pairs = hn::ShiftLeft<8>(pairs);
    return hn::BitCast(DotIntTag(), hn::ShiftRight<8>(pairs));
  }
  // Adds pair[0] * two[0] + pair[1] * two[1] to each lane.
  static HWY_INLINE void AddPair(DotInts& sum, DotInts pair,
                                 const int16_t* two) {
    int32_t both;
    std::memcpy(&both, two, sizeof(both));
    AddTo(sum, MultiplyPairs(pair, hn::Set(DotIntTag(), both)));
  }
#else
  template <int kOdd>
  static HWY_INLINE DotInts Pair(DotInts four) {
    return kOdd == 0 ? hn::ShiftLeft<8>(four) : four;
  }
  static HWY_INLINE void AddPair(DotInts& sum, DotInts pair,
                                 const int16_t* two) {
    const DotIntTag di;
    AddTo(sum, hn::Mul(Factor(pair, 1), hn::Set(di, two[0])));
    AddTo(sum, hn::Mul(Factor(pair, 3), hn::Set(di, two[1])));
  }
#endif
  // Returns byte `byte` of each lane as an integer.
  static HWY_INLINE DotInts Factor(DotInts four, size_t byte) {
    const int bits = 8 * static_cast<int>(byte);
    if constexpr (kSigned) {
      return hn::ShiftRight<24>(hn::ShiftLeftSame(four, 24 - bits));
    } else {
      return hn::And(hn::ShiftRightSame(four, bits), hn::Set(DotIntTag(), 255));
    }
  }
};
// Multiplies scales and sums as 32-bit integers.
struct WideDot {
  template <bool kSigned>
  static HWY_INLINE DotInts Factor(DotInts four, size_t byte) {
    return SmallDot<kSigned>::Factor(four, byte);
  }
  static HWY_INLINE DotInts Scaled(DotInts state, DotInts factor) {
    return hn::Mul(state, factor);
  }
};

#if SWITCHYARD_DOT_VNNI

// vpdpbusd multiplies u8 by s8, and adds four products to each lane. It is
// written as asm because Highway 1.0.3 compiles AVX3_DL without AVX512_VNNI,
// which every CPU with AVX3_DL has.
struct Dot : VectorDot, WideDot {
  using State = DotInts;
  using Any = Dot;
  static constexpr bool kTwoStates = false;
  static constexpr size_t kSixBitAdds = 4;

  static HWY_INLINE State ZeroState() { return hn::Zero(DotIntTag()); }
  static HWY_INLINE State Add(State sum, Codes codes, Row row) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(codes.raw), "v"(row.raw));
    return sum;
  }
};
struct ByteDot : Dot {
  using Any = ByteDot;
  static constexpr int kOffset = 128;
};

#elif SWITCHYARD_DOT_MADDUBS

// pmaddubsw multiplies u8 by s8, and adds pairs of products to 16 bits. Such
// sums do not overflow if 8 of them are added for codes up to 15 (16 * 15 *
// 128 = 30720), 4 for codes up to 24, or 2 for codes up to 63 (4 * 63 * 128 =
// 32256).
struct Dot : VectorDot {
  using State = hn::Vec<hn::Repartition<int16_t, DotTag>>;
  using Any = Dot;
  static constexpr bool kTwoStates = true;
  static constexpr size_t kSixBitAdds = 2;

  static HWY_INLINE State ZeroState() {
    return hn::Zero(hn::Repartition<int16_t, DotTag>());
  }
  static HWY_INLINE State Add(State sum, Codes codes, Row row) {
    AddTo(sum, Pairs(codes, row));
    return sum;
  }
  static HWY_INLINE DotInts Sum(State a) {
    return Scaled(a, hn::Set(DotIntTag(), 0x10001));
  }

  // Puts the byte in both halves of a lane, so that MultiplyPairs() multiplies
  // both numbers of a pair.
  template <bool kSigned>
  static HWY_INLINE DotInts Factor(DotInts four, size_t byte) {
    // kTake puts an unsigned byte in the low byte of each half. kTakeHigh
    // puts a signed byte in the high byte, from which a shift moves it down
    // with its sign.
    alignas(16) static constexpr uint8_t kTake[16] = {
        0, 128, 0, 128, 4, 128, 4, 128, 8, 128, 8, 128, 12, 128, 12, 128};
    alignas(16) static constexpr uint8_t kTakeHigh[16] = {
        128, 0, 128, 0, 128, 4, 128, 4, 128, 8, 128, 8, 128, 12, 128, 12};
    const hn::Repartition<uint8_t, DotTag> d8;
    const hn::Repartition<int16_t, DotTag> d16;
    const auto take = hn::Or(hn::LoadDup128(d8, kSigned ? kTakeHigh : kTake),
                             hn::Set(d8, static_cast<uint8_t>(byte)));
    const auto taken = hn::TableLookupBytesOr0(hn::BitCast(d8, four), take);
    if constexpr (!kSigned) return hn::BitCast(DotIntTag(), taken);
    return hn::BitCast(DotIntTag(), hn::ShiftRight<8>(hn::BitCast(d16, taken)));
  }
  static HWY_INLINE DotInts Scaled(State state, DotInts factor) {
    return MultiplyPairs(hn::BitCast(DotIntTag(), state), factor);
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

// Multiplies weights' bytes by any code of a row, as 16-bit numbers (pmaddwd).
struct AnyByteDot : VectorDot {
  // `even` has the first and the third of each four codes, and `odd` the
  // second and the fourth.
  struct Codes {
    DotInts even, odd;
  };
  using Row = Codes;
  using State = DotInts;

  static HWY_INLINE Codes Widen(DotInts bytes) {
    return {SmallDot<true>::Pair<0>(bytes), SmallDot<true>::Pair<1>(bytes)};
  }
  static HWY_INLINE Row LoadRow(const int8_t* block, size_t quad) {
    return Widen(hn::BitCast(DotIntTag(), VectorDot::LoadRow(block, quad)));
  }
  static HWY_INLINE Codes Split(VectorDot::Codes codes) {
    return Widen(hn::BitCast(DotIntTag(), WithoutOffset(codes)));
  }
  static HWY_INLINE State Add(State sum, Codes codes, Row row) {
    AddTo(sum, MultiplyPairs(codes.even, row.even));
    AddTo(sum, MultiplyPairs(codes.odd, row.odd));
    return sum;
  }
};
// Multiplies the absolute values of weights by the codes of a row, which get
// the weights' signs. A pair of such products is at most 2 * 128 * 127, so
// pmaddubsw is exact. But codes of -128 have no opposite.
struct ByteDot : VectorDot {
  struct Codes {
    VectorDot::Codes absolute;
    Row with_sign;
  };
  using State = DotInts;
  using Any = AnyByteDot;
  static constexpr int kOffset = 0;

  static HWY_INLINE Codes Split(VectorDot::Codes codes) {
    const Row weights = WithoutOffset(codes);
    return {hn::BitCast(hn::Repartition<uint8_t, DotTag>(), hn::Abs(weights)),
            weights};
  }
  static HWY_INLINE State Add(State sum, Codes codes, Row row) {
    const Dot::State pairs =
        Dot::Pairs(codes.absolute, WithSign(row, codes.with_sign));
    AddTo(sum, Dot::Sum(pairs));
    return sum;
  }

 private:
  // Negates codes of a row if the weights are negative.
  static HWY_INLINE Row WithSign(Row row, Row weights) {
#if HWY_TARGET <= HWY_AVX3
    return Row{_mm512_mask_sub_epi8(row.raw, _mm512_movepi8_mask(weights.raw),
                                    _mm512_setzero_si512(), row.raw)};
#elif HWY_TARGET <= HWY_AVX2
    return Row{_mm256_sign_epi8(row.raw, weights.raw)};
#else
    return Row{_mm_sign_epi8(row.raw, weights.raw)};
#endif
  }
};

#elif SWITCHYARD_DOT_SDOT || SWITCHYARD_DOT_NEON

// For targets that multiply signed codes by signed codes.
struct Dot : VectorDot, WideDot {
  using State = DotInts;
  using Any = Dot;
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
};
struct ByteDot : Dot {
  using Any = ByteDot;
  static constexpr int kOffset = 0;
  static HWY_INLINE Codes Split(Codes codes) {
    return hn::BitCast(hn::Repartition<uint8_t, DotTag>(),
                       WithoutOffset(codes));
  }
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
  using Any = Dot;
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
  static HWY_INLINE const Codes& Split(const Codes& codes) { return codes; }
  static HWY_INLINE Row LoadRow(const int8_t* block, size_t quad) {
    return block + 4 * quad;
  }
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
};
struct ByteDot : Dot {
  using Any = ByteDot;
  static constexpr int kOffset = 128;
};

#endif

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_DOT_INL_H_
