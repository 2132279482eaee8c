// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Selects the k best of a single row, in the order of candidates-inl.h. One row
// is a chain of latencies, and the phases of topk-inl.h would wait for their
// own stores. Here one vector carries the candidates from the filter to the
// weights. (E = 128, k = 8, the whole call: 67 ns instead of 103.)
//
// This code is only for AVX-512 with VBMI2, because it needs compressed bytes
// and expansion. Several rows are faster in phases, because the CPU's window of
// waiting instructions does not hold two of these chains (four rows: 1.25 times
// as long).

#if defined(SWITCHYARD_SRC_SIMD_TOPK_ONE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_TOPK_ONE_INL_H_
#undef SWITCHYARD_SRC_SIMD_TOPK_ONE_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_TOPK_ONE_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

#include "src/simd/candidates-inl.h"
#include "src/simd/topk-inl.h"

#define SWITCHYARD_TOPK_ONE (HWY_TARGET <= HWY_AVX3_DL && HWY_ARCH_X86)

#if SWITCHYARD_TOPK_ONE
HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// For larger k, too many rows have more candidates than a vector holds. With
// 512 experts, in the 32 groups of LowerBound(), 0.4 % of rows have more for
// k = 10, but 14 % for k = 12.
constexpr size_t kTopKOneMax = 10;

// The candidates of a row, in ascending order of their ids. `order` says
// which candidate has which rank.
struct TopKOne {
  TopKVec logits;
  TopKIntVec ids;
  TopKIntVec order;  // low 4 bits of lane s: the lane with rank s
};

// Returns four times the rank of each lane. The caller uses it as a shift
// count, to put 4 bits at the rank's place. A lane's rank is the number of
// lanes that come before it: lanes with a larger key and, among equal keys,
// lanes to its left. Lanes `count` and above come behind all others, in any
// order. See Rank() in candidates-inl.h.
HWY_INLINE TopKIntVec RankOfLanes(TopKIntVec key, size_t count) {
  const TopKIntTag di;
  const TopKIntVec four = hn::Set(di, 4);
  // Broadcasts from memory: shuffles would use the only port that compares.
  HWY_ALIGN int32_t keys[kTopKLanes];
  hn::Store(key, di, keys);
  asm("" : "+m"(keys));
  TopKIntVec than = hn::Sub(key, hn::Set(di, 1));
  TopKIntVec rank = hn::Zero(di);
  const auto eight = [&](size_t first) HWY_ATTR {
    for (size_t j = first; j < first + 8; ++j) {
      than = hn::Add(than, hn::Load(di, kTopKTables.one_hot[j]));
      const auto before = hn::Gt(hn::Set(di, keys[j]), than);
      rank = hn::IfThenElse(before, hn::Add(rank, four), rank);
    }
  };
  eight(0);
  if (count > 8) eight(8);
  return rank;
}

// Counts, for each lane of `key`, the lanes of `others` that are larger.
HWY_INLINE TopKIntVec CountAbove(TopKIntVec others, TopKIntVec key) {
  const TopKIntTag di;
  HWY_ALIGN int32_t keys[kTopKLanes];
  hn::Store(others, di, keys);
  asm("" : "+m"(keys));
  TopKIntVec even = hn::Zero(di), odd = even;
  for (size_t j = 0; j < kTopKLanes; j += 2) {
    even = AddIf(hn::Gt(hn::Set(di, keys[j]), key), even);
    odd = AddIf(hn::Gt(hn::Set(di, keys[j + 1]), key), odd);
  }
  return hn::Add(even, odd);
}

// Returns a lower bound, close to a row's k-th largest element: the k-th
// largest of 16 groups' maxima if k <= 8, else of 32 groups' maxima. The maxima
// become integers that compare like the maxima, with their lane's number in the
// last bits, so that exactly one integer has k - 1 above it. If the row has a
// NaN, the bound is garbage.
template <class Row>
HWY_INLINE TopKVec LowerBound(const Row& row, size_t n, size_t k,
                              TopKVec& max) {
  const TopKTag d;
  const TopKIntTag di;
  const TopKIntVec low = hn::Set(di, 31);
  const auto key_of = [&](TopKVec v, int32_t first) HWY_ATTR {
    const TopKIntVec key = FlipIfNegative(di, hn::BitCast(di, v));
    return hn::Or(hn::AndNot(low, key), hn::Iota(di, first));
  };
  const auto as_kth = [&](TopKIntVec above) HWY_ATTR {
    return hn::Eq(above, hn::Set(di, static_cast<int32_t>(k - 1)));
  };
  TopKVec maxima[2];
  TopKIntVec kth;
  if (k <= 8) {
    GroupMaxima(row, n, kTopKLanes,
                [&](size_t, TopKVec v) HWY_ATTR { maxima[0] = v; });
    max = maxima[0];
    const TopKIntVec key = key_of(max, 0);
    kth = hn::Compress(key, as_kth(CountAbove(key, key)));
  } else {
    GroupMaxima(row, n, 2 * kTopKLanes, [&](size_t g, TopKVec v) HWY_ATTR {
      maxima[g / kTopKLanes] = v;
    });
    max = hn::Max(maxima[0], maxima[1]);
    const TopKIntVec a = key_of(maxima[0], 0);
    const TopKIntVec b = key_of(maxima[1], kTopKLanes);
    const auto in_a = as_kth(hn::Add(CountAbove(a, a), CountAbove(b, a)));
    const auto in_b = as_kth(hn::Add(CountAbove(a, b), CountAbove(b, b)));
    kth = hn::Or(hn::Compress(hn::IfThenElseZero(in_a, a), hn::Or(in_a, in_b)),
                 hn::Compress(hn::IfThenElseZero(in_b, b), hn::Or(in_a, in_b)));
  }
  kth = hn::AndNot(low, kth);
  return LogitFromKey(
      d, TopKIntVec{_mm512_broadcastd_epi32(_mm512_castsi512_si128(kth.raw))});
}

// Compares up to 64 elements: bit i is 1 if first + i is not below the bound.
template <class Row>
HWY_INLINE uint64_t NotBelow(const Row& row, size_t first, size_t n,
                             TopKVec bound) {
  const TopKTag d;
  uint64_t bits = 0;
  for (size_t v = 0; v < 4; ++v) {
    const size_t i = first + v * kTopKLanes;
    // Uses a negated Lt() instead of Ge(), to find NaNs, too.
    if (HWY_LIKELY(i + kTopKLanes <= n)) {
      const uint64_t some =
          static_cast<uint16_t>(hn::Not(hn::Lt(row.Load(d, i), bound)).raw);
      bits |= some << (v * kTopKLanes);
    } else if (i < n) {
      const auto below = hn::Lt(row.LoadPartial(d, i, n - i), bound);
      const uint64_t some =
          static_cast<uint16_t>(hn::AndNot(below, hn::FirstN(d, n - i)).raw);
      bits |= some << (v * kTopKLanes);
    }
  }
  return bits;
}

// Finds the candidates for the k <= kTopKOneMax best of a row of n elements,
// and their order. Returns false if topk-inl.h has to select from the row,
// because it has a NaN or too many equal elements.
template <class Row>
HWY_INLINE bool SelectTopKOne(const Row& row, size_t n, size_t k, TopKVec& max,
                              TopKOne& to) {
  const TopKTag d;
  const TopKIntTag di;
  size_t count;
  if (n <= kTopKAll) {
    to.logits = max = LoadOrLowest(d, row, 0, n);
    to.ids = hn::Iota(di, 0);
    count = n;
  } else {
    const TopKVec bound = LowerBound(row, n, k, max);
    const __m512i bytes = hn::Iota(hn::Full512<uint8_t>(), 0).raw;
    to.ids = hn::Zero(di);
    count = 0;
    for (size_t i = 0; i < n; i += 64) {
      const uint64_t bits = NotBelow(row, i, n, bound);
      const __m512i some = _mm512_cvtepu8_epi32(
          _mm512_castsi512_si128(_mm512_maskz_compress_epi8(bits, bytes)));
      const TopKIntVec ids =
          hn::Add(TopKIntVec{some}, hn::Set(di, static_cast<int32_t>(i)));
      const uint32_t free = ~_bzhi_u32(0xFFFF, static_cast<uint32_t>(count));
      to.ids.raw = _mm512_mask_expand_epi32(
          to.ids.raw, static_cast<__mmask16>(free), ids.raw);
      count += hwy::PopCount(bits);
    }
    if (HWY_UNLIKELY(count > kTopKLanes)) return false;
    // Avoids a gather, because permutations are faster here.
    to.logits = hn::Zero(d);
    for (size_t i = 0; i < n; i += 2 * kTopKLanes) {
      const TopKVec some{
          _mm512_permutex2var_ps(LoadOrLowest(d, row, i, n).raw, to.ids.raw,
                                 LoadOrLowest(d, row, i + kTopKLanes, n).raw)};
      const auto here = hn::Eq(hn::ShiftRight<5>(to.ids),
                               hn::Set(di, static_cast<int32_t>(i / 32)));
      to.logits = hn::IfThenElse(hn::RebindMask(d, here), some, to.logits);
    }
  }
  const auto valid = hn::FirstN(di, count);
  const TopKIntVec key =
      hn::IfThenElse(valid, KeyFromLogit(di, to.logits), hn::Set(di, kPadKey));
  if (HWY_UNLIKELY(!hn::AllFalse(di, hn::Eq(key, hn::Set(di, kNaNKey)))))
    return false;
  const TopKIntVec rank = RankOfLanes(key, count);
  // Computes the inverse permutation in 64 bits, with four bits for each rank:
  // shifts each lane's number to the bits of its rank. Ranks of 16 and above
  // are shifted out.
  const hn::Full512<uint64_t> d64;
  const __m512i lanes = hn::Iota(d64, 0).raw;
  const __m512i upper = hn::Iota(d64, 8).raw;
  __m512i shifted = _mm512_or_si512(
      _mm512_sllv_epi64(
          lanes, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(rank.raw))),
      _mm512_sllv_epi64(upper, _mm512_cvtepu32_epi64(
                                   _mm512_extracti64x4_epi64(rank.raw, 1))));
  const __m256i four = _mm256_or_si256(_mm512_castsi512_si256(shifted),
                                       _mm512_extracti64x4_epi64(shifted, 1));
  const __m128i two = _mm_or_si128(_mm256_castsi256_si128(four),
                                   _mm256_extracti128_si256(four, 1));
  const __m128i one = _mm_or_si128(two, _mm_unpackhi_epi64(two, two));
  // The low 64 bits of `one` hold 16 numbers of 4 bits. Number s is the lane of
  // the candidate with rank s. Each 32-bit half holds eight numbers. Lane s
  // takes its half, and shifts its number to the low bits.
  const TopKIntVec half = hn::ShiftRight<3>(hn::Iota(di, 0));
  const TopKIntVec shift =
      hn::ShiftLeft<2>(hn::And(hn::Iota(di, 0), hn::Set(di, 7)));
  to.order.raw = _mm512_srlv_epi32(
      _mm512_permutexvar_epi32(half.raw, _mm512_castsi128_si512(one)),
      shift.raw);
  return true;
}

// Returns v in the order of ranks.
HWY_INLINE TopKVec Sorted(TopKVec v, const TopKOne& one) {
  return TopKVec{_mm512_permutexvar_ps(one.order.raw, v.raw)};
}
HWY_INLINE TopKIntVec Sorted(TopKIntVec v, const TopKOne& one) {
  return TopKIntVec{_mm512_permutexvar_epi32(one.order.raw, v.raw)};
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // SWITCHYARD_TOPK_ONE

#endif  // SWITCHYARD_SRC_SIMD_TOPK_ONE_INL_H_
