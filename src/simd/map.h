// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_MAP_H_
#define SWITCHYARD_SRC_SIMD_MAP_H_

#include <cstddef>
#include <cstdint>

#include "src/simd/row_function.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// Computes n / divisor for n < 2^31 by a product, 1 <= divisor < 2^31. With
// 2^(bits-1) < divisor <= 2^bits the error of `factor`, less than divisor /
// 2^(31 + bits), is too small to reach the next integer.
class Divider {
 public:
  explicit Divider(size_t divisor) : divisor_(divisor) {
    while (size_t{1} << (shift_ - 31) < divisor) ++shift_;
    factor_ = ((uint64_t{1} << shift_) + divisor - 1) / divisor;
  }
  uint32_t operator()(uint32_t n) const {
    return static_cast<uint32_t>((n * factor_) >> shift_);
  }
  // The smallest multiple of the divisor that is not below n; < 2^31.
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

// The bucket of an id: table[id] or, without a table, id / divide. Ids
// outside [0, num_ids) have no bucket, and ids with a result outside [0,
// num_buckets) have none either.
struct IdMap {
  const int32_t* table = nullptr;
  size_t num_ids = 0;  // at least 1
  Divider divide = Divider(1);
};

struct MapTotals {
  int32_t found = 0;  // pairs that have a bucket
  int32_t kept = 0;   // pairs within the capacity; with `tokens`, copies
  int32_t max = 0;    // of the busiest bucket
};

// A counting sort as in bucket.h, for the cases that bucket.h does not
// handle: ids that a map takes to buckets, buckets that begin at multiples of
// a block, that hold no more than a capacity, or that have each token once.
// Without cursors it is one block, sorted in offsets; order is ascending.
//
// The passes: MapCount, MapScan, MapPlace, MapOffsets. After them, counts and
// offsets hold the values of their names, and MapPad and MapTokens may
// follow. With `out` null, only the first two passes run.
struct MapArgs {
  const ConstAnyMatrix& topk_ids;
  const AnyMatrix& row_index;    // optional; the position, or -1
  const AnyMatrix& first_index;  // optional, of tokens: the same, but -1 for
                                 // all pairs of a copy except the first
  IdMap map;
  size_t num_buckets;
  int32_t* counts;   // [num_buckets]; from MapScan to MapOffsets with a
                     // capacity, where each bucket ends
  int32_t* offsets;  // [num_buckets + 1]
  int32_t* out;      // of pairs, or tokens
  MapTotals* totals;
  size_t block_tokens;
  int32_t* cursors;  // [blocks, num_buckets], or null: one block
  // MapCount leaves buckets in row_index, where MapPlace finds them. Not used
  // if an id is also the number of its bucket.
  bool keeps_buckets = false;
  bool tokens = false;   // each once in a bucket
  bool limited = false;  // by `capacity`
  int32_t capacity = 0;
  Divider block = Divider(1);
  int32_t* block_buckets = nullptr;  // optional [blocks of `block`]
  // For MapTokens: of `out`, by `top_k`.
  int32_t* row_tokens = nullptr;
  Divider top_k = Divider(1);
};

// The most buckets of tokens, because a bit on the stack marks each bucket
// that has a copy.
constexpr size_t kMaxTokenBuckets = 65536;

// Counts the pairs of blocks [begin, end).
RowFunction<MapArgs> MapCount() noexcept;
// Sums blocks [0, end): totals, and the start of each block's pairs of each
// bucket.
RowFunction<MapArgs> MapScan() noexcept;
// Places the pairs of blocks [begin, end).
RowFunction<MapArgs> MapPlace() noexcept;
// Sets counts and offsets of all buckets.
RowFunction<MapArgs> MapOffsets() noexcept;
// Buckets [begin, end): writes the sentinel, the number of pairs, from their
// last pair to the next offset, and fills in their blocks.
RowFunction<MapArgs> MapPad() noexcept;
// Writes the tokens of elements [begin, end) of `out`.
RowFunction<MapArgs> MapTokens() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_MAP_H_
