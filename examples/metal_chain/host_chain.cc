// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "host_chain.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <sstream>

#include "gemm.h"
#include "programs/for_each.h"
#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/route.h"
#include "switchyard/views.h"

namespace metal_chain {
namespace {

using program::Check;
using switchyard::Executor;
using switchyard::Span;

HostActivations Allocate(const Shape& shape, const HiddenStates& hidden,
                         bool prefill) {
  HostActivations a;
  ForEachActivation(
      shape, hidden.tokens, prefill,
      [](const char*, size_t rows, size_t cols, auto& values) {
        values.resize(rows * cols);
      },
      a);
  a.residual = hidden.residual;
  return a;
}

void Route(const Shape& shape, size_t tokens, HostActivations& a,
           Executor& executor) {
  Check(switchyard::RouteTopK({{a.logits.data(), tokens, shape.experts}},
                              {{a.ids.data(), tokens, shape.top_k},
                               {a.weights.data(), tokens, shape.top_k}},
                              {}, executor));
}

void Activate(const Shape& shape, HostActivations& a, Executor& executor) {
  const size_t pairs = a.ids.size();
  Check(switchyard::Activate({{a.gate.data(), pairs, shape.intermediate},
                              {a.up.data(), pairs, shape.intermediate}},
                             {{a.activated.data(), pairs, shape.intermediate}},
                             {}, executor));
}

void Combine(const Layer& layer, size_t tokens, HostActivations& a,
             Executor& executor) {
  const Shape& shape = layer.shape;
  Check(switchyard::Combine({{a.down.data(), a.ids.size(), shape.hidden},
                             {a.weights.data(), tokens, shape.top_k},
                             switchyard::RowIndex::kTokenOrder,
                             {a.residual.data(), tokens, shape.hidden},
                             {layer.data(layer.next_norm), 1, shape.hidden}},
                            {{a.residual.data(), tokens, shape.hidden},
                             {a.normed.data(), tokens, shape.hidden}},
                            {kNormEps}, executor));
}

// A row of `out` per slot, each from a row of `input` or all from the one.
void ExpertGemv(const Layer& layer, const Tensor& tensor,
                const std::vector<int32_t>& ids,
                const std::vector<float>& input, std::vector<float>& out,
                Executor& executor) {
  const size_t stride = input.size() == tensor.cols ? 0 : tensor.cols;
  program::ForEach(executor, ids.size(), 1, [&](size_t s) {
    const auto expert = static_cast<size_t>(ids[s]);
    RunGemv(layer.data(tensor) + expert * tensor.rows * tensor.cols,
            tensor.rows, tensor.cols, input.data() + s * stride,
            out.data() + s * tensor.rows);
  });
}

// The `index`-th matrix times the inputs of `pairs`, whose results are at the
// pair.
void Gemm(const Layer& layer, const Tensor& tensor, size_t index,
          Span<const int32_t> pairs, const std::vector<float>& input,
          size_t pairs_per_input, std::vector<float>& out) {
  const auto& [name, offset, rows, cols] = tensor;
  float staged[kStagedFloats];
  for (size_t row = 0; row < rows; row += kTileRows) {
    for (size_t first = 0; first < pairs.size; first += kTilePairs) {
      GemmTile tile = TileAt(layer.data(tensor) + index * rows * cols, rows,
                             cols, row, pairs.size, first);
      for (size_t p = 0; p < tile.pairs; ++p) {
        const auto pair = static_cast<size_t>(pairs.data[first + p]);
        tile.inputs[p] = input.data() + pair / pairs_per_input * cols;
        tile.outputs[p] = out.data() + pair * rows + row;
      }
      RunGemmTile(tile, staged);
    }
  }
}

void ExpertGemm(const Layer& layer, const Tensor& tensor,
                const HostActivations& a, const std::vector<float>& input,
                size_t pairs_per_input, std::vector<float>& out,
                Executor& executor) {
  program::ForEach(executor, a.tokens_per_expert.size(), 1, [&](size_t e) {
    Gemm(layer, tensor, e,
         {a.buckets.data() + e * RowStride(a.ids.size()),
          static_cast<size_t>(a.tokens_per_expert[e])},
         input, pairs_per_input, out);
  });
}

bool SameRow(const float* a, const float* b, size_t length, float bound) {
  if (bound == 0) return std::memcmp(a, b, length * sizeof(float)) == 0;
  float largest = 0;
  for (size_t i = 0; i < length; ++i) {
    largest = std::max(largest, std::fabs(b[i]));
  }
  for (size_t i = 0; i < length; ++i) {
    // Not a NaN either.
    if (!(std::fabs(a[i] - b[i]) <= bound * largest)) return false;
  }
  return true;
}
template <class T>
bool SameRow(const T* a, const T* b, size_t length, float /*bound*/) {
  return std::memcmp(a, b, length * sizeof(T)) == 0;
}

// Rows of `cols`, or of row r its first lengths[r] unless `lengths` is null:
// buckets.
template <class T>
void Compare(const char* name, const BufferPtr& device,
             const std::vector<T>& host, size_t cols,
             const std::vector<int32_t>* lengths, float bound,
             Comparison* result) {
  const T* found = static_cast<const T*>(device->contents());
  std::vector<T> sorted;
  if (bound != 0 && lengths != nullptr) {
    sorted.assign(found, found + host.size());
    for (size_t r = 0; r < host.size() / cols; ++r) {
      std::sort(
          sorted.begin() + static_cast<ptrdiff_t>(r * cols),
          sorted.begin() + static_cast<ptrdiff_t>(r * cols) + (*lengths)[r]);
    }
    found = sorted.data();
  }
  const size_t rows = host.size() / cols;
  size_t wrong_rows = 0;
  std::ostringstream text;
  text.precision(9);
  for (size_t r = 0; r < rows; ++r) {
    const size_t length =
        lengths == nullptr ? cols : static_cast<size_t>((*lengths)[r]);
    const T* const a = found + r * cols;
    const T* const b = host.data() + r * cols;
    result->bytes += length * sizeof(T);
    if (SameRow(a, b, length, bound) || ++wrong_rows > 1) continue;
    size_t c = 0;
    while (std::memcmp(a + c, b + c, sizeof(T)) == 0) ++c;
    text << name << ": row " << r << ", column " << c << ": " << a[c]
         << " instead of " << b[c] << "; ";
  }
  ++result->buffers;
  if (wrong_rows == 0) return;
  text << wrong_rows << " of " << rows << (rows == 1 ? " row" : " rows");
  result->differences.push_back(text.str());
}

}  // namespace

HostActivations DecodeOnHost(const Layer& layer, const HiddenStates& hidden,
                             Executor& executor) {
  HostActivations a = Allocate(layer.shape, hidden, false);
  RunGemv(layer.data(layer.router), layer.router.rows, layer.router.cols,
          hidden.normed.data(), a.logits.data());
  Route(layer.shape, 1, a, executor);
  ExpertGemv(layer, layer.gate, a.ids, hidden.normed, a.gate, executor);
  ExpertGemv(layer, layer.up, a.ids, hidden.normed, a.up, executor);
  Activate(layer.shape, a, executor);
  ExpertGemv(layer, layer.down, a.ids, a.activated, a.down, executor);
  Combine(layer, 1, a, executor);
  return a;
}

HostActivations PrefillOnHost(const Layer& layer, const HiddenStates& hidden,
                              Executor& executor) {
  const Shape& shape = layer.shape;
  const size_t tokens = hidden.tokens;
  HostActivations a = Allocate(shape, hidden, true);

  std::vector<int32_t> all_tokens(tokens);
  std::iota(all_tokens.begin(), all_tokens.end(), 0);
  Gemm(layer, layer.router, 0, all_tokens, hidden.normed, 1, a.logits);
  Route(shape, tokens, a, executor);

  switchyard::Report report;
  Check(switchyard::BucketStrided(
      {{a.ids.data(), tokens, shape.top_k}},
      {a.tokens_per_expert, a.buckets, RowStride(a.ids.size()), false, &report},
      {}, executor));
  Check(switchyard::MakeDispatchArgs(
      {report.max_rows, shape.experts, shape.intermediate}, {a.gate_up_args}));
  Check(switchyard::MakeDispatchArgs(
      {report.max_rows, shape.experts, shape.hidden}, {a.down_args}));

  ExpertGemm(layer, layer.gate, a, hidden.normed, shape.top_k, a.gate,
             executor);
  ExpertGemm(layer, layer.up, a, hidden.normed, shape.top_k, a.up, executor);
  Activate(shape, a, executor);
  ExpertGemm(layer, layer.down, a, a.activated, 1, a.down, executor);
  Combine(layer, tokens, a, executor);
  return a;
}

Comparison CompareActivations(const Shape& shape, const Activations& device,
                              const HostActivations& host, float bound) {
  Comparison result;
  ForEachActivation(
      shape, host.ids.size() / shape.top_k, !host.buckets.empty(),
      [&](const char* name, size_t, size_t cols, const BufferPtr& on_device,
          const auto& on_host) {
        // Only the filled part of an expert's bucket is compared: the rest is
        // nobody's.
        const bool ragged = &on_device == &device.buckets;
        Compare(name, on_device, on_host, cols,
                ragged ? &host.tokens_per_expert : nullptr, bound, &result);
      },
      device, host);
  return result;
}

}  // namespace metal_chain
