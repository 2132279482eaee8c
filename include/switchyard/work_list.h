// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The experts' GEMMs cut into tiles that threads claim.

#ifndef SWITCHYARD_WORK_LIST_H_
#define SWITCHYARD_WORK_LIST_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/report.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// Rows [first_row, first_row + rows) of packed ones, all of one expert.
struct WorkTile {
  int64_t first_row = 0;
  int32_t rows = 0;
  int32_t expert = 0;
};

struct WorkListInputs {
  Span<const int32_t> tokens_per_expert;  // [num_experts]
  // Optional [num_experts + 1], as BucketPacked and BucketAligned write them:
  // expert e's first row is offsets[e], and offsets[e + 1] is not in its rows.
  // Without them it is the sum of the counts before.
  Span<const int32_t> offsets = {};
};
struct WorkListOutputs {
  // At least [WorkListSize]; what is behind the last one is left unspecified.
  Span<WorkTile> tiles = {};
  Report* report = nullptr;  // sets tiles
};
struct WorkListOptions {
  size_t workers = 1;  // that claim; may be fewer or more when it comes to it
  // Tiles begin at multiples of so many rows of their expert: the GEMM's block.
  size_t tile_rows = 16;
  // A tile costs tile_cost + row_cost * max(rows, min_rows), in any unit:
  // tile_cost stands for reading the expert's weights, and min_rows says that
  // fewer rows take as long.
  size_t min_rows = 0;
  size_t tile_cost = 0;
  size_t row_cost = 1;
};

// How many tiles there may be for so many rows in all: min(num_rows,
// num_experts) + num_rows / tile_rows. SIZE_MAX if tile_rows is 0 or this
// overflows.
size_t WorkListSize(size_t num_rows, size_t num_experts,
                    const WorkListOptions& options = {}) noexcept;

// Cuts each expert's rows to tiles, sorted by cost, the largest first, so that
// workers that claim them in order are ready at the same time:
//
//   std::atomic<size_t> next{0};  // then on each thread
//   for (size_t i; (i = next++) < report.tiles;) Gemm(tiles[i]);
//
// A tile is as large as half of a worker's share of what is left, by cost, but
// not below tile_rows and min_rows: large tiles while there is much to do,
// small ones at the end. Where a tile has a cost of its own, fewer cuts may be
// better: of four lists, from whole experts to tiles whose rows cost as much as
// the tile itself, it is the one with which the last worker is ready first (up
// to 1024 workers). Tiles of the same cost are in the order of experts and
// rows. An expert without rows has none.
//
// How good: without tile_cost and min_rows, the last worker is ready less than
// the time of tile_rows rows after the mean of all (by simulation, of uniform
// ids and of Zipf's law, 2 to 256 workers). docs/speed.md has a table.
//
// Serial, without vectors: about 25 ns a tile, most of it sorting; four times
// that with tile_cost.
// Errors: kInvalidArgument for null data, offsets of another size, workers or
// tile_rows of 0, and a view of tiles that overlaps an input; nothing written.
// kFailedPrecondition for a negative count, offsets that are negative or do not
// leave each expert its rows, rows whose cost exceeds 63 bits, and a list too
// small for WorkListSize of the counts' sum, then with the size that it needs
// in the report; nothing else written.
Status MakeWorkList(const WorkListInputs& inputs,
                    const WorkListOutputs& outputs,
                    const WorkListOptions& options = {}) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_WORK_LIST_H_
