// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "bench/rivals.h"

namespace switchyard::bench::plain {

void RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
               bool renormalize) {
  const auto logits = inputs.logits.As<float>();
  const auto ids = outputs.topk_ids.As<int32_t>();
  const auto weights = outputs.topk_weights.As<float>();
  std::vector<int32_t> order(logits.cols);
  const auto top_k = static_cast<std::ptrdiff_t>(ids.cols);
  for (size_t t = 0; t < logits.rows; ++t) {
    const float* const row = logits.Row(t);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + top_k, order.end(),
                      [row](int32_t a, int32_t b) {
                        return row[a] > row[b] || (row[a] == row[b] && a < b);
                      });
    const float max = row[order[0]];
    float sum = 0.0f;
    if (!renormalize) {
      for (size_t e = 0; e < logits.cols; ++e) sum += std::exp(row[e] - max);
    }
    for (size_t s = 0; s < ids.cols; ++s) {
      ids.Row(t)[s] = order[s];
      weights.Row(t)[s] = std::exp(row[order[s]] - max);
      if (renormalize) sum += weights.Row(t)[s];
    }
    for (size_t s = 0; s < ids.cols; ++s) weights.Row(t)[s] /= sum;
  }
}

size_t BucketPacked(const BucketInputs& inputs, const PackedBuckets& outputs) {
  const auto ids = inputs.topk_ids.As<int32_t>();
  int32_t* const counts = outputs.tokens_per_expert.data;
  int32_t* const offsets = outputs.offsets.data;
  int32_t* const row_index = outputs.row_index.As<int32_t>().data;
  const size_t experts = outputs.tokens_per_expert.size;
  std::memset(counts, 0, experts * sizeof(int32_t));
  for (size_t t = 0; t < ids.rows; ++t) {
    for (size_t s = 0; s < ids.cols; ++s) ++counts[ids.Row(t)[s]];
  }
  int32_t max = 0;
  std::vector<int32_t> next(experts);
  offsets[0] = 0;
  for (size_t e = 0; e < experts; ++e) {
    next[e] = offsets[e];
    offsets[e + 1] = offsets[e] + counts[e];
    max = std::max(max, counts[e]);
  }
  int32_t pair = 0;
  for (size_t t = 0; t < ids.rows; ++t) {
    for (size_t s = 0; s < ids.cols; ++s) {
      const int32_t at = next[static_cast<size_t>(ids.Row(t)[s])]++;
      if (row_index != nullptr) row_index[pair] = at;
      outputs.pairs.data[at] = pair++;
    }
  }
  return static_cast<size_t>(max);
}

size_t BucketStrided(const BucketInputs& inputs,
                     const StridedBuckets& outputs) {
  const auto ids = inputs.topk_ids.As<int32_t>();
  int32_t* const counts = outputs.tokens_per_expert.data;
  const size_t experts = outputs.tokens_per_expert.size;
  std::memset(counts, 0, experts * sizeof(int32_t));
  int32_t pair = 0;
  for (size_t t = 0; t < ids.rows; ++t) {
    for (size_t s = 0; s < ids.cols; ++s) {
      const size_t expert = static_cast<size_t>(ids.Row(t)[s]);
      const size_t at = static_cast<size_t>(counts[expert]++);
      outputs.ids.data[expert * outputs.row_stride + at] = pair++;
    }
  }
  return static_cast<size_t>(*std::max_element(counts, counts + experts));
}

void AppendPairs(const BucketInputs& inputs, Span<int32_t> tokens_per_expert,
                 TokenSlot* rows) {
  const auto ids = inputs.topk_ids.As<int32_t>();
  const size_t stride = ids.rows * ids.cols;
  std::memset(tokens_per_expert.data, 0,
              tokens_per_expert.size * sizeof(int32_t));
  for (size_t t = 0; t < ids.rows; ++t) {
    const int32_t* const row = ids.Row(t);
    for (size_t s = 0; s < ids.cols; ++s) {
      const size_t e = static_cast<size_t>(row[s]);
      const size_t at = static_cast<size_t>(tokens_per_expert.data[e]++);
      rows[e * stride + at] = {static_cast<int32_t>(t),
                               static_cast<int32_t>(s)};
    }
  }
}

void GatherRows(const GatherInputs& inputs, const GatherOutputs& outputs) {
  const auto tokens = inputs.tokens.As<float>();
  const auto rows = outputs.rows.As<float>();
  for (size_t r = 0; r < rows.rows; ++r) {
    const size_t pair = static_cast<size_t>(inputs.pairs.data[r]);
    std::memcpy(rows.Row(r), tokens.Row(pair / inputs.topk_ids.cols),
                rows.cols * sizeof(float));
  }
}

void Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs) {
  const auto gate = inputs.gate.As<float>(), up = inputs.up.As<float>();
  const auto out = outputs.out.As<float>();
  for (size_t r = 0; r < out.rows; ++r) {
    const float* const g = gate.Row(r);
    const float* const u = up.Row(r);
    float* const o = out.Row(r);
    for (size_t c = 0; c < out.cols; ++c) {
      o[c] = g[c] / (1.0f + std::exp(-g[c])) * u[c];
    }
  }
}

void Combine(const CombineInputs& inputs, const CombineOutputs& outputs,
             float eps) {
  const auto rows = inputs.rows.As<float>();
  const auto weights = inputs.topk_weights.As<float>();
  const auto row_index = inputs.row_index.As<int32_t>();
  const auto residuals = inputs.residual.As<float>();
  const float* const norm_weight = inputs.norm_weight.As<float>().data;
  const auto out = outputs.out.As<float>(), normed = outputs.normed.As<float>();
  for (size_t t = 0; t < out.rows; ++t) {
    float* const o = out.Row(t);
    const float* const residual = residuals.Row(t);
    std::fill(o, o + out.cols, 0.0f);
    for (size_t s = 0; s < weights.cols; ++s) {
      const float weight = weights.Row(t)[s];
      const float* const row = rows.Row(
          row_index.data == nullptr ? t * weights.cols + s
                                    : static_cast<size_t>(row_index.Row(t)[s]));
      for (size_t h = 0; h < out.cols; ++h) o[h] += weight * row[h];
    }
    float squares = 0.0f;
    for (size_t h = 0; h < out.cols; ++h) {
      o[h] += residual[h];
      squares += o[h] * o[h];
    }
    const float scale =
        1.0f / std::sqrt(squares / static_cast<float>(out.cols) + eps);
    for (size_t h = 0; h < out.cols; ++h) {
      normed.Row(t)[h] = o[h] * scale * norm_weight[h];
    }
  }
}

}  // namespace switchyard::bench::plain
