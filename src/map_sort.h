// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The passes of a sort, for BucketAligned and MapPairs.

#ifndef SWITCHYARD_SRC_MAP_SORT_H_
#define SWITCHYARD_SRC_MAP_SORT_H_

#include <cstddef>
#include <cstdint>

#include "src/bucket_plan.h"
#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/map.h"
#include "switchyard/bucket.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard::internal {

// The picoseconds to count and place a pair whose bucket comes from a table.
constexpr size_t kMappedPairPs = 1500;

// Runs all passes of a sort, or only counts and scans if args.out is null.
inline Status RunMapSort(Executor& executor, const BucketPlan& plan,
                         const simd::MapArgs& args) {
  if (plan.blocks == 1) {
    simd::MapCount()(args, 0, 1);
    simd::MapScan()(args, 0, 1);
    if (args.out != nullptr) simd::MapPlace()(args, 0, 1);
  } else {
    const size_t block_ps =
        kMappedPairPs * plan.block_tokens * args.topk_ids.cols;
    Status status =
        RunRows(executor, plan.blocks, block_ps, simd::MapCount(), args);
    if (!status.ok()) return status;
    simd::MapScan()(args, 0, plan.blocks);
    if (args.out != nullptr) {
      status = RunRows(executor, plan.blocks, block_ps, simd::MapPlace(), args);
      if (!status.ok()) return status;
    }
  }
  if (args.out != nullptr) simd::MapOffsets()(args, 0, args.num_buckets);
  return Status();
}

// Returns the error for dropped pairs. Blames the map if one of its elements
// is neither a bucket nor -1, otherwise the ids.
[[gnu::cold]] inline Status RefuseDropped(const char* of_map,
                                          const char* of_ids,
                                          Span<const int32_t> map,
                                          size_t buckets, size_t dropped,
                                          size_t pairs) {
  for (size_t i = 0; i < map.size; ++i) {
    const int32_t bucket = map.data[i];
    if (bucket >= -1 && bucket < static_cast<int64_t>(buckets)) continue;
    return RefuseElement(of_map, map, i, -1, buckets - 1);
  }
  return DoesNotFit(of_ids, dropped, pairs);
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_MAP_SORT_H_
