// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Checks the calls of all functions that sort pairs, and plans how threads
// share the work. (A pair is a token and one of its selected experts.)

#ifndef SWITCHYARD_SRC_BUCKET_PLAN_H_
#define SWITCHYARD_SRC_BUCKET_PLAN_H_

#include <algorithm>
#include <cstddef>

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/bucket.h"
#include "switchyard/bucket.h"
#include "switchyard/executor.h"
#include "switchyard/status.h"

// A macro, because a message is a literal that begins with the function's name.
#define SWITCHYARD_DROPPED_TEXT(fn)               \
  fn ": topk_ids: outside [0, num_experts), and " \
     "options.allow_dropped is not set"

namespace switchyard::internal {

constexpr size_t kMaxInt32 = 0x7FFFFFFF;

// The picoseconds to count and place one pair: 1.1 ns on a Zen 4, but 2.7 to
// 4.5 ns on a 16-core Emerald Rapids.
constexpr size_t kPairPs = 2500;
// Up to this many pairs, one thread is best: blocks write to each other's cache
// lines, and the cost of a fork does not include this delay. 32,768 pairs
// took 88 us on one thread of the Emerald Rapids, and 72 to 99 us on two to
// sixteen threads. On the Zen 4, they took 36 us on one thread and 49 us on
// two. Twice as many pairs take as long on two threads as on one.
constexpr size_t kMaxSerialPairs = 60'000;
// The least number of pairs in a block: in total, for each of its counters,
// and for each of its claims. Clearing, summing and reading a block's
// counters must not cost more than its pairs. A claim is an atomic addition
// that reserves room for a block's pairs of one expert.
constexpr size_t kMinBlockPairs = 4096;
constexpr size_t kMinPairsPerCounter = 8;
constexpr size_t kMinPairsPerClaim = 32;

// One thread sorts a single block. Each of several blocks has a row of scratch
// for its counters, unless it claims room by atomic additions.
struct BucketPlan {
  size_t blocks = 1;
  size_t block_tokens = 0;
  bool claims = false;
};

// Returns the number of blocks to share among threads, or 1 if sharing is not
// worth its cost. There are more blocks than threads, because threads start at
// different times, and each thread takes one block after another.
inline size_t BucketBlocks(size_t pairs, size_t min_block_pairs,
                           const Executor& executor) {
  if (pairs <= kMaxSerialPairs) return 1;
  const size_t threads = executor.Concurrency();
  if (threads <= 1) return 1;
  const size_t most = pairs / std::max(kMinBlockPairs, min_block_pairs);
  return std::max<size_t>(1, std::min(most, 8 * threads));
}

// Checks a sort's call. Only a sort of many pairs asks the executor for its
// number of threads. Refuses 0 threads, because BucketBlocks() treats 0 as 1.
template <class C>
Checked<C> CheckSort(const typename C::Inputs& inputs,
                     const typename C::Outputs& outputs,
                     const typename C::Options& options,
                     const Executor& executor) {
  Checked<C> call(inputs, outputs, options);
  const ConstAnyMatrix& ids = inputs.topk_ids;
  if (call.status.ok() && ids.rows * ids.cols > kMaxSerialPairs) {
    call.status = CheckExecutor(executor);
  }
  return call;
}

inline BucketPlan MakeBucketPlan(size_t tokens, size_t top_k,
                                 size_t num_experts, BucketOrder order,
                                 size_t scratch_size,
                                 const Executor& executor) {
  const bool claims =
      order == BucketOrder::kClaim && num_experts <= simd::kMaxClaimExperts;
  const size_t blocks = BucketBlocks(
      tokens * top_k,
      (claims ? kMinPairsPerClaim : kMinPairsPerCounter) * num_experts,
      executor);
  if (blocks == 1 || (!claims && scratch_size < blocks * num_experts)) {
    return {1, tokens, false};
  }
  const size_t block_tokens = (tokens + blocks - 1) / blocks;
  return {(tokens + block_tokens - 1) / block_tokens, block_tokens, claims};
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BUCKET_PLAN_H_
