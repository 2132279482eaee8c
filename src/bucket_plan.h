// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// How a sort of pairs is shared out among threads.

#ifndef SWITCHYARD_SRC_BUCKET_PLAN_H_
#define SWITCHYARD_SRC_BUCKET_PLAN_H_

#include <algorithm>
#include <cstddef>

#include "src/schedule.h"
#include "src/simd/bucket.h"
#include "switchyard/bucket.h"
#include "switchyard/executor.h"

namespace switchyard::internal {

// Counting and placing one pair.
constexpr double kPairNs = 1.0;
// Up to this many pairs, one thread is best.
constexpr size_t kMaxSerialPairs = static_cast<size_t>(kGrainNs / kPairNs);
// Counters a block clears, sums and reads must not cost more than its pairs,
// and those it claims take an atomic add each.
constexpr size_t kMinBlockPairs = 4096;
constexpr size_t kMinPairsPerCounter = 8;
constexpr size_t kMinPairsPerClaim = 32;

// One block: by the calling thread. Several: each with its own row of scratch
// or, when they claim, without.
struct BucketPlan {
  size_t blocks = 1;
  size_t block_tokens = 0;
  bool claims = false;
};

// Blocks worth giving to several threads, 1 if there are none.
inline size_t BucketBlocks(size_t pairs, size_t min_block_pairs,
                           const Executor& executor) {
  if (pairs <= kMaxSerialPairs) return 1;
  const size_t threads = executor.Concurrency();
  if (threads <= 1) return 1;
  const size_t most = pairs / std::max(kMinBlockPairs, min_block_pairs);
  return std::max<size_t>(1, std::min(most, 8 * threads));
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
