// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Defines Report, which has counts that a call reports beside its results,
// such as invalid ids.

#ifndef SWITCHYARD_REPORT_H_
#define SWITCHYARD_REPORT_H_

#include <cstddef>

#include "switchyard/language.h"

namespace switchyard {

// Counts that calls report beside their results. If a function succeeds, it
// sets the fields that have its name in their comments. After an error it sets
// them only if its contract states so. It leaves the other fields unchanged,
// so one Report may serve a whole layer.
struct Report {
  // Set by RouteTopK: the number of invalid values in given_ids and bias_index.
  size_t invalid_ids = 0;
  // Set by RouteTopK: the number of selected experts with -1 in expert_map.
  size_t elsewhere = 0;
  // Set by BucketPacked, BucketStrided, BucketAligned, MapPairs, MapReplicas
  // and PlanExperts: the number of pairs of the busiest expert or destination.
  // Set by MapCounts: the number of rows that the busiest rank receives.
  size_t max_rows = 0;
  // Set by BucketStrided: the stride that it used or, if rows were too short,
  // the least stride.
  size_t row_stride = 0;
  // Set by BucketPacked, BucketStrided, BucketAligned, MapPairs, MapReplicas
  // and PlanExperts: the number of dropped pairs, which have an id outside [0,
  // num_experts), or no destination or replica.
  size_t dropped = 0;
  // Set by GatherRows: the number of pairs outside [0, num_tokens * top_k).
  size_t invalid = 0;
  // Set by Combine, RunExperts and ScatterRows: the number of row_index values
  // outside [-1, num_rows).
  size_t skipped = 0;
  // Set by BucketAligned: the number of pairs beyond their expert's capacity.
  size_t over_capacity = 0;
  // Set by BucketAligned: the number of experts that have pairs.
  size_t active_experts = 0;
  // Set by PlanExperts: the number of tiles in all tasks of the plan.
  size_t tiles = 0;
  // Set by Quantize: the number of blocks in which all values are finite, but
  // d or s is infinite.
  size_t overflowed_blocks = 0;
};

}  // namespace switchyard

#endif  // SWITCHYARD_REPORT_H_
