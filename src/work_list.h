// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Cuts experts' rows into tiles that threads claim, for PlanExperts(). The code
// is in a header because the digests and the simulator also call it, and a
// shared library does not export it.

#ifndef SWITCHYARD_SRC_WORK_LIST_H_
#define SWITCHYARD_SRC_WORK_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "switchyard/views.h"

namespace switchyard::internal {

// Rows [first_row, first_row + rows) of one expert, in packed order.
struct WorkTile {
  int64_t first_row = 0;
  int32_t rows = 0;
  int32_t expert = 0;
};

// The experts' rows, as BucketPacked and BucketAligned write them.
struct WorkListInputs {
  Span<const int32_t> tokens_per_expert;  // [num_experts]
  Span<const int32_t> offsets;            // [num_experts + 1]
};
struct WorkListOptions {
  size_t workers = 1;  // workers that claim tiles, at least 1
  // Each tile begins at a multiple of tile_rows, counted from its expert's
  // first row. At least 1.
  size_t tile_rows = 16;
  // A tile costs tile_cost + row_cost * max(rows, min_rows), in any unit.
  // tile_cost is the cost of reading the expert's weights. Fewer than min_rows
  // rows take as long as min_rows.
  size_t min_rows = 0;
  size_t tile_cost = 0;
  size_t row_cost = 1;
};

// Returns the most tiles that num_rows rows can make: min(num_rows,
// num_experts) + num_rows / tile_rows, or SIZE_MAX if this overflows.
inline size_t WorkListSize(size_t num_rows, size_t num_experts,
                           const WorkListOptions& options) {
  size_t size = 0;
  return __builtin_add_overflow(std::min(num_rows, num_experts),
                                num_rows / options.tile_rows, &size)
             ? SIZE_MAX
             : size;
}

// Returns the number of rows that count in the cost of a tile of `rows` rows.
inline size_t CountedRows(const WorkListOptions& options, size_t rows) {
  return std::max(rows, options.min_rows);
}
inline size_t TileCost(const WorkListOptions& options, size_t rows) {
  return options.tile_cost + options.row_cost * CountedRows(options, rows);
}

// How tiles are cut. A tile costs at most half of a worker's share of the
// remaining cost, times `halves`. But it has at least `smallest` *
// max(min_rows, tile_cost / row_cost) rows, or all that its expert has left.
// If `halves` is 0, experts are not cut.
struct CutPlan {
  size_t halves, smallest;
};
// If a tile costs only its rows, cuts are free. Otherwise each cut adds cost,
// and trying plans finds the best number of cuts. The best of the four
// kCutPlans is within 0.04 of the best of 20 plans.
inline constexpr CutPlan kFreeCuts = {1, 1};
inline constexpr CutPlan kCutPlans[] = {{0, 0}, {2, 4}, {2, 2}, {2, 1}};
inline constexpr CutPlan kUntried = {2, 2};
// The most workers for which plans are tried: finish times are on the stack.
inline constexpr size_t kMaxTriedWorkers = 1024;

// Returns the number of rows of the smallest tile.
inline size_t SmallestTile(const WorkListOptions& options,
                           const CutPlan& plan) {
  if (options.row_cost == 0 || plan.halves == 0) return INT32_MAX;
  const size_t worth = std::max(
      {size_t{1}, options.min_rows, options.tile_cost / options.row_cost});
  if (worth >= INT32_MAX || options.tile_rows >= INT32_MAX) return INT32_MAX;
  return (plan.smallest * worth + options.tile_rows - 1) / options.tile_rows *
         options.tile_rows;
}

// Cuts rows that cost `left` in total. Returns the number of tiles.
inline size_t CutTiles(const WorkListInputs& inputs,
                       const WorkListOptions& options, const CutPlan& plan,
                       size_t left, WorkTile* tiles) {
  const size_t smallest = SmallestTile(options, plan);
  WorkTile* next = tiles;
  for (size_t e = 0; e < inputs.tokens_per_expert.size; ++e) {
    size_t rows = static_cast<size_t>(inputs.tokens_per_expert.data[e]);
    int64_t first_row = inputs.offsets.data[e];
    while (rows != 0) {
      size_t size = smallest;
      const size_t most = left / 2 / options.workers * plan.halves;
      if (size < rows && most > options.tile_cost) {
        const size_t fair = (most - options.tile_cost) / options.row_cost;
        size = std::max(size, fair / options.tile_rows * options.tile_rows);
      }
      size = std::min(size, rows);
      left -= TileCost(options, rows);
      *next++ = {first_row, static_cast<int32_t>(size),
                 static_cast<int32_t>(e)};
      first_row += static_cast<int64_t>(size);
      rows -= size;
      if (rows != 0) left += TileCost(options, rows);
    }
  }
  std::sort(tiles, next, [&options](const WorkTile& a, const WorkTile& b) {
    const auto counted = [&options](const WorkTile& tile) {
      return options.row_cost == 0
                 ? 0
                 : CountedRows(options, static_cast<size_t>(tile.rows));
    };
    const size_t a_rows = counted(a), b_rows = counted(b);
    if (a_rows != b_rows) return a_rows > b_rows;
    if (a.expert != b.expert) return a.expert < b.expert;
    return a.first_row < b.first_row;
  });
  return static_cast<size_t>(next - tiles);
}

// Returns the time at which the last worker ends, if each worker claims its
// next tile as soon as it is ready.
inline size_t LastFinish(const WorkListOptions& options, const WorkTile* tiles,
                         size_t size) {
  size_t ready[kMaxTriedWorkers] = {};  // a heap, with the earliest time on top
  const size_t workers = options.workers;
  size_t last = 0;
  for (size_t i = 0; i < size; ++i) {
    const size_t end =
        ready[0] + TileCost(options, static_cast<size_t>(tiles[i].rows));
    last = std::max(last, end);
    size_t at = 0;
    for (size_t child = 1; child < workers; child = 2 * at + 1) {
      if (child + 1 < workers && ready[child + 1] < ready[child]) ++child;
      if (ready[child] >= end) break;
      ready[at] = ready[child];
      at = child;
    }
    ready[at] = end;
  }
  return last;
}

// Tries all plans, and keeps the list that ends first.
inline size_t CutTilesByTrial(const WorkListInputs& inputs,
                              const WorkListOptions& options, size_t left,
                              WorkTile* tiles) {
  const CutPlan* best = nullptr;
  size_t best_finish = SIZE_MAX, size = 0;
  for (const CutPlan& plan : kCutPlans) {
    size = CutTiles(inputs, options, plan, left, tiles);
    const size_t finish = LastFinish(options, tiles, size);
    if (finish < best_finish) {
      best_finish = finish;
      best = &plan;
    }
  }
  const bool is_there = best == std::end(kCutPlans) - 1;
  return is_there ? size : CutTiles(inputs, options, *best, left, tiles);
}

// Cuts each expert's rows into tiles and sorts them by cost, the largest first,
// so that workers that claim them in order end at about the same time:
//
//   std::atomic<size_t> next{0};  // then on each thread
//   for (size_t i; (i = next++) < num_tiles;) Gemm(tiles[i]);
//
// A tile costs half of a worker's share of the remaining cost, but has at least
// tile_rows and min_rows rows. So large tiles come first, and small tiles at
// the end. Tiles of equal cost are in the order of experts and rows. An expert
// without rows has no tile.
//
// With a tile_cost, fewer cuts may be better. For up to 1024 workers, four
// lists are tried, from whole experts to tiles with rows that cost as much as
// tile_cost, and MakeWorkList() takes the list whose last worker ends first.
//
// Without tile_cost and min_rows, the last worker ends later than the mean of
// all workers, but by less than the time of tile_rows rows (in simulations of
// uniform ids and of Zipf's law, 2 to 256 workers).
//
// The function is serial and uses no vectors. A tile takes about 25 ns, most of
// it for sorting, and four times as long with tile_cost.
//
// `tiles` has room for WorkListSize() tiles. Returns the number of tiles or, if
// the cost of all rows exceeds 63 bits, SIZE_MAX, with nothing written.
inline size_t MakeWorkList(const WorkListInputs& inputs,
                           const WorkListOptions& options, WorkTile* tiles) {
  size_t left = 0;  // the cost of rows that are not in a tile yet
  for (const int32_t count : inputs.tokens_per_expert) {
    if (count == 0) continue;
    size_t cost = 0;
    if (__builtin_mul_overflow(options.row_cost,
                               CountedRows(options, static_cast<size_t>(count)),
                               &cost) ||
        __builtin_add_overflow(cost, options.tile_cost, &cost) ||
        __builtin_add_overflow(cost, left, &left) || left > INT64_MAX) {
      return SIZE_MAX;
    }
  }
  if (options.tile_cost == 0) {
    return CutTiles(inputs, options, kFreeCuts, left, tiles);
  }
  return options.workers > kMaxTriedWorkers
             ? CutTiles(inputs, options, kUntried, left, tiles)
             : CutTilesByTrial(inputs, options, left, tiles);
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_WORK_LIST_H_
