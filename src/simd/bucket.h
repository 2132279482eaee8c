// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_BUCKET_H_
#define SWITCHYARD_SRC_SIMD_BUCKET_H_

#include <cstddef>
#include <cstdint>

#include "src/simd/row_function.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// Blocks claim room only if the experts are at most this many, because a block
// that claims keeps its counters on the stack.
constexpr size_t kMaxClaimExperts = 1024;

// Numbers of pairs.
struct BucketTotals {
  int32_t max = 0;    // the pairs of the expert with the most pairs
  int32_t pairs = 0;  // the pairs of all experts, without dropped pairs
};

// Sorts the pairs p of topk_ids, in token order, to out[e * row_stride +
// position]. The caller has checked all fields, and 1 <= num_experts < 2^31.
struct BucketArgs {
  // The views are references, because loading a copy of views that were just
  // stored stalls for longer than one token's pairs take.
  const ConstAnyMatrix& topk_ids;
  const AnyMatrix& row_index;  // optional; a pair's position, -1 if dropped
  size_t num_experts;
  int32_t* tokens_per_expert;  // [num_experts], written
  int32_t* offsets;            // [num_experts + 1], written; null: strided rows
  int32_t* out;                // null: pairs are counted and not placed
  size_t row_stride;           // 0 if pairs are packed
  BucketTotals* totals;
  // Several threads run a counting sort in blocks of consecutive tokens. Each
  // block counts its pairs per expert. A scan over all counts gives, for each
  // expert, the start of each block's pairs. Then each block places its pairs
  // there. So pairs have the same order as after one pass over all tokens,
  // for any number of blocks and any threads that run them.
  size_t block_tokens = 0;
  int32_t* cursors = nullptr;  // [blocks, num_experts]
  // If true, blocks need no cursors: each claims room with an atomic addition
  // per expert, so pairs are in the order in which blocks arrive.
  bool claims = false;
};

// Sorts tokens [0, tokens) in one step on one thread. It is a separate
// function because for one token each further call costs as much as the sort.
RowFunction<BucketArgs> BucketSerial() noexcept;

// For blocks [begin, end): counts each block's pairs in the block's cursors.
// If args.claims is true, adds the counts to tokens_per_expert instead, which
// the caller has cleared.
RowFunction<BucketArgs> BucketCount() noexcept;
// Completes tokens_per_expert, and computes totals and, if given, offsets.
// Without claims, it first adds the counters of blocks [0, end) to
// tokens_per_expert, and replaces each counter by the sum of the earlier
// blocks' counters of that expert. With claims, tokens_per_expert is complete
// already: after BucketCount(), or after BucketPlace() in strided rows.
RowFunction<BucketArgs> BucketScan() noexcept;
// Places the pairs of the tokens in blocks [begin, end). With claims, a block
// claims room by adding its counts to counters. For packed pairs these
// counters are offsets[1..]: they hold each expert's start before the call,
// and its end after all blocks. For strided rows they are tokens_per_expert,
// which the caller has cleared.
RowFunction<BucketArgs> BucketPlace() noexcept;

// For experts [begin, end): writes zeros from the last pair to the row's end.
RowFunction<BucketArgs> BucketPad() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_BUCKET_H_
