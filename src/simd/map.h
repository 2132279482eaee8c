// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_MAP_H_
#define SWITCHYARD_SRC_SIMD_MAP_H_

#include <cstddef>
#include <cstdint>

#include "src/simd/row_function.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// Computes n / divisor by a product, for n < 2^31 and 1 <= divisor < 2^31. If
// 2^(bits-1) < divisor <= 2^bits, the error of factor_ is less than divisor /
// 2^(31 + bits). That is too small for the product to reach the next integer.
class Divider {
 public:
  explicit Divider(size_t divisor) : divisor_(divisor) {
    while (size_t{1} << (shift_ - 31) < divisor) ++shift_;
    factor_ = ((uint64_t{1} << shift_) + divisor - 1) / divisor;
  }
  uint32_t operator()(uint32_t n) const {
    return static_cast<uint32_t>((n * factor_) >> shift_);
  }
  // Returns n, rounded up to a multiple of the divisor. The result must be
  // below 2^31.
  int32_t RoundUp(int32_t n) const {
    const size_t above = static_cast<size_t>(n) + divisor_ - 1;
    return static_cast<int32_t>((above * factor_ >> shift_) * divisor_);
  }
  size_t divisor() const { return divisor_; }

 private:
  size_t divisor_;
  uint64_t factor_;
  int shift_ = 31;
};

// Maps an id to its bucket: table[id] or, without a table, id / divide. An id
// outside of [0, num_ids), or with a result outside of [0, num_buckets), has no
// bucket.
struct IdMap {
  const int32_t* table = nullptr;
  size_t num_ids = 0;  // at least 1
  Divider divide = Divider(1);
};

struct MapTotals {
  int32_t found = 0;  // pairs that have a bucket
  int32_t kept = 0;   // pairs within the capacity; with `tokens`, copies
  int32_t max = 0;    // pairs kept in the bucket that keeps the most
};

// A counting sort as in bucket.h, for cases that bucket.h does not handle: ids
// are mapped to buckets, or buckets begin at multiples of a block, have a
// capacity, or hold each token only once. Without cursors, all tokens are one
// block, and offsets are the cursors. Pairs in a bucket are in ascending order.
//
// The passes are MapCount, MapScan, MapPlace and MapOffsets. After MapOffsets,
// counts and offsets are complete, and MapPad and MapTokens may follow. If
// `out` is null, only the first two passes run.
struct MapArgs {
  const ConstAnyMatrix& topk_ids;
  const AnyMatrix& row_index;  // optional; a pair's position, or -1
  // Optional, with `tokens`: the position of a pair, as in row_index, if it is
  // its token's first pair in the bucket. Other pairs have -1.
  const AnyMatrix& first_index;
  IdMap map;
  size_t num_buckets;
  int32_t* counts;   // [num_buckets]; with a capacity, MapScan puts the end of
                     // each bucket here, and MapOffsets its count
  int32_t* offsets;  // [num_buckets + 1]
  int32_t* out;      // the sorted pairs or, with `tokens`, tokens
  MapTotals* totals;
  size_t block_tokens;
  int32_t* cursors;  // [blocks, num_buckets], or null for a single block
  // If true, MapCount leaves buckets in row_index, where MapPlace finds them.
  // False if each id is its bucket's number.
  bool keeps_buckets = false;
  bool tokens = false;   // a bucket has each token once
  bool limited = false;  // a bucket has at most `capacity` pairs
  int32_t capacity = 0;
  Divider block = Divider(1);
  int32_t* block_buckets = nullptr;  // optional; each block's bucket
  // MapTokens writes the tokens here: the pairs of `out`, divided by top_k.
  int32_t* row_tokens = nullptr;
  Divider top_k = Divider(1);
};

// The most buckets if `tokens` is true. Each bucket has a bit on the stack,
// which says whether the bucket has a copy of the current token.
constexpr size_t kMaxTokenBuckets = 65536;

// Counts the pairs of blocks [begin, end).
RowFunction<MapArgs> MapCount() noexcept;
// Sums the counts of blocks [0, end). Finds the totals and, for each bucket,
// the start of each block's pairs.
RowFunction<MapArgs> MapScan() noexcept;
// Places the pairs of blocks [begin, end).
RowFunction<MapArgs> MapPlace() noexcept;
// Completes counts and offsets of all buckets.
RowFunction<MapArgs> MapOffsets() noexcept;
// Pads buckets [begin, end), from the last pair to the next offset, with the
// number of pairs as a sentinel. Also writes block_buckets, if given.
RowFunction<MapArgs> MapPad() noexcept;
// Writes row_tokens for elements [begin, end) of `out`.
RowFunction<MapArgs> MapTokens() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_MAP_H_
