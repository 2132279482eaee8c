// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_MAP_H_
#define SWITCHYARD_SRC_SIMD_MAP_H_

#include <cstddef>
#include <cstdint>

#include "src/simd/row_function.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// n / divisor of n < 2^31 by a product: 1 <= divisor < 2^31, and with
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

// The bucket of an id: table[id] or, without a table, id / divide. Ids outside
// [0, num_ids) have none, nor have those that come to something outside
// [0, num_buckets).
struct IdMap {
  const int32_t* table = nullptr;
  size_t num_ids = 0;  // at least 1
  Divider divide = Divider(1);
};

struct MapTotals {
  int32_t found = 0;  // pairs that have a bucket
  int32_t kept = 0;   // those within the capacity or, of tokens, copies
  int32_t max = 0;    // of the busiest bucket
};

// A counting sort as in bucket.h, for what is more than sorting ids as they
// are: ids that a map takes to buckets, buckets that begin at multiples of a
// block, that hold no more than a capacity, or that have each token once.
// Without cursors it is one block, sorted in offsets; order is ascending.
//
// The passes: MapCount, MapScan, MapPlace, MapOffsets; then counts and offsets
// are what they are called, and MapPad and MapTokens may follow. With
// `out` null, the first two.
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
  // MapCount leaves buckets in row_index, where MapPlace finds them. Not for
  // ids that are their own buckets.
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

// Buckets of tokens, of which a copy is known by a bit on the stack.
constexpr size_t kMaxTokenBuckets = 65536;

// Blocks [begin, end): count.
RowFunction<MapArgs> MapCount() noexcept;
// Sums blocks [0, end): totals, and the start of each block's pairs of each
// bucket.
RowFunction<MapArgs> MapScan() noexcept;
// Blocks [begin, end): place.
RowFunction<MapArgs> MapPlace() noexcept;
// All buckets: counts and offsets.
RowFunction<MapArgs> MapOffsets() noexcept;
// Buckets [begin, end): the number of pairs from their last pair to the next
// offset, and their blocks.
RowFunction<MapArgs> MapPad() noexcept;
// Elements [begin, end) of `out`: their tokens.
RowFunction<MapArgs> MapTokens() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_MAP_H_
