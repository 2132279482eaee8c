// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// How a sort of pairs is shared out among threads, and what all sorts check.

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

// Messages are literals, with the function's name in front.
#define SWITCHYARD_DROPPED_TEXT(fn)               \
  fn ": topk_ids: outside [0, num_experts), and " \
     "options.allow_dropped is not set"

namespace switchyard::internal {

constexpr size_t kMaxInt32 = 0x7FFFFFFF;

// Counting and placing one pair: 1.1 ns on a Zen 4, but 2.7 to 4.5 on a 16-core
// Emerald Rapids.
constexpr size_t kPairPs = 2500;
// Up to this many pairs, one thread is best: blocks write to each other's cache
// lines, which no cost of a fork says. On the Emerald Rapids 32,768 pairs took
// 88 us on one thread, 72 to 99 on two to sixteen, on the Zen 4 36 and, on two,
// 49; twice as many take as long on two as on one.
constexpr size_t kMaxSerialPairs = 60'000;
// Counters a block clears, sums and reads must not cost more than its pairs,
// and those it claims take an atomic add each.
constexpr size_t kMinBlockPairs = 4096;
constexpr size_t kMinPairsPerCounter = 8;
constexpr size_t kMinPairsPerClaim = 32;

// One block: by one thread. Several: each with its own row of scratch or, when
// they claim, without.
struct BucketPlan {
  size_t blocks = 1;
  size_t block_tokens = 0;
  bool claims = false;
};

// Blocks worth sharing out, 1 if there are none. Threads come when they can, so
// each may take several blocks.
inline size_t BucketBlocks(size_t pairs, size_t min_block_pairs,
                           const Executor& executor) {
  if (pairs <= kMaxSerialPairs) return 1;
  const size_t threads = executor.Concurrency();
  if (threads <= 1) return 1;
  const size_t most = pairs / std::max(kMinBlockPairs, min_block_pairs);
  return std::max<size_t>(1, std::min(most, 8 * threads));
}

// The checks of a sort's call. Only a sort of many pairs asks the executor how
// many threads there are, and would take 0 as 1.
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
