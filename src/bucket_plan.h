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
#define SWITCHYARD_TEAM_TEXTS(fn) \
  fn ": team: thread is not below num_threads", fn ": team: barrier is null"

namespace switchyard::internal {

constexpr size_t kMaxInt32 = 0x7FFFFFFF;

// In a function of its own: what runs behind is compiled for each crew.
template <class C>
[[gnu::noinline]] Checked<C> CheckSort(const typename C::Inputs& inputs,
                                       const typename C::Outputs& outputs,
                                       const typename C::Options& options) {
  return Checked<C>(inputs, outputs, options);
}

inline Status CheckTeam(const Team& team, const char* wrong_thread,
                        const char* no_barrier) {
  if (team.thread >= team.num_threads) return Invalid(wrong_thread);
  const bool is_fine = team.barrier != nullptr || team.num_threads == 1;
  return is_fine ? Status() : Invalid(no_barrier);
}

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

// Blocks worth sharing out, 1 if there are none. An executor's threads come
// when they can, and so may take some of the others' blocks; a team is there.
inline size_t BucketBlocks(size_t pairs, size_t min_block_pairs,
                           const Executor& executor) {
  if (pairs <= kMaxSerialPairs) return 1;
  const size_t threads = executor.Concurrency();
  if (threads <= 1) return 1;
  const size_t most = pairs / std::max(kMinBlockPairs, min_block_pairs);
  return std::max<size_t>(1, std::min(most, 8 * threads));
}
inline size_t BucketBlocks(size_t pairs, size_t min_block_pairs,
                           const Team& team) {
  const size_t most = pairs / std::max(kMinBlockPairs, min_block_pairs);
  return std::max<size_t>(1, std::min(most, team.num_threads));
}

// Who sorts: an executor's threads, or a team that made the call together. Two
// classes of the same form, so that one token's call pays for neither.
class ExecutorCrew {
 public:
  explicit ExecutorCrew(Executor& executor) : executor_(executor) {}

  // A sort of more pairs asks how many threads there are, and would take 0
  // as 1.
  Status Check(const ConstAnyMatrix& ids) const {
    if (ids.rows * ids.cols <= kMaxSerialPairs) return Status();
    return CheckExecutor(executor_);
  }
  size_t Blocks(size_t pairs, size_t min_block_pairs) const {
    return BucketBlocks(pairs, min_block_pairs, executor_);
  }
  // Work that one thread does while the others wait for it.
  template <class Work>
  void Once(const Work& work) const {
    work();
  }
  template <class Args>
  Status Share(size_t count, size_t row_ps, simd::RowFunction<Args> rows,
               const Args& args) const {
    return RunRows(executor_, count, row_ps, rows, args);
  }
  // For all threads to come here.
  void Wait() const {}
  // Whether this thread is the one that writes the report.
  static constexpr bool Reports() { return true; }

 private:
  Executor& executor_;
};

class TeamCrew {
 public:
  explicit TeamCrew(const Team& team) : team_(team) {}

  Status Check(const ConstAnyMatrix&) const { return Status(); }
  size_t Blocks(size_t pairs, size_t min_block_pairs) const {
    return BucketBlocks(pairs, min_block_pairs, team_);
  }
  template <class Work>
  void Once(const Work& work) const {
    if (Reports()) work();
    Wait();
  }
  template <class Args>
  Status Share(size_t count, size_t /*row_ps*/, simd::RowFunction<Args> rows,
               const Args& args) const {
    const size_t begin = count * team_.thread / team_.num_threads;
    const size_t end = count * (team_.thread + 1) / team_.num_threads;
    if (begin != end) {
      const DefaultFpEnv fp_env;
      rows(args, begin, end);
    }
    Wait();
    return Status();
  }
  void Wait() const {
    if (team_.num_threads > 1) team_.barrier(team_.context);
  }
  bool Reports() const { return team_.thread == 0; }

 private:
  const Team& team_;
};

template <class Crew>
inline BucketPlan MakeBucketPlan(size_t tokens, size_t top_k,
                                 size_t num_experts, BucketOrder order,
                                 size_t scratch_size, const Crew& crew) {
  const bool claims =
      order == BucketOrder::kClaim && num_experts <= simd::kMaxClaimExperts;
  const size_t blocks = crew.Blocks(
      tokens * top_k,
      (claims ? kMinPairsPerClaim : kMinPairsPerCounter) * num_experts);
  if (blocks == 1 || (!claims && scratch_size < blocks * num_experts)) {
    return {1, tokens, false};
  }
  const size_t block_tokens = (tokens + blocks - 1) / blocks;
  return {(tokens + block_tokens - 1) / block_tokens, block_tokens, claims};
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BUCKET_PLAN_H_
