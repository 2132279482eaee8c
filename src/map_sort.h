// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// BucketAligned and MapPairs share the passes of a sort.

#ifndef SWITCHYARD_SRC_MAP_SORT_H_
#define SWITCHYARD_SRC_MAP_SORT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/bucket_plan.h"
#include "src/check.h"
#include "src/simd/map.h"
#include "switchyard/bucket.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard::internal {

// Counting and placing a pair by way of a table.
constexpr size_t kMappedPairPs = 1500;

// Runs a sort's passes, as far as args.out asks for, and sets args.totals of
// the thread that reports. `found`, on every thread, is the number of pairs
// that have a bucket; a sort of tokens, which knows copies only, leaves it
// alone.
template <class Crew>
Status RunMapSort(const Crew& crew, const BucketPlan& plan,
                  const simd::MapArgs& args, int32_t* found) {
  if (plan.blocks == 1) {
    crew.Once([&] {
      simd::MapCount()(args, 0, 1);
      simd::MapScan()(args, 0, 1);
      if (args.out != nullptr) simd::MapPlace()(args, 0, 1);
    });
  } else {
    const size_t block_ps =
        kMappedPairPs * plan.block_tokens * args.topk_ids.cols;
    Status status = crew.Share(plan.blocks, block_ps, simd::MapCount(), args);
    if (!status.ok()) return status;
    crew.Once([&] { simd::MapScan()(args, 0, plan.blocks); });
    if (args.out != nullptr) {
      status = crew.Share(plan.blocks, block_ps, simd::MapPlace(), args);
      if (!status.ok()) return status;
    }
  }
  // The first offset, 0, tells the others what the first thread has found.
  int32_t* const told = args.out != nullptr ? args.offsets : nullptr;
  crew.Once([&] {
    if (told == nullptr) return;
    simd::MapOffsets()(args, 0, args.num_buckets);
    told[0] = args.totals->found;
  });
  if (!args.tokens) {
    *found = 0;
    for (size_t e = 0; told == nullptr && e < args.num_buckets; ++e) {
      *found += args.counts[e];
    }
    if (told != nullptr) *found = told[0];
  }
  crew.Wait();
  crew.Once([&] {
    if (told != nullptr) told[0] = 0;
  });
  return Status();
}

// Pairs were dropped: by a map with elements that are no bucket, if it has one,
// and else by their ids.
[[gnu::cold]] inline Status RefuseDropped(const char* of_map,
                                          const char* of_ids,
                                          Span<const int32_t> map,
                                          size_t buckets, size_t dropped,
                                          size_t pairs) {
  for (size_t i = 0; i < map.size; ++i) {
    const int32_t bucket = map.data[i];
    if (bucket >= -1 && bucket < static_cast<int64_t>(buckets)) continue;
    return DoesNotFit(of_map, Details()
                                  .Put("got ")
                                  .Put(int{bucket})
                                  .Put(" at ")
                                  .Put(i)
                                  .Put(", needs -1 to ")
                                  .Put(buckets - 1));
  }
  return DoesNotFit(of_ids, dropped, pairs);
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_MAP_SORT_H_
