// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// PlanExperts. It sorts the pairs (tokens and their experts), puts their rows
// into blocks, and makes the tasks that workers claim.

#include "src/base/layer_plan.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "src/base/take.h"
#include "src/calls/layer.h"
#include "src/check.h"
#include "src/work_list.h"
#include "switchyard/bucket.h"
#include "switchyard/layer.h"
#include "switchyard/pieces.h"

namespace switchyard {
namespace {

using internal::CeilDiv;
using internal::Checked;
using internal::kMostPieces;
using internal::kPiecesOfShare;
using internal::Taker;
using internal::WorkTile;

// The number of an expert's products, and how many of them are gate and up.
constexpr size_t kProducts = 3, kGateUpProducts = 2;
// Blocks of about the same cost are cut into equal parts if a worker's share
// costs less than kEvenShare times the smallest piece, because so few pieces
// cannot fill the gaps at the end. One token's 8 experts on 128 workers then
// take 1.10 times the ideal time instead of 1.29 times.
constexpr size_t kEvenShare = 16;
// If no even cut keeps workers busy, each worker takes one part of gate and
// up, for which each block needs at least this many workers. One token's 8
// experts on 48 to 127 workers then take 1.12 times the ideal time on average
// and 1.20 times at most, instead of 1.17 and 1.28 times.
constexpr size_t kWorkersOfBlock = 6;
// CutInOneTurn() counts time in units of cost / kFine.
constexpr size_t kFine = 256;

// The times at which workers finish gate and up, and the number of workers for
// each time. Times that differ by less than a 32nd count as one time.
class Finishes {
 public:
  // Returns false if eight other times are stored, because no more fit.
  bool Add(size_t time, size_t workers) {
    for (size_t i = 0; i < size_; ++i) {
      const size_t at = times_[i];
      if (std::max(at, time) - std::min(at, time) > at / 32) continue;
      times_[i] = std::max(at, time);
      workers_[i] += workers;
      return true;
    }
    if (size_ == kMost) return false;
    times_[size_] = time;
    workers_[size_++] = workers;
    return true;
  }
  size_t size() const { return size_; }
  size_t time(size_t i) const { return times_[i]; }
  size_t First() const { return *std::min_element(times_, times_ + size_); }
  size_t Last() const { return *std::max_element(times_, times_ + size_); }

  // Returns the time at which workers have done `parts` parts, each of which
  // takes the time `part`. The result is exact to a 64th of `part`.
  size_t End(size_t parts, size_t part) const {
    size_t low = 0, high = Last() + parts * part;
    while (high - low > part / 64 + 1) {
      const size_t middle = low + (high - low) / 2;
      (PartsUntil(middle, part) >= parts ? high : low) = middle;
    }
    return high;
  }

 private:
  size_t PartsUntil(size_t end, size_t part) const {
    size_t parts = 0;
    for (size_t i = 0; i < size_; ++i) {
      if (end > times_[i]) parts += (end - times_[i]) / part * workers_[i];
    }
    return parts;
  }

  static constexpr size_t kMost = 8;
  size_t times_[kMost] = {}, workers_[kMost] = {};
  size_t size_ = 0;
};

internal::WorkListOptions WorkOf(const ExpertsPlanOptions& options) {
  internal::WorkListOptions work;
  work.workers = options.workers;
  work.tile_rows = internal::TileRows(options);
  work.min_rows = options.min_rows;
  work.tile_cost = options.weight_cost;
  work.row_cost = options.row_cost;
  return work;
}

// An executor that only knows its number of threads.
class ThreadCount final : public Executor {
 public:
  explicit ThreadCount(size_t threads) : threads_(threads) {}
  size_t Concurrency() const noexcept override { return threads_; }
  Status ParallelFor(size_t, size_t, Body, void*) noexcept override {
    return Status(StatusCode::kInternal, "PlanExperts: no threads");
  }

 private:
  const size_t threads_;
};

// The number of calls of PlanExperts() that wrote to memory.
std::atomic<size_t> g_generation{0};

// The parts of the caller's memory.
struct PlanMemory {
  uint64_t* mark;
  int32_t *tokens_per_expert, *offsets, *pairs, *row_index, *rows_per_token,
      *scratch;
  WorkTile* tiles;
  ExpertBlock* blocks;
  ExpertTask* tasks;
  size_t num_tiles, num_shared, num_tasks, num_scratch;
};

// True if PlanExperts() accepts these options.
bool AreInRange(const ExpertsPlanOptions& options) {
  for (const calls::Option& option : calls::ExpertsPlanCall::kOptions) {
    if (!internal::IsInRange(option.range.of, option.range,
                             internal::At(&options, option.field.offset),
                             option.field.kind)) {
      return false;
    }
  }
  return options.shared_intermediate <= calls::kMaxInt32;
}

// Takes all parts of the memory from `taker`. Returns false if a size
// overflows, or if an option is out of range.
bool DivideMemory(size_t tokens, size_t top_k,
                  const ExpertsPlanOptions& options, Taker* taker,
                  PlanMemory* memory) {
  const size_t experts = options.num_experts;
  size_t pairs = 0;
  if (__builtin_mul_overflow(tokens, top_k, &pairs) ||
      pairs > calls::kMaxInt32 || !AreInRange(options)) {
    return false;
  }
  memory->num_tiles = internal::WorkListSize(pairs, experts, WorkOf(options));
  memory->num_shared = internal::SharedBlocks(tokens, options);
  const size_t blocks = internal::MostBlocks(tokens, pairs, options);
  memory->num_tasks = internal::MostTasks(blocks, options);
  // This is enough scratch to sort with options.workers threads.
  memory->num_scratch =
      BucketScratchSize(pairs, experts, ThreadCount(options.workers));
  memory->mark = internal::TakeMark(taker);
  memory->tokens_per_expert = taker->Take<int32_t>(experts);
  memory->offsets = taker->Take<int32_t>(experts + 1);
  memory->pairs = taker->Take<int32_t>(pairs);
  memory->row_index = taker->Take<int32_t>(pairs);
  memory->rows_per_token = taker->Take<int32_t>(tokens);
  memory->blocks = taker->Take<ExpertBlock>(blocks);
  memory->tasks = taker->Take<ExpertTask>(memory->num_tasks);
  // Only planning needs the tiles and the scratch.
  memory->tiles = taker->Take<WorkTile>(memory->num_tiles);
  memory->scratch = taker->Take<int32_t>(memory->num_scratch);
  return !taker->overflows();
}

class Planner {
 public:
  Planner(const ExpertsPlanOptions& options, const PlanMemory& memory,
          ExpertsPlan* plan)
      : options_(options), memory_(memory), plan_(*plan) {}

  // Makes a plan from the tiles. Returns false if their cost exceeds 63 bits.
  bool Make(size_t num_tiles) {
    if (!MakeBlocks(num_tiles)) return false;
    MakeTasks();
    return true;
  }

 private:
  // Returns the cost of a block's products, or SIZE_MAX if it exceeds 64 bits.
  // The cost of the shared expert is in proportion to its width.
  size_t Cost(const ExpertBlock& block) const {
    const size_t rows =
        std::max(static_cast<size_t>(block.rows), options_.min_rows);
    size_t cost;
    if (__builtin_mul_overflow(options_.row_cost, rows, &cost) ||
        __builtin_add_overflow(cost, options_.weight_cost, &cost)) {
      return SIZE_MAX;
    }
    if (block.expert != ExpertTile::kShared) return cost;
    // Computes cost * shared / width; the product could overflow, but shared
    // and width are below 2^31.
    const size_t width = options_.intermediate;
    const size_t shared = options_.shared_intermediate;
    size_t shared_cost;
    if (__builtin_mul_overflow(cost / width, shared, &shared_cost) ||
        __builtin_add_overflow(shared_cost, cost % width * shared / width,
                               &shared_cost)) {
      return SIZE_MAX;
    }
    return std::max<size_t>(1, shared_cost);
  }

  // Cuts rows [first, first + rows) into even blocks of whole tiles.
  ExpertBlock* Split(int32_t expert, int64_t first, size_t rows, size_t blocks,
                     ExpertBlock* next) const {
    const size_t tile_rows = internal::TileRows(options_);
    const size_t tiles = CeilDiv(rows, tile_rows);
    for (size_t i = 0; i < blocks; ++i) {
      const size_t begin = PartBegin(tiles, blocks, i) * tile_rows;
      const size_t end =
          std::min(rows, PartBegin(tiles, blocks, i + 1) * tile_rows);
      *next++ = {first + static_cast<int64_t>(begin),
                 static_cast<int32_t>(end - begin),
                 expert,
                 0,
                 0,
                 0};
    }
    return next;
  }

  bool MakeBlocks(size_t num_tiles) {
    ExpertBlock* next = memory_.blocks;
    for (size_t i = 0; i < num_tiles; ++i) {
      const WorkTile& tile = memory_.tiles[i];
      const auto rows = static_cast<size_t>(tile.rows);
      next = Split(tile.expert, tile.first_row, rows,
                   CeilDiv(rows, internal::MostBlockRows(options_)), next);
    }
    next =
        Split(ExpertTile::kShared, 0, plan_.tokens, memory_.num_shared, next);
    plan_.blocks = {memory_.blocks, static_cast<size_t>(next - memory_.blocks)};
    SortBlocks();
    size_t total = 0;
    for (const ExpertBlock& block : plan_.blocks) {
      if (__builtin_add_overflow(total, Cost(block), &total)) return false;
    }
    plan_.total_cost = total;
    return total <= INT64_MAX / kProducts;
  }

  // The order of blocks: the largest cost comes first.
  bool IsBefore(const ExpertBlock& a, const ExpertBlock& b) const {
    const size_t a_cost = Cost(a), b_cost = Cost(b);
    if (a_cost != b_cost) return a_cost > b_cost;
    if (a.expert != b.expert) return a.expert < b.expert;
    return a.first_row < b.first_row;
  }
  // Sorts the blocks: first whole blocks, then blocks that are cut into parts.
  void SortBlocks() {
    std::sort(plan_.blocks.begin(), plan_.blocks.end(),
              [this](const ExpertBlock& a, const ExpertBlock& b) {
                return a.gate_up_parts != b.gate_up_parts
                           ? a.gate_up_parts < b.gate_up_parts
                           : IsBefore(a, b);
              });
  }

  // Returns the largest cost to claim at once when work of cost `left` remains.
  size_t Limit(size_t left) const {
    return std::max(
        {left / (kPiecesOfShare * options_.workers), least_, size_t{1}});
  }
  // Returns the number of column tiles of one product of a block.
  size_t ColumnTiles(const ExpertBlock& block, bool is_down) const {
    const size_t cols = is_down ? options_.hidden
                        : block.expert == ExpertTile::kShared
                            ? options_.shared_intermediate
                            : options_.intermediate;
    return CeilDiv(cols, options_.tile_columns);
  }
  size_t ProductCost(const ExpertBlock& block, bool is_down) const {
    const size_t cost = Cost(block),
                 gate_up = cost * kGateUpProducts / kProducts;
    return is_down ? cost - gate_up : gate_up;
  }
  // True if blocks should be cut evenly: all blocks are cut, the blocks of
  // routed experts cost about the same, and a worker's share is small
  // (kEvenShare).
  bool ShouldCutEvenly(Span<ExpertBlock> cut) const {
    if (cut.size != plan_.blocks.size || cut.size == 0) return false;
    size_t least = SIZE_MAX, most = 0;  // costs of routed experts' blocks
    for (const ExpertBlock& block : cut) {
      if (block.expert == ExpertTile::kShared) continue;
      least = std::min(least, Cost(block));
      most = std::max(most, Cost(block));
    }
    const size_t share = plan_.total_cost / options_.workers;
    return (most == 0 || most - least <= least / 8) &&
           share / kEvenShare < options_.least_cost;
  }
  // Returns the number of parts of a block's product if a part costs at most
  // 17/16 of total / (workers * turns). Returns 0 if a single column tile costs
  // more, or if there would be more parts than workers.
  size_t EvenParts(const ExpertBlock& block, bool is_down, size_t total,
                   size_t turns) const {
    const size_t tiles = ColumnTiles(block, is_down);
    const size_t cost = std::max<size_t>(1, ProductCost(block, is_down));
    size_t most;  // the most column tiles of a part
    if (__builtin_mul_overflow(17 * tiles, total, &most)) return 0;
    most /= cost;
    most /= 16 * turns * options_.workers;
    if (most == 0) return 0;
    const size_t parts = CeilDiv(tiles, most);
    return parts <= options_.workers ? parts : 0;
  }
  // Cuts one product of all blocks into equal parts, so that all workers
  // claim the same number of parts (`turns`). Takes the smallest number of
  // turns that keeps workers busy for 16/17 of the time. Returns false if
  // even kMostPieces turns do not keep them busy, or if a part would cost
  // less than half of least_cost.
  bool CutEvenly(Span<ExpertBlock> cut, bool is_down) const {
    size_t total = 0;
    for (const ExpertBlock& block : cut) total += ProductCost(block, is_down);
    for (size_t turns = 1; turns <= kMostPieces; ++turns) {
      if (total / (turns * options_.workers) < options_.least_cost / 2) break;
      size_t all = 0;
      for (ExpertBlock& block : cut) {
        const size_t parts = EvenParts(block, is_down, total, turns);
        all = parts == 0 ? SIZE_MAX : all + parts;
        if (all > turns * options_.workers) break;
        PartsOf(block, is_down) = static_cast<int32_t>(parts);
      }
      if (all <= turns * options_.workers) return true;
    }
    return false;
  }
  // Returns the most column tiles of a block's product that cost at most
  // `limit` / kFine, but at least 1.
  size_t TilesWithin(const ExpertBlock& block, bool is_down,
                     size_t limit) const {
    const size_t tiles = ColumnTiles(block, is_down);
    const size_t cost = std::max<size_t>(1, ProductCost(block, is_down));
    return std::clamp<size_t>(limit * tiles / cost / kFine, 1, tiles);
  }
  // Returns the number of parts of a product, over all blocks, if a part costs
  // at most limit / kFine.
  size_t CountParts(Span<ExpertBlock> cut, bool is_down, size_t limit) const {
    size_t all = 0;
    for (const ExpertBlock& block : cut) {
      all += CeilDiv(ColumnTiles(block, is_down),
                     TilesWithin(block, is_down, limit));
    }
    return all;
  }
  // Cuts gate and up into one part per worker, in two sizes that differ by a
  // tile. Cuts the down product so that workers end at the same time, even if
  // some finish gate and up early and others late. Sorts blocks by the time
  // of their activation, because workers claim the parts of down in this
  // order, and would wait for a late block. Returns false if there are too
  // few workers, or if columns or costs are so large that 64-bit products
  // would overflow.
  bool CutInOneTurn(Span<ExpertBlock> cut) const {
    const size_t workers = options_.workers;
    if (workers < kWorkersOfBlock * cut.size || plan_.total_cost >> 32 != 0) {
      return false;
    }
    for (const ExpertBlock& block : cut) {
      if (ColumnTiles(block, false) >> 16 != 0 ||
          ColumnTiles(block, true) >> 16 != 0) {
        return false;
      }
    }
    Finishes finishes;
    if (!CutGateUp(cut, &finishes) || !CutDown(cut, finishes)) return false;
    std::sort(cut.begin(), cut.end(),
              [this](const ExpertBlock& a, const ExpertBlock& b) {
                const size_t a_time = TimeOfGateUp(a), b_time = TimeOfGateUp(b);
                return a_time != b_time ? a_time < b_time : IsBefore(a, b);
              });
    return true;
  }
  // Returns the time that the largest part of a block's gate and up takes.
  size_t TimeOfGateUp(const ExpertBlock& block) const {
    const size_t tiles = ColumnTiles(block, false);
    return CeilDiv(tiles, static_cast<size_t>(block.gate_up_parts)) *
           (kFine * ProductCost(block, false) / tiles);
  }
  // Returns false if there are fewer workers than blocks, or if `finishes` is
  // full.
  bool CutGateUp(Span<ExpertBlock> cut, Finishes* finishes) const {
    const ExpertBlock& first = cut.data[0];
    const size_t first_tiles = ColumnTiles(first, false);
    const size_t first_cost = ProductCost(first, false);
    size_t total = 0;
    for (const ExpertBlock& block : cut) total += ProductCost(block, false);
    // Starts with as many tiles as a worker's share has, because parts with
    // fewer tiles would be more parts than workers.
    size_t limit, parts,
        tiles_of_part = total * first_tiles / (first_cost * options_.workers);
    do {
      if (++tiles_of_part > first_tiles) return false;
      limit = CeilDiv(kFine * tiles_of_part * first_cost, first_tiles);
      parts = CountParts(cut, false, limit);
    } while (parts > options_.workers);
    size_t spare = options_.workers - parts;
    for (ExpertBlock& block : cut) {
      const size_t tiles = ColumnTiles(block, false);
      const size_t most = TilesWithin(block, false, limit);
      size_t own = CeilDiv(tiles, most);
      if (most > 1 && CeilDiv(tiles, most - 1) - own <= spare) {
        spare -= CeilDiv(tiles, most - 1) - own;
        own = CeilDiv(tiles, most - 1);
      }
      block.gate_up_parts = static_cast<int32_t>(own);
      // If the tiles do not divide evenly, some parts have one tile less.
      const size_t larger = tiles % own == 0 ? own : tiles % own;
      const size_t tile = kFine * ProductCost(block, false) / tiles;
      if (!finishes->Add(CeilDiv(tiles, own) * tile, larger) ||
          (larger < own && !finishes->Add(tiles / own * tile, own - larger))) {
        return false;
      }
    }
    return spare == 0 || finishes->Add(finishes->First(), spare);
  }
  // Chooses the size of the parts of down. For each time at which workers
  // finish gate and up, tries parts that take the time from then to the mean
  // time at which workers end, or a half or a third of this time. Returns
  // false if all these parts would be too small.
  bool CutDown(Span<ExpertBlock> cut, const Finishes& finishes) const {
    size_t down = 0;
    for (const ExpertBlock& block : cut) down += ProductCost(block, true);
    const size_t workers = options_.workers;
    const size_t mean = kFine * plan_.total_cost / workers;
    const size_t least = std::max<size_t>(1, kFine * down / (8 * workers));
    const size_t claim = kFine * std::min(options_.least_cost, mean) / 16;
    // Takes a routed expert's block, because the shared expert's width may
    // differ.
    const ExpertBlock& usual = cut.data[cut.size / 2];
    const size_t tiles = ColumnTiles(usual, true);
    const size_t cost = kFine * ProductCost(usual, true);
    size_t best = 0, best_end = SIZE_MAX;
    for (size_t i = 0; i < finishes.size(); ++i) {
      for (size_t turns = 1; turns <= 3; ++turns) {
        if (finishes.time(i) >= mean) continue;
        const size_t rest = (mean - finishes.time(i)) / turns;
        const size_t part = CeilDiv(CeilDiv(rest * tiles, cost) * cost, tiles);
        if (part < least) continue;
        // The last block's parts begin when that block is activated.
        const size_t end =
            std::max(finishes.End(CountParts(cut, true, part), part + claim),
                     finishes.Last() + part + claim);
        if (end >= best_end) continue;
        best_end = end;
        best = part;
      }
    }
    if (best == 0) return false;
    for (ExpertBlock& block : cut) {
      block.down_parts = static_cast<int32_t>(
          CeilDiv(ColumnTiles(block, true), TilesWithin(block, true, best)));
    }
    return true;
  }

  static int32_t& PartsOf(ExpertBlock& block, bool is_down) {
    return is_down ? block.down_parts : block.gate_up_parts;
  }

  void MakeTasks() {
    least_ = std::max(options_.least_cost,
                      plan_.total_cost / (kMostPieces * options_.workers));
    // Marks the blocks to cut, with 1 part of gate and up for now.
    // SortBlocks() then puts the whole blocks first.
    const bool may_cut = options_.workers > 1 && options_.tile_columns != 0;
    size_t left = plan_.total_cost;
    for (ExpertBlock& block : plan_.blocks) {
      const size_t cost = Cost(block);
      block.gate_up_parts = may_cut && cost > Limit(left) ? 1 : 0;
      left -= cost;
    }
    SortBlocks();
    ExpertBlock* const cut_begin =
        std::find_if(plan_.blocks.begin(), plan_.blocks.end(),
                     [](const ExpertBlock& b) { return b.gate_up_parts != 0; });
    const auto num_whole =
        static_cast<size_t>(cut_begin - plan_.blocks.begin());
    const Span<ExpertBlock> cut(cut_begin, plan_.blocks.size - num_whole);
    left = 0;
    for (const ExpertBlock& block : cut) left += Cost(block);
    size_t cut_rows = 0;
    for (ExpertBlock& block : cut) {
      block.cut_row = static_cast<int32_t>(cut_rows);
      cut_rows += static_cast<size_t>(block.rows);
    }
    plan_.cut_rows = cut_rows;

    ExpertTask* next = memory_.tasks;
    for (size_t i = 0; i < num_whole; ++i) {
      *next++ = {static_cast<int32_t>(i), ExpertTask::kBlock, 0};
    }
    const bool is_even =
        ShouldCutEvenly(cut) &&
        ((CutEvenly(cut, false) && CutEvenly(cut, true)) || CutInOneTurn(cut));
    for (const auto kind : {ExpertTask::kGateUp, ExpertTask::kDown}) {
      const bool is_down = kind == ExpertTask::kDown;
      for (ExpertBlock& block : cut) {
        const size_t cost = ProductCost(block, is_down);
        int32_t& parts = PartsOf(block, is_down);
        if (!is_even) {
          parts = static_cast<int32_t>(std::min(CeilDiv(cost, Limit(left)),
                                                ColumnTiles(block, is_down)));
        }
        left -= cost;
        const auto index = static_cast<int32_t>(&block - plan_.blocks.data);
        for (int32_t part = 0; part < parts; ++part) {
          *next++ = {index, kind, part};
        }
      }
    }
    plan_.tasks = {memory_.tasks, static_cast<size_t>(next - memory_.tasks)};
  }

  const ExpertsPlanOptions& options_;
  const PlanMemory& memory_;
  ExpertsPlan& plan_;
  size_t least_ = 0;
};

}  // namespace

size_t ExpertsPlanSize(size_t tokens, size_t top_k,
                       const ExpertsPlanOptions& options) noexcept {
  Taker taker;
  PlanMemory memory;
  return DivideMemory(tokens, top_k, options, &taker, &memory) ? taker.size()
                                                               : SIZE_MAX;
}

Status PlanExperts(const ExpertsPlanInputs& inputs,
                   const ExpertsPlanOutputs& outputs,
                   const ExpertsPlanOptions& options,
                   Executor& executor) noexcept {
  const Checked<calls::ExpertsPlanCall> call(inputs, outputs, options);
  if (!call.status.ok()) return call.status;
  const size_t tokens = call.sizes.tokens, top_k = call.sizes.top_k;
  Taker taker(outputs.memory);
  PlanMemory memory;
  DivideMemory(tokens, top_k, options, &taker, &memory);

  ExpertsPlan& plan = *outputs.plan;
  plan = ExpertsPlan();
  plan.memory = outputs.memory;
  plan.generation = g_generation.fetch_add(1, std::memory_order_relaxed) + 1;
  *memory.mark = internal::MarkOf(plan);
  plan.tokens = tokens;
  plan.top_k = top_k;
  plan.num_experts = options.num_experts;
  plan.hidden = options.hidden;
  plan.intermediate = options.intermediate;
  plan.shared_intermediate = options.shared_intermediate;
  plan.tile_columns = options.tile_columns;
  plan.least_cost = options.least_cost;
  plan.tokens_per_expert = {memory.tokens_per_expert, options.num_experts};
  plan.offsets = {memory.offsets, options.num_experts + 1};
  plan.pairs = {memory.pairs, tokens * top_k};
  plan.rows_per_token = {memory.rows_per_token, tokens};
  plan.row_index = AnyMatrix(memory.row_index, tokens, top_k);

  Report report;
  BucketOptions buckets;
  buckets.allow_dropped = true;
  Status status =
      BucketPacked({inputs.topk_ids, {memory.scratch, memory.num_scratch}},
                   {plan.tokens_per_expert, plan.offsets, plan.pairs,
                    plan.row_index, &report},
                   buckets, executor);
  if (!status.ok()) return status;
  plan.num_rows = static_cast<size_t>(plan.offsets.data[options.num_experts]);
  for (size_t t = 0; t < tokens; ++t) {
    const int32_t* const row = plan.row_index.Row<int32_t>(t);
    int32_t rows = options.shared_intermediate != 0 ? 1 : 0;
    for (size_t s = 0; s < top_k; ++s) rows += row[s] >= 0 ? 1 : 0;
    plan.rows_per_token.data[t] = rows;
    plan.tokens_without_rows += rows == 0 ? 1 : 0;
  }

  const size_t num_tiles = internal::MakeWorkList(
      {plan.tokens_per_expert, plan.offsets}, WorkOf(options), memory.tiles);
  if (num_tiles == SIZE_MAX ||
      !Planner(options, memory, &plan).Make(num_tiles)) {
    return internal::DoesNotFit(
        "PlanExperts: options: the rows' cost exceeds 63 bits",
        internal::Details()
            .Put("got row_cost ")
            .Put(options.row_cost)
            .Put(", weight_cost ")
            .Put(options.weight_cost));
  }
  for (const ExpertBlock& block : plan.blocks) {
    plan.step_rows = std::max(plan.step_rows, static_cast<size_t>(block.rows));
  }
  plan.mark = internal::MarkOf(plan);
  if (outputs.report != nullptr) {
    outputs.report->max_rows = report.max_rows;
    outputs.report->dropped = report.dropped;
    outputs.report->tiles = plan.tasks.size;
  }
  if (report.dropped == 0 || options.allow_dropped) return Status();
  return internal::DoesNotFit(
      "PlanExperts: topk_ids: outside [0, num_experts), and "
      "options.allow_dropped is not set",
      report.dropped, tokens * top_k);
}

}  // namespace switchyard
