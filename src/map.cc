// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/map.h"

#include <algorithm>
#include <cstring>

#include "src/bucket_plan.h"
#include "src/calls/map.h"
#include "src/check.h"
#include "src/map_sort.h"
#include "src/simd/map.h"

namespace switchyard {

static_assert(simd::kMaxTokenBuckets == calls::kMaxBuckets);

namespace {

void Clear(const Span<int32_t>& span) {
  if (span.size != 0) std::memset(span.data, 0, span.size * sizeof(int32_t));
}

// Writes the element_counts and element_offsets of `list`, if given.
void PutElements(const MapRows& list, size_t row_elements) {
  const auto put = [row_elements](const Span<int32_t>& rows,
                                  const Span<int64_t>& elements) {
    for (size_t i = 0; i < elements.size; ++i) {
      elements.data[i] = static_cast<int64_t>(
          static_cast<size_t>(rows.data[i]) * row_elements);
    }
  };
  put(list.counts, list.element_counts);
  put(list.offsets, list.element_offsets);
}

}  // namespace

Status MapPairs(const MapInputs& inputs, const MapOutputs& outputs,
                const MapOptions& options, Executor& executor) noexcept {
  const auto call =
      internal::CheckSort<calls::MapCall>(inputs, outputs, options, executor);
  Status status = call.status;
  if (!status.ok()) return status;
  const auto& [topk_ids, destinations, scratch] = inputs;
  const auto& [pairs, pair_index, tokens, copy_index, return_index, report] =
      outputs;
  const bool with_tokens = tokens.counts.size != 0;
  const size_t num_destinations = call.sizes.buckets;
  const size_t num_tokens = topk_ids.rows, top_k = topk_ids.cols;
  const size_t num_pairs = num_tokens * top_k;
  const size_t per_destination = options.experts_per_destination;
  simd::MapTotals totals, token_totals;
  if (num_pairs == 0) {
    for (const MapRows* list : {&pairs, &tokens}) {
      Clear(list->counts);
      Clear(list->offsets);
    }
  } else {
    const AnyMatrix no_index;
    const internal::BucketPlan plan = internal::MakeBucketPlan(
        num_tokens, top_k, num_destinations, BucketOrder::kAscending,
        scratch.size, executor);
    const simd::IdMap map = {
        destinations.data, call.sizes.num_ids,
        simd::Divider(std::max<size_t>(1, per_destination))};
    int32_t* const cursors = plan.blocks == 1 ? nullptr : scratch.data;
    simd::MapArgs pair_args{topk_ids,
                            pair_index,
                            no_index,
                            map,
                            num_destinations,
                            pairs.counts.data,
                            pairs.offsets.data,
                            pairs.rows.data,
                            &totals,
                            plan.block_tokens,
                            cursors};
    const bool looked_up = destinations.size != 0 || per_destination > 1;
    pair_args.keeps_buckets = looked_up && pair_index.data != nullptr;
    status = internal::RunMapSort(executor, plan, pair_args);
    if (status.ok() && with_tokens) {
      simd::MapArgs token_args{topk_ids,
                               copy_index,
                               return_index,
                               map,
                               num_destinations,
                               tokens.counts.data,
                               tokens.offsets.data,
                               tokens.rows.data,
                               &token_totals,
                               plan.block_tokens,
                               cursors};
      token_args.tokens = true;
      token_args.keeps_buckets = looked_up && copy_index.data != nullptr;
      status = internal::RunMapSort(executor, plan, token_args);
    }
    if (!status.ok()) return status;
  }
  PutElements(pairs, options.row_elements);
  PutElements(tokens, options.row_elements);
  const size_t dropped = num_pairs - static_cast<size_t>(totals.found);
  if (report != nullptr) {
    report->max_rows = static_cast<size_t>(totals.max);
    report->dropped = dropped;
  }
  return dropped == 0 || options.allow_dropped
             ? Status()
             : internal::RefuseDropped(
                   "MapPairs: destinations: outside [-1, num_destinations), "
                   "and options.allow_dropped is not set",
                   "MapPairs: topk_ids: without a destination, and "
                   "options.allow_dropped is not set",
                   destinations, num_destinations, dropped, num_pairs);
}

}  // namespace switchyard
