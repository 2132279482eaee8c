// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A short list of candidates for the k best of a row, and its sort. The sort
// counts how many candidates precede each candidate. The count is the slot of
// the candidate. switchyard/route.h defines the order: larger numbers first,
// -0 equal to +0, NaN last, and among equal numbers the smaller index first.

#if defined(SWITCHYARD_SRC_SIMD_CANDIDATES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_CANDIDATES_INL_H_
#undef SWITCHYARD_SRC_SIMD_CANDIDATES_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_CANDIDATES_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/simd/targets.h"

#include "hwy/highway.h"

// This part is compiled once, not per target.
#ifndef SWITCHYARD_SRC_SIMD_CANDIDATES_TABLES_
#define SWITCHYARD_SRC_SIMD_CANDIDATES_TABLES_

namespace switchyard::simd {

constexpr size_t kTopKLanes = 16;  // the most lanes that a vector has

struct TopKTables {
  alignas(64) int32_t one_hot[kTopKLanes][kTopKLanes] = {};
  alignas(64) int32_t iota[kTopKLanes] = {};
  // The positions of a byte's set bits, in ascending order, then zeros.
  alignas(64) uint8_t set_bits[256][8] = {};

  constexpr TopKTables() {
    for (size_t i = 0; i < kTopKLanes; ++i) {
      one_hot[i][i] = 1;
      iota[i] = static_cast<int32_t>(i);
    }
    for (size_t byte = 0; byte < 256; ++byte) {
      size_t count = 0;
      for (size_t bit = 0; bit < 8; ++bit) {
        if ((byte >> bit & 1) != 0) {
          set_bits[byte][count++] = static_cast<uint8_t>(bit);
        }
      }
    }
  }
};
inline constexpr TopKTables kTopKTables;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_CANDIDATES_TABLES_

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using TopKTag = hn::CappedTag<float, kTopKLanes>;
using TopKIntTag = hn::RebindToSigned<TopKTag>;
using TopKVec = hn::Vec<TopKTag>;
using TopKIntVec = hn::Vec<TopKIntTag>;

// kTopKMax: the most elements that one sort finds. The list may have more
// candidates: sorting 80 takes 0.3 us on AVX-512.
constexpr size_t kTopKMax = 32;
constexpr size_t MaxCandidates(size_t k) { return 16 + 2 * k; }
// The number of elements of the list's arrays. It is larger than
// MaxCandidates(), because whole vectors are stored at the place of any
// candidate, and because a vector of pads follows the candidates.
constexpr size_t kTopKRoom = MaxCandidates(kTopKMax) + 2 * kTopKLanes;

// Keys are integers that compare like logits: -0 equals +0, NaN is least.
constexpr int32_t kPadKey = INT32_MIN + 1;
constexpr int32_t kNaNKey = INT32_MIN + 2;

struct Candidates {
  HWY_ALIGN float logits[kTopKRoom];
  HWY_ALIGN int32_t keys[kTopKRoom];
  HWY_ALIGN int32_t ids[kTopKRoom];
  HWY_ALIGN int32_t ranks[kTopKRoom];
};

// The k best, then other elements and pads, so that a vector loaded at any of
// the first k has defined values.
struct TopK {
  HWY_ALIGN int32_t keys[kTopKRoom];
  HWY_ALIGN int32_t ids[kTopKRoom];
  bool nan;  // the row has a NaN, even if it is not among the k best
};

HWY_INLINE TopKIntVec FlipIfNegative(TopKIntTag di, TopKIntVec v) {
  return hn::Xor(v, hn::And(hn::ShiftRight<31>(v), hn::Set(di, INT32_MAX)));
}
HWY_INLINE TopKIntVec KeyFromLogit(TopKIntTag di, TopKVec logit) {
  const TopKTag d;
  const TopKIntVec bits = hn::BitCast(di, hn::Add(logit, hn::Zero(d)));
  return hn::IfThenElse(hn::RebindMask(di, hn::IsNaN(logit)),
                        hn::Set(di, kNaNKey), FlipIfNegative(di, bits));
}
// Returns +0 for the key of -0, and a NaN for kNaNKey and kPadKey.
HWY_INLINE TopKVec LogitFromKey(TopKTag d, TopKIntVec key) {
  return hn::BitCast(d, FlipIfNegative(TopKIntTag(), key));
}
HWY_INLINE float LogitFromKey(int32_t key) {
  const int32_t bits = key < 0 ? key ^ INT32_MAX : key;
  float logit;
  std::memcpy(&logit, &bits, sizeof(logit));
  return logit;
}

// Returns the number of loop steps for n candidates: n rounded up to a multiple
// of kTopKUnroll. Rounding up to whole vectors would make more steps, and a
// loop of exactly n steps would be hard to predict.
constexpr size_t kTopKUnroll = HWY_TARGET == HWY_SCALAR ? 1 : 4;
HWY_INLINE size_t TopKSteps(size_t n) {
  return (n + kTopKUnroll - 1) / kTopKUnroll * kTopKUnroll;
}

// Adds 1 to v where the mask is true.
HWY_INLINE TopKIntVec AddIf(hn::Mask<TopKIntTag> mask, TopKIntVec v) {
  const TopKIntTag di;
#if HWY_TARGET <= HWY_AVX3  // becomes one masked add
  return hn::IfThenElse(mask, hn::Add(v, hn::Set(di, 1)), v);
#else
  return hn::Sub(v, hn::VecFromMask(di, mask));
#endif
}

// StoreIf() stores the lanes of `ids` and `logits` where the mask is true,
// without gaps, and up to a vector of garbage behind them. Returns the number
// of true lanes. `ids` is FirstIds() plus a multiple of the number of lanes.
// Highway's Compress does the same, but for AVX2 and SSE, GCC copies its
// tables to the stack each time (1 KiB, 14 ns).
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET <= HWY_AVX3 || HWY_HAVE_SCALABLE
HWY_INLINE TopKIntVec FirstIds() { return hn::Iota(TopKIntTag(), 0); }
HWY_INLINE size_t StoreIf(hn::Mask<TopKIntTag> mask, TopKIntVec ids,
                          TopKVec logits, int32_t* HWY_RESTRICT to,
                          float* HWY_RESTRICT logits_to) {
  const TopKTag d;
  const TopKIntTag di;
  // Avoids CompressStore, which is slow on CPUs where it is one instruction.
  hn::StoreU(hn::Compress(ids, mask), di, to);
  hn::StoreU(hn::Compress(logits, hn::RebindMask(d, mask)), d, logits_to);
  return hn::CountTrue(di, mask);
}
#else
HWY_INLINE TopKIntVec FirstIds() { return hn::Zero(TopKIntTag()); }
HWY_INLINE size_t StoreIf(hn::Mask<TopKIntTag> mask, TopKIntVec ids,
                          TopKVec logits, int32_t* HWY_RESTRICT to,
                          float* HWY_RESTRICT logits_to) {
  const TopKTag d;
  const TopKIntTag di;
  const hn::Rebind<uint8_t, TopKIntTag> d8;
  uint8_t bits[8];  // at most 8 lanes, so bits[0] has all bits
  hn::StoreMaskBits(di, mask, bits);
  const auto lanes =
      hn::PromoteTo(di, hn::LoadU(d8, kTopKTables.set_bits[bits[0]]));
  hn::StoreU(hn::Add(ids, lanes), di, to);
  hn::StoreU(hn::TableLookupLanes(logits, hn::IndicesFromVec(d, lanes)), d,
             logits_to);
  return hwy::PopCount(uint64_t{bits[0]});
}
#endif

// Computes the keys of the candidates, and fills the last vector with pads.
// Returns true if a candidate is a NaN.
SWITCHYARD_PIECE bool MakeKeys(size_t count, Candidates& list) {
  const TopKTag d;
  const TopKIntTag di;
  const size_t N = hn::Lanes(di);
  const TopKIntVec pad = hn::Set(di, kPadKey);
  bool nan = false;
  for (size_t i = 0; i < count; i += N) {
    TopKIntVec key = KeyFromLogit(di, hn::Load(d, list.logits + i));
    if (i + N > count) {
      key = hn::IfThenElse(hn::FirstN(di, count - i), key, pad);
    }
    nan |= !hn::AllFalse(di, hn::Eq(key, hn::Set(di, kNaNKey)));
    hn::Store(key, di, list.keys + i);
  }
  return nan;
}

// Counts, for each candidate, the candidates before it: candidates with a
// larger key, and candidates to its left with an equal key, because equal
// keys are in ascending order of ids. So candidate i is compared as key - 1
// with candidates to its left, and as key with candidates to its right.
SWITCHYARD_PIECE void Rank(size_t count, Candidates& list) {
  const TopKIntTag di;
  const size_t N = hn::Lanes(di);
  const size_t steps = TopKSteps(count);
  for (size_t i = 0; i < count; i += N) {
    const TopKIntVec key = hn::Load(di, list.keys + i);
    TopKIntVec than = hn::Sub(key, hn::Set(di, 1));
    TopKIntVec rank = hn::Zero(di);
    size_t j = 0;
    for (; j < i; j += kTopKUnroll) {
      for (size_t u = 0; u < kTopKUnroll; ++u) {
        rank = AddIf(hn::Gt(hn::Set(di, list.keys[j + u]), than), rank);
      }
    }
    for (; j < HWY_MIN(i + N, steps); j += kTopKUnroll) {
      for (size_t u = 0; u < kTopKUnroll; ++u) {
        // Lane j - i is candidate j. From here on, this lane counts only
        // larger keys, because it has been compared with all candidates to
        // its left.
        const auto one = hn::Load(di, kTopKTables.one_hot[j + u - i]);
        than = hn::Add(than, one);
        rank = AddIf(hn::Gt(hn::Set(di, list.keys[j + u]), than), rank);
      }
    }
    for (; j < steps; j += kTopKUnroll) {
      for (size_t u = 0; u < kTopKUnroll; ++u) {
        rank = AddIf(hn::Gt(hn::Set(di, list.keys[j + u]), key), rank);
      }
    }
    hn::Store(rank, di, list.ranks + i);
  }
}

// Moves each candidate to the slot of its rank. Pads keep their place.
SWITCHYARD_PIECE void Place(const Candidates& list,
                            const int32_t* HWY_RESTRICT ids, size_t count,
                            TopK& to) {
  const TopKIntTag di;
  const size_t steps = TopKSteps(count);
  hn::StoreU(hn::Set(di, kPadKey), di, to.keys + steps);
  for (size_t i = 0; i < steps; i += kTopKUnroll) {
    for (size_t u = 0; u < kTopKUnroll; ++u) {
      const size_t rank = static_cast<uint32_t>(list.ranks[i + u]);
      to.keys[rank] = list.keys[i + u];
      to.ids[rank] = ids[i + u];
    }
  }
}

SWITCHYARD_PIECE void Sort(size_t count, Candidates& list, TopK& to) {
  MakeKeys(count, list);
  Rank(count, list);
  Place(list, list.ids, count, to);
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_CANDIDATES_INL_H_
