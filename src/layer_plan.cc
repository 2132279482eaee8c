// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// PlanExperts: a sort, then blocks of rows, then tasks for workers to claim.

#include "src/layer_plan.h"

#include <algorithm>
#include <new>

#include "src/calls/layer.h"
#include "src/check.h"
#include "src/take.h"
#include "switchyard/bucket.h"
#include "switchyard/layer.h"
#include "switchyard/pieces.h"
#include "switchyard/work_list.h"

namespace switchyard {
namespace {

using internal::CeilDiv;
using internal::Checked;
using internal::kPiecesOfShare;
using internal::Taker;

// The least part of a worker's share of all, so that parts are at most so many
// a worker.
constexpr size_t kMostPieces = 16;
// Gate and up are two products of three.
constexpr size_t kProducts = 3, kGateUpProducts = 2;
// Blocks of about one cost are cut evenly where a worker's share is below so
// many least pieces: there is none left then to fill gaps with. One token's 8
// experts on 128 workers take 1.10 of the ideal time, and 1.29 otherwise.
constexpr size_t kEvenShare = 16;

WorkListOptions WorkOf(const ExpertsPlanOptions& options) {
  WorkListOptions work;
  work.workers = options.workers;
  work.tile_rows = options.tile_rows;
  work.min_rows = options.min_rows;
  work.tile_cost = options.weight_cost;
  work.row_cost = options.row_cost;
  return work;
}

// Stands for an executor of so many threads, of whom nothing else is asked.
class Crew final : public Executor {
 public:
  explicit Crew(size_t threads) : threads_(threads) {}
  size_t Concurrency() const noexcept override { return threads_; }
  Status ParallelFor(size_t, size_t, Body, void*) noexcept override {
    return Status(StatusCode::kInternal, "PlanExperts: no threads");
  }

 private:
  const size_t threads_;
};

// The parts of the caller's memory.
struct PlanMemory {
  int32_t *tokens_per_expert, *offsets, *pairs, *row_index, *rows_per_token,
      *scratch;
  WorkTile* tiles;
  ExpertBlock* blocks;
  ExpertTask* tasks;
  size_t num_tiles, num_shared, num_blocks, num_tasks, num_scratch;
};

// Blocks of the shared expert, of which each is no more than a worker's share.
size_t SharedBlocks(size_t tokens, const ExpertsPlanOptions& options) {
  if (options.shared_intermediate == 0 || tokens == 0) return 0;
  const size_t most = CeilDiv(tokens, options.tile_rows);
  return std::min(most, std::max(kPiecesOfShare * options.workers,
                                 CeilDiv(tokens, options.max_rows)));
}

// Hands out the parts of `taker`'s memory. False if a size overflows.
bool Lay(size_t tokens, size_t top_k, const ExpertsPlanOptions& options,
         Taker* taker, PlanMemory* memory) {
  const size_t experts = options.num_experts;
  size_t pairs = 0;
  if (__builtin_mul_overflow(tokens, top_k, &pairs) ||
      pairs > calls::kMaxInt32 || experts - 1 >= calls::kMaxInt32 ||
      options.workers - 1 >= (1 << 16) || options.tile_rows == 0 ||
      options.max_rows == 0) {
    return false;
  }
  memory->num_tiles = WorkListSize(pairs, experts, WorkOf(options));
  memory->num_shared = SharedBlocks(tokens, options);
  memory->num_blocks =
      memory->num_tiles + pairs / options.max_rows + memory->num_shared;
  const size_t blocks = memory->num_blocks;
  memory->num_tasks = 3 * blocks + 2 * kMostPieces * options.workers;
  // A sort shares out as many blocks as BucketScratchSize() counts.
  memory->num_scratch =
      BucketScratchSize(pairs, experts, Crew(options.workers));
  memory->tokens_per_expert = taker->Take<int32_t>(experts);
  memory->offsets = taker->Take<int32_t>(experts + 1);
  memory->pairs = taker->Take<int32_t>(pairs);
  memory->row_index = taker->Take<int32_t>(pairs);
  memory->rows_per_token = taker->Take<int32_t>(tokens);
  memory->blocks = taker->Take<ExpertBlock>(blocks);
  memory->tasks = taker->Take<ExpertTask>(memory->num_tasks);
  // These two are not needed any more when the plan is made.
  memory->tiles = taker->Take<WorkTile>(memory->num_tiles);
  memory->scratch = taker->Take<int32_t>(memory->num_scratch);
  return !taker->overflows();
}

class Planner {
 public:
  Planner(const ExpertsPlanOptions& options, const PlanMemory& memory,
          ExpertsPlan* plan)
      : options_(options), memory_(memory), plan_(*plan) {}

  // Plans the tiles in memory. False if their cost exceeds 63 bits.
  bool Make(size_t num_tiles) {
    if (!MakeBlocks(num_tiles)) return false;
    MakeTasks();
    return true;
  }

 private:
  // The cost of all of a block's products. The shared expert's cost more as
  // they are wider.
  size_t Cost(const ExpertBlock& block) const {
    const size_t rows =
        std::max(static_cast<size_t>(block.rows), options_.min_rows);
    const size_t cost = options_.weight_cost + options_.row_cost * rows;
    return block.expert != ExpertTile::kShared
               ? cost
               : std::max<size_t>(1, cost / options_.intermediate *
                                         options_.shared_intermediate);
  }

  // Rows [first, first + rows) in so many blocks, as even as they may be.
  ExpertBlock* Split(int32_t expert, int64_t first, size_t rows, size_t blocks,
                     ExpertBlock* next) const {
    for (size_t i = 0; i < blocks; ++i) {
      const size_t begin = PartBegin(rows, blocks, i);
      const size_t end = PartBegin(rows, blocks, i + 1);
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
                   CeilDiv(rows, options_.max_rows), next);
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

  // Whole ones first, and of either kind the largest first.
  void SortBlocks() {
    std::sort(plan_.blocks.begin(), plan_.blocks.end(),
              [this](const ExpertBlock& a, const ExpertBlock& b) {
                if (a.gate_up_parts != b.gate_up_parts) {
                  return a.gate_up_parts < b.gate_up_parts;
                }
                const size_t a_cost = Cost(a), b_cost = Cost(b);
                if (a_cost != b_cost) return a_cost > b_cost;
                if (a.expert != b.expert) return a.expert < b.expert;
                return a.first_row < b.first_row;
              });
  }

  // The largest piece to be claimed where so much is left.
  size_t Limit(size_t left) const {
    return std::max(
        {left / (kPiecesOfShare * options_.workers), least_, size_t{1}});
  }
  // The columns of a block's product, in tiles.
  size_t ColumnTiles(const ExpertBlock& block, bool is_down) const {
    const size_t cols = is_down ? options_.hidden
                        : block.expert == ExpertTile::kShared
                            ? options_.shared_intermediate
                            : options_.intermediate;
    return CeilDiv(cols, options_.tile_columns);
  }
  // The fewest parts of a product of so many column tiles that keep all workers
  // busy for 16 of 17 parts of the time, if each of `blocks` equal blocks has
  // them; or 0.
  size_t EvenParts(size_t blocks, size_t tiles) const {
    const size_t workers = options_.workers;
    for (size_t parts = 1; parts <= std::min(tiles, workers); ++parts) {
      const size_t turns = CeilDiv(blocks * parts, workers);
      if (16 * turns * workers * CeilDiv(tiles, parts) <= 17 * blocks * tiles) {
        return parts;
      }
    }
    return 0;
  }
  bool ShouldCutEvenly(Span<ExpertBlock> cut) const {
    if (cut.size != plan_.blocks.size || cut.size == 0) return false;
    const ExpertBlock &first = cut.data[0], &last = cut.data[cut.size - 1];
    const size_t share = plan_.total_cost / options_.workers;
    return first.expert != ExpertTile::kShared &&
           last.expert != ExpertTile::kShared &&
           Cost(first) - Cost(last) <= Cost(last) / 8 &&
           share / kEvenShare < options_.least_cost;
  }

  void MakeTasks() {
    least_ = std::max(options_.least_cost,
                      plan_.total_cost / (kMostPieces * options_.workers));
    // Whole blocks come first, in their order, and then the others.
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
    size_t even[] = {0, 0};
    if (ShouldCutEvenly(cut)) {
      for (const bool is_down : {false, true}) {
        even[is_down] = EvenParts(cut.size, ColumnTiles(cut.data[0], is_down));
      }
    }
    const bool is_even = even[0] != 0 && even[1] != 0;
    for (const auto kind : {ExpertTask::kGateUp, ExpertTask::kDown}) {
      for (ExpertBlock& block : cut) {
        const size_t gate_up = Cost(block) * kGateUpProducts / kProducts;
        const bool is_down = kind == ExpertTask::kDown;
        const size_t cost = is_down ? Cost(block) - gate_up : gate_up;
        const auto parts = static_cast<int32_t>(
            is_even ? even[is_down]
                    : std::min(CeilDiv(cost, Limit(left)),
                               ColumnTiles(block, is_down)));
        left -= cost;
        (is_down ? block.down_parts : block.gate_up_parts) = parts;
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
  return Lay(tokens, top_k, options, &taker, &memory) ? taker.size() : SIZE_MAX;
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
  Lay(tokens, top_k, options, &taker, &memory);

  ExpertsPlan& plan = *outputs.plan;
  plan = ExpertsPlan();
  plan.memory = outputs.memory;
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

  status = MakeWorkList({plan.tokens_per_expert, plan.offsets},
                        {{memory.tiles, memory.num_tiles}, &report},
                        WorkOf(options));
  if (!status.ok() || !Planner(options, memory, &plan).Make(report.tiles)) {
    return internal::DoesNotFit(
        "PlanExperts: options: the rows' cost exceeds 63 bits");
  }
  int32_t most = 0;
  for (const ExpertBlock& block : plan.blocks) {
    most = std::max(most, block.rows);
  }
  plan.step_rows = std::min(static_cast<size_t>(most), options.max_rows);
  if (outputs.report != nullptr) {
    outputs.report->max_rows = report.max_rows;
    outputs.report->dropped = report.dropped;
    outputs.report->tiles = plan.tasks.size;
  }
  if (report.dropped == 0 || options.allow_dropped) return Status();
  return internal::DoesNotFit(
      "PlanExperts: topk_ids: outside [0, num_experts), and "
      "options.allow_dropped is not set");
}

}  // namespace switchyard
