// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "moe_block.h"

#include <algorithm>
#include <utility>

#include "programs/for_each.h"
#include "switchyard/combine.h"
#include "switchyard/quantize.h"
#include "switchyard/route.h"

namespace moe_layer {
namespace {

using program::Check;
using switchyard::AnyMatrix;
using switchyard::ConstAnyMatrix;
using switchyard::ExpertProduct;
using switchyard::ExpertTile;
using switchyard::Status;

// The router's GEMM multiplies this many rows at a time. The number must not
// depend on the number of threads, because the bits of a GEMM's results may
// depend on its number of rows.
constexpr size_t kRouterRows = 64;

size_t CeilDiv(size_t a, size_t b) { return (a + b - 1) / b; }

double Seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

// Computes an RMSNorm of each row, by a call of Combine() that has a residual
// and no experts.
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

void MoeBlock::Run(const ConstAnyMatrix& hidden, const ConstAnyMatrix& normed) {
  Clock::time_point last = Clock::now();
  const auto lap = [&last] {
    const auto now = Clock::now();
    return Seconds(now - std::exchange(last, now));
  };
  RouterGemm(NormOf(kRouterNorm, hidden, normed, results_.router_normed));
  profile_[Stage::kRouterGemm].seconds = lap();
  Route();
  profile_[Stage::kRoute].seconds = lap();
  Plan();
  profile_[Stage::kBucket].seconds = lap();
  const Clock::time_point begin = last;
  RunExperts(hidden, normed);
  lap();
  SetTimes(begin, last);

  WeightReads reads;
  for (const switchyard::ExpertBlock& block : plan_.blocks) {
    (block.expert == ExpertTile::kShared ? reads.shared_tiles : reads.tiles) +=
        CeilDiv(static_cast<size_t>(block.rows), plan_.step_rows);
  }
  for (const int32_t load : plan_.tokens_per_expert) {
    if (load != 0) ++reads.experts;
  }
  AddWork(layer_, tokens_, reads, &profile_);
}

void MoeBlock::RouterGemm(const ConstAnyMatrix& normed) {
  ConstAnyMatrix rows = normed;
  if (router_operands_.rows().data != nullptr) {
    rows = router_operands_.rows();
    Check(switchyard::Quantize({normed}, {router_operands_.rows()}, {},
                               executor_));
  }
  program::ForEach(executor_, CeilDiv(tokens_, kRouterRows), 1,
                   [&](size_t worker, size_t i) {
                     const size_t first = i * kRouterRows;
                     const size_t last = std::min(tokens_, first + kRouterRows);
                     layer_.router_gemm->Run(
                         rows.RowRange(first, last), layer_.router,
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

void MoeBlock::Plan() {
  Check(switchyard::PlanExperts({results_.ids}, {plan_memory_, &plan_},
                                plan_options_, executor_));
  results_.buckets = {plan_.tokens_per_expert, plan_.offsets, plan_.pairs,
                      plan_.row_index};
  results_.row_index = {plan_.row_index.Row<int32_t>(0), tokens_,
                        layer_.shape.top_k};
}

void MoeBlock::RunExperts(const ConstAnyMatrix& hidden,
                          const ConstAnyMatrix& normed) {
  const MoeShape& shape = layer_.shape;
  const auto& vectors = layer_.vectors;
  switchyard::ExpertsInputs inputs;
  inputs.plan = &plan_;
  inputs.scratch = {reinterpret_cast<int32_t*>(scratch_.data()),
                    scratch_.size() / sizeof(int32_t)};
  inputs.hidden = normed;
  if (vectors[kSharedNorm].data != nullptr) {
    inputs.shared_hidden =
        NormOf(kSharedNorm, hidden, normed, results_.shared_normed);
  }
  inputs.gate_bias = vectors[kGateUpBias];
  switchyard::CombineInputs& sum = inputs.combine;
  sum.topk_weights = results_.weights;
  if (shape.residual) sum.residual = hidden;
  sum.norm_weight = vectors[kNextNorm];
  sum.shared.gate = results_.shared_logits;  // empty without a shared expert
  sum.shared.kind = shape.shared_gate;
  if (results_.identity.data != nullptr) {
    sum.identity = {normed, results_.identity};
  }
  sum.norms = {vectors[kRoutedOutNorm], vectors[kSharedOutNorm],
               vectors[kBlockOutNorm]};

  const Clock::time_point begin = Clock::now();
  for (Worker& worker : workers_) {
    worker.error = nullptr;
    worker.gate_up_time = worker.down_time = {};
    worker.last_product = begin;
  }
  const Status status = switchyard::RunExperts(
      inputs, {results_.out, results_.next_normed}, options_,
      [this](const ExpertTile& tile) { return Multiply(tile); }, executor_);
  for (const Worker& worker : workers_) {
    if (worker.error != nullptr) std::rethrow_exception(worker.error);
  }
  Check(status);
  const auto rows = switchyard::RowsOfExperts(inputs, options_);
  results_.expert_rows = rows.routed;
  results_.shared_rows = rows.shared;
}

Status MoeBlock::Multiply(const ExpertTile& tile) {
  const bool is_shared = tile.expert == ExpertTile::kShared;
  const auto e = static_cast<size_t>(tile.expert);
  const ExpertWeights& expert = is_shared ? layer_.shared : layer_.experts[e];
  const ExpertGemms& gemms =
      is_shared ? layer_.shared_gemms : layer_.expert_gemms;
  const bool is_down = tile.product == ExpertProduct::kDown;
  Worker& worker = workers_[tile.worker];
  const Clock::time_point begin = Clock::now();
  try {
    (is_down ? *gemms.down : *gemms.gate_up)
        .Run(tile.rows, is_down ? expert.down : expert.gate_up, tile.out,
             worker.scratch, tile.first_column);
    const ConstAnyMatrix& biases = layer_.vectors[kDownBias];
    if (is_down && !is_shared && biases.data != nullptr) {
      switchyard::CombineInputs inputs = {
          {}, {}, switchyard::RowIndex::kTokenOrder, tile.out};
      inputs.vectors.residual_bias = biases.RowRange(e, e + 1).ColRange(
          tile.first_column, tile.first_column + tile.out.cols);
      Check(switchyard::Combine(inputs, {tile.out}));
    }
  } catch (...) {
    worker.error = std::current_exception();
    return {switchyard::StatusCode::kInternal, "MoeBlock: a GEMM failed"};
  }
  worker.last_product = Clock::now();
  (is_down ? worker.down_time : worker.gate_up_time) +=
      worker.last_product - begin;
  return Status();
}

void MoeBlock::SetTimes(Clock::time_point begin, Clock::time_point end) {
  Clock::time_point last_of_all = begin;
  for (const Worker& worker : workers_) {
    last_of_all = std::max(last_of_all, worker.last_product);
  }
  Clock::duration gate_up = {}, down = {}, waiting = {};
  for (const Worker& worker : workers_) {
    gate_up += worker.gate_up_time;
    down += worker.down_time;
    waiting += last_of_all - worker.last_product;
  }
  const auto set = [this](Stage stage, Clock::duration of_all) {
    return profile_[stage].seconds =
               Seconds(of_all) / static_cast<double>(workers_.size());
  };
  profile_[Stage::kAroundGemms].seconds =
      Seconds(end - begin) - set(Stage::kGateUpGemm, gate_up) -
      set(Stage::kDownGemm, down) - set(Stage::kWaiting, waiting);
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
