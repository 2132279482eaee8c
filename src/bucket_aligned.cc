// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstring>

#include "src/bucket_plan.h"
#include "src/check_macros.h"
#include "src/map_sort.h"
#include "src/simd/map.h"
#include "switchyard/bucket.h"

namespace switchyard {
namespace {

using internal::kMaxInt32;

// An expert's blocks and sentinels, which few are long; an element of
// row_tokens.
constexpr size_t kPadExpertPs = 20000;
constexpr size_t kTokenPs = 300;

template <class T>
bool Given(const Span<T>& span) {
  return span.size != 0;
}

// Apart from what runs, which is compiled for each crew.
Status CheckAligned(const AlignedInputs& inputs, const AlignedBuckets& outputs,
                    const AlignedOptions& options) {
  const auto& [topk_ids, expert_map, scratch] = inputs;
  const auto& [tokens_per_expert, offsets, pairs, row_index, block_experts,
               row_tokens, active_experts, report] = outputs;
  const size_t block_size = options.block_size;
  SWITCHYARD_CHECK_SORT_INPUTS(BucketAligned, tokens_per_expert, "experts");
  SWITCHYARD_CHECK_VIEW(BucketAligned, expert_map);
  SWITCHYARD_CHECK_VIEW(BucketAligned, offsets);
  SWITCHYARD_CHECK_VIEW(BucketAligned, pairs);
  SWITCHYARD_CHECK_VIEW(BucketAligned, block_experts);
  SWITCHYARD_CHECK_VIEW(BucketAligned, row_tokens);
  SWITCHYARD_CHECK_VIEW(BucketAligned, active_experts);
  SWITCHYARD_CHECK(expert_map.size <= kMaxInt32,
                   "BucketAligned: expert_map: more than 2^31 - 1 ids");
  SWITCHYARD_CHECK(block_size != 0, "BucketAligned: options: block_size is 0");
  const size_t num_experts = tokens_per_expert.size;
  const size_t tokens = topk_ids.rows, top_k = topk_ids.cols;
  const size_t num_pairs = tokens * top_k;
  const size_t padded = BucketAlignedSize(num_pairs, num_experts, options);
  SWITCHYARD_CHECK(block_size <= kMaxInt32 && padded <= kMaxInt32,
                   "BucketAligned: options: block_size: more than 2^31 - 1 "
                   "padded pairs");
  SWITCHYARD_CHECK_NEEDED(BucketAligned, offsets,
                          offsets.size == num_experts + 1,
                          "size is not num_experts + 1");
  SWITCHYARD_CHECK_NEEDED(BucketAligned, pairs, pairs.size >= padded,
                          "fewer than BucketAlignedSize elements");
  SWITCHYARD_CHECK(
      !Given(block_experts) || block_experts.size >= padded / block_size,
      "BucketAligned: block_experts: fewer than BucketAlignedSize / block_size "
      "elements");
  SWITCHYARD_CHECK(!Given(row_tokens) || row_tokens.size >= padded,
                   "BucketAligned: row_tokens: fewer than BucketAlignedSize "
                   "elements");
  SWITCHYARD_CHECK(!Given(active_experts) || active_experts.size == num_experts,
                   "BucketAligned: active_experts: size is not num_experts");
  if (internal::Given(row_index)) {
    SWITCHYARD_CHECK_TYPED(BucketAligned, row_index, Type::kI32, "int32");
    SWITCHYARD_CHECK_SHAPE(BucketAligned, row_index, tokens, top_k);
  }
#define SWITCHYARD_APART_VIEW(m, name) \
  { m, "BucketAligned: " name ": overlaps another argument" }
  const internal::ApartView views[] = {
      topk_ids,
      expert_map,
      SWITCHYARD_APART_VIEW(scratch, "scratch"),
      SWITCHYARD_APART_VIEW(tokens_per_expert, "tokens_per_expert"),
      SWITCHYARD_APART_VIEW(offsets, "offsets"),
      SWITCHYARD_APART_VIEW(pairs, "pairs"),
      SWITCHYARD_APART_VIEW(row_index, "row_index"),
      SWITCHYARD_APART_VIEW(block_experts, "block_experts"),
      SWITCHYARD_APART_VIEW(row_tokens, "row_tokens"),
      SWITCHYARD_APART_VIEW(active_experts, "active_experts")};
  return internal::CheckApart(views);
}

template <class Crew>
Status Aligned(const AlignedInputs& inputs, const AlignedBuckets& outputs,
               const AlignedOptions& options, const Crew& crew) {
  Status status = CheckAligned(inputs, outputs, options);
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
  const internal::BucketPlan plan = internal::MakeBucketPlan(
      tokens, top_k, num_experts, BucketOrder::kAscending, scratch.size, crew);
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
  int32_t found = 0;
  if (num_pairs == 0) {
    crew.Once([&, counts = tokens_per_expert, starts = offsets] {
      std::memset(counts.data, 0, counts.size * sizeof(int32_t));
      std::memset(starts.data, 0, starts.size * sizeof(int32_t));
    });
  } else {
    status = internal::RunMapSort(crew, plan, args, &found);
    const size_t padded_pairs = static_cast<size_t>(offsets.data[num_experts]);
    if (status.ok() && (block_size > 1 || Given(block_experts))) {
      status = crew.Share(num_experts, kPadExpertPs, simd::MapPad(), args);
    }
    if (status.ok() && Given(row_tokens)) {
      args.row_tokens = row_tokens.data;
      args.top_k = simd::Divider(top_k);
      status = crew.Share(padded_pairs, kTokenPs, simd::MapTokens(), args);
    }
  }
  if (!status.ok()) return status;
  crew.Once([&, counts = tokens_per_expert, out = pairs, list = active_experts,
             blocks = block_experts, ends = offsets, told = report] {
    size_t active = 0;
    for (size_t e = 0; e < num_experts; ++e) {
      if (counts.data[e] == 0) continue;
      if (list.size != 0) list.data[active] = static_cast<int32_t>(e);
      ++active;
    }
    for (size_t i = active; i < list.size; ++i) list.data[i] = -1;
    if (options.fill_unused) {
      const auto used = static_cast<size_t>(ends.data[num_experts]);
      std::fill(out.begin() + used, out.end(), static_cast<int32_t>(num_pairs));
      if (blocks.size != 0) {
        std::fill(blocks.begin() + used / options.block_size, blocks.end(), -1);
      }
    }
    if (told == nullptr) return;
    told->max_rows = static_cast<size_t>(totals.max);
    told->dropped = num_pairs - static_cast<size_t>(found);
    told->over_capacity = static_cast<size_t>(found - totals.kept);
    told->active_experts = active;
  });
  SWITCHYARD_CHECK_DROPPED(BucketAligned,
                           num_pairs - static_cast<size_t>(found), options);
  return Status();
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
  return Aligned(inputs, outputs, options, internal::ExecutorCrew(executor));
}
Status BucketAligned(const AlignedInputs& inputs, const AlignedBuckets& outputs,
                     const AlignedOptions& options, const Team& team) noexcept {
  SWITCHYARD_CHECK_TEAM(BucketAligned, team);
  return Aligned(inputs, outputs, options, internal::TeamCrew(team));
}

}  // namespace switchyard
