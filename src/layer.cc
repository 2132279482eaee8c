// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// RunExperts runs one parallel loop. Each worker claims tasks until none is
// left: first conversions, then the plan's tasks (block, gate_up and down) in
// the plan's order, then tokens.
//
//   convert    converts tokens to the format that products read, if it
//              differs
//   block      gathers a block's rows, multiplies them by gate and up,
//              activates, and multiplies by down, all on one worker
//   gate_up    multiplies by some of the columns of a block's gate and up; the
//              worker that finishes the last part activates the block
//   down       multiplies by some of the columns of down, once the block is
//              activated
//   tokens     sums the tokens that have no rows in this plan
//
// Each token has a counter of the rows that its sum still needs. The worker
// that finishes a block's down product decrements the counters of the block's
// tokens, and sums each token when its counter reaches 0. A task waits only for
// tasks that were claimed before it. So the loop finishes with any number of
// workers, even with one.

#include "src/calls/layer.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>

#include "src/base/fp_env.h"
#include "src/base/layer_plan.h"
#include "src/base/take.h"
#include "src/calls/combine.h"
#include "src/check.h"
#include "src/combine_plan.h"
#include "src/parallel_for.h"
#include "src/simd/combine.h"
#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/layer.h"
#include "switchyard/pieces.h"
#include "switchyard/quantize.h"

namespace switchyard {
namespace {

using internal::CeilDiv;
using internal::Checked;
using internal::Given;
using internal::Taker;

constexpr size_t kCacheLine = 64;
// The most tokens that one claim converts, or sums if they have no rows.
constexpr size_t kClaimedTokens = 16;
// A worker polls this many times, which takes about 2 us, before it yields its
// core.
constexpr int kSpins = 1000;

// Rounds a number of columns up to whole blocks of the type.
size_t InBlocks(Type type, size_t cols) {
  return CeilDiv(cols, BlockOf(type)) * BlockOf(type);
}

AnyRows TakeRows(Taker* taker, const RowFormat& format, size_t rows,
                 size_t cols) {
  const auto take = [&](Type type, size_t columns) {
    const size_t stride = InBlocks(type, columns);
    const size_t bytes = BytesOf(type, stride);
    return AnyMatrix(
        taker->Take<unsigned char>(
            bytes == 0 || rows <= SIZE_MAX / bytes ? rows * bytes : SIZE_MAX),
        type, rows, columns, stride);
  };
  AnyRows taken = take(format.type, cols);
  if (internal::IsCode(format.type)) {
    const size_t group = format.scale_columns;
    taken.scales =
        take(format.scale_type, group == 0 ? 1 : CeilDiv(cols, group));
  }
  if (format.has_sums) taken.sums = take(Type::kI32, 1);
  return taken;
}
AnyMatrix TakeMatrix(Taker* taker, Type type, size_t rows, size_t cols) {
  RowFormat format;
  format.type = type;
  return TakeRows(taker, format, rows, cols);
}

// The parts of the scratch that only one worker uses.
struct WorkerMemory {
  AnyRows gathered, activated;
  AnyMatrix gate_up, row_scale;
};
// The parts of the scratch. Parts that workers share come first.
struct Memory {
  AnyRows hidden, shared_hidden;  // converted tokens
  AnyMatrix rows, shared_rows, ones;
  AnyMatrix cut_gate_up;  // gate and up of the blocks that are cut into parts
  AnyRows cut_activated;
  std::atomic<int32_t>* rows_to_come;   // [tokens]: missing rows
  std::atomic<int32_t>* parts_to_come;  // [2 * cut blocks]: missing parts
  Taker at_workers;
  size_t worker_bytes;
};

size_t CutBlocks(const ExpertsPlan& plan) {
  size_t blocks = 0;
  while (blocks < plan.blocks.size &&
         plan.blocks.data[plan.blocks.size - blocks - 1].gate_up_parts != 0) {
    ++blocks;
  }
  return blocks;
}
size_t WidestOf(const ExpertsPlan& plan) {
  return std::max(plan.intermediate, plan.shared_intermediate);
}

Memory LayShared(const ExpertsPlan& plan, size_t cut_blocks,
                 const ExpertsOptions& options, Taker* taker) {
  Memory memory;
  const size_t tokens = plan.tokens, widest = WidestOf(plan);
  const bool has_shared = plan.shared_intermediate != 0;
  memory.hidden = TakeRows(taker, options.operands, tokens, plan.hidden);
  memory.shared_hidden =
      TakeRows(taker, options.operands, has_shared ? tokens : 0, plan.hidden);
  memory.rows =
      TakeMatrix(taker, options.down_type, plan.num_rows, plan.hidden);
  memory.shared_rows = TakeMatrix(taker, options.down_type,
                                  has_shared ? tokens : 0, plan.hidden);
  memory.ones = TakeMatrix(taker, Type::kF32,
                           options.weights_on_input ? tokens : 0, plan.top_k);
  memory.cut_gate_up =
      TakeMatrix(taker, options.gate_up_type, plan.cut_rows, 2 * widest);
  memory.cut_activated = TakeRows(
      taker, calls::ExpertsCall::DownOperands(options), plan.cut_rows, widest);
  memory.rows_to_come = taker->Take<std::atomic<int32_t>>(tokens);
  memory.parts_to_come = taker->Take<std::atomic<int32_t>>(2 * cut_blocks);
  memory.at_workers = *taker;
  return memory;
}
WorkerMemory LayWorker(const ExpertsPlan& plan, const ExpertsOptions& options,
                       Taker* taker) {
  const size_t rows = plan.step_rows, widest = WidestOf(plan);
  WorkerMemory memory;
  memory.gathered = TakeRows(taker, options.operands, rows, plan.hidden);
  memory.gate_up = TakeMatrix(taker, options.gate_up_type, rows, 2 * widest);
  memory.activated =
      TakeRows(taker, calls::ExpertsCall::DownOperands(options), rows, widest);
  memory.row_scale =
      TakeMatrix(taker, Type::kF32, options.weights_on_input ? rows : 0, 1);
  return memory;
}

// The products with gate and up. With GateUpLayout::kSplit, each product has
// its own matrix, without gaps between rows, because GEMMs prefer that. With
// other layouts, `gate` has both products, and `up` is empty.
struct GateUp {
  AnyMatrix gate, up;
};

// The state of one call, which its workers share.
class Region {
 public:
  // The caller has checked all arguments except for the arguments of
  // Combine and Activate.
  Region(const ExpertsInputs& inputs, const CombineOutputs& outputs,
         const ExpertsOptions& options, const ExpertGemm& gemm,
         const Memory& memory)
      : plan_(*inputs.plan),
        inputs_(inputs),
        options_(options),
        gemm_(gemm),
        memory_(memory),
        first_cut_(plan_.blocks.size - CutBlocks(plan_)),
        hidden_(ConvertedOr(inputs.hidden, memory.hidden)),
        shared_hidden_(
            !Given(inputs.shared_hidden)
                ? hidden_
                : ConvertedOr(inputs.shared_hidden, memory.shared_hidden)),
        sums_(inputs.combine),
        outputs_(outputs) {
    sums_.rows = memory.rows;
    sums_.row_index = RowIndex(ConstAnyMatrix(plan_.row_index));
    if (plan_.shared_intermediate != 0) sums_.shared.rows = memory.shared_rows;
  }

  const CombineInputs& sums() const { return sums_; }
  ConstAnyRows hidden() const { return hidden_; }
  ConstAnyRows shared_hidden() const { return shared_hidden_; }

  // Checks the arguments of Activate, by a call without rows.
  Status CheckActivation() const {
    for (const int32_t expert : {0, ExpertTile::kShared}) {
      const ExpertBlock block = {0, 1, expert, 0, 0, 0};
      if (expert == ExpertTile::kShared && plan_.shared_intermediate == 0) {
        continue;
      }
      const WorkerMemory own = MemoryOf(0);
      if (own.gathered.rows == 0) continue;
      const Status status =
          Activate(ActivateInputsOf(block, GateUpOf(block, own.gate_up, 0, 0)),
                   {ActivatedOf(block, own.activated, 0).RowRange(0, 0)},
                   ActivateOf(block));
      if (!status.ok()) return status;
    }
    return Status();
  }
  // Returns the largest number of workers that have enough work.
  size_t MostWorkers() const {
    const size_t least = std::max<size_t>(1, plan_.least_cost);
    return std::max<size_t>(1, std::min(NumClaims(), plan_.total_cost / least));
  }

  // The caller has checked all arguments.
  Status Run(size_t num_workers, bool is_ordinary, Executor& executor) {
    if (options_.weights_on_input) {
      sums_.topk_weights = memory_.ones;
      std::fill_n(memory_.ones.Row<float>(0), plan_.tokens * plan_.top_k, 1.0f);
    }
    for (size_t t = 0; t < plan_.tokens; ++t) {
      new (memory_.rows_to_come + t)
          std::atomic<int32_t>(plan_.rows_per_token.data[t]);
    }
    for (size_t i = first_cut_; i < plan_.blocks.size; ++i) {
      const ExpertBlock& block = plan_.blocks.data[i];
      new (&GateUpToCome(i)) std::atomic<int32_t>(block.gate_up_parts);
      new (&DownToCome(i)) std::atomic<int32_t>(block.down_parts);
    }
    conversions_to_come_.store(NumConversions(), std::memory_order_relaxed);
    const internal::CombinePlan sum_plan(sums_, outputs_, options_.combine,
                                         !is_ordinary);
    const simd::CombineArgs sum_args = sum_plan.Args(
        sums_, outputs_, options_.combine, plan_.hidden, &skipped_);
    sum_args_ = &sum_args;
    sum_rows_ = simd::CombineRows(sum_plan.rows_type());

    if (num_workers == 1) {
      Work(0);
    } else {
      const Status status =
          internal::ParallelFor(executor, num_workers, 1, &WorkOn, this);
      if (!status.ok()) return status;
    }
    if (has_failed_.load(std::memory_order_acquire)) return error_;
    const size_t skipped = skipped_.load(std::memory_order_relaxed);
    if (outputs_.report != nullptr) outputs_.report->skipped = skipped;
    return Status();
  }

 private:
  // Returns `rows` if products can read their format, otherwise `converted`.
  static ConstAnyRows ConvertedOr(const ConstAnyRows& rows,
                                  const AnyRows& converted) {
    return internal::SameFormat(rows, converted) ? rows
                                                 : ConstAnyRows(converted);
  }
  bool Converts() const { return hidden_.data != inputs_.hidden.data; }
  bool ConvertsShared() const {
    return Given(inputs_.shared_hidden) &&
           shared_hidden_.data != inputs_.shared_hidden.data;
  }
  size_t ClaimsOfTokens() const {
    return CeilDiv(plan_.tokens, kClaimedTokens);
  }
  size_t NumConversions() const {
    return (Converts() + ConvertsShared()) * ClaimsOfTokens();
  }
  size_t NumClaims() const {
    return NumConversions() + plan_.tasks.size +
           (plan_.tokens_without_rows != 0 ? ClaimsOfTokens() : 0);
  }
  std::atomic<int32_t>& GateUpToCome(size_t block) {
    return memory_.parts_to_come[2 * (block - first_cut_)];
  }
  std::atomic<int32_t>& DownToCome(size_t block) {
    return memory_.parts_to_come[2 * (block - first_cut_) + 1];
  }

  static void WorkOn(void* context, size_t /*worker*/, size_t begin,
                     size_t end) {
    for (size_t i = begin; i < end; ++i) static_cast<Region*>(context)->Work(i);
  }

  // Claims and runs tasks until none is left.
  void Work(size_t worker) {
    const WorkerMemory own = MemoryOf(worker);
    const size_t conversions = NumConversions(), tasks = plan_.tasks.size;
    const size_t end = NumClaims();
    while (!has_failed_.load(std::memory_order_relaxed)) {
      size_t claim = next_.fetch_add(1, std::memory_order_relaxed);
      if (claim >= end) return;
      if (claim < conversions) {
        Convert(claim);
        continue;
      }
      claim -= conversions;
      if (claim >= tasks) {
        SumTokensWithoutRows(claim - tasks);
        continue;
      }
      if (!WaitFor(conversions_to_come_, size_t{0})) return;
      const ExpertTask& task = plan_.tasks.data[claim];
      const auto block = static_cast<size_t>(task.block);
      switch (task.kind) {
        case ExpertTask::kBlock:
          RunBlock(block, worker, own);
          break;
        case ExpertTask::kGateUp:
          RunGateUp(block, task.part, worker, own);
          break;
        case ExpertTask::kDown:
          RunDown(block, task.part, worker);
          break;
      }
    }
  }

  WorkerMemory MemoryOf(size_t worker) const {
    Taker taker = memory_.at_workers;
    taker.TakeBytes(worker * memory_.worker_bytes);
    return LayWorker(plan_, options_, &taker);
  }

  // Waits until `what` is `value`. Returns false if the call fails during the
  // wait.
  template <class T>
  bool WaitFor(const std::atomic<T>& what, T value) {
    for (int spins = 0; what.load(std::memory_order_acquire) != value;) {
      if (has_failed_.load(std::memory_order_relaxed)) return false;
      if (++spins > kSpins) std::this_thread::yield();
    }
    return true;
  }

  // Keeps the call's first error. Returns status.ok().
  bool Keep(const Status& status) {
    if (__builtin_expect(status.ok(), 1)) return true;
    if (!is_failing_.exchange(true, std::memory_order_relaxed)) {
      error_ = status;
      has_failed_.store(true, std::memory_order_release);
    }
    // If another worker failed first, its error may not be written yet.
    return false;
  }

  void Convert(size_t claim) {
    const bool is_shared = !Converts() || claim >= ClaimsOfTokens();
    if (Converts() && is_shared) claim -= ClaimsOfTokens();
    const size_t begin = claim * kClaimedTokens;
    const size_t end = std::min(plan_.tokens, begin + kClaimedTokens);
    const ConstAnyRows& from =
        is_shared ? inputs_.shared_hidden : inputs_.hidden;
    const AnyRows& to = is_shared ? memory_.shared_hidden : memory_.hidden;
    Keep(Quantize({from.RowRange(begin, end)}, {to.RowRange(begin, end)}));
    conversions_to_come_.fetch_sub(1, std::memory_order_release);
  }

  size_t IntermediateOf(const ExpertBlock& block) const {
    return block.expert == ExpertTile::kShared ? plan_.shared_intermediate
                                               : plan_.intermediate;
  }
  const ActivateOptions& ActivateOf(const ExpertBlock& block) const {
    return block.expert == ExpertTile::kShared ? options_.shared_activate
                                               : options_.activate;
  }

  // Sets `rows` to the block's rows, in the format that products read.
  // Gathers the rows into the worker's memory unless they are contiguous
  // already. Returns false if the call fails.
  bool Gather(const ExpertBlock& block, const WorkerMemory& own,
              ConstAnyRows* rows) {
    const auto first = static_cast<size_t>(block.first_row);
    const auto count = static_cast<size_t>(block.rows);
    if (block.expert == ExpertTile::kShared) {
      *rows = shared_hidden_.RowRange(first, first + count);
      return true;
    }
    const Span<const int32_t> pairs(plan_.pairs.data + first, count);
    if (count == 1) {
      const size_t token = TokenOf(pairs.data[0]);
      *rows = hidden_.RowRange(token, token + 1);
      return true;
    }
    const AnyRows gathered = own.gathered.RowRange(0, count);
    *rows = gathered;
    return Keep(GatherRows({hidden_, pairs, plan_.row_index}, {gathered}));
  }
  size_t TokenOf(int32_t pair) const {
    return static_cast<size_t>(pair) / plan_.top_k;
  }

  // Computes columns [begin, end) of the products with gate and up. With
  // kSplit, these are columns of each of the two matrices.
  bool MultiplyGateUp(const ExpertBlock& block, const ConstAnyRows& rows,
                      const GateUp& out, size_t begin, size_t end,
                      size_t worker) {
    const auto multiply = [&](ExpertProduct product, const AnyMatrix& m) {
      return Keep(gemm_({product, block.expert, begin, worker, rows,
                         m.ColRange(begin, end)}));
    };
    if (!IsSplit(block)) return multiply(ExpertProduct::kGateUp, out.gate);
    return multiply(ExpertProduct::kGate, out.gate) &&
           multiply(ExpertProduct::kUp, out.up);
  }
  bool IsSplit(const ExpertBlock& block) const {
    return ActivateOf(block).layout == GateUpLayout::kSplit;
  }
  // Returns the number of columns of GateUp::gate, which has both products
  // unless the layout is kSplit or kUngated.
  size_t GateUpCols(const ExpertBlock& block) const {
    const GateUpLayout layout = ActivateOf(block).layout;
    const bool is_one =
        layout == GateUpLayout::kSplit || layout == GateUpLayout::kUngated;
    return IntermediateOf(block) * (is_one ? 1 : 2);
  }
  // Returns views of the products of a block's `count` rows. The views begin at
  // row `first` of `place`, which is wide enough for any block.
  GateUp GateUpOf(const ExpertBlock& block, const AnyMatrix& place,
                  size_t first, size_t count) const {
    const size_t cols = GateUpCols(block);
    void* const data = place.RowRange(first, first).data;
    const AnyMatrix both(data, place.type, 2 * count, cols, cols);
    GateUp gate_up = {both.RowRange(0, count), {}};
    if (IsSplit(block)) gate_up.up = both.RowRange(count, 2 * count);
    return gate_up;
  }
  // Returns the block's activated rows, without gaps, beginning at row `first`
  // of `place`.
  AnyRows ActivatedOf(const ExpertBlock& block, const AnyRows& place,
                      size_t first) const {
    AnyRows activated = place.RowRange(first, place.rows);
    activated.cols = IntermediateOf(block);
    activated.stride = InBlocks(activated.type, activated.cols);
    const size_t group =
        calls::ExpertsCall::DownOperands(options_).scale_columns;
    if (group != 0 && activated.scales.cols != 0) {
      activated.scales.cols = activated.scales.stride =
          CeilDiv(activated.cols, group);
    }
    return activated;
  }

  // Returns the arguments of Activate, except for the rows' weights.
  ActivateInputs ActivateInputsOf(const ExpertBlock& block,
                                  const GateUp& gate_up) const {
    return {gate_up.gate, gate_up.up, BiasOf(block, inputs_.gate_bias),
            BiasOf(block, inputs_.up_bias)};
  }
  static ConstAnyMatrix BiasOf(const ExpertBlock& block,
                               const ConstAnyMatrix& biases) {
    if (block.expert == ExpertTile::kShared || !Given(biases)) return {};
    const auto expert = static_cast<size_t>(block.expert);
    return biases.RowRange(expert, expert + 1);
  }

  bool ActivateRows(const ExpertBlock& block, const GateUp& gate_up,
                    const AnyRows& out, const WorkerMemory& own) {
    ActivateInputs inputs = ActivateInputsOf(block, gate_up);
    ActivateOptions options = ActivateOf(block);
    if (block.expert != ExpertTile::kShared && options_.weights_on_input) {
      options.row_scale_place = ActivatePlace::kBefore;
      inputs.row_scale = WeightsOf(block, own.row_scale);
    }
    return Keep(Activate(inputs, {out}, options));
  }
  // Copies the weights of the block's rows to `place`, in their own type.
  ConstAnyMatrix WeightsOf(const ExpertBlock& block,
                           const AnyMatrix& place) const {
    const ConstAnyMatrix& weights = inputs_.combine.topk_weights;
    const size_t size = SizeOf(weights.type);
    const int32_t* const pairs =
        plan_.pairs.data + static_cast<size_t>(block.first_row);
    const auto count = static_cast<size_t>(block.rows);
    for (size_t r = 0; r < count; ++r) {
      const auto pair = static_cast<size_t>(pairs[r]);
      const size_t at =
          pair / plan_.top_k * weights.stride + pair % plan_.top_k;
      std::memcpy(static_cast<char*>(place.data) + r * size,
                  static_cast<const char*>(weights.data) + at * size, size);
    }
    return {place.data, weights.type, count, 1, 1};
  }

  AnyMatrix RowsOf(const ExpertBlock& block) const {
    const auto first = static_cast<size_t>(block.first_row);
    return (block.expert == ExpertTile::kShared ? memory_.shared_rows
                                                : memory_.rows)
        .RowRange(first, first + static_cast<size_t>(block.rows));
  }

  void RunBlock(size_t index, size_t worker, const WorkerMemory& own) {
    const ExpertBlock& block = plan_.blocks.data[index];
    const auto num_rows = static_cast<size_t>(block.rows);
    const GateUp gate_up = GateUpOf(block, own.gate_up, 0, num_rows);
    const AnyRows activated =
        ActivatedOf(block, own.activated, 0).RowRange(0, num_rows);
    ConstAnyRows rows;
    if (Gather(block, own, &rows) &&
        MultiplyGateUp(block, rows, gate_up, 0, GateUpCols(block), worker) &&
        ActivateRows(block, gate_up, activated, own) &&
        Keep(gemm_({ExpertProduct::kDown, block.expert, 0, worker, activated,
                    RowsOf(block)}))) {
      Count(block);
    }
  }

  // The columns [begin, end) of one part of a product.
  struct Columns {
    size_t begin, end;
  };
  Columns PartOf(size_t cols, int32_t part, int32_t parts) const {
    const size_t tiles = CeilDiv(cols, plan_.tile_columns);
    const auto at = [&](int32_t i) {
      return std::min(cols, PartBegin(tiles, static_cast<size_t>(parts),
                                      static_cast<size_t>(i)) *
                                plan_.tile_columns);
    };
    return {at(part), at(part + 1)};
  }

  void RunGateUp(size_t index, int32_t part, size_t worker,
                 const WorkerMemory& own) {
    const ExpertBlock& block = plan_.blocks.data[index];
    const auto num_rows = static_cast<size_t>(block.rows);
    const auto cut_row = static_cast<size_t>(block.cut_row);
    const Columns columns =
        PartOf(GateUpCols(block), part, block.gate_up_parts);
    const GateUp gate_up =
        GateUpOf(block, memory_.cut_gate_up, cut_row, num_rows);
    ConstAnyRows rows;
    if (!Gather(block, own, &rows) ||
        !MultiplyGateUp(block, rows, gate_up, columns.begin, columns.end,
                        worker)) {
      return;
    }
    std::atomic<int32_t>& to_come = GateUpToCome(index);
    if (to_come.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (ActivateRows(block, gate_up,
                     ActivatedOf(block, memory_.cut_activated, cut_row)
                         .RowRange(0, num_rows),
                     own)) {
      to_come.store(kActivated, std::memory_order_release);
    }
  }

  void RunDown(size_t index, int32_t part, size_t worker) {
    const ExpertBlock& block = plan_.blocks.data[index];
    if (!WaitFor(GateUpToCome(index), kActivated)) return;
    const auto cut_row = static_cast<size_t>(block.cut_row);
    const Columns columns = PartOf(plan_.hidden, part, block.down_parts);
    const AnyRows activated = ActivatedOf(block, memory_.cut_activated, cut_row)
                                  .RowRange(0, static_cast<size_t>(block.rows));
    if (!Keep(gemm_({ExpertProduct::kDown, block.expert, columns.begin, worker,
                     activated,
                     RowsOf(block).ColRange(columns.begin, columns.end)}))) {
      return;
    }
    if (DownToCome(index).fetch_sub(1, std::memory_order_acq_rel) == 1) {
      Count(block);
    }
  }

  // Counts the rows of a finished block. Sums each token whose last missing row
  // is in this block.
  void Count(const ExpertBlock& block) {
    const auto first = static_cast<size_t>(block.first_row);
    const auto num_rows = static_cast<size_t>(block.rows);
    for (size_t r = first; r < first + num_rows; ++r) {
      const size_t token = block.expert == ExpertTile::kShared
                               ? r
                               : TokenOf(plan_.pairs.data[r]);
      if (memory_.rows_to_come[token].fetch_sub(1, std::memory_order_acq_rel) ==
          1) {
        Sum(token);
      }
    }
  }
  void Sum(size_t token) {
    if (plan_.hidden == 0) return;
    const internal::DefaultFpEnv fp_env;
    sum_rows_(*sum_args_, token, token + 1);
  }
  void SumTokensWithoutRows(size_t claim) {
    const size_t begin = claim * kClaimedTokens;
    const size_t end = std::min(plan_.tokens, begin + kClaimedTokens);
    for (size_t token = begin; token < end; ++token) {
      if (plan_.rows_per_token.data[token] == 0) Sum(token);
    }
  }

  static constexpr int32_t kActivated = -1;

  const ExpertsPlan& plan_;
  const ExpertsInputs& inputs_;
  const ExpertsOptions& options_;
  const ExpertGemm& gemm_;
  const Memory& memory_;
  const size_t first_cut_;
  const ConstAnyRows hidden_, shared_hidden_;
  CombineInputs sums_;
  const CombineOutputs& outputs_;
  const simd::CombineArgs* sum_args_ = nullptr;
  simd::RowFunction<simd::CombineArgs> sum_rows_ = nullptr;
  Status error_;
  // All workers write the members below. The first three are in separate cache
  // lines to avoid false sharing.
  alignas(kCacheLine) std::atomic<size_t> next_{0};
  alignas(kCacheLine) std::atomic<size_t> conversions_to_come_{0};
  alignas(kCacheLine) std::atomic<bool> has_failed_{false};
  std::atomic<bool> is_failing_{false};
  std::atomic<size_t> skipped_{0};
};

// True if the scratch shares a byte with an argument of Combine.
template <size_t... kI>
bool OverlapsArguments(const Span<int32_t>& scratch,
                       const calls::CombineCall::Args& arguments,
                       std::index_sequence<kI...>) {
  const auto overlaps = [&](auto at) {
    constexpr calls::Kind kKind =
        calls::ArgumentAt<calls::CombineCall>(at).field.kind;
    if constexpr (!calls::IsView(kKind)) {
      return false;
    } else {
      const auto& view = internal::Get<calls::CombineCall, at>(arguments);
      return Given(view) && internal::MayOverlap(scratch, ConstAnyMatrix(view));
    }
  };
  return (overlaps(std::integral_constant<size_t, kI>()) || ...);
}

size_t ScratchSize(const ExpertsPlan& plan, size_t cut_blocks,
                   const ExpertsOptions& options, size_t workers) {
  if (!calls::ExpertsCall::HasFormats(options, plan)) return SIZE_MAX;
  if (plan.tokens == 0) return 0;
  Taker taker, worker;
  LayShared(plan, cut_blocks, options, &taker);
  LayWorker(plan, options, &worker);
  size_t bytes = 0;
  if (taker.overflows() || worker.overflows() ||
      __builtin_mul_overflow(worker.bytes(), workers, &bytes)) {
    return SIZE_MAX;
  }
  taker.TakeBytes(bytes);
  return taker.overflows() ? SIZE_MAX : taker.size();
}

}  // namespace

size_t ExpertsScratchSize(const ExpertsPlan& plan,
                          const ExpertsOptions& options,
                          size_t workers) noexcept {
  return internal::IsMade(plan) && internal::HasItsMemory(plan)
             ? ScratchSize(plan, CutBlocks(plan), options, workers)
             : SIZE_MAX;
}
size_t ExpertsScratchSize(size_t tokens, size_t top_k,
                          const ExpertsPlanOptions& shape,
                          const ExpertsOptions& options,
                          size_t workers) noexcept {
  if (ExpertsPlanSize(tokens, top_k, shape) == SIZE_MAX) return SIZE_MAX;
  // Makes a plan that needs at least as much scratch as the plan of any ids.
  // As many rows as possible are in cut blocks, and each cut block has only
  // one row. step_rows is the number of rows of the largest possible block.
  // No real plan has all of this at once.
  ExpertsPlan plan;
  plan.tokens = tokens;
  plan.top_k = top_k;
  plan.hidden = shape.hidden;
  plan.intermediate = shape.intermediate;
  plan.shared_intermediate = shape.shared_intermediate;
  plan.num_rows = tokens * top_k;
  const size_t rows =
      plan.num_rows + (shape.shared_intermediate != 0 ? tokens : 0);
  plan.step_rows = std::min(rows, internal::MostBlockRows(shape));
  if (shape.workers != 1 && shape.tile_columns != 0) {
    plan.cut_rows = std::min(rows, internal::MostCutRows(shape));
  }
  return ScratchSize(plan, plan.cut_rows, options, workers);
}

Status RunExperts(const ExpertsInputs& inputs, const CombineOutputs& outputs,
                  const ExpertsOptions& options, const ExpertGemm& gemm,
                  Executor& executor) noexcept {
  const Checked<calls::ExpertsCall> call(inputs, outputs, options);
  if (!call.status.ok()) return call.status;
  if (!gemm.has_function()) {
    return internal::Invalid("RunExperts: gemm: is null");
  }
  const ExpertsPlan& plan = *inputs.plan;
  Taker taker(inputs.scratch);
  Memory memory = LayShared(plan, CutBlocks(plan), options, &taker);
  LayWorker(plan, options, &taker);
  // A worker's memory is empty if no expert has rows. Its size is at least 1
  // here, because it is a divisor below.
  memory.worker_bytes =
      std::max<size_t>(1, taker.bytes() - memory.at_workers.bytes());
  Region region(inputs, outputs, options, gemm, memory);

  const internal::CheckedCombine sums =
      internal::CheckCombine(region.sums(), outputs, options.combine);
  if (!sums.status.ok()) return sums.status;
  const calls::CombineSizes sizes = {};
  const calls::CombineCall::Args own = {inputs.combine, outputs,
                                        options.combine, sizes};
  constexpr auto kAll =
      std::make_index_sequence<calls::kNumArguments<calls::CombineCall>>();
  if (OverlapsArguments(inputs.scratch, own, kAll)) {
    return internal::Invalid(
        "RunExperts: scratch: overlaps an argument of combine");
  }
  if (internal::MayOverlap(inputs.scratch, plan.memory)) {
    return internal::Invalid("RunExperts: scratch: overlaps the plan's memory");
  }
  for (const auto& [from, to] :
       {std::pair{inputs.hidden, memory.hidden},
        std::pair{inputs.shared_hidden, memory.shared_hidden}}) {
    if (!Given(from)) continue;
    if (!Quantize({from.RowRange(0, 0)}, {to.RowRange(0, 0)}).ok()) {
      return internal::Invalid(
          "RunExperts: options: operands: no kernel converts hidden to this "
          "format");
    }
  }
  if (plan.tokens == 0) return Status();
  const Status activation = region.CheckActivation();
  if (!activation.ok()) return activation;

  const size_t spare = inputs.scratch.size - call.sizes.scratch_size;
  const size_t most_workers = 1 + spare * sizeof(int32_t) / memory.worker_bytes;
  return region.Run(
      std::min({region.MostWorkers(), most_workers, executor.Concurrency()}),
      sums.is_ordinary, executor);
}

ExpertsRows RowsOfExperts(const ExpertsInputs& inputs,
                          const ExpertsOptions& options) noexcept {
  if (inputs.plan == nullptr || !internal::IsMade(*inputs.plan) ||
      !internal::HasItsMemory(*inputs.plan) ||
      ExpertsScratchSize(*inputs.plan, options, 1) > inputs.scratch.size) {
    return {};
  }
  Taker taker(inputs.scratch);
  const Memory memory =
      LayShared(*inputs.plan, CutBlocks(*inputs.plan), options, &taker);
  return {memory.rows, memory.shared_rows};
}

}  // namespace switchyard
