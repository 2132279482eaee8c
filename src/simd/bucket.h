// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_BUCKET_H_
#define SWITCHYARD_SRC_SIMD_BUCKET_H_

#include <cstddef>
#include <cstdint>

#include "src/simd/row_function.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// Blocks claim room only for at most this many experts, because the counters of
// a claiming block are on the stack.
constexpr size_t kMaxClaimExperts = 1024;

struct BucketTotals {
  int32_t max = 0;    // pairs of the expert with the most pairs
  int32_t pairs = 0;  // pairs of all experts; dropped pairs do not count
};

// Sorts pairs (a token and one of its selected experts). Pair p of topk_ids, in
// token order, goes to out[e * row_stride + position] of its expert e. The
// caller has checked all fields, and 1 <= num_experts < 2^31.
struct BucketArgs {
  // The views are references. Loading a copy of a view that was just stored
  // would stall, for longer than the sort of one token's pairs takes.
  const ConstAnyMatrix& topk_ids;
  const AnyMatrix& row_index;  // optional; a pair's position, -1 if dropped
  size_t num_experts;
  int32_t* tokens_per_expert;  // [num_experts], output
  int32_t* offsets;            // [num_experts + 1], null for strided rows
  int32_t* out;                // null if pairs are only counted
  size_t row_stride;           // 0 if pairs are packed
  BucketTotals* totals;
  // Several threads run a counting sort in blocks of consecutive tokens. Each
  // block counts its pairs per expert. A prefix sum over these counts gives,
  // for each expert, the start of each block's pairs, where the block then
  // places them. So pairs have the same order as after one pass over all
  // tokens, for any number of blocks and threads.
  size_t block_tokens = 0;
  int32_t* cursors = nullptr;  // [blocks, num_experts]
  // If true, blocks have no cursors: each block claims room with an atomic
  // addition per expert, so pairs are in the order in which blocks arrive.
  bool claims = false;
};

// Sorts all tokens in one step on one thread. It is a separate function because
// for one token, each further call costs as much as the sort.
RowFunction<BucketArgs> BucketSerial() noexcept;

// Counts the pairs of blocks [begin, end). The counts go to the cursors of
// each block or, with claims, to tokens_per_expert, which the caller has
// cleared.
RowFunction<BucketArgs> BucketCount() noexcept;
// Computes totals and, if given, offsets. Without claims, it first sets
// tokens_per_expert to the sum of the cursors of blocks [0, end), and replaces
// each block's cursor of an expert by the sum of this expert's cursors in
// earlier blocks. With claims, tokens_per_expert is complete already: after
// BucketCount(), or after BucketPlace() in strided rows.
RowFunction<BucketArgs> BucketScan() noexcept;
// Places the pairs of the tokens in blocks [begin, end). With claims, a block
// claims room by adding its counts to shared counters. For strided rows, these
// are tokens_per_expert, which the caller has cleared. For packed pairs, they
// are offsets[1..]: each expert's start before the call, and end after it.
RowFunction<BucketArgs> BucketPlace() noexcept;

// Writes zeros behind the last pair in the rows of experts [begin, end).
RowFunction<BucketArgs> BucketPad() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_BUCKET_H_
