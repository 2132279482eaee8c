// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The memory of a MoeBlock: all of it is made before the first run.

#include <algorithm>
#include <utility>

#include "moe_block.h"

namespace moe_layer {
namespace {

using switchyard::AnyMatrix;
using switchyard::AnyRows;
using switchyard::Type;

size_t ResultInts(const MoeShape& shape, size_t tokens) {
  return 3 * tokens * shape.top_k + 2 * shape.num_experts + 1;
}

}  // namespace

double MoeBlock::MemoryNeeded(const MoeShape& shape, const Dtype& dtype,
                              size_t tokens, size_t threads) {
  // The same types as the constructor's.
  const Type operands = OperandType(dtype.operands);
  const Type router = OperandType(dtype.rows);
  const auto t = static_cast<double>(tokens);
  const auto k = static_cast<double>(shape.top_k);
  const auto h = static_cast<double>(shape.hidden);
  const bool shared = shape.shared_intermediate != 0;
  const auto inner = static_cast<double>(
      std::max(shape.intermediate, shape.shared_intermediate));
  const Type out = GemmOutType(operands);
  double bytes =
      RowBuffer::Bytes(GemmOutType(router), t,
                       static_cast<double>(shape.NumLogits() + shared)) +
      RowBuffer::Bytes(out, t * (k + shared), h) +
      4 * RowBuffer::Bytes(dtype.rows, t, h) + sizeof(float) * t * (2 * k + 1) +
      sizeof(int32_t) * static_cast<double>(ResultInts(shape, tokens));
  for (const Type type : {operands, router}) {
    if (type != dtype.rows) bytes += 2 * RowBuffer::Bytes(type, t, h);
  }
  constexpr double kRows = kTileRows;
  double worker = RowBuffer::Bytes(operands, kRows, h) +
                  RowBuffer::Bytes(out, kRows, 2 * inner);
  worker += RowBuffer::Bytes(operands, kRows, inner) + sizeof(float) * kRows;
  if (operands == Type::kI8) {
    worker += RowBuffer::Bytes(Type::kF32, kRows, std::max(h, 2 * inner));
  }
  return bytes + static_cast<double>(threads) * worker;
}

MoeBlock::MoeBlock(const LayerWeights& weights, size_t tokens,
                   switchyard::Executor& executor)
    : layer_(weights),
      executor_(executor),
      tokens_(tokens),
      ints_(ResultInts(weights.shape, tokens)),
      bucket_scratch_(switchyard::BucketScratchSize(
          tokens * weights.shape.top_k, weights.shape.num_experts, executor)),
      workers_(executor.Concurrency()) {
  MakeBuffers();
  MakeResults();
}

void MoeBlock::MakeBuffers() {
  const MoeShape& shape = layer_.shape;
  const Type rows = layer_.dtype.rows;
  const Gemm& router = *layer_.router_gemm;
  const Gemm& gate_up = *layer_.expert_gemms.gate_up;
  const Type operands = gate_up.operands();
  const Type out = gate_up.out_type();
  const size_t inner = std::max(shape.intermediate, shape.shared_intermediate);
  const bool in_place =
      gate_up.TakesPlain() &&
      shape.activate.layout == switchyard::GateUpLayout::kConcatenated;
  for (Worker& worker : workers_) {
    worker.gathered = RowBuffer(operands, kTileRows, shape.hidden);
    worker.gate_up = RowBuffer(out, kTileRows, 2 * inner);
    if (!in_place) worker.activated = RowBuffer(operands, kTileRows, inner);
    if (shape.weighs_input) worker.row_scale.resize(kTileRows);
  }
  tiles_.reserve(shape.num_experts + tokens_ * shape.top_k / kTileRows +
                 tokens_ / kTileRows + 1);
  if (router.operands() != rows) {
    router_operands_ = RowBuffer(router.operands(), tokens_, shape.hidden);
  }
  if (operands != rows) {
    expert_operands_ = RowBuffer(operands, tokens_, shape.hidden);
    if (layer_.vectors[kSharedNorm].data != nullptr) {
      shared_operands_ = RowBuffer(operands, tokens_, shape.hidden);
    }
  }
}

void MoeBlock::MakeResults() {
  const MoeShape& shape = layer_.shape;
  const Type rows = layer_.dtype.rows;
  const Gemm& router = *layer_.router_gemm;
  const Type out = layer_.expert_gemms.gate_up->out_type();
  const size_t pairs = tokens_ * shape.top_k;
  const auto make = [](RowBuffer* buffer, Type type, size_t count,
                       size_t cols) -> const AnyRows& {
    *buffer = RowBuffer(type, count, cols);
    return buffer->rows();
  };
  int32_t* next_int = ints_.data();
  const auto ints = [&](size_t count) {
    return std::exchange(next_int, next_int + count);
  };
  topk_weights_.resize(pairs);
  results_.ids = {ints(pairs), tokens_, shape.top_k};
  results_.weights = {topk_weights_.data(), tokens_, shape.top_k};
  results_.row_index = {ints(pairs), tokens_, shape.top_k};
  results_.buckets = {{ints(shape.num_experts), shape.num_experts},
                      {ints(shape.num_experts + 1), shape.num_experts + 1},
                      {ints(pairs), pairs},
                      results_.row_index};
  if (shape.weighs_input) ones_.assign(pairs, 1.0f);
  if (shape.route.num_zero_experts != 0) {
    identity_.resize(tokens_);
    results_.identity = {identity_.data(), tokens_, 1};
  }
  const AnyMatrix logits =
      make(&logits_, router.out_type(), tokens_, router.out());
  results_.logits = logits.ColRange(0, shape.NumLogits());
  results_.expert_rows = make(&expert_rows_, out, pairs, shape.hidden);
  results_.out = make(&out_, rows, tokens_, shape.hidden);
  const auto has = [this](Vector v) {
    return layer_.vectors[v].data != nullptr;
  };
  if (has(kNextNorm)) {
    results_.next_normed = make(&next_normed_, rows, tokens_, shape.hidden);
  }
  if (has(kRouterNorm)) {
    results_.router_normed = make(&router_normed_, rows, tokens_, shape.hidden);
  }
  if (shape.shared_intermediate == 0) return;
  results_.shared_rows = make(&shared_rows_, out, tokens_, shape.hidden);
  if (has(kSharedNorm)) {
    results_.shared_normed = make(&shared_normed_, rows, tokens_, shape.hidden);
  }
  if (shape.HasSharedLogit()) {
    results_.shared_logits = logits.ColRange(shape.NumLogits(), router.out());
  }
}

}  // namespace moe_layer
