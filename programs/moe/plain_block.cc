// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "plain_block.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "programs/for_each.h"
#include "states.h"
#include "switchyard/types.h"

namespace moe_layer {
namespace {

using switchyard::AnyMatrix;
using switchyard::BFloat16;
using switchyard::ConstAnyMatrix;
using switchyard::Type;

float Load(float f) { return f; }
float Load(BFloat16 f) {
  const uint32_t bits = uint32_t{f.bits} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
void Store(float f, float* to) { *to = f; }
void Store(float f, BFloat16* to) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  to->bits = static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

template <class From, class To>
void Copy(const From* from, size_t size, To* to) {
  for (size_t i = 0; i < size; ++i) Store(Load(from[i]), &to[i]);
}

template <class T>
AnyMatrix Rows(Buffer& buffer, size_t rows, size_t cols) {
  return {buffer.AtLeast<T>(rows * cols), rows, cols};
}

}  // namespace

PlainBlock::PlainBlock(const LayerWeights& weights, size_t tokens,
                       switchyard::Executor& executor)
    : layer_(weights),
      executor_(executor),
      tokens_(tokens),
      operands_(layer_.router_gemm->operands(), tokens, layer_.shape.hidden),
      logits_(layer_.router_gemm->out_type(), tokens, layer_.shape.num_experts),
      expert_rows_(layer_.expert_gemms.down->out_type(),
                   tokens * layer_.shape.top_k, layer_.shape.hidden),
      out_(layer_.dtype.rows, tokens, layer_.shape.hidden),
      next_normed_(layer_.dtype.rows, tokens, layer_.shape.hidden),
      weights_(tokens * layer_.shape.top_k),
      ids_(weights_.size()),
      row_of_pair_(weights_.size()),
      pairs_(layer_.shape.num_experts),
      first_row_(layer_.shape.num_experts),
      workers_(executor.Concurrency()) {}

void PlainBlock::Run(const ConstAnyMatrix& hidden,
                     const ConstAnyMatrix& normed) {
  if (layer_.dtype.rows == Type::kF32) {
    RunAs<float, float>(hidden, normed);
  } else if (layer_.router_gemm->operands() == Type::kF32) {
    RunAs<BFloat16, float>(hidden, normed);
  } else {
    RunAs<BFloat16, BFloat16>(hidden, normed);
  }
}

template <class Row, class Operand>
void PlainBlock::RunAs(const ConstAnyMatrix& hidden,
                       const ConstAnyMatrix& normed) {
  const size_t cols = layer_.shape.hidden;
  const auto operands = operands_.rows().As<Operand>();
  program::ForEach(executor_, tokens_, 8, [&](size_t t) {
    Copy(normed.Row<Row>(t), cols, operands.Row(t));
  });
  constexpr size_t kRouterRows = 64;
  program::ForEach(executor_, (tokens_ + kRouterRows - 1) / kRouterRows, 1,
                   [&](size_t worker, size_t i) {
                     const size_t first = i * kRouterRows;
                     const size_t last = std::min(tokens_, first + kRouterRows);
                     layer_.router_gemm->Run(
                         operands_.rows().RowRange(first, last), layer_.router,
                         logits_.rows().RowRange(first, last),
                         workers_[worker].scratch);
                   });
  program::ForEach(executor_, tokens_, 8, [&](size_t t) { Route<Operand>(t); });
  for (auto& pairs : pairs_) pairs.clear();
  for (size_t p = 0; p < ids_.size(); ++p) pairs_[ids_[p]].push_back(p);
  size_t row = 0;
  for (size_t e = 0; e < pairs_.size(); ++e) {
    first_row_[e] = row;
    for (const size_t pair : pairs_[e]) row_of_pair_[pair] = row++;
  }
  program::ForEach(executor_, pairs_.size(), 1, [&](size_t worker, size_t e) {
    if (!pairs_[e].empty()) RunExpert<Operand>(e, workers_[worker]);
  });
  program::ForEach(executor_, tokens_, 8,
                   [&](size_t t) { SumAndNorm<Row, Operand>(t, hidden); });
}

template <class Operand>
void PlainBlock::Route(size_t token) {
  const size_t experts = layer_.shape.num_experts, top_k = layer_.shape.top_k;
  const Operand* const logits = logits_.rows().Row<Operand>(token);
  std::vector<float> scores(experts);
  Copy(logits, experts, scores.data());
  const float largest = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) sum += score = std::exp(score - largest);
  for (float& score : scores) score /= sum;
  std::vector<size_t> order(experts);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  float selected = 0;
  for (size_t s = 0; s < top_k; ++s) selected += scores[order[s]];
  for (size_t s = 0; s < top_k; ++s) {
    ids_[token * top_k + s] = order[s];
    weights_[token * top_k + s] = scores[order[s]] / selected;
  }
}

template <class Operand>
void PlainBlock::RunExpert(size_t expert, Worker& worker) {
  const size_t hidden = layer_.shape.hidden, width = layer_.shape.intermediate;
  const std::vector<size_t>& pairs = pairs_[expert];
  const size_t rows = pairs.size();
  const AnyMatrix in = Rows<Operand>(worker.rows, rows, hidden);
  for (size_t r = 0; r < rows; ++r) {
    const size_t token = pairs[r] / layer_.shape.top_k;
    std::memcpy(in.Row<Operand>(r), operands_.rows().Row<Operand>(token),
                hidden * sizeof(Operand));
  }
  const AnyMatrix both = Rows<Operand>(worker.gate_up, rows, 2 * width);
  const ExpertWeights& weights = layer_.experts[expert];
  layer_.expert_gemms.gate_up->Run(in, weights.gate_up, both, worker.scratch);
  const AnyMatrix activated = Rows<Operand>(worker.activated, rows, width);
  for (size_t r = 0; r < rows; ++r) {
    const Operand* const gate = both.Row<Operand>(r);
    const Operand* const up = gate + width;
    for (size_t c = 0; c < width; ++c) {
      const float g = Load(gate[c]);
      Store(g / (1 + std::exp(-g)) * Load(up[c]),
            &activated.Row<Operand>(r)[c]);
    }
  }
  const size_t first = first_row_[expert];
  layer_.expert_gemms.down->Run(
      activated, weights.down,
      expert_rows_.rows().RowRange(first, first + rows), worker.scratch);
}

template <class Row, class Operand>
void PlainBlock::SumAndNorm(size_t token, const ConstAnyMatrix& hidden) {
  const size_t cols = layer_.shape.hidden, top_k = layer_.shape.top_k;
  std::vector<float> sum(cols);
  Copy(hidden.Row<Row>(token), cols, sum.data());
  for (size_t pair = token * top_k; pair < (token + 1) * top_k; ++pair) {
    const Operand* const row =
        expert_rows_.rows().Row<Operand>(row_of_pair_[pair]);
    const float weight = weights_[pair];
    for (size_t c = 0; c < cols; ++c) sum[c] += weight * Load(row[c]);
  }
  Copy(sum.data(), cols, out_.rows().Row<Row>(token));
  float squares = 0;
  for (const float x : sum) squares += x * x;
  const float scale =
      1 / std::sqrt(squares / static_cast<float>(cols) + layer_.shape.norm_eps);
  const float* const weight = layer_.vectors[kNextNorm].Row<float>(0);
  Row* const normed = next_normed_.rows().Row<Row>(token);
  for (size_t c = 0; c < cols; ++c)
    Store(sum[c] * scale * weight[c], &normed[c]);
}

bool PlainBlock::AgreesWith(const BlockResults& results) const {
  double largest = 0, squares = 0;
  const auto compare = [&](const ConstAnyMatrix& plain,
                           const ConstAnyMatrix& block) {
    const RowBuffer a = ConvertRows(plain, Type::kF32, executor_);
    const RowBuffer b = ConvertRows(block, Type::kF32, executor_);
    for (size_t t = 0; t < tokens_; ++t) {
      for (size_t c = 0; c < plain.cols; ++c) {
        const double x = a.rows().Row<float>(t)[c];
        squares += x * x;
        largest = std::max(largest, std::fabs(x - b.rows().Row<float>(t)[c]));
      }
    }
  };
  compare(out_.rows(), results.out);
  compare(next_normed_.rows(), results.next_normed);
  const double rms = std::sqrt(
      squares / static_cast<double>(2 * tokens_ * layer_.shape.hidden));
  return largest <= rms * (layer_.dtype.rows == Type::kF32 ? 0x1p-13 : 0x1p-4);
}

}  // namespace moe_layer
