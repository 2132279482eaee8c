// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// How PlanExperts cuts work, as far as the size of RunExperts' scratch follows
// from it.

#ifndef SWITCHYARD_SRC_BASE_LAYER_PLAN_H_
#define SWITCHYARD_SRC_BASE_LAYER_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/base/take.h"
#include "switchyard/layer.h"

namespace switchyard::internal {

inline size_t CeilDiv(size_t a, size_t b) { return a / b + (a % b != 0); }

// A worker's share of what is left, in this many pieces, is the largest piece
// that is claimed: large ones while there is much to do, small ones at the end.
constexpr size_t kPiecesOfShare = 3;

// The least part of a worker's share of all work, so that parts are at most so
// many a worker.
constexpr size_t kMostPieces = 16;

// Tiles begin at multiples of so many rows. max_rows bounds a tile in any case,
// because callers size their own memory by it.
inline size_t TileRows(const ExpertsPlanOptions& options) {
  return std::min(options.tile_rows, options.max_rows);
}
// The most rows of a block: max_rows, rounded down to whole tiles.
inline size_t MostBlockRows(const ExpertsPlanOptions& options) {
  return options.max_rows / TileRows(options) * TileRows(options);
}

// Blocks of the shared expert, each no more than a worker's share.
inline size_t SharedBlocks(size_t tokens, const ExpertsPlanOptions& options) {
  if (options.shared_intermediate == 0 || tokens == 0) return 0;
  return std::min(CeilDiv(tokens, TileRows(options)),
                  std::max(kPiecesOfShare * options.workers,
                           CeilDiv(tokens, MostBlockRows(options))));
}
// The most blocks of so many pairs with any ids.
inline size_t MostBlocks(size_t tokens, size_t pairs,
                         const ExpertsPlanOptions& options) {
  return std::min(pairs, options.num_experts) + pairs / TileRows(options) +
         pairs / MostBlockRows(options) + SharedBlocks(tokens, options);
}
// The most tasks of so many blocks: one of a whole block, two of a block that
// is cut, and one for each further part. These are at most 2 * kMostPieces for
// each worker. In equal turns there are kMostPieces parts of either product. In
// one turn of gate and up there is one part, and a down part costs at least
// half of an eighth of the worker's share. Otherwise a further part costs at
// least max(1, total_cost / (kMostPieces * workers)), rounded down.
inline size_t MostTasks(size_t blocks, const ExpertsPlanOptions& options) {
  return 2 * blocks + 2 * kMostPieces * options.workers;
}

// The most rows of blocks that are cut to parts of columns, whatever the ids. A
// block is cut where less than kPiecesOfShare times its cost is left for each
// worker, so the cost of all that are cut is below that of so many blocks.
inline size_t MostCutRows(const ExpertsPlanOptions& options) {
  if (options.row_cost == 0) return SIZE_MAX;
  const size_t rows = std::max(MostBlockRows(options), options.min_rows);
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

// PlanExperts() leaves this in a plan as the last that it writes. A struct that
// it never saw has another value, or this one by one chance in 2^64.
inline uint64_t MarkOf(const ExpertsPlan& plan) {
  constexpr uint64_t kMark = 0x5C1D9E7B3A64F20D;
  return kMark ^ reinterpret_cast<uintptr_t>(plan.memory.data) ^
         plan.generation;
}
inline bool IsMade(const ExpertsPlan& plan) {
  return plan.mark == MarkOf(plan);
}

// PlanExperts() also leaves the mark at the start of the plan's memory, so that
// a second plan in the same memory, which has another generation, makes copies
// of the first one stale.
inline uint64_t* TakeMark(Taker* taker) { return taker->Take<uint64_t>(1); }
// Of a plan that is made.
inline bool HasItsMemory(const ExpertsPlan& plan) {
  Taker taker(plan.memory);
  return *TakeMark(&taker) == plan.mark;
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BASE_LAYER_PLAN_H_
