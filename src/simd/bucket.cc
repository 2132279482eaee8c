// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/bucket.h"

#include <cstring>
#include <type_traits>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/bucket.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/bucket-inl.h"
#include "src/simd/bucket_tiles-inl.h"
#include "src/simd/hwy_compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Sorts the pairs of a few tokens, and computes the totals on the way.
// Computing the totals from tokens_per_expert afterwards would wait until the
// last increments have left the store buffer. For a single token, this
// wait would take half of the time.
template <class Id>
HWY_INLINE BucketTotals StrideFew(const BucketArgs& args,
                                  const Id* HWY_RESTRICT ids, size_t n) {
  const uint32_t num_experts = static_cast<uint32_t>(args.num_experts);
  int32_t* HWY_RESTRICT counts = args.tokens_per_expert;
  int32_t* HWY_RESTRICT out = args.out;
  const size_t row_stride = args.row_stride;
  BucketTotals totals;
  Clear<true>(counts, num_experts);
  for (size_t i = 0; i < n; ++i) {
    const auto e = static_cast<std::make_unsigned_t<Id>>(ids[i]);
    if (e >= num_experts) continue;
    const int32_t position = counts[e]++;
    out[e * row_stride + static_cast<uint32_t>(position)] =
        static_cast<int32_t>(i);
    totals.max = HWY_MAX(totals.max, position + 1);
    ++totals.pairs;
  }
  return totals;
}

// Each path is a separate function, because in one function GCC spills the
// loops' registers: packed pairs take 1.4 times as long on AVX-512. The path
// for few pairs is so short that even pushing the registers of the other loops
// to the stack would matter.
template <class Id>
HWY_NOINLINE BucketTotals StrideMany(const BucketArgs& args) {
  // Uses tokens_per_expert as cursors, which equal the counts after the last
  // pair.
  Clear(args.tokens_per_expert, args.num_experts);
  PlaceStrided<Id>(args.topk_ids, args.num_experts, 0, args.tokens_per_expert,
                   args.out, args.row_stride);
  return Total(args.tokens_per_expert, args.num_experts);
}

template <class Id>
HWY_NOINLINE BucketTotals CountAll(const BucketArgs& args) {
  Count<Id>(args.topk_ids, args.num_experts, args.tokens_per_expert);
  return Total(args.tokens_per_expert, args.num_experts);
}

template <class Id>
HWY_NOINLINE void Pack(const BucketArgs& args) {
  Count<Id>(args.topk_ids, args.num_experts, args.tokens_per_expert);
  // Uses offsets[1..] as cursors. Each cursor begins at its expert's start and
  // ends at the next expert's start, so offsets is complete in the end.
  args.offsets[0] = 0;
  *args.totals =
      Scan(args.tokens_per_expert, args.num_experts, args.offsets + 1);
  PlacePacked<Id>(args.topk_ids, args.num_experts, 0, args.offsets + 1,
                  args.out, args.row_index);
}

template <class Id>
HWY_INLINE void Sort(const BucketArgs& args) {
  const ConstAnyMatrix& topk_ids = args.topk_ids;
  const size_t n = topk_ids.rows * topk_ids.cols;
  if (args.offsets != nullptr) {
    Pack<Id>(args);
  } else if (args.out == nullptr) {
    *args.totals = CountAll<Id>(args);
  } else if (HWY_UNLIKELY(n >= args.num_experts || !Contiguous(topk_ids))) {
    *args.totals = StrideMany<Id>(args);
  } else {
    *args.totals = StrideFew(args, topk_ids.Row<Id>(0), n);
  }
}

// A counting sort: counts the pairs of each expert, turns the counts into
// starts (a vectorised prefix sum), and places each pair at its expert's
// cursor. Counting for few experts is vectorised, too; all else is scalar: a
// pair takes a load, an increment and two stores. The time is bound by one
// store per cycle, and by cursors that are needed again before they have left
// the store buffer.
//
// Packed pairs take 1.0 to 1.1 ns each from 512 tokens on (E = 128, k = 8), and
// a single token takes 60 ns, checks of the call included. Strided rows need no
// counts and starts: a pair takes 0.6 ns, and a single token 30 ns, of which
// this function takes 10.
void Serial(const BucketArgs& args, size_t /*begin*/, size_t /*end*/) {
  if (args.topk_ids.type == Type::kI64) {
    Sort<int64_t>(args);
  } else {
    Sort<int32_t>(args);
  }
}

// Claims room for a block's pairs, by an atomic addition per expert. Replaces
// the block's counts by the positions where its room starts.
HWY_INLINE void Claim(int32_t* shared, size_t num_experts,
                      int32_t* HWY_RESTRICT counts) {
  for (size_t e = 0; e < num_experts; ++e) {
    if (counts[e] == 0) continue;
    counts[e] = __atomic_fetch_add(&shared[e], counts[e], __ATOMIC_RELAXED);
  }
}

// Returns the ids of a block's tokens, and sets *first to the block's first
// token. The last block may be short.
HWY_INLINE ConstAnyMatrix BlockIds(const BucketArgs& args, size_t block,
                                   size_t* first) {
  *first = block * args.block_tokens;
  const size_t last = HWY_MIN(*first + args.block_tokens, args.topk_ids.rows);
  return args.topk_ids.RowRange(*first, last);
}

template <class Id>
void CountBlocks(const BucketArgs& args, size_t begin, size_t end) {
  int32_t counts[kMaxClaimExperts];
  for (size_t b = begin; b < end; ++b) {
    size_t first;
    const ConstAnyMatrix ids = BlockIds(args, b, &first);
    if (args.claims) {
      Count<Id>(ids, args.num_experts, counts);
      Claim(args.tokens_per_expert, args.num_experts, counts);
    } else {
      Count<Id>(ids, args.num_experts, args.cursors + b * args.num_experts);
    }
  }
}
void CountInBlocks(const BucketArgs& args, size_t begin, size_t end) {
  if (args.topk_ids.type == Type::kI64) {
    CountBlocks<int64_t>(args, begin, end);
  } else {
    CountBlocks<int32_t>(args, begin, end);
  }
}

void ScanBlocks(const BucketArgs& args, size_t /*begin*/, size_t end) {
  const size_t num_experts = args.num_experts;
  int32_t* HWY_RESTRICT counts = args.tokens_per_expert;
  if (!args.claims) SumBlocks(args.cursors, end, num_experts, counts);
  if (args.offsets == nullptr) {
    *args.totals = Total(counts, num_experts);
  } else if (args.claims) {
    args.offsets[0] = 0;
    *args.totals = Scan(counts, num_experts, args.offsets + 1);
  } else {
    *args.totals = Scan(counts, num_experts, args.offsets);
    args.offsets[num_experts] = args.totals->pairs;
  }
}

template <class Id>
void PlaceBlocks(const BucketArgs& args, size_t begin, size_t end) {
  const size_t num_experts = args.num_experts;
  int32_t claimed[kMaxClaimExperts];
  for (size_t b = begin; b < end; ++b) {
    size_t first;
    const ConstAnyMatrix ids = BlockIds(args, b, &first);
    int32_t* cursors = claimed;
    if (args.claims) {
      Count<Id>(ids, num_experts, cursors);
      Claim(args.offsets != nullptr ? args.offsets + 1 : args.tokens_per_expert,
            num_experts, cursors);
    } else {
      cursors = args.cursors + b * num_experts;
      for (size_t e = 0; args.offsets != nullptr && e < num_experts; ++e) {
        cursors[e] += args.offsets[e];
      }
    }
    const size_t first_pair = first * ids.cols;
    if (args.offsets == nullptr) {
      PlaceStrided<Id>(ids, num_experts, first_pair, cursors, args.out,
                       args.row_stride);
      continue;
    }
    const AnyMatrix& all = args.row_index;
    PlacePacked<Id>(
        ids, num_experts, first_pair, cursors, args.out,
        all.data == nullptr ? all : all.RowRange(first, first + ids.rows));
  }
}
void PlaceInBlocks(const BucketArgs& args, size_t begin, size_t end) {
  if (args.topk_ids.type == Type::kI64) {
    PlaceBlocks<int64_t>(args, begin, end);
  } else {
    PlaceBlocks<int32_t>(args, begin, end);
  }
}

void PadRows(const BucketArgs& args, size_t begin, size_t end) {
  for (size_t e = begin; e < end; ++e) {
    const size_t used = static_cast<size_t>(args.tokens_per_expert[e]);
    std::memset(args.out + e * args.row_stride + used, 0,
                (args.row_stride - used) * sizeof(int32_t));
  }
}

SWITCHYARD_ROW_FUNCTION(Serial, BucketArgs);
SWITCHYARD_ROW_FUNCTION(CountInBlocks, BucketArgs);
SWITCHYARD_ROW_FUNCTION(ScanBlocks, BucketArgs);
SWITCHYARD_ROW_FUNCTION(PlaceInBlocks, BucketArgs);
SWITCHYARD_ROW_FUNCTION(PadRows, BucketArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(BucketSerial, Serial, BucketArgs);
SWITCHYARD_EXPORT(BucketCount, CountInBlocks, BucketArgs);
SWITCHYARD_EXPORT(BucketScan, ScanBlocks, BucketArgs);
SWITCHYARD_EXPORT(BucketPlace, PlaceInBlocks, BucketArgs);
SWITCHYARD_EXPORT(BucketPad, PadRows, BucketArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
