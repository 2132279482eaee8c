// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What BucketAligned and MapPairs share: the passes of a sort, and checks of
// many views.

#ifndef SWITCHYARD_SRC_MAP_SORT_H_
#define SWITCHYARD_SRC_MAP_SORT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/bucket_plan.h"
#include "src/check_macros.h"
#include "src/simd/map.h"
#include "switchyard/bucket.h"
#include "switchyard/status.h"

namespace switchyard::internal {

// Counting and placing a pair by way of a table.
constexpr size_t kMappedPairPs = 1500;

// An argument, and what to say if it is an output that meets another one.
struct ApartView {
  template <class M>
  ApartView(const M& m, const char* error_in = nullptr)
      : region(m), error(error_in) {}
  Region region;
  const char* error;  // null for inputs, which may share what they hold
};

// For functions with too many views for SWITCHYARD_CHECK_APART.
template <size_t N>
Status CheckApart(const ApartView (&views)[N]) {
  for (size_t i = 0; i < N; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const ApartView& out = views[i].error != nullptr ? views[i] : views[j];
      if (out.error != nullptr &&
          MayOverlap(views[i].region, views[j].region)) {
        return Status(StatusCode::kInvalidArgument, out.error);
      }
    }
  }
  return Status();
}

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

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_MAP_SORT_H_
