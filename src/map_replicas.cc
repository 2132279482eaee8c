// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/map_replicas.h"

#include <algorithm>

#include "src/bucket_plan.h"
#include "src/calls/map.h"
#include "src/check.h"
#include "src/map_sort.h"
#include "switchyard/map.h"

namespace switchyard {

Status MapReplicas(const ReplicaInputs& inputs, const ReplicaOutputs& outputs,
                   const ReplicaOptions& options, Executor& executor) noexcept {
  const auto call = internal::CheckSort<calls::ReplicaCall>(inputs, outputs,
                                                            options, executor);
  Status status = call.status;
  if (!status.ok()) return status;
  const auto& [topk_ids, replicas, replica_counts, scratch] = inputs;
  const auto& [physical_ids, tokens_per_expert, report] = outputs;
  const size_t num_experts = call.sizes.buckets;
  const size_t num_pairs = topk_ids.rows * topk_ids.cols;
  std::fill_n(tokens_per_expert.data, num_experts, 0);
  if (num_pairs != 0) {
    const internal::BucketPlan plan = internal::MakeBucketPlan(
        topk_ids.rows, topk_ids.cols, num_experts, BucketOrder::kAscending,
        scratch.size, executor);
    simd::ReplicaArgs args{topk_ids,
                           physical_ids,
                           replicas,
                           replica_counts,
                           static_cast<uint32_t>(options.first_replica),
                           plan.block_tokens,
                           tokens_per_expert.data};
    if (plan.blocks > 1) {
      // Counts the pairs before each block's first pair, as a sort does.
      simd::MapTotals totals;
      const AnyMatrix no_index;
      args.cursors = scratch.data;
      status = internal::RunMapSort(
          executor, plan,
          {topk_ids, no_index, no_index, simd::IdMap{nullptr, num_experts},
           num_experts, tokens_per_expert.data, nullptr, nullptr, &totals,
           plan.block_tokens, scratch.data});
      if (!status.ok()) return status;
    }
    status = internal::RunRows(
        executor, plan.blocks,
        internal::kMappedPairPs * plan.block_tokens * topk_ids.cols,
        simd::ReplicaPlace(), args);
    if (!status.ok()) return status;
  }
  size_t found = 0;
  int32_t most = 0;
  const auto wrong = [&inputs](size_t e) {
    const int32_t count = inputs.replica_counts.data[e];
    return count < 0 || static_cast<size_t>(count) > inputs.replicas.cols;
  };
  for (size_t e = 0; e < num_experts; ++e) {
    const int32_t pairs = tokens_per_expert.data[e];
    most = std::max(most, pairs);
    if (replica_counts.data[e] != 0 && !wrong(e)) {
      found += static_cast<size_t>(pairs);
    }
  }
  const size_t dropped = num_pairs - found;
  if (report != nullptr) {
    report->max_rows = static_cast<size_t>(most);
    report->dropped = dropped;
  }
  if (dropped == 0 || options.allow_dropped) return Status();
  for (size_t e = 0; e < num_experts; ++e) {
    if (!wrong(e)) continue;
    return internal::RefuseElement(
        "MapReplicas: replica_counts: outside [0, max_replicas], and "
        "options.allow_dropped is not set",
        replica_counts, e, 0, replicas.cols);
  }
  return internal::DoesNotFit(
      "MapReplicas: topk_ids: without a replica, and options.allow_dropped is "
      "not set",
      dropped, num_pairs);
}

}  // namespace switchyard
