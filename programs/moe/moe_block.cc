// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "moe_block.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "programs/for_each.h"
#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/quantize.h"
#include "switchyard/route.h"

namespace moe_layer {
namespace {

using program::Check;
using switchyard::AnyMatrix;
using switchyard::AnyRows;
using switchyard::ConstAnyMatrix;
using switchyard::ConstAnyRows;
using switchyard::Matrix;
using switchyard::Type;

// How work is cut must not depend on the number of threads: a GEMM's bits may
// depend on how many rows it is given.
constexpr size_t kRouterRows = 64;

size_t CeilDiv(size_t a, size_t b) { return (a + b - 1) / b; }

// Time since the last reading.
class Lap {
 public:
  double Seconds() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> lap = now - std::exchange(last_, now);
    return lap.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ =
      std::chrono::steady_clock::now();
};

// An RMSNorm of each row: a residual without experts.
void Norm(const LayerWeights& layer, Vector which, const ConstAnyMatrix& hidden,
          const AnyMatrix& normed, switchyard::Executor& executor) {
  switchyard::CombineInputs inputs = {
      {}, {}, switchyard::RowIndex::kTokenOrder, hidden, layer.vectors[which]};
  switchyard::CombineOptions options;
  options.eps = layer.shape.norm_eps;
  options.norm = layer.shape.norm;
  Check(switchyard::Combine(inputs, {{}, normed}, options, executor));
}

}  // namespace

ConstAnyRows MoeBlock::OperandsOf(const ConstAnyMatrix& normed,
                                  const RowBuffer& buffer) {
  if (buffer.rows().data == nullptr) return normed;
  Check(switchyard::Quantize({normed}, {buffer.rows()}, {}, executor_));
  return buffer.rows();
}

void MoeBlock::Run(const ConstAnyMatrix& hidden, const ConstAnyMatrix& normed) {
  Lap lap;
  router_rows_ =
      OperandsOf(NormOf(kRouterNorm, hidden, normed, results_.router_normed),
                 router_operands_);
  RouterGemm();
  profile_[Stage::kRouterGemm].seconds = lap.Seconds();

  Route();
  profile_[Stage::kRoute].seconds = lap.Seconds();

  switchyard::BucketOptions buckets;
  buckets.allow_dropped = layer_.shape.route.num_zero_experts != 0;
  Check(switchyard::BucketPacked({results_.ids, bucket_scratch_},
                                 results_.buckets, buckets, executor_));
  CutTiles();
  profile_[Stage::kBucket].seconds = lap.Seconds();

  shared_input_ = rows_ = OperandsOf(normed, expert_operands_);
  if (results_.shared_normed.data != nullptr) {
    shared_input_ =
        OperandsOf(NormOf(kSharedNorm, hidden, normed, results_.shared_normed),
                   shared_operands_);
  }
  const double conversion = lap.Seconds();

  for (Worker& worker : workers_) worker.seconds.fill(0);
  program::ForEach(executor_, tiles_.size(), 1,
                   [this](size_t worker, size_t i) {
                     RunTile(tiles_[i], workers_[worker]);
                   });
  const double section = lap.Seconds();
  double busy = 0;
  for (const Stage stage : {Stage::kGather, Stage::kGateUpGemm,
                            Stage::kActivate, Stage::kDownGemm}) {
    double total = 0;
    for (const Worker& worker : workers_) {
      total += worker.seconds[static_cast<size_t>(stage)];
    }
    profile_[stage].seconds = total / static_cast<double>(workers_.size());
    busy += profile_[stage].seconds;
  }
  profile_[Stage::kWaiting].seconds = section - busy;
  profile_[Stage::kGather].seconds += conversion;

  Combine(hidden, normed);
  profile_[Stage::kCombine].seconds = lap.Seconds();
  WeightReads reads;
  for (const Tile& tile : tiles_) {
    if (tile.expert == kSharedExpert) {
      ++reads.shared_tiles;
    } else {
      ++reads.tiles;
    }
  }
  for (const int32_t load : results_.buckets.tokens_per_expert) {
    if (load != 0) ++reads.experts;
  }
  AddWork(layer_, tokens_, reads, &profile_);
}

void MoeBlock::RouterGemm() {
  program::ForEach(executor_, CeilDiv(tokens_, kRouterRows), 1,
                   [this](size_t worker, size_t i) {
                     const size_t first = i * kRouterRows;
                     const size_t last = std::min(tokens_, first + kRouterRows);
                     layer_.router_gemm->Run(
                         router_rows_.RowRange(first, last), layer_.router,
                         logits_.rows().RowRange(first, last),
                         workers_[worker].scratch);
                   });
}

void MoeBlock::Route() {
  const auto& vectors = layer_.vectors;
  switchyard::RouteInputs inputs = {results_.logits};
  inputs.correction_bias = vectors[kCorrectionBias];
  inputs.expert_scale = vectors[kExpertScale];
  switchyard::RouteOutputs outputs = {results_.ids, results_.weights};
  outputs.identity_weights = results_.identity;
  Check(switchyard::RouteTopK(inputs, outputs, layer_.shape.route, executor_));
}

// Splits busy experts, so that no thread is left alone with one at the end, and
// evenly, since GEMMs of few rows are slow per row.
void MoeBlock::CutTiles() {
  tiles_.clear();
  const auto cut = [this](size_t expert, size_t first, size_t rows) {
    const size_t parts = CeilDiv(rows, kTileRows);
    for (size_t part = 0; part < parts; ++part) {
      const size_t begin = rows * part / parts;
      const size_t end = rows * (part + 1) / parts;
      tiles_.push_back({expert, first + begin, end - begin});
    }
  };
  if (layer_.shape.shared_intermediate != 0) cut(kSharedExpert, 0, tokens_);
  for (size_t e = 0; e < layer_.shape.num_experts; ++e) {
    cut(e, static_cast<size_t>(results_.buckets.offsets.data[e]),
        static_cast<size_t>(results_.buckets.tokens_per_expert.data[e]));
  }
}

// Runs on one thread, like the kernels it calls: their default executor is
// serial. The rows stay in this core's cache from one step to the next.
void MoeBlock::RunTile(const Tile& tile, Worker& worker) {
  const bool is_shared = tile.expert == kSharedExpert;
  const ExpertWeights& expert =
      is_shared ? layer_.shared : layer_.experts[tile.expert];
  const ExpertGemms& gemms =
      is_shared ? layer_.shared_gemms : layer_.expert_gemms;
  const size_t inter = gemms.down->in();
  const size_t end = tile.begin + tile.rows;
  Lap lap;
  const auto add_time = [&](Stage stage) {
    worker.seconds[static_cast<size_t>(stage)] += lap.Seconds();
  };
  ConstAnyRows x;
  if (is_shared) {
    x = shared_input_.RowRange(tile.begin, end);
  } else {
    x = worker.gathered.First(tile.rows);
    Check(switchyard::GatherRows(
        {rows_,
         {results_.buckets.pairs.data + tile.begin, tile.rows},
         results_.ids},
        {worker.gathered.First(tile.rows)}));
  }
  add_time(Stage::kGather);

  const AnyMatrix gate_up(worker.gate_up.rows().data, gemms.gate_up->out_type(),
                          tile.rows, 2 * inter, 2 * inter);
  gemms.gate_up->Run(x, expert.gate_up, gate_up, worker.scratch);
  add_time(Stage::kGateUpGemm);

  // In place where the next GEMM takes rows with a stride.
  AnyRows activated = gate_up.ColRange(0, inter);
  if (worker.activated.rows().data != nullptr) {
    activated = worker.activated.First(tile.rows, inter);
  }
  ActivateTile(tile, gate_up, activated, worker);
  add_time(Stage::kActivate);

  const AnyMatrix rows =
      (is_shared ? results_.shared_rows : results_.expert_rows)
          .RowRange(tile.begin, end);
  gemms.down->Run(activated, expert.down, rows, worker.scratch);
  if (!is_shared && layer_.vectors[kDownBias].data != nullptr) {
    switchyard::CombineInputs inputs = {
        {}, {}, switchyard::RowIndex::kTokenOrder, rows};
    inputs.vectors.residual_bias =
        layer_.vectors[kDownBias].RowRange(tile.expert, tile.expert + 1);
    Check(switchyard::Combine(inputs, {rows}));
  }
  add_time(Stage::kDownGemm);
}

void MoeBlock::ActivateTile(const Tile& tile, const AnyMatrix& gate_up,
                            const AnyRows& activated, Worker& worker) {
  switchyard::ActivateInputs inputs = {gate_up};
  switchyard::ActivateOptions options = layer_.shape.activate;
  if (tile.expert == kSharedExpert) {
    options.layout = switchyard::GateUpLayout::kConcatenated;
  } else {
    if (layer_.vectors[kGateUpBias].data != nullptr) {
      inputs.gate_bias =
          layer_.vectors[kGateUpBias].RowRange(tile.expert, tile.expert + 1);
    }
    if (layer_.shape.weighs_input) {
      for (size_t r = 0; r < tile.rows; ++r) {
        const int32_t pair = results_.buckets.pairs.data[tile.begin + r];
        worker.row_scale[r] = topk_weights_[static_cast<size_t>(pair)];
      }
      inputs.row_scale = {worker.row_scale.data(), tile.rows, 1};
      options.row_scale_place = switchyard::ActivatePlace::kBefore;
    }
  }
  Check(switchyard::Activate(inputs, {activated}, options));
}

void MoeBlock::Combine(const ConstAnyMatrix& hidden,
                       const ConstAnyMatrix& normed) {
  const MoeShape& shape = layer_.shape;
  const auto& vectors = layer_.vectors;
  ConstAnyMatrix weights = results_.weights;
  if (shape.weighs_input) weights = {ones_.data(), tokens_, shape.top_k};
  switchyard::CombineInputs inputs = {results_.expert_rows, weights,
                                      results_.row_index};
  if (shape.residual) inputs.residual = hidden;
  inputs.norm_weight = vectors[kNextNorm];
  // The rows and logits of a missing shared expert are empty.
  inputs.shared = {results_.shared_rows, results_.shared_logits,
                   shape.shared_gate};
  if (results_.identity.data != nullptr) {
    inputs.identity = {normed, results_.identity};
  }
  inputs.norms = {vectors[kRoutedOutNorm], vectors[kSharedOutNorm],
                  vectors[kBlockOutNorm]};
  switchyard::CombineOptions options;
  options.eps = options.block_eps = shape.norm_eps;
  options.norm = options.block_norm = shape.norm;
  options.scales = shape.scales;
  Check(switchyard::Combine(inputs, {results_.out, results_.next_normed},
                            options, executor_));
}

ConstAnyMatrix MoeBlock::NormOf(Vector which, const ConstAnyMatrix& hidden,
                                const ConstAnyMatrix& normed,
                                const AnyMatrix& out) {
  if (layer_.vectors[which].data == nullptr) return normed;
  Norm(layer_, which, hidden, out, executor_);
  return out;
}

void InputNorm(const LayerWeights& layer, const ConstAnyMatrix& hidden,
               const AnyMatrix& normed, switchyard::Executor& executor) {
  Norm(layer, kNorm, hidden, normed, executor);
}

}  // namespace moe_layer
