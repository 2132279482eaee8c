// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstring>

#include "src/bucket_plan.h"
#include "src/calls/bucket.h"
#include "src/check.h"
#include "src/map_sort.h"
#include "src/schedule.h"
#include "src/simd/map.h"
#include "switchyard/bucket.h"

namespace switchyard {
namespace {

// Estimates in picoseconds: the time to write the blocks and sentinels of one
// expert, and the time to write one element of row_tokens. The first is
// large, because if there are few experts, each expert has many blocks.
constexpr size_t kPadExpertPs = 20000;
constexpr size_t kTokenPs = 300;

template <class T>
bool Given(const Span<T>& span) {
  return span.size != 0;
}

}  // namespace

size_t BucketAlignedSize(size_t num_pairs, size_t num_experts,
                         const AlignedOptions& options) noexcept {
  const size_t block = options.block_size;
  if (block == 0) return SIZE_MAX;
  size_t rows = 0, padding = 0;
  if (!__builtin_mul_overflow(num_experts, options.capacity, &rows)) {
    num_pairs = std::min(num_pairs, rows);
  }
  if (__builtin_mul_overflow(std::min(num_pairs, num_experts), block - 1,
                             &padding) ||
      __builtin_add_overflow(num_pairs, padding, &rows)) {
    return SIZE_MAX;
  }
  return rows / block * block;
}

Status BucketAligned(const AlignedInputs& inputs, const AlignedBuckets& outputs,
                     const AlignedOptions& options,
                     Executor& executor) noexcept {
  const auto call = internal::CheckSort<calls::AlignedCall>(inputs, outputs,
                                                            options, executor);
  Status status = call.status;
  if (!status.ok()) return status;
  const auto& [topk_ids, expert_map, scratch] = inputs;
  const auto& [tokens_per_expert, offsets, pairs, row_index, block_experts,
               row_tokens, active_experts, report] = outputs;
  const size_t block_size = options.block_size, capacity = options.capacity;
  const size_t num_experts = tokens_per_expert.size;
  const size_t tokens = topk_ids.rows, top_k = topk_ids.cols;
  const size_t num_pairs = tokens * top_k;
  simd::MapTotals totals;
  const AnyMatrix no_index;
  const internal::BucketPlan plan =
      internal::MakeBucketPlan(tokens, top_k, num_experts,
                               BucketOrder::kAscending, scratch.size, executor);
  simd::MapArgs args{topk_ids,
                     row_index,
                     no_index,
                     {nullptr, num_experts},
                     num_experts,
                     tokens_per_expert.data,
                     offsets.data,
                     pairs.data,
                     &totals,
                     plan.block_tokens,
                     plan.blocks == 1 ? nullptr : scratch.data};
  if (Given(expert_map)) {
    args.map = {expert_map.data, expert_map.size};
    args.keeps_buckets = row_index.data != nullptr;
  }
  args.limited = capacity < num_pairs;
  if (args.limited) args.capacity = static_cast<int32_t>(capacity);
  args.block = simd::Divider(block_size);
  args.block_buckets = block_experts.data;
  if (num_pairs == 0) {
    std::memset(tokens_per_expert.data, 0, num_experts * sizeof(int32_t));
    std::memset(offsets.data, 0, offsets.size * sizeof(int32_t));
  } else {
    status = internal::RunMapSort(executor, plan, args);
    const size_t padded_pairs = static_cast<size_t>(offsets.data[num_experts]);
    if (status.ok() && (block_size > 1 || Given(block_experts))) {
      status = internal::RunRows(executor, num_experts, kPadExpertPs,
                                 simd::MapPad(), args);
    }
    if (status.ok() && Given(row_tokens)) {
      args.row_tokens = row_tokens.data;
      args.top_k = simd::Divider(top_k);
      status = internal::RunRows(executor, padded_pairs, kTokenPs,
                                 simd::MapTokens(), args);
    }
  }
  if (!status.ok()) return status;
  size_t active = 0;
  for (size_t e = 0; e < num_experts; ++e) {
    if (tokens_per_expert.data[e] == 0) continue;
    if (Given(active_experts)) {
      active_experts.data[active] = static_cast<int32_t>(e);
    }
    ++active;
  }
  for (size_t i = active; i < active_experts.size; ++i) {
    active_experts.data[i] = -1;
  }
  if (options.fill_unused) {
    const auto used = static_cast<size_t>(offsets.data[num_experts]);
    std::fill(pairs.begin() + used, pairs.end(),
              static_cast<int32_t>(num_pairs));
    if (Given(block_experts)) {
      std::fill(block_experts.begin() + used / block_size, block_experts.end(),
                -1);
    }
  }
  const size_t dropped = num_pairs - static_cast<size_t>(totals.found);
  if (report != nullptr) {
    report->max_rows = static_cast<size_t>(totals.max);
    report->dropped = dropped;
    report->over_capacity = static_cast<size_t>(totals.found - totals.kept);
    report->active_experts = active;
  }
  return dropped == 0 || options.allow_dropped
             ? Status()
             : internal::RefuseDropped(
                   "BucketAligned: expert_map: outside [-1, num_experts), and "
                   "options.allow_dropped is not set",
                   SWITCHYARD_DROPPED_TEXT("BucketAligned"), expert_map,
                   num_experts, dropped, num_pairs);
}

}  // namespace switchyard
