// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Counts that a call reports beside its results, such as invalid ids.

#ifndef SWITCHYARD_REPORT_H_
#define SWITCHYARD_REPORT_H_

#include <cstddef>

#include "switchyard/language.h"

namespace switchyard {

// Counts that calls report beside their results. A function sets the fields
// below its name if it succeeds, and after an error only if its contract
// states so. It leaves the other fields unchanged, so one Report may serve a
// whole layer.
struct Report {
  // RouteTopK:
  size_t invalid_ids = 0;  // invalid values in given_ids and bias_index
  size_t elsewhere = 0;    // selected experts with -1 in expert_map
  // BucketPacked and BucketStrided:
  size_t max_rows = 0;    // pairs of the busiest expert
  size_t row_stride = 0;  // set by BucketStrided: see StridedBuckets::report
  size_t dropped = 0;     // pairs with an id outside [0, num_experts)
  // GatherRows:
  size_t invalid = 0;  // pairs outside [0, num_tokens * top_k)
  // Combine:
  size_t skipped = 0;  // row_index values outside [-1, num_rows)
  // BucketAligned, which also sets max_rows and dropped. (MapPairs sets only
  // max_rows and dropped.)
  size_t over_capacity = 0;   // pairs beyond their expert's capacity
  size_t active_experts = 0;  // experts that have pairs
  // PlanExperts, which also sets max_rows and dropped:
  size_t tiles = 0;  // tiles in all tasks of the plan
  // Quantize:
  size_t overflowed_blocks = 0;  // blocks of finite values with infinite d or s
};

}  // namespace switchyard

#endif  // SWITCHYARD_REPORT_H_
