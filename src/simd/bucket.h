// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_BUCKET_H_
#define SWITCHYARD_SRC_SIMD_BUCKET_H_

#include <cstddef>
#include <cstdint>

#include "src/simd/row_function.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// The most experts for blocks that claim room, because these blocks keep
// their counters on the stack.
constexpr size_t kMaxClaimExperts = 1024;

// Counts of the pairs.
struct BucketTotals {
  int32_t max = 0;    // of the busiest expert
  int32_t pairs = 0;  // not dropped
};

// Sorts the pairs p of topk_ids, in token order, to out[e * row_stride +
// position]. All fields are checked; 1 <= num_experts < 2^31.
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
  // For several threads, a counting sort in blocks of consecutive tokens.
  // Each block counts its pairs per expert; a scan over all counts gives the
  // start of each block's pairs of each expert; then each block places its
  // pairs there. So pairs have the same order as after one pass over all
  // tokens, for any number of blocks and any threads that run them.
  size_t block_tokens = 0;
  int32_t* cursors = nullptr;  // [blocks, num_experts]
  // Instead, blocks claim room with an atomic add per expert, in order of
  // arrival; without cursors.
  bool claims = false;
};

// Sorts tokens [0, tokens) in one step on one thread. It is a separate
// function because for one token each further call costs as much as the sort.
RowFunction<BucketArgs> BucketSerial() noexcept;

// Blocks [begin, end): counts into their cursors, or claims room in
// tokens_per_expert, which the caller has cleared.
RowFunction<BucketArgs> BucketCount() noexcept;
// Completes tokens_per_expert, and computes totals and, if wanted, offsets.
// Without claims it first sums the counters of blocks [0, end) to
// tokens_per_expert, and replaces each counter by the sum of the earlier
// blocks' counters of that expert. With claims, tokens_per_expert is complete
// already: after counting, or after placing in strided rows.
RowFunction<BucketArgs> BucketScan() noexcept;
// Blocks [begin, end): places their pairs. Claims count from offsets[1..],
// which hold the starts and will hold the ends, or in tokens_per_expert,
// cleared, for strided rows.
RowFunction<BucketArgs> BucketPlace() noexcept;

// Experts [begin, end): zeros from their last pair to the end of the row.
RowFunction<BucketArgs> BucketPad() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_BUCKET_H_
