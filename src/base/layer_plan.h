// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The rules of PlanExperts that decide the size of RunExperts' scratch.

#ifndef SWITCHYARD_SRC_BASE_LAYER_PLAN_H_
#define SWITCHYARD_SRC_BASE_LAYER_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/base/take.h"
#include "switchyard/layer.h"

namespace switchyard::internal {

inline size_t CeilDiv(size_t a, size_t b) { return a / b + (a % b != 0); }

// A worker claims at most its share of the remaining work, divided by
// kPiecesOfShare. So pieces are large at first and small at the end, which
// keeps all workers busy until then.
constexpr size_t kPiecesOfShare = 3;

// A part costs at least a worker's share of all work, divided by kMostPieces.
// This bounds the number of parts for each worker.
constexpr size_t kMostPieces = 16;

// Returns the number of rows of a tile. Tiles begin at multiples of this
// number. It is at most max_rows, because callers size their own memory by
// max_rows.
inline size_t TileRows(const ExpertsPlanOptions& options) {
  return std::min(options.tile_rows, options.max_rows);
}
// Returns the most rows of a block: max_rows, rounded down to whole tiles.
inline size_t MostBlockRows(const ExpertsPlanOptions& options) {
  return options.max_rows / TileRows(options) * TileRows(options);
}

// Returns the number of the shared expert's blocks. No block exceeds a worker's
// share, unless there are too few tiles.
inline size_t SharedBlocks(size_t tokens, const ExpertsPlanOptions& options) {
  if (options.shared_intermediate == 0 || tokens == 0) return 0;
  return std::min(CeilDiv(tokens, TileRows(options)),
                  std::max(kPiecesOfShare * options.workers,
                           CeilDiv(tokens, MostBlockRows(options))));
}
// Returns the most blocks that `pairs` pairs can give, for any ids.
inline size_t MostBlocks(size_t tokens, size_t pairs,
                         const ExpertsPlanOptions& options) {
  return std::min(pairs, options.num_experts) + pairs / TileRows(options) +
         pairs / MostBlockRows(options) + SharedBlocks(tokens, options);
}
// Returns the most tasks that `blocks` blocks can have: one for a whole
// block, two for a block that is cut, and one for each further part. There are
// at most 2 * kMostPieces further parts for each worker:
//  - if layer_plan.cc cuts all blocks evenly, a worker has at most kMostPieces
//    parts of each product;
//  - if CutInOneTurn() cuts them, a worker has one part of gate and up, and a
//    part of the down product costs at least a sixteenth of a worker's share of
//    this product;
//  - otherwise a further part costs at least max(1, total_cost / (kMostPieces *
//    workers)), rounded down.
inline size_t MostTasks(size_t blocks, const ExpertsPlanOptions& options) {
  return 2 * blocks + 2 * kMostPieces * options.workers;
}

// Returns the most rows, for any ids, in blocks that are cut into parts of
// columns. A block is cut only if its cost exceeds the remaining cost divided
// by (kPiecesOfShare * workers). So all cut blocks together cost less than
// kPiecesOfShare * workers times the largest of them.
inline size_t MostCutRows(const ExpertsPlanOptions& options) {
  if (options.row_cost == 0) return SIZE_MAX;
  const size_t rows = std::max(MostBlockRows(options), options.min_rows);
  // The cost of the largest block, in units of row_cost.
  size_t most = 0;
  if (__builtin_add_overflow(rows, options.weight_cost / options.row_cost + 1,
                             &most)) {
    return SIZE_MAX;
  }
  // A row of the shared expert may cost less than a routed row, and a block of
  // the shared expert may cost more than a routed block.
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

// PlanExperts() writes this mark last. Memory without a plan has this value
// with a chance of 2^-64.
inline uint64_t MarkOf(const ExpertsPlan& plan) {
  constexpr uint64_t kMark = 0x5C1D9E7B3A64F20D;
  return kMark ^ reinterpret_cast<uintptr_t>(plan.memory.data) ^
         plan.generation;
}
inline bool IsMade(const ExpertsPlan& plan) {
  return plan.mark == MarkOf(plan);
}

// PlanExperts() also writes the mark to the start of the plan's memory. A
// second plan in this memory has another generation, and so another mark, which
// shows that copies of the first plan are out of date.
inline uint64_t* TakeMark(Taker* taker) { return taker->Take<uint64_t>(1); }
// True if the plan, which PlanExperts() has filled, still owns its memory.
inline bool HasItsMemory(const ExpertsPlan& plan) {
  Taker taker(plan.memory);
  return *TakeMark(&taker) == plan.mark;
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BASE_LAYER_PLAN_H_
