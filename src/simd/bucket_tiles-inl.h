// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Places pairs in strided rows, one row per expert. It has a path for rows that
// collide in the cache, because their addresses map to few of its sets.

#if defined(SWITCHYARD_SRC_SIMD_BUCKET_TILES_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_BUCKET_TILES_INL_H_
#undef SWITCHYARD_SRC_SIMD_BUCKET_TILES_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_BUCKET_TILES_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "switchyard/views.h"

#include "hwy/highway.h"

#include "src/simd/bucket-inl.h"
#include "src/simd/hwy_compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// The pairs and counters of a tile are on the stack: 32 KB and 8 KB.
constexpr size_t kTilePairs = 8192;
constexpr size_t kMaxTileExperts = 1024;
// With fewer pairs, tiles are not faster.
constexpr size_t kMinTiledPairs = 128;

// Returns the most experts for which placing `pairs` pairs in rows of this
// stride is as fast as with any other stride. If the stride is a multiple of
// 4096 bytes, all rows start in one set of the L1 cache; for a multiple of
// 2048 or 1024 bytes, they start in two or four sets. Smaller strides do no
// harm. With more pairs, more experts fit, because the ends of the rows drift
// apart as rows fill. (Zen 5, 12 ways.)
HWY_INLINE size_t ExpertsThatFit(size_t row_stride, size_t pairs) {
  if (HWY_LIKELY(row_stride % 256 != 0)) return ~size_t{0};
  const size_t few = row_stride % 1024 == 0  ? 16
                     : row_stride % 512 == 0 ? 48
                                             : 160;
  return pairs < 8192     ? few
         : pairs < 16384  ? few * 3 / 2
         : pairs < 131072 ? few * 5 / 2
                          : few * 5;
}

// Estimates whether more than `few` experts share the pairs: counts pairs of
// equal experts in a sample. If ids follow Zipf's law, 64 experts act like 14.
template <class Id>
HWY_NOINLINE bool AmongMore(size_t few, const ConstAnyMatrix& topk_ids,
                            size_t num_experts) {
  int32_t counts[kMaxTileExperts];
  Clear(counts, num_experts);
  const size_t pairs = topk_ids.rows * topk_ids.cols;
  const size_t wanted = HWY_MIN(HWY_MAX(pairs / 64, size_t{64}), size_t{1024});
  const size_t step = HWY_MAX(pairs / wanted, size_t{1});
  size_t sample = 0, same = 0;
  for (size_t t = 0; t < topk_ids.rows; t += step) {
    const Id* HWY_RESTRICT ids = topk_ids.Row<Id>(t);
    for (size_t j = 0; j < topk_ids.cols; ++j) {
      const auto e = static_cast<std::make_unsigned_t<Id>>(ids[j]);
      if (e >= num_experts) continue;
      ++sample;
      same += static_cast<uint32_t>(counts[e]++);
    }
  }
  return 2 * few * same + sample < sample * sample;
}

// Places pairs as PlaceRows() does, without row_index, in rows that collide. It
// packs a tile of pairs first, and then copies it to the rows, so that each
// line of a row is written once or twice. PlaceRows() would write it for each
// pair, and the line might leave the cache each time. A pair would take up to
// 10 ns instead of 0.8 to 1.2. (Writing full lines once is as fast while the
// branch predictor knows the ids, but takes 1.1 to 1.4 times as long for new
// ids.)
template <class Id>
HWY_NOINLINE void PlaceInTiles(const ConstAnyMatrix& topk_ids,
                               size_t num_experts, size_t first_pair,
                               int32_t* HWY_RESTRICT cursors,
                               int32_t* HWY_RESTRICT out, size_t row_stride) {
  const hn::CappedTag<int32_t, 16> d;
  const size_t N = hn::Lanes(d);
  int32_t packed[kTilePairs];
  int32_t counts[kMaxTileExperts];
  int32_t starts[kMaxTileExperts];
  const size_t tile_tokens = kTilePairs / topk_ids.cols;
  for (size_t t = 0; t < topk_ids.rows; t += tile_tokens) {
    const ConstAnyMatrix tile =
        topk_ids.RowRange(t, HWY_MIN(t + tile_tokens, topk_ids.rows));
    Count<Id>(tile, num_experts, counts);
    Scan(counts, num_experts, starts);
    PlaceRows<false, Id>(tile, num_experts, first_pair + t * topk_ids.cols,
                         starts, packed, 0, AnyMatrix());
    const int32_t* HWY_RESTRICT from = packed;
    for (size_t e = 0; e < num_experts; ++e) {
      const size_t n = static_cast<uint32_t>(counts[e]);
      const size_t placed = static_cast<uint32_t>(cursors[e]);
      int32_t* HWY_RESTRICT to = out + (e * row_stride + placed);
      size_t i = 0;
      for (; i + N <= n; i += N) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
      if (i != n) {
        StorePartial(LoadPartial(d, from + i, n - i), d, to + i, n - i);
      }
      from += n;
      cursors[e] = static_cast<int32_t>(placed + n);
    }
  }
}

// Stores pair first_pair + i to out[e * row_stride + cursors[e]++].
template <class Id>
HWY_INLINE void PlaceStrided(const ConstAnyMatrix& topk_ids, size_t num_experts,
                             size_t first_pair, int32_t* HWY_RESTRICT cursors,
                             int32_t* HWY_RESTRICT out, size_t row_stride) {
  const size_t pairs = topk_ids.rows * topk_ids.cols;
  const size_t few = ExpertsThatFit(row_stride, first_pair + pairs);
  if (HWY_UNLIKELY(num_experts > few) && num_experts <= kMaxTileExperts &&
      pairs >= kMinTiledPairs && topk_ids.cols <= kTilePairs &&
      AmongMore<Id>(few, topk_ids, num_experts)) {
    PlaceInTiles<Id>(topk_ids, num_experts, first_pair, cursors, out,
                     row_stride);
  } else {
    PlaceRows<false, Id>(topk_ids, num_experts, first_pair, cursors, out,
                         row_stride, AnyMatrix());
  }
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_BUCKET_TILES_INL_H_
