// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// How PlanExperts cuts work, as far as the size of RunExperts' scratch follows
// from it.

#ifndef SWITCHYARD_SRC_LAYER_PLAN_H_
#define SWITCHYARD_SRC_LAYER_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "switchyard/layer.h"

namespace switchyard::internal {

inline size_t CeilDiv(size_t a, size_t b) { return a / b + (a % b != 0); }

// A worker's share of what is left, in this many pieces, is the largest piece
// that is claimed: large ones while there is much to do, small ones at the end.
constexpr size_t kPiecesOfShare = 3;

// The most rows of blocks that are cut to parts of columns, whatever the ids. A
// block is cut where less than kPiecesOfShare times its cost is left for each
// worker, so the cost of all that are cut is below that of so many blocks.
inline size_t MostCutRows(const ExpertsPlanOptions& options) {
  if (options.row_cost == 0) return SIZE_MAX;
  size_t rows = std::max(options.max_rows, options.min_rows);
  // A block's cost, in rows.
  size_t most = 0;
  if (__builtin_add_overflow(rows, options.weight_cost / options.row_cost + 1,
                             &most)) {
    return SIZE_MAX;
  }
  // Rows of the shared expert may cost less, and its blocks more.
  const size_t shared = options.shared_intermediate;
  const size_t intermediate = options.intermediate;
  if (shared != 0) {
    const size_t ratio =
        shared < intermediate ? intermediate / shared : shared / intermediate;
    if (__builtin_mul_overflow(most, 2 * (ratio + 1), &most)) return SIZE_MAX;
  }
  return __builtin_mul_overflow(most, kPiecesOfShare * options.workers, &most)
             ? SIZE_MAX
             : most;
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_LAYER_PLAN_H_
