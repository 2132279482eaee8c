// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Counts of what a call found in its data.

#ifndef SWITCHYARD_REPORT_H_
#define SWITCHYARD_REPORT_H_

#include <cstddef>

#include "switchyard/language.h"

namespace switchyard {

// Counts that calls find in their data, beside the results. A function sets the
// fields listed below its name, when it succeeds or as it says, and leaves the
// others alone: one Report may serve a whole layer.
struct Report {
  // RouteTopK:
  size_t invalid_ids = 0;  // of given_ids outside [0, num_experts)
  size_t elsewhere = 0;    // selected experts that expert_map has as -1
  // BucketPacked, BucketStrided:
  size_t max_rows = 0;    // pairs of the busiest expert
  size_t row_stride = 0;  // BucketStrided: the stride used, see there
  size_t dropped = 0;     // pairs whose id was outside [0, num_experts)
  // GatherRows:
  size_t invalid = 0;  // pairs outside [0, num_tokens * top_k)
  // Combine:
  size_t skipped = 0;  // row_index values outside [-1, num_rows)
  // BucketAligned, which sets max_rows and dropped, too, as MapPairs does:
  size_t over_capacity = 0;   // pairs beyond their expert's capacity
  size_t active_experts = 0;  // experts that have pairs
  // MakeWorkList:
  size_t tiles = 0;  // that the list has or, if it is too small, needs
  // Quantize:
  size_t overflowed_blocks = 0;  // finite, but beyond the f16 fields of a block
};

}  // namespace switchyard

#endif  // SWITCHYARD_REPORT_H_
