// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes the sizes of a MoeBlock's buffers, and allocates its results.

#include <algorithm>

#include "moe_block.h"

namespace moe_layer {
namespace {

using switchyard::AnyMatrix;
using switchyard::AnyRows;
using switchyard::GateUpLayout;
using switchyard::Type;

// Cuts the experts' rows into tiles for this many workers, however many threads
// the executor has, because the bits of a GEMM's results may depend on its
// number of rows. Two threads take no more time with tiles for 16 workers than
// with tiles for two.
constexpr size_t kWorkers = 16;

// Returns the format of the rows that the experts' GEMMs read.
switchyard::RowFormat OperandsOf(const Dtype& dtype) {
  if (dtype.weights.has_value()) return switchyard::OperandsOf(*dtype.weights);
  switchyard::RowFormat rows;
  rows.type = OperandType(dtype.operands);
  return rows;
}

switchyard::ExpertsPlanOptions PlanOptionsOf(const MoeShape& shape,
                                             const Dtype& dtype) {
  switchyard::ExpertsPlanOptions options;
  options.num_experts = shape.num_experts;
  options.hidden = shape.hidden;
  options.intermediate = shape.intermediate;
  options.shared_intermediate = shape.shared_intermediate;
  options.workers = kWorkers;
  if (dtype.weights.has_value()) {
    switchyard::SetCosts(*dtype.weights, &options);
  }
  // Does not cut bf16 products by columns, because oneDNN packs a whole matrix.
  if (OperandsOf(dtype).type == Type::kBF16) options.tile_columns = 0;
  options.allow_dropped = shape.route.num_zero_experts != 0;
  return options;
}

switchyard::ExpertsOptions OptionsOf(const MoeShape& shape,
                                     const Dtype& dtype) {
  switchyard::ExpertsOptions options;
  options.activate = options.shared_activate = shape.activate;
  options.shared_activate.layout = GateUpLayout::kConcatenated;
  options.operands = OperandsOf(dtype);
  options.gate_up_type = options.down_type = GemmOutType(options.operands.type);
  options.weights_on_input = shape.weighs_input;
  options.combine.eps = options.combine.block_eps = shape.norm_eps;
  options.combine.norm = options.combine.block_norm = shape.norm;
  options.combine.scales = shape.scales;
  return options;
}

size_t ScratchBytes(const MoeShape& shape, const Dtype& dtype, size_t tokens,
                    size_t threads) {
  const size_t ints = switchyard::ExpertsScratchSize(
      tokens, shape.top_k, PlanOptionsOf(shape, dtype), OptionsOf(shape, dtype),
      threads);
  return ints == SIZE_MAX ? ints : sizeof(int32_t) * ints;
}

}  // namespace

double MoeBlock::MemoryNeeded(const MoeShape& shape, const Dtype& dtype,
                              size_t tokens, size_t threads) {
  const Type router = OperandType(dtype.rows);
  const auto plan_options = PlanOptionsOf(shape, dtype);
  const auto t = static_cast<double>(tokens);
  const auto h = static_cast<double>(shape.hidden);
  const bool shared = shape.shared_intermediate != 0;
  const size_t ints =
      switchyard::ExpertsPlanSize(tokens, shape.top_k, plan_options);
  double bytes =
      sizeof(int32_t) * static_cast<double>(ints) +
      static_cast<double>(ScratchBytes(shape, dtype, tokens, threads)) +
      RowBuffer::Bytes(GemmOutType(router), t,
                       static_cast<double>(shape.NumLogits() + shared)) +
      4 * RowBuffer::Bytes(dtype.rows, t, h) +
      sizeof(float) * t * (2 * static_cast<double>(shape.top_k) + 1);
  if (router != dtype.rows) bytes += RowBuffer::Bytes(router, t, h);
  return bytes;
}

MoeBlock::MoeBlock(const LayerWeights& weights, size_t tokens,
                   switchyard::Executor& executor)
    : layer_(weights),
      executor_(executor),
      tokens_(tokens),
      plan_options_(PlanOptionsOf(weights.shape, weights.dtype)),
      options_(OptionsOf(weights.shape, weights.dtype)),
      plan_memory_(switchyard::ExpertsPlanSize(tokens, weights.shape.top_k,
                                               plan_options_)),
      scratch_(ScratchBytes(weights.shape, weights.dtype, tokens,
                            executor.Concurrency())),
      workers_(executor.Concurrency()) {
  MakeResults();
}

void MoeBlock::MakeResults() {
  const MoeShape& shape = layer_.shape;
  const Type rows = layer_.dtype.rows;
  const Gemm& router = *layer_.router_gemm;
  const auto make = [this](RowBuffer* buffer, Type type,
                           size_t cols) -> const AnyRows& {
    *buffer = RowBuffer(type, tokens_, cols);
    return buffer->rows();
  };
  if (router.operands() != rows) {
    make(&router_operands_, router.operands(), shape.hidden);
  }
  ids_.resize(tokens_ * shape.top_k);
  topk_weights_.resize(tokens_ * shape.top_k);
  results_.ids = {ids_.data(), tokens_, shape.top_k};
  results_.weights = {topk_weights_.data(), tokens_, shape.top_k};
  if (shape.route.num_zero_experts != 0) {
    identity_.resize(tokens_);
    results_.identity = {identity_.data(), tokens_, 1};
  }
  const AnyMatrix logits = make(&logits_, router.out_type(), router.out());
  results_.logits = logits.ColRange(0, shape.NumLogits());
  if (shape.HasSharedLogit()) {
    results_.shared_logits = logits.ColRange(shape.NumLogits(), router.out());
  }
  results_.out = make(&out_, rows, shape.hidden);
  const auto has = [this](Vector v) {
    return layer_.vectors[v].data != nullptr;
  };
  if (has(kNextNorm)) {
    results_.next_normed = make(&next_normed_, rows, shape.hidden);
  }
  if (has(kRouterNorm)) {
    results_.router_normed = make(&router_normed_, rows, shape.hidden);
  }
  if (has(kSharedNorm)) {
    results_.shared_normed = make(&shared_normed_, rows, shape.hidden);
  }
}

}  // namespace moe_layer
