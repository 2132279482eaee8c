// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_BUCKET_H_
#define SWITCHYARD_SRC_SIMD_BUCKET_H_

#include <cstddef>
#include <cstdint>

#include "src/simd/row_function.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// Blocks that claim keep their counters on the stack: for at most so many
// experts.
constexpr size_t kMaxClaimExperts = 1024;

// Counts of the pairs.
struct BucketTotals {
  int32_t max = 0;    // of the busiest expert
  int32_t pairs = 0;  // not dropped
};

// Pairs p of topk_ids, in token order, to out[e * row_stride + position]. All
// checked; 1 <= num_experts < 2^31.
struct BucketArgs {
  // References, because loading a copy of views that were just stored stalls
  // for longer than one token's pairs take.
  const ConstAnyMatrix& topk_ids;
  const AnyMatrix& row_index;  // optional; the position, or -1 if dropped
  size_t num_experts;
  int32_t* tokens_per_expert;  // [num_experts], written
  int32_t* offsets;            // [num_experts + 1], written; null: strided
  int32_t* out;                // null: only counted
  size_t row_stride;           // 0 when packed
  BucketTotals* totals;
  // For several threads, a counting sort in blocks of consecutive tokens. Each
  // block counts its pairs per expert, from all counts follows where each
  // block's pairs of each expert start, and then each block places its pairs
  // there: the order is that of one pass over all tokens, whoever runs the
  // blocks and however many there are.
  size_t block_tokens = 0;
  int32_t* cursors = nullptr;  // [blocks, num_experts]
  // Instead, blocks claim room with an atomic add per expert, in the order in
  // which they come; no cursors.
  bool claims = false;
};

// Tokens [0, tokens), in one go on one thread. Apart from the others because
// for one token each further call costs as much as the sort.
RowFunction<BucketArgs> BucketSerial() noexcept;

// Blocks [begin, end): count into their cursors, or claim room in
// tokens_per_expert, which the caller has cleared.
RowFunction<BucketArgs> BucketCount() noexcept;
// When tokens_per_expert is to be complete: totals and, if wanted, offsets.
// Without claims it first sums the counters of blocks [0, end) to
// tokens_per_expert and leaves in each what the blocks before have of its
// expert. With claims tokens_per_expert is complete already: after counting, or
// after placing in strided rows.
RowFunction<BucketArgs> BucketScan() noexcept;
// Blocks [begin, end): place their pairs. Claims are from offsets[1..] on,
// where the starts are and the ends will be, or else in tokens_per_expert,
// cleared.
RowFunction<BucketArgs> BucketPlace() noexcept;

// Experts [begin, end): zeros from their last pair to the end of the row.
RowFunction<BucketArgs> BucketPad() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_BUCKET_H_
