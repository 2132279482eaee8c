// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Counts pairs (a token and one of its experts), scans the counts, and places
// the pairs.

#if defined(SWITCHYARD_SRC_SIMD_BUCKET_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_BUCKET_INL_H_
#undef SWITCHYARD_SRC_SIMD_BUCKET_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_BUCKET_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/simd/bucket.h"
#include "switchyard/views.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Sets counts to 0. memset is slower: for 512 bytes or more, glibc's memset
// takes 11 ns to start (rep stosb), and loads of the cleared bytes have to
// wait. With kPairs, an iteration stores two vectors, which is faster for a
// single token. Functions with other loops must not use kPairs, because it
// takes registers from these loops: on AVX-512, packing pairs would take 10 %
// longer.
template <bool kPairs = false>
HWY_INLINE void Clear(int32_t* HWY_RESTRICT counts, size_t n) {
  const hn::ScalableTag<int32_t> d;
  const size_t N = hn::Lanes(d);
  // Hides from the compiler that the value is zero, so that it does not call
  // memset.
  int32_t hidden = 0;
  asm("" : "+r"(hidden));
  if (n < N) {
    for (size_t i = 0; i < n; ++i) counts[i] = hidden;
    return;
  }
  const auto zero = hn::Set(d, hidden);
  // All stores but the first and the last are aligned, because loads would also
  // have to wait for a store that straddles two cache lines.
  hn::StoreU(zero, d, counts);
  size_t i = N - reinterpret_cast<uintptr_t>(counts) / sizeof(int32_t) % N;
  for (; kPairs && i + 2 * N <= n; i += 2 * N) {
    hn::StoreU(zero, d, counts + i);
    hn::StoreU(zero, d, counts + i + N);
  }
  for (; i + N <= n; i += N) hn::StoreU(zero, d, counts + i);
  hn::StoreU(zero, d, counts + n - N);
}

template <class M>
HWY_INLINE bool Contiguous(const M& m) {
  return m.stride == m.cols || m.rows <= 1;
}

// Counts an id if it is in [0, num_experts). A negative id becomes a large
// unsigned number, so it is not counted.
template <class Id>
HWY_INLINE void CountOne(Id id, uint32_t num_experts, int32_t* counts) {
  const auto e = static_cast<std::make_unsigned_t<Id>>(id);
  if (e < num_experts) ++counts[e];
}

// Counts n ids. Unrolled, it reaches one increment (and store) per cycle.
template <class Id>
HWY_INLINE void CountRun(const Id* HWY_RESTRICT ids, size_t n,
                         uint32_t num_experts, int32_t* HWY_RESTRICT counts) {
  const Id* const end = ids + n;
  const Id* const unrolled_end = end - n % 4;
  for (; ids != unrolled_end; ids += 4) {
    CountOne(ids[0], num_experts, counts);
    CountOne(ids[1], num_experts, counts);
    CountOne(ids[2], num_experts, counts);
    CountOne(ids[3], num_experts, counts);
  }
  for (; ids != end; ++ids) CountOne(*ids, num_experts, counts);
}

// 1 on ISAs with mask registers, where it is faster to count the bits of masks.
// Other ISAs subtract masks from byte counters, and then add up the counters.
#define SWITCHYARD_COUNT_MASKS \
  (HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_SCALAR)
constexpr size_t kManyBytes = 128;

// Adds to `counts` how often each of the experts first, ..., first + 3 is in
// bytes[0, size). `size` is a whole number of vectors, at most 255.
HWY_INLINE void CountBytesOfFour(const uint8_t* HWY_RESTRICT bytes, size_t size,
                                 uint32_t first, int32_t* HWY_RESTRICT counts) {
  const hn::ScalableTag<uint8_t> d;
  const size_t N = hn::Lanes(d);
  const auto e0 = hn::Set(d, static_cast<uint8_t>(first));
  const auto e1 = hn::Set(d, static_cast<uint8_t>(first + 1));
  const auto e2 = hn::Set(d, static_cast<uint8_t>(first + 2));
  const auto e3 = hn::Set(d, static_cast<uint8_t>(first + 3));
#if SWITCHYARD_COUNT_MASKS
  size_t sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
  for (size_t i = 0; i < size; i += N) {
    const auto v = hn::Load(d, bytes + i);
    sum0 += hn::CountTrue(d, hn::Eq(v, e0));
    sum1 += hn::CountTrue(d, hn::Eq(v, e1));
    sum2 += hn::CountTrue(d, hn::Eq(v, e2));
    sum3 += hn::CountTrue(d, hn::Eq(v, e3));
  }
#else
  // Masks of equal lanes are -1, so subtracting a mask adds 1 to their
  // counters.
  auto count0 = hn::Zero(d), count1 = count0, count2 = count0, count3 = count0;
  for (size_t i = 0; i < size; i += N) {
    const auto v = hn::Load(d, bytes + i);
    count0 = hn::Sub(count0, hn::VecFromMask(d, hn::Eq(v, e0)));
    count1 = hn::Sub(count1, hn::VecFromMask(d, hn::Eq(v, e1)));
    count2 = hn::Sub(count2, hn::VecFromMask(d, hn::Eq(v, e2)));
    count3 = hn::Sub(count3, hn::VecFromMask(d, hn::Eq(v, e3)));
  }
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const uint64_t sum0 = hn::GetLane(hn::SumOfLanes(d64, hn::SumsOf8(count0)));
  const uint64_t sum1 = hn::GetLane(hn::SumOfLanes(d64, hn::SumsOf8(count1)));
  const uint64_t sum2 = hn::GetLane(hn::SumOfLanes(d64, hn::SumsOf8(count2)));
  const uint64_t sum3 = hn::GetLane(hn::SumOfLanes(d64, hn::SumsOf8(count3)));
#endif
  counts[first] += static_cast<int32_t>(sum0);
  counts[first + 1] += static_cast<int32_t>(sum1);
  counts[first + 2] += static_cast<int32_t>(sum2);
  counts[first + 3] += static_cast<int32_t>(sum3);
}

// True if CountFew() is faster than CountRun().
HWY_INLINE bool AreFew(size_t num_experts, size_t pairs) {
  const size_t N8 = hn::Lanes(hn::ScalableTag<uint8_t>());
  if (pairs < N8) return false;
  return num_experts <= N8 / 4 ||
         (num_experts <= HWY_MIN(N8 / 2, size_t{16}) && pairs >= kManyBytes);
}

// Counts the ids of few experts: compares the ids, as bytes, with each expert.
// CountRun() would increment a counter again before the previous increment has
// left the store buffer. On AVX2, CountFew() saves 0.1 ns a pair for 16
// experts, or 0.3 if ids follow Zipf's law. With vectors of 16 bytes, it is
// faster for up to 8 experts. For 64 experts, it takes 1.0 to 1.5 times as long
// as CountRun().
inline HWY_NOINLINE void CountFew(const int32_t* HWY_RESTRICT ids, size_t n,
                                  uint32_t num_experts,
                                  int32_t* HWY_RESTRICT counts) {
  const hn::ScalableTag<uint8_t> d8;
  const hn::ScalableTag<uint32_t> d32;
  const hn::RebindToSigned<decltype(d32)> di32;
  const hn::Rebind<uint8_t, decltype(d32)> d8_part;
  const size_t N8 = hn::Lanes(d8);
  const size_t N32 = hn::Lanes(d32);
  constexpr size_t kChunk = 2048;
  HWY_ALIGN uint8_t bytes[kChunk];
  const size_t vectors_end = n - n % N8;
  for (size_t begin = 0; begin < vectors_end; begin += kChunk) {
    const size_t size = HWY_MIN(kChunk, vectors_end - begin);
    for (size_t i = 0; i < size; i += N32) {
      const auto v = hn::BitCast(d32, hn::LoadU(di32, ids + begin + i));
      const auto valid = hn::Min(v, hn::Set(d32, 255));
      hn::StoreU(hn::DemoteTo(d8_part, hn::BitCast(di32, valid)), d8_part,
                 bytes + i);
    }
    uint32_t e = 0;
    if (SWITCHYARD_COUNT_MASKS || size >= kManyBytes) {
      for (; e + 4 <= num_experts; e += 4) {
        CountBytesOfFour(bytes, size, e, counts);
      }
    }
    for (; e < num_experts; ++e) {
      const auto expert = hn::Set(d8, static_cast<uint8_t>(e));
      size_t count = 0;
      for (size_t i = 0; i < size; i += N8) {
        count += hn::CountTrue(d8, hn::Eq(hn::Load(d8, bytes + i), expert));
      }
      counts[e] += static_cast<int32_t>(count);
    }
  }
  CountRun(ids + vectors_end, n - vectors_end, num_experts, counts);
}

template <class Id>
HWY_INLINE void Count(const ConstAnyMatrix& topk_ids, size_t num_experts,
                      int32_t* HWY_RESTRICT counts) {
  const uint32_t limit = static_cast<uint32_t>(num_experts);
  Clear(counts, num_experts);
  if (!Contiguous(topk_ids)) {
    for (size_t t = 0; t < topk_ids.rows; ++t) {
      CountRun(topk_ids.Row<Id>(t), topk_ids.cols, limit, counts);
    }
    return;
  }
  const size_t n = topk_ids.rows * topk_ids.cols;
  if constexpr (sizeof(Id) == sizeof(int32_t)) {
    if (AreFew(num_experts, n)) {
      CountFew(topk_ids.Row<Id>(0), n, limit, counts);
      return;
    }
  }
  CountRun(topk_ids.Row<Id>(0), n, limit, counts);
}

// Sets `counts` to the sum of `blocks` rows of counts, and replaces each row by
// the sum of the rows before it.
HWY_INLINE void SumBlocks(int32_t* rows, size_t blocks, size_t num_experts,
                          int32_t* HWY_RESTRICT counts) {
  Clear(counts, num_experts);
  for (size_t b = 0; b < blocks; ++b) {
    int32_t* HWY_RESTRICT row = rows + b * num_experts;
    for (size_t e = 0; e < num_experts; ++e) {
      const int32_t count = row[e];
      row[e] = counts[e];
      counts[e] += count;
    }
  }
}

HWY_INLINE BucketTotals Total(const int32_t* HWY_RESTRICT counts,
                              size_t num_experts) {
  BucketTotals totals;
  for (size_t e = 0; e < num_experts; ++e) {
    totals.max = HWY_MAX(totals.max, counts[e]);
    totals.pairs += counts[e];
  }
  return totals;
}

#if HWY_TARGET != HWY_SCALAR
// Adds lane i - distance to each lane i >= distance. (The indices and the mask
// do not change in a loop, so the compiler keeps them in registers.)
template <class D, class V>
HWY_INLINE V AddBelow(D d, V v, int32_t distance) {
  const auto from = hn::Sub(hn::Iota(d, 0), hn::Set(d, distance));
  const auto zero = hn::Zero(d);
  const auto below =
      hn::TableLookupLanes(v, hn::IndicesFromVec(d, hn::Max(from, zero)));
  return hn::Add(v, hn::IfThenElseZero(hn::Gt(from, hn::Set(d, -1)), below));
}
#endif

// A prefix sum: starts[e] = sum of counts[i] over i < e. Only the addition to
// `sum` waits for the previous vector.
HWY_INLINE BucketTotals Scan(const int32_t* HWY_RESTRICT counts,
                             size_t num_experts, int32_t* HWY_RESTRICT starts) {
  BucketTotals totals;
  size_t e = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<int32_t, 16> d;
  const size_t N = hn::Lanes(d);
  const auto last =
      hn::IndicesFromVec(d, hn::Set(d, static_cast<int32_t>(N) - 1));
  auto sum = hn::Zero(d);
  auto max = hn::Zero(d);
  for (; e + N <= num_experts; e += N) {
    const auto v = hn::LoadU(d, counts + e);
    max = hn::Max(max, v);
    auto inclusive = AddBelow(d, v, 1);
    inclusive = AddBelow(d, inclusive, 2);
    if (N > 4) inclusive = AddBelow(d, inclusive, 4);
    if (N > 8) inclusive = AddBelow(d, inclusive, 8);
    hn::StoreU(hn::Add(sum, hn::Sub(inclusive, v)), d, starts + e);
    sum = hn::Add(sum, hn::TableLookupLanes(inclusive, last));
  }
  totals.max = hn::GetLane(hn::MaxOfLanes(d, max));
  totals.pairs = hn::GetLane(sum);
#endif
  for (; e < num_experts; ++e) {
    starts[e] = totals.pairs;
    totals.max = HWY_MAX(totals.max, counts[e]);
    totals.pairs += counts[e];
  }
  return totals;
}

// Stores pair first_pair + i at its expert's cursor, and advances the cursor.
// (This is not a lambda of PlaceRun(), because GCC does not inline all calls of
// a lambda, and placing then takes 2.3 times as long.)
template <bool kRowIndex, class Id>
HWY_INLINE void PlaceOne(const Id* HWY_RESTRICT ids, size_t i,
                         uint32_t num_experts, size_t first_pair,
                         uint32_t* HWY_RESTRICT cursors,
                         int32_t* HWY_RESTRICT out, size_t row_stride,
                         int32_t* HWY_RESTRICT row_index) {
  const auto e = static_cast<std::make_unsigned_t<Id>>(ids[i]);
  // The position is unsigned, to avoid a sign extension.
  size_t position = ~size_t{0};
  if (e < num_experts) {
    position = cursors[e];
    // Keeps the position in a register. Otherwise GCC may load it again from
    // row_index, which costs a fifth of the time.
    asm("" : "+r"(position));
    cursors[e] = static_cast<uint32_t>(position) + 1;
    out[e * row_stride + position] = static_cast<int32_t>(first_pair + i);
  }
  if (kRowIndex) row_index[i] = static_cast<int32_t>(position);
}

template <bool kRowIndex, class Id>
HWY_INLINE void PlaceRun(const Id* HWY_RESTRICT ids, size_t n,
                         uint32_t num_experts, size_t first_pair,
                         int32_t* HWY_RESTRICT cursors,
                         int32_t* HWY_RESTRICT out, size_t row_stride,
                         int32_t* HWY_RESTRICT row_index) {
  uint32_t* HWY_RESTRICT next = reinterpret_cast<uint32_t*>(cursors);
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t j = 0; j < 4; ++j) {
      PlaceOne<kRowIndex>(ids, i + j, num_experts, first_pair, next, out,
                          row_stride, row_index);
    }
    if (kRowIndex) {
      // Prefetches the line that later stores to row_index need. The hardware
      // does not prefetch it: stores do not train the prefetcher of the L1
      // cache, and they leave the store buffer in order. If row_index is larger
      // than the L1 cache, this halves the time.
      __builtin_prefetch(reinterpret_cast<const char*>(row_index + i) + 256, 1);
    }
  }
  for (; i < n; ++i) {
    PlaceOne<kRowIndex>(ids, i, num_experts, first_pair, next, out, row_stride,
                        row_index);
  }
}

template <bool kRowIndex, class Id>
HWY_INLINE void PlaceRows(const ConstAnyMatrix& topk_ids, size_t num_experts,
                          size_t first_pair, int32_t* HWY_RESTRICT cursors,
                          int32_t* HWY_RESTRICT out, size_t row_stride,
                          const AnyMatrix& row_index) {
  const uint32_t limit = static_cast<uint32_t>(num_experts);
  const size_t cols = topk_ids.cols;
  if (Contiguous(topk_ids) && (!kRowIndex || Contiguous(row_index))) {
    PlaceRun<kRowIndex>(topk_ids.Row<Id>(0), topk_ids.rows * cols, limit,
                        first_pair, cursors, out, row_stride,
                        row_index.Row<int32_t>(0));
    return;
  }
  for (size_t t = 0; t < topk_ids.rows; ++t) {
    PlaceRun<kRowIndex>(topk_ids.Row<Id>(t), cols, limit, first_pair + t * cols,
                        cursors, out, row_stride,
                        kRowIndex ? row_index.Row<int32_t>(t) : nullptr);
  }
}

// Stores pair first_pair + i to out[cursors[e]++]. If row_index has data,
// stores the pair's position there, or -1 if the pair is dropped.
template <class Id>
HWY_INLINE void PlacePacked(const ConstAnyMatrix& topk_ids, size_t num_experts,
                            size_t first_pair, int32_t* HWY_RESTRICT cursors,
                            int32_t* HWY_RESTRICT out,
                            const AnyMatrix& row_index) {
  if (row_index.data != nullptr) {
    PlaceRows<true, Id>(topk_ids, num_experts, first_pair, cursors, out, 0,
                        row_index);
  } else {
    PlaceRows<false, Id>(topk_ids, num_experts, first_pair, cursors, out, 0,
                         row_index);
  }
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_BUCKET_INL_H_
