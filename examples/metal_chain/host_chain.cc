// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "host_chain.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/for_each_range.h"
#include "engine.h"
#include "gemm_tile.h"
#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/route.h"
#include "switchyard/views.h"

namespace metal_chain {
namespace {

using example::Check;
using example::ForEachRange;
using switchyard::Executor;
using switchyard::Span;

HostActivations Allocate(const Shape& shape, const HiddenStates& hidden) {
  const size_t pairs = hidden.tokens * shape.top_k;
  HostActivations a;
  a.logits.resize(hidden.tokens * shape.experts);
  a.ids.resize(pairs);
  a.weights.resize(pairs);
  a.gate.resize(pairs * shape.intermediate);
  a.up.resize(pairs * shape.intermediate);
  a.activated.resize(pairs * shape.intermediate);
  a.down.resize(pairs * shape.hidden);
  a.residual = hidden.residual;
  a.normed.resize(hidden.tokens * shape.hidden);
  return a;
}

void Route(const Shape& shape, size_t tokens, HostActivations& a,
           Executor& executor) {
  Check(switchyard::RouteTopK({{a.logits.data(), tokens, shape.experts}},
                              {{a.ids.data(), tokens, shape.top_k},
                               {a.weights.data(), tokens, shape.top_k}},
                              {}, executor));
}

void Activate(const Shape& shape, size_t tokens, HostActivations& a,
              Executor& executor) {
  const size_t pairs = tokens * shape.top_k;
  Check(switchyard::Activate({{a.gate.data(), pairs, shape.intermediate},
                              {a.up.data(), pairs, shape.intermediate}},
                             {{a.activated.data(), pairs, shape.intermediate}},
                             {}, executor));
}

void Combine(const Layer& layer, size_t tokens, HostActivations& a,
             Executor& executor) {
  const Shape& shape = layer.shape;
  Check(
      switchyard::Combine({{a.down.data(), tokens * shape.top_k, shape.hidden},
                           {a.weights.data(), tokens, shape.top_k},
                           {},
                           {a.residual.data(), tokens, shape.hidden},
                           {layer.tensor(layer.next_norm), 1, shape.hidden}},
                          {{a.residual.data(), tokens, shape.hidden},
                           {a.normed.data(), tokens, shape.hidden}},
                          {kNormEps}, executor));
}

// A row of `out` per slot.
void ExpertGemv(const float* weights, size_t rows, size_t cols,
                const std::vector<int32_t>& ids, const float* input,
                size_t input_stride, float* out, Executor& executor) {
  ForEachRange(executor, ids.size(), 1, [&](size_t begin, size_t end) {
    for (size_t s = begin; s < end; ++s) {
      const auto expert = static_cast<size_t>(ids[s]);
      RunGemv(weights + expert * rows * cols, rows, cols,
              input + s * input_stride, out + s * rows);
    }
  });
}

// One matrix times the inputs of `pairs`, whose results are at the pair.
void Gemm(const float* weights, size_t rows, size_t cols,
          Span<const int32_t> pairs, const float* input, size_t pairs_per_input,
          float* out) {
  float staged[kStagedFloats];
  for (size_t row = 0; row < rows; row += kTileRows) {
    for (size_t first = 0; first < pairs.size; first += kTilePairs) {
      GemmTile tile;
      tile.weights = weights + row * cols;
      tile.rows = std::min(kTileRows, rows - row);
      tile.cols = cols;
      tile.pairs = std::min(kTilePairs, pairs.size - first);
      for (size_t p = 0; p < tile.pairs; ++p) {
        const auto pair = static_cast<size_t>(pairs.data[first + p]);
        tile.inputs[p] = input + pair / pairs_per_input * cols;
        tile.outputs[p] = out + pair * rows + row;
      }
      RunGemmTile(tile, staged);
    }
  }
}

void ExpertGemm(const float* weights, size_t rows, size_t cols,
                const HostActivations& a, const std::vector<float>& input,
                size_t pairs_per_input, std::vector<float>& out,
                Executor& executor) {
  const size_t row_stride = RowStride(a.ids.size());
  ForEachRange(executor, a.tokens_per_expert.size(), 1,
               [&](size_t begin, size_t end) {
                 for (size_t e = begin; e < end; ++e) {
                   Gemm(weights + e * rows * cols, rows, cols,
                        {a.buckets.data() + e * row_stride,
                         static_cast<size_t>(a.tokens_per_expert[e])},
                        input.data(), pairs_per_input, out.data());
                 }
               });
}

}  // namespace

HostActivations DecodeOnHost(const Layer& layer, const HiddenStates& hidden,
                             Executor& executor) {
  const Shape& shape = layer.shape;
  HostActivations a = Allocate(shape, hidden);
  RunGemv(layer.tensor(layer.router), shape.experts, shape.hidden,
          hidden.normed.data(), a.logits.data());
  Route(shape, 1, a, executor);
  ExpertGemv(layer.tensor(layer.gate), shape.intermediate, shape.hidden, a.ids,
             hidden.normed.data(), 0, a.gate.data(), executor);
  ExpertGemv(layer.tensor(layer.up), shape.intermediate, shape.hidden, a.ids,
             hidden.normed.data(), 0, a.up.data(), executor);
  Activate(shape, 1, a, executor);
  ExpertGemv(layer.tensor(layer.down), shape.hidden, shape.intermediate, a.ids,
             a.activated.data(), shape.intermediate, a.down.data(), executor);
  Combine(layer, 1, a, executor);
  return a;
}

HostActivations PrefillOnHost(const Layer& layer, const HiddenStates& hidden,
                              Executor& executor) {
  const Shape& shape = layer.shape;
  const size_t tokens = hidden.tokens;
  HostActivations a = Allocate(shape, hidden);

  std::vector<int32_t> all_tokens(tokens);
  for (size_t t = 0; t < tokens; ++t) all_tokens[t] = static_cast<int32_t>(t);
  Gemm(layer.tensor(layer.router), shape.experts, shape.hidden, all_tokens,
       hidden.normed.data(), 1, a.logits.data());
  Route(shape, tokens, a, executor);

  a.tokens_per_expert.resize(shape.experts);
  a.buckets.resize(shape.experts * RowStride(a.ids.size()));
  switchyard::Report report;
  Check(switchyard::BucketStrided(
      {{a.ids.data(), tokens, shape.top_k}},
      {a.tokens_per_expert, a.buckets, RowStride(a.ids.size()), false, &report},
      {}, executor));
  a.gate_up_args.resize(3);
  a.down_args.resize(3);
  Check(switchyard::MakeDispatchArgs(
      {report.max_rows, shape.experts, shape.intermediate}, {a.gate_up_args}));
  Check(switchyard::MakeDispatchArgs(
      {report.max_rows, shape.experts, shape.hidden}, {a.down_args}));

  ExpertGemm(layer.tensor(layer.gate), shape.intermediate, shape.hidden, a,
             hidden.normed, shape.top_k, a.gate, executor);
  ExpertGemm(layer.tensor(layer.up), shape.intermediate, shape.hidden, a,
             hidden.normed, shape.top_k, a.up, executor);
  Activate(shape, tokens, a, executor);
  ExpertGemm(layer.tensor(layer.down), shape.hidden, shape.intermediate, a,
             a.activated, 1, a.down, executor);
  Combine(layer, tokens, a, executor);
  return a;
}

}  // namespace metal_chain
