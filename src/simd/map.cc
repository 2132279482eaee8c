// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/map.h"

#include <cstring>
#include <type_traits>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/map.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/bucket-inl.h"
#include "src/simd/hwy_compat-inl.h"
#include "src/simd/map_tokens-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// kMapTile buckets are computed at once: 8 KB on the stack.
constexpr size_t kMapTile = 2048;

// Returns the buckets of ids[0, n): `tile`, or the ids themselves if each id is
// the number of its bucket.
template <class Id>
HWY_INLINE const int32_t* BucketsOf(const MapArgs& args,
                                    const Id* HWY_RESTRICT ids, size_t n,
                                    int32_t* HWY_RESTRICT tile) {
  using U = std::make_unsigned_t<Id>;
  const U num_ids = static_cast<U>(args.map.num_ids);
  if (args.map.table != nullptr) {
    const int32_t* HWY_RESTRICT table = args.map.table;
    size_t i = 0;
    if constexpr (std::is_same_v<Id, int32_t>) {
      const hn::ScalableTag<int32_t> d;
      const size_t N = hn::Lanes(d);
      const auto end = hn::Set(d, static_cast<int32_t>(num_ids));
      const auto none = hn::Set(d, -1);
      for (; i + N <= n; i += N) {
        const auto id = hn::LoadU(d, ids + i);
        const auto known = hn::And(hn::Gt(id, none), hn::Lt(id, end));
        const auto index = hn::IfThenElseZero(known, id);
        const auto bucket = hn::GatherIndex(d, table, index);
        hn::StoreU(hn::IfThenElse(known, bucket, none), d, tile + i);
      }
    }
    for (; i < n; ++i) {
      const U id = static_cast<U>(ids[i]);
      const int32_t bucket = table[id < num_ids ? id : 0];
      tile[i] = id < num_ids ? bucket : -1;
    }
    return tile;
  }
  if constexpr (std::is_same_v<Id, int32_t>) {
    if (args.map.divide.divisor() == 1) return ids;
  }
  const Divider divide = args.map.divide;
  for (size_t i = 0; i < n; ++i) {
    const U id = static_cast<U>(ids[i]);
    const uint32_t bucket = divide(static_cast<uint32_t>(id));
    tile[i] = id < num_ids ? static_cast<int32_t>(bucket) : -1;
  }
  return tile;
}

// Returns the buckets of n pairs of a token (or of several tokens), beginning
// at slot i. It branches on the type of the ids for each tile, because
// compiling each pass for each type would double the code.
HWY_NOINLINE const int32_t* Buckets(const MapArgs& args, size_t token, size_t i,
                                    size_t n, int32_t* HWY_RESTRICT tile) {
  const ConstAnyMatrix& ids = args.topk_ids;
  return ids.type == Type::kI64
             ? BucketsOf(args, ids.Row<int64_t>(token) + i, n, tile)
             : BucketsOf(args, ids.Row<int32_t>(token) + i, n, tile);
}

HWY_INLINE int32_t* IndexRow(const AnyMatrix& index, size_t token, size_t i) {
  return index.data == nullptr ? nullptr : index.Row<int32_t>(token) + i;
}

// Calls visit(buckets, n, token, i) for all pairs of a block. Each call
// passes the buckets of n pairs of a token, beginning at slot i. If all rows
// are contiguous, it passes the buckets of n pairs of the block instead,
// beginning at pair i. With keeps_buckets, the counting pass stores buckets
// in row_index; the placing pass reads them, then stores positions.
template <bool kPlaces, class Visitor>
HWY_INLINE void ForBlock(const MapArgs& args, size_t block, Visitor& visit) {
  const size_t first = block * args.block_tokens;
  const size_t last = HWY_MIN(first + args.block_tokens, args.topk_ids.rows);
  const bool whole = Contiguous(args.topk_ids) && Contiguous(args.row_index) &&
                     Contiguous(args.first_index);
  const size_t cols = args.topk_ids.cols;
  const size_t n = whole ? (last - first) * cols : cols;
  HWY_ALIGN int32_t tile[kMapTile];
  for (size_t t = first; t < (whole ? first + 1 : last); ++t) {
    for (size_t i = 0; i < n; i += kMapTile) {
      const size_t size = HWY_MIN(kMapTile, n - i);
      if (args.keeps_buckets) {
        int32_t* const kept = IndexRow(args.row_index, t, i);
        if (!kPlaces) Buckets(args, t, i, size, tile);
        std::memcpy(kPlaces ? tile : kept, kPlaces ? kept : tile,
                    size * sizeof(int32_t));
        visit(tile, size, t, i);
      } else {
        visit(Buckets(args, t, i, size, tile), size, t, i);
      }
    }
  }
}

struct CountPairs {
  uint32_t num_buckets;
  int32_t* counts;

  HWY_INLINE void operator()(const int32_t* HWY_RESTRICT buckets, size_t n,
                             size_t /*token*/, size_t /*i*/) {
    if (AreFew(num_buckets, n)) {
      CountFew(buckets, n, num_buckets, counts);
    } else {
      CountRun(buckets, n, num_buckets, counts);
    }
  }
};

struct PlacePairs {
  const MapArgs& args;
  int32_t* cursors;

  HWY_INLINE void operator()(const int32_t* HWY_RESTRICT buckets, size_t n,
                             size_t token, size_t i) {
    const uint32_t num_buckets = static_cast<uint32_t>(args.num_buckets);
    const size_t first_pair = token * args.topk_ids.cols + i;
    int32_t* HWY_RESTRICT index = IndexRow(args.row_index, token, i);
    if (args.limited) {
      PlaceLimited(buckets, n, first_pair, index);
    } else if (index != nullptr) {
      PlaceRun<true>(buckets, n, num_buckets, first_pair, cursors, args.out, 0,
                     index);
    } else {
      PlaceRun<false>(buckets, n, num_buckets, first_pair, cursors, args.out, 0,
                      index);
    }
  }

 private:
  // Places only the pairs that fit. counts[e] is the end of bucket e.
  HWY_INLINE void PlaceLimited(const int32_t* HWY_RESTRICT buckets, size_t n,
                               size_t first_pair, int32_t* HWY_RESTRICT index) {
    const int32_t* HWY_RESTRICT ends = args.counts;
    for (size_t i = 0; i < n; ++i) {
      const uint32_t e = static_cast<uint32_t>(buckets[i]);
      int32_t position = -1;
      // A cursor behind the end can exceed 2^31, so the comparison is unsigned.
      if (e < args.num_buckets &&
          static_cast<uint32_t>(cursors[e]) < static_cast<uint32_t>(ends[e])) {
        position = cursors[e]++;
        args.out[position] = static_cast<int32_t>(first_pair + i);
      }
      if (index != nullptr) index[i] = position;
    }
  }
};

template <class Seen>
struct CountTokens {
  size_t num_buckets;
  int32_t* counts;
  Token<Seen> token;

  HWY_INLINE void operator()(const int32_t* HWY_RESTRICT buckets, size_t n,
                             size_t /*row*/, size_t /*from*/) {
    for (size_t i = 0; i < n;) {
      for (const size_t end = i + token.Next(n - i); i < end; ++i) {
        const uint32_t e = static_cast<uint32_t>(buckets[i]);
        if (e < num_buckets) counts[e] += token.First(e);
      }
    }
  }
};

template <class Seen>
struct PlaceTokens {
  const MapArgs& args;
  int32_t* cursors;
  Token<Seen> token;

  // If the token is already the last token in the bucket, it is written again,
  // to avoid a branch that no branch predictor can predict.
  HWY_INLINE void operator()(const int32_t* HWY_RESTRICT buckets, size_t n,
                             size_t row, size_t from) {
    int32_t* HWY_RESTRICT index = IndexRow(args.row_index, row, from);
    int32_t* HWY_RESTRICT firsts = IndexRow(args.first_index, row, from);
    int32_t* HWY_RESTRICT out = args.out;
    int32_t* HWY_RESTRICT next = cursors;
    const size_t num_buckets = args.num_buckets;
    for (size_t i = 0; i < n;) {
      for (const size_t end = i + token.Next(n - i); i < end; ++i) {
        const uint32_t e = static_cast<uint32_t>(buckets[i]);
        int32_t position = -1, first_position = -1;
        if (e < num_buckets) {
          const int32_t first = token.First(e);
          const int32_t after = next[e] + first;
          next[e] = after;
          position = after - 1;
          out[position] = token.index();
          first_position = position | (first - 1);  // -1 if not the first
        }
        if (index != nullptr) index[i] = position;
        if (firsts != nullptr) firsts[i] = first_position;
      }
    }
  }
};

// CountTokensOf() and PlaceTokensOf() are separate functions, so that each
// keeps its visitor in registers.
template <class Seen>
HWY_NOINLINE void CountTokensOf(const MapArgs& args, size_t block,
                                int32_t* counts) {
  CountTokens<Seen> visit = {args.num_buckets, counts,
                             Token<Seen>(args, block)};
  ForBlock<false>(args, block, visit);
}
template <class Seen>
HWY_NOINLINE void PlaceTokensOf(const MapArgs& args, size_t block,
                                int32_t* cursors) {
  PlaceTokens<Seen> visit = {args, cursors, Token<Seen>(args, block)};
  ForBlock<true>(args, block, visit);
}

void CountMapped(const MapArgs& args, size_t begin, size_t end) {
  for (size_t b = begin; b < end; ++b) {
    int32_t* const counts = args.cursors == nullptr
                                ? args.counts
                                : args.cursors + b * args.num_buckets;
    Clear(counts, args.num_buckets);
    if (args.tokens && args.num_buckets <= SeenFew::kMaxBuckets) {
      CountTokensOf<SeenFew>(args, b, counts);
    } else if (args.tokens) {
      CountTokensOf<SeenMany>(args, b, counts);
    } else {
      CountPairs visit = {static_cast<uint32_t>(args.num_buckets), counts};
      ForBlock<false>(args, b, visit);
    }
  }
}

void ScanMapped(const MapArgs& args, size_t /*begin*/, size_t end) {
  const size_t n = args.num_buckets;
  int32_t* HWY_RESTRICT counts = args.counts;
  if (args.cursors != nullptr) SumBlocks(args.cursors, end, n, counts);
  // With a single block, offsets + 1 serve as cursors: each cursor ends where
  // its bucket ends, which is the next bucket's offset.
  int32_t* starts = args.cursors == nullptr && args.out != nullptr
                        ? args.offsets + 1
                        : args.offsets;
  MapTotals totals;
  int32_t start = 0;
  for (size_t e = 0; e < n; ++e) {
    const int32_t found = counts[e];
    const int32_t kept = args.limited ? HWY_MIN(found, args.capacity) : found;
    totals.found += found;
    totals.kept += kept;
    totals.max = HWY_MAX(totals.max, kept);
    if (args.out == nullptr) continue;
    if (args.limited) counts[e] = start + kept;
    starts[e] = start;
    start += args.block.RoundUp(kept);
  }
  *args.totals = totals;
}

void PlaceMapped(const MapArgs& args, size_t begin, size_t end) {
  for (size_t b = begin; b < end; ++b) {
    int32_t* cursors = args.offsets + 1;
    if (args.cursors != nullptr) {
      cursors = args.cursors + b * args.num_buckets;
      for (size_t e = 0; e < args.num_buckets; ++e) {
        cursors[e] =
            static_cast<int32_t>(static_cast<uint32_t>(cursors[e]) +
                                 static_cast<uint32_t>(args.offsets[e]));
      }
    }
    if (args.tokens && args.num_buckets <= SeenFew::kMaxBuckets) {
      PlaceTokensOf<SeenFew>(args, b, cursors);
    } else if (args.tokens) {
      PlaceTokensOf<SeenMany>(args, b, cursors);
    } else {
      PlacePairs visit = {args, cursors};
      ForBlock<true>(args, b, visit);
    }
  }
}

void Offsets(const MapArgs& args, size_t /*begin*/, size_t /*end*/) {
  int32_t start = 0;
  for (size_t e = 0; e < args.num_buckets; ++e) {
    if (args.limited) args.counts[e] -= start;
    args.offsets[e] = start;
    start += args.block.RoundUp(args.counts[e]);
  }
  args.offsets[args.num_buckets] = start;
}

void Pad(const MapArgs& args, size_t begin, size_t end) {
  const int32_t pairs =
      static_cast<int32_t>(args.topk_ids.rows * args.topk_ids.cols);
  for (size_t e = begin; e < end; ++e) {
    const int32_t start = args.offsets[e], next = args.offsets[e + 1];
    for (int32_t i = start + args.counts[e]; i < next; ++i) {
      args.out[i] = pairs;
    }
    if (args.block_buckets == nullptr) continue;
    const uint32_t last = args.block(static_cast<uint32_t>(next));
    for (uint32_t b = args.block(static_cast<uint32_t>(start)); b < last; ++b) {
      args.block_buckets[b] = static_cast<int32_t>(e);
    }
  }
}

void Tokens(const MapArgs& args, size_t begin, size_t end) {
  const Divider top_k = args.top_k;
  for (size_t i = begin; i < end; ++i) {
    args.row_tokens[i] =
        static_cast<int32_t>(top_k(static_cast<uint32_t>(args.out[i])));
  }
}

SWITCHYARD_ROW_FUNCTION(CountMapped, MapArgs);
SWITCHYARD_ROW_FUNCTION(ScanMapped, MapArgs);
SWITCHYARD_ROW_FUNCTION(PlaceMapped, MapArgs);
SWITCHYARD_ROW_FUNCTION(Offsets, MapArgs);
SWITCHYARD_ROW_FUNCTION(Pad, MapArgs);
SWITCHYARD_ROW_FUNCTION(Tokens, MapArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(MapCount, CountMapped, MapArgs);
SWITCHYARD_EXPORT(MapScan, ScanMapped, MapArgs);
SWITCHYARD_EXPORT(MapPlace, PlaceMapped, MapArgs);
SWITCHYARD_EXPORT(MapOffsets, Offsets, MapArgs);
SWITCHYARD_EXPORT(MapPad, Pad, MapArgs);
SWITCHYARD_EXPORT(MapTokens, Tokens, MapArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
