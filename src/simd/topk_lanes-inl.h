// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Selects the k best of as many rows as a vector has lanes, with a row per
// lane. For one row, topk-inl.h ranks the candidates, moves them to their
// slots, adds up and divides. This file does so for all rows at once, with as
// many instructions as one row takes there. Rows are loaded through 4x4
// transposes within 128-bit blocks, because this is the only shuffle that is
// cheap on every ISA.
//
// To find the bounds, a network sorts the group maxima of all rows at once. The
// k-th maximum is a row's bound, and the filter of topk-inl.h collects the
// elements that reach it. To select, these candidates, in ascending order of
// ids, are inserted into a sorted list of k.

#if defined(SWITCHYARD_SRC_SIMD_TOPK_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_TOPK_LANES_INL_H_
#undef SWITCHYARD_SRC_SIMD_TOPK_LANES_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_TOPK_LANES_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "switchyard/views.h"

#include "hwy/highway.h"

#include "src/simd/candidates-inl.h"
#include "src/simd/topk-inl.h"

// Targets with one lane do not compile this code, because it would not be
// faster.
#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

constexpr size_t kLanesRoom = MaxCandidates(kTopKMax) + kTopKLanes;

// The elements of as many rows as a vector has lanes. Element c of row r is at
// [c * lanes + r], so one load reads element c of every row.
template <class T, size_t kElements>
struct Columns {
  HWY_ALIGN T at[kElements * kTopKLanes];
};

// The k best of each lane's row, in order, and all candidates.
struct TopKOfLanes {
  Columns<float, kTopKMax> sorted;
  Columns<int32_t, kTopKMax> ids;
  // All candidates, in ascending order of ids.
  Columns<float, kLanesRoom> columns;
  // Not 0 if topk-inl.h has to select from the row; the lane is then garbage.
  HWY_ALIGN int32_t hard[kTopKLanes];
};

// A row's candidates. The arrays have twice the size, because whole vectors are
// stored at any candidate: Collect() appends vectors, and the padding of short
// lists follows their last candidate.
struct LanesCandidates {
  HWY_ALIGN float logits[2 * kLanesRoom];
  HWY_ALIGN int32_t ids[2 * kLanesRoom];
};

// Returns where TransposeBlocks() needs elements [4 * block, 4 * block + 4) of
// row r: in vector 4 * block + r % 4, at block r / 4 of that vector.
HWY_INLINE size_t BlockPlace(size_t N, size_t r, size_t block) {
  return (4 * block + r % 4) * N + r / 4 * 4;
}

// Transposes each 4x4 block of four vectors. A second call undoes the first.
template <class D, class T = hn::TFromD<D>>
SWITCHYARD_PIECE void TransposeBlocks(D d, T* HWY_RESTRICT p) {
  const size_t N = hn::Lanes(d);
  const auto v0 = hn::Load(d, p);
  const auto v1 = hn::Load(d, p + N);
  const auto v2 = hn::Load(d, p + 2 * N);
  const auto v3 = hn::Load(d, p + 3 * N);
  const auto even_low = hn::InterleaveLower(d, v0, v2);
  const auto odd_low = hn::InterleaveLower(d, v1, v3);
  const auto even_high = hn::InterleaveUpper(d, v0, v2);
  const auto odd_high = hn::InterleaveUpper(d, v1, v3);
  hn::Store(hn::InterleaveLower(d, even_low, odd_low), d, p);
  hn::Store(hn::InterleaveUpper(d, even_low, odd_low), d, p + N);
  hn::Store(hn::InterleaveLower(d, even_high, odd_high), d, p + 2 * N);
  hn::Store(hn::InterleaveUpper(d, even_high, odd_high), d, p + 3 * N);
}

// Puts v, which has elements i, i + 1, ... of row r, where TransposeBlocks()
// needs them. It may put more than the row has, up to a block boundary.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void PutVector(D d, hn::Vec<D> v, size_t N, size_t r, size_t i,
                          T* HWY_RESTRICT columns) {
#if HWY_HAVE_SCALABLE
  HWY_ALIGN T lanes[kTopKLanes];
  hn::Store(v, d, lanes);
  for (size_t j = 0; j < N; j += 4) {
    std::memcpy(columns + BlockPlace(N, r, (i + j) / 4), lanes + j,
                4 * sizeof(T));
  }
#else
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    PutVector(half, hn::LowerHalf(half, v), N, r, i, columns);
    PutVector(half, hn::UpperHalf(half, v), N, r, i + hn::Lanes(half), columns);
  } else {
    hn::Store(v, d, columns + BlockPlace(N, r, i / 4));
  }
#endif
}
// Reads elements [0, n) of row r from the places that PutVector() uses.
template <class T>
SWITCHYARD_PIECE void TakeRow(size_t N, size_t r, const T* HWY_RESTRICT columns,
                              T* HWY_RESTRICT row, size_t n) {
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    std::memcpy(row + i, columns + BlockPlace(N, r, i / 4), 4 * sizeof(T));
  }
  const T* HWY_RESTRICT block = columns + BlockPlace(N, r, i / 4);
  if (n - i >= 2) {
    std::memcpy(row + i, block, 2 * sizeof(T));
    i += 2;
  }
  if (i < n) row[i] = block[i % 4];
}

HWY_INLINE void Order(TopKVec& high, TopKVec& low) {
  const TopKVec max = hn::Max(high, low);
  low = hn::Min(high, low);
  high = max;
}
// Sorts eight columns in descending order, by the network of 19 comparisons.
SWITCHYARD_PIECE void SortColumns(float* HWY_RESTRICT columns) {
  const TopKTag d;
  const size_t N = hn::Lanes(d);
  TopKVec v0 = hn::Load(d, columns);
  TopKVec v1 = hn::Load(d, columns + N);
  TopKVec v2 = hn::Load(d, columns + 2 * N);
  TopKVec v3 = hn::Load(d, columns + 3 * N);
  TopKVec v4 = hn::Load(d, columns + 4 * N);
  TopKVec v5 = hn::Load(d, columns + 5 * N);
  TopKVec v6 = hn::Load(d, columns + 6 * N);
  TopKVec v7 = hn::Load(d, columns + 7 * N);
  Order(v0, v2), Order(v1, v3), Order(v4, v6), Order(v5, v7);
  Order(v0, v4), Order(v1, v5), Order(v2, v6), Order(v3, v7);
  Order(v0, v1), Order(v2, v3), Order(v4, v5), Order(v6, v7);
  Order(v2, v4), Order(v3, v5);
  Order(v1, v4), Order(v3, v6);
  Order(v1, v2), Order(v3, v4), Order(v5, v6);
  hn::Store(v0, d, columns);
  hn::Store(v1, d, columns + N);
  hn::Store(v2, d, columns + 2 * N);
  hn::Store(v3, d, columns + 3 * N);
  hn::Store(v4, d, columns + 4 * N);
  hn::Store(v5, d, columns + 5 * N);
  hn::Store(v6, d, columns + 6 * N);
  hn::Store(v7, d, columns + 7 * N);
}
// Merges two sorted runs of `count` columns, by a bitonic merge.
SWITCHYARD_PIECE void MergeColumns(float* HWY_RESTRICT columns, size_t count) {
  const TopKTag d;
  const size_t N = hn::Lanes(d);
  const auto order = [d, N, columns](size_t high, size_t low) HWY_ATTR {
    TopKVec a = hn::Load(d, columns + high * N);
    TopKVec b = hn::Load(d, columns + low * N);
    Order(a, b);
    hn::Store(a, d, columns + high * N);
    hn::Store(b, d, columns + low * N);
  };
  for (size_t i = 0; i < count; ++i) order(i, 2 * count - 1 - i);
  for (size_t half = count / 2; half != 0; half /= 2) {
    for (size_t i = 0; i < 2 * count; i += 2 * half) {
      for (size_t j = i; j < i + half; ++j) order(j, j + half);
    }
  }
}
// Returns the k-th largest of two sorted runs of `count` columns. The k largest
// are the first i of one run and the first k - i of the other, for some i, and
// the smallest of these is the k-th largest. For other i, the smallest is not
// larger. So the result is the maximum over all i.
SWITCHYARD_PIECE TopKVec KthOfRuns(const float* HWY_RESTRICT columns,
                                   size_t count, size_t k) {
  const TopKTag d;
  const size_t N = hn::Lanes(d);
  const float* HWY_RESTRICT second = columns + count * N;
  const size_t first_i = k > count ? k - count : 0;
  TopKVec kth = hn::Set(d, -HUGE_VALF);
  for (size_t i = first_i; i <= k - first_i; ++i) {
    const TopKVec last = i == 0 ? hn::Load(d, second + (k - 1) * N)
                         : i == k
                             ? hn::Load(d, columns + (k - 1) * N)
                             : hn::Min(hn::Load(d, columns + (i - 1) * N),
                                       hn::Load(d, second + (k - i - 1) * N));
    kth = hn::Max(kth, last);
  }
  return kth;
}

// Finds a bound for each row, which at least k of the row's elements reach.
template <size_t kGroups, class T>
SWITCHYARD_PIECE void Bounds(const Matrix<const T>& keys, size_t k,
                             float* HWY_RESTRICT bounds) {
  const TopKTag d;
  const size_t N = hn::Lanes(d);
  Columns<float, kGroups> maxima;
  for (size_t r = 0; r < N; ++r) {
    GroupMaxima(KeyRow<T>{keys.Row(HWY_MIN(r, keys.rows - 1))}, keys.cols,
                kGroups, [d, N, r, &maxima](size_t g, TopKVec v) HWY_ATTR {
                  PutVector(d, v, N, r, g, maxima.at);
                });
  }
  for (size_t i = 0; i < kGroups; i += 4) {
    TransposeBlocks(d, maxima.at + i * N);
  }
  for (size_t i = 0; i < kGroups; i += 8) SortColumns(maxima.at + i * N);
  for (size_t run = 8; run < kGroups / 2; run *= 2) {
    for (size_t i = 0; i < kGroups; i += 2 * run) {
      MergeColumns(maxima.at + i * N, run);
    }
  }
  hn::Store(KthOfRuns(maxima.at, kGroups / 2, k), d, bounds);
}

// Inserts n >= k columns of candidates into the sorted lists of `best`. Of
// equal logits, the first inserted stays in front. kColumnIds: the ids are
// the columns' numbers.
template <bool kColumnIds>
SWITCHYARD_PIECE void Insert(const float* HWY_RESTRICT logits,
                             const int32_t* HWY_RESTRICT ids, size_t n,
                             size_t k, TopKOfLanes& best) {
  const TopKTag d;
  const TopKIntTag di;
  const size_t N = hn::Lanes(d);
  // NaN marks a free slot: no logit is less than or equal to NaN, so every
  // candidate goes before it.
  for (size_t slot = 0; slot < k; ++slot) {
    hn::Store(hn::Set(d, std::numeric_limits<float>::quiet_NaN()), d,
              best.sorted.at + slot * N);
  }
  for (size_t c = 0; c < n; ++c) {
    const TopKVec logit = hn::Load(d, logits + c * N);
    const TopKIntVec id = kColumnIds ? hn::Set(di, static_cast<int32_t>(c))
                                     : hn::Load(di, ids + c * N);
    float* to = best.sorted.at + HWY_MIN(c, k - 1) * N;
    int32_t* to_id = best.ids.at + HWY_MIN(c, k - 1) * N;
    TopKVec old = hn::Load(d, to);
    TopKIntVec old_id = hn::Load(di, to_id);
    for (; to != best.sorted.at; to -= N, to_id -= N) {
      const TopKVec above = hn::Load(d, to - N);
      const TopKIntVec above_id = hn::Load(di, to_id - N);
      const auto above_stays = hn::RebindMask(di, hn::Le(logit, above));
      const auto stays = hn::Le(logit, old);
      const TopKVec in = hn::Min(logit, above);
      const TopKIntVec in_id = hn::IfThenElse(above_stays, id, above_id);
      hn::Store(hn::IfThenElse(stays, old, in), d, to);
      hn::Store(hn::IfThenElse(hn::RebindMask(di, stays), old_id, in_id), di,
                to_id);
      old = above;
      old_id = above_id;
    }
    const auto stays = hn::Le(logit, old);
    hn::Store(hn::IfThenElse(stays, old, logit), d, to);
    hn::Store(hn::IfThenElse(hn::RebindMask(di, stays), old_id, id), di, to_id);
  }
}

// Selects the k <= kTopKMax best of each row. There are at most as many rows as
// a vector has lanes. kAll: a row has at most kTopKAll columns.
template <bool kAll, class T>
SWITCHYARD_PIECE void SelectTopKOfLanes(const Matrix<const T>& keys, size_t k,
                                        TopKOfLanes& best) {
  const TopKTag d;
  const TopKIntTag di;
  const size_t N = hn::Lanes(d);
  const size_t rows = keys.rows;
  const size_t n = keys.cols;
  Columns<int32_t, kLanesRoom> ids;
  float* HWY_RESTRICT logits = best.columns.at;
  size_t columns = n;
  if (kAll) {
    for (size_t r = 0; r < N; ++r) {
      const auto row = KeyRow<T>{keys.Row(HWY_MIN(r, rows - 1))};
      for (size_t i = 0; i < n; i += N) {
        PutVector(d, LoadOrLowest(d, row, i, n), N, r, i, logits);
      }
    }
  } else {
    HWY_ALIGN float bounds[kTopKLanes];
    if (NumGroups(k) == 16) {
      Bounds<16>(keys, k, bounds);
    } else if (NumGroups(k) == 32) {
      Bounds<32>(keys, k, bounds);
    } else {
      Bounds<64>(keys, k, bounds);
    }
    LanesCandidates lists[kTopKLanes];
    size_t counts[kTopKLanes];
    columns = k;
    for (size_t r = 0; r < rows; ++r) {
      counts[r] = Collect(KeyRow<T>{keys.Row(r)}, n, k, bounds[r], lists[r].ids,
                          lists[r].logits);
      columns = HWY_MAX(columns, counts[r]);
    }
    // All rows get the same number of candidates, because branches on each
    // row's number would be mispredicted half the time.
    for (size_t r = 0; r < rows; ++r) {
      float* const end = lists[r].logits + counts[r];
      for (size_t i = 0; i < columns; i += N) {
        hn::StoreU(hn::Set(d, -HUGE_VALF), d, end + i);
      }
    }
    for (size_t r = 0; r < N; ++r) {
      const LanesCandidates& list = lists[HWY_MIN(r, rows - 1)];
      for (size_t i = 0; i < columns; i += N) {
        PutVector(d, hn::Load(d, list.logits + i), N, r, i, logits);
        PutVector(di, hn::Load(di, list.ids + i), N, r, i, ids.at);
      }
    }
    for (size_t i = 0; i < columns; i += 4) {
      TransposeBlocks(di, ids.at + i * N);
    }
  }
  for (size_t i = 0; i < columns; i += 4) TransposeBlocks(d, logits + i * N);
  Insert<kAll>(logits, ids.at, columns, k, best);
  // A row is hard if it has a NaN, because its bound may be too high, or if its
  // largest logit is infinite. -inf is also the largest logit of a row with too
  // many candidates, because such a row keeps no candidate.
  const TopKVec max = hn::Load(d, best.sorted.at);
  auto hard = hn::Not(hn::Lt(hn::Abs(max), hn::Set(d, HUGE_VALF)));
  for (size_t i = 0; i < columns; ++i) {
    hard = hn::Or(hard, hn::IsNaN(hn::Load(d, logits + i * N)));
  }
  hn::Store(hn::VecFromMask(di, hn::RebindMask(di, hard)), di, best.hard);
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // SWITCHYARD_SRC_SIMD_TOPK_LANES_INL_H_
