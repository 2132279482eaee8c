// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/work_list.h"

#include <algorithm>
#include <iterator>

#include "src/calls/work_list.h"
#include "src/check.h"

namespace switchyard {
namespace {

constexpr size_t kMaxInt32 = 0x7FFFFFFF;

// Rows that count: those below min_rows are as good as min_rows.
size_t Counted(const WorkListOptions& options, size_t rows) {
  return std::max(rows, options.min_rows);
}
size_t Cost(const WorkListOptions& options, size_t rows) {
  return options.tile_cost + options.row_cost * Counted(options, rows);
}

// The largest tile is `halves` halves of a worker's share of what is left, the
// smallest so many times the least that is worth its cost; none of part of an
// expert: 0.
struct Plan {
  size_t halves, smallest;
};
// Cuts are free if a tile costs nothing but its rows. Otherwise each has its
// price, and only a try tells the best number of cuts: one of these plans is
// within 0.04 of the best of 20.
constexpr Plan kFreeCuts = {1, 1};
constexpr Plan kPlans[] = {{0, 0}, {2, 4}, {2, 2}, {2, 1}};
constexpr Plan kUntried = {2, 2};
// The finishing times of so many workers fit on the stack.
constexpr size_t kMaxTriedWorkers = 1024;

// In rows.
size_t SmallestTile(const WorkListOptions& options, const Plan& plan) {
  if (options.row_cost == 0 || plan.halves == 0) return kMaxInt32;
  const size_t worth = std::max(
      {size_t{1}, options.min_rows, options.tile_cost / options.row_cost});
  if (worth >= kMaxInt32 || options.tile_rows >= kMaxInt32) return kMaxInt32;
  return (plan.smallest * worth + options.tile_rows - 1) / options.tile_rows *
         options.tile_rows;
}

// Cuts rows that cost `left` in all. Returns the number of tiles.
size_t Cut(const WorkListInputs& inputs, const WorkListOptions& options,
           const Plan& plan, size_t left, WorkTile* tiles) {
  const size_t smallest = SmallestTile(options, plan);
  WorkTile* next = tiles;
  int64_t first_row = 0;
  for (size_t e = 0; e < inputs.tokens_per_expert.size; ++e) {
    size_t rows = static_cast<size_t>(inputs.tokens_per_expert.data[e]);
    if (inputs.offsets.size != 0) first_row = inputs.offsets.data[e];
    while (rows != 0) {
      size_t size = smallest;
      const size_t most = left / 2 / options.workers * plan.halves;
      if (size < rows && most > options.tile_cost) {
        const size_t fair = (most - options.tile_cost) / options.row_cost;
        size = std::max(size, fair / options.tile_rows * options.tile_rows);
      }
      size = std::min(size, rows);
      left -= Cost(options, rows);
      *next++ = {first_row, static_cast<int32_t>(size),
                 static_cast<int32_t>(e)};
      first_row += static_cast<int64_t>(size);
      rows -= size;
      if (rows != 0) left += Cost(options, rows);
    }
  }
  std::sort(tiles, next, [&options](const WorkTile& a, const WorkTile& b) {
    const auto counted = [&options](const WorkTile& tile) {
      return options.row_cost == 0
                 ? 0
                 : Counted(options, static_cast<size_t>(tile.rows));
    };
    const size_t a_rows = counted(a), b_rows = counted(b);
    if (a_rows != b_rows) return a_rows > b_rows;
    if (a.expert != b.expert) return a.expert < b.expert;
    return a.first_row < b.first_row;
  });
  return static_cast<size_t>(next - tiles);
}

// When the last of the workers is ready, each claiming a tile when it is.
size_t LastFinish(const WorkListOptions& options, const WorkTile* tiles,
                  size_t size) {
  size_t ready[kMaxTriedWorkers] = {};  // a heap, the first one on top
  const size_t workers = options.workers;
  size_t last = 0;
  for (size_t i = 0; i < size; ++i) {
    const size_t end =
        ready[0] + Cost(options, static_cast<size_t>(tiles[i].rows));
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

// The list that is best by trial.
size_t CutByTrial(const WorkListInputs& inputs, const WorkListOptions& options,
                  size_t left, WorkTile* tiles) {
  const Plan* best = nullptr;
  size_t best_finish = SIZE_MAX, size = 0;
  for (const Plan& plan : kPlans) {
    size = Cut(inputs, options, plan, left, tiles);
    const size_t finish = LastFinish(options, tiles, size);
    if (finish < best_finish) {
      best_finish = finish;
      best = &plan;
    }
  }
  const bool is_there = best == std::end(kPlans) - 1;
  return is_there ? size : Cut(inputs, options, *best, left, tiles);
}

// Whether each expert's rows are behind those of the expert before.
Status CheckOffsets(const WorkListInputs& inputs) {
  int64_t least = 0;
  for (size_t i = 0; i < inputs.offsets.size; ++i) {
    const int64_t offset = inputs.offsets.data[i];
    if (offset < least) {
      return internal::DoesNotFit(
          "MakeWorkList: offsets: not ascending from 0 or more by "
          "tokens_per_expert or more",
          internal::Details()
              .Put("got ")
              .Put(int{inputs.offsets.data[i]})
              .Put(" at ")
              .Put(i)
              .Put(", needs at least ")
              .Put(static_cast<size_t>(least)));
    }
    if (i < inputs.tokens_per_expert.size) {
      least = offset + inputs.tokens_per_expert.data[i];
    }
  }
  return Status();
}

}  // namespace

size_t WorkListSize(size_t num_rows, size_t num_experts,
                    const WorkListOptions& options) noexcept {
  if (options.tile_rows == 0) return SIZE_MAX;
  size_t size = 0;
  return __builtin_add_overflow(std::min(num_rows, num_experts),
                                num_rows / options.tile_rows, &size)
             ? SIZE_MAX
             : size;
}

Status MakeWorkList(const WorkListInputs& inputs,
                    const WorkListOutputs& outputs,
                    const WorkListOptions& options) noexcept {
  const Checked<calls::WorkListCall> call(inputs, outputs, options);
  if (!call.status.ok()) return call.status;
  const auto& [tiles, report] = outputs;

  size_t num_rows = 0, left = 0;  // cost of what is left
  for (const int32_t count : inputs.tokens_per_expert) {
    if (count < 0) {
      return internal::DoesNotFit(
          "MakeWorkList: tokens_per_expert: a count is negative",
          internal::Details().Put("got ").Put(int{count}));
    }
    if (count == 0) continue;
    const size_t rows = static_cast<size_t>(count);
    size_t cost = 0;
    num_rows += rows;
    if (__builtin_mul_overflow(options.row_cost,
                               std::max(rows, options.min_rows), &cost) ||
        __builtin_add_overflow(cost, options.tile_cost, &cost) ||
        __builtin_add_overflow(cost, left, &left) || left > INT64_MAX) {
      return internal::DoesNotFit(
          "MakeWorkList: options: the rows' cost exceeds 63 bits",
          internal::Details()
              .Put("got row_cost ")
              .Put(options.row_cost)
              .Put(", tile_cost ")
              .Put(options.tile_cost));
    }
  }
  const Status offsets = CheckOffsets(inputs);
  if (!offsets.ok()) return offsets;
  const size_t needed = WorkListSize(num_rows, call.sizes.num_experts, options);
  if (tiles.size < needed) {
    if (report != nullptr) report->tiles = needed;
    return internal::DoesNotFit(
        internal::Given(tiles)
            ? "MakeWorkList: tiles: fewer than WorkListSize elements"
            : "MakeWorkList: tiles: not given",
        internal::Details()
            .Put("got ")
            .Put(tiles.size)
            .Put(", needs at least ")
            .Put(needed));
  }

  size_t size = 0;
  if (options.tile_cost == 0) {
    size = Cut(inputs, options, kFreeCuts, left, tiles.data);
  } else if (options.workers > kMaxTriedWorkers) {
    size = Cut(inputs, options, kUntried, left, tiles.data);
  } else {
    size = CutByTrial(inputs, options, left, tiles.data);
  }
  if (report != nullptr) report->tiles = size;
  return Status();
}

}  // namespace switchyard
