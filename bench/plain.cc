// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/plain.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

namespace switchyard {
namespace bench {
namespace plain {

void Route(Matrix<const float> logits, bool renormalize, Matrix<int32_t> ids,
           Matrix<float> weights) {
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

int32_t BucketPacked(Matrix<const int32_t> selected, const PackedBuckets& out) {
  const size_t experts = out.tpe.size;
  std::memset(out.tpe.data, 0, experts * sizeof(int32_t));
  for (size_t t = 0; t < selected.rows; ++t) {
    for (size_t s = 0; s < selected.cols; ++s) {
      ++out.tpe.data[selected.Row(t)[s]];
    }
  }
  int32_t max = 0;
  std::vector<int32_t> next(experts);
  out.offsets.data[0] = 0;
  for (size_t e = 0; e < experts; ++e) {
    next[e] = out.offsets.data[e];
    out.offsets.data[e + 1] = out.offsets.data[e] + out.tpe.data[e];
    max = std::max(max, out.tpe.data[e]);
  }
  int32_t pair = 0;
  for (size_t t = 0; t < selected.rows; ++t) {
    for (size_t s = 0; s < selected.cols; ++s) {
      const int32_t at = next[static_cast<size_t>(selected.Row(t)[s])]++;
      out.pairs.data[at] = pair++;
      if (out.row_index.data != nullptr) out.row_index.Row(t)[s] = at;
    }
  }
  return max;
}

int32_t BucketStrided(Matrix<const int32_t> selected,
                      const StridedBuckets& out) {
  const size_t experts = out.tpe.size;
  std::memset(out.tpe.data, 0, experts * sizeof(int32_t));
  int32_t pair = 0;
  for (size_t t = 0; t < selected.rows; ++t) {
    for (size_t s = 0; s < selected.cols; ++s) {
      const size_t expert = static_cast<size_t>(selected.Row(t)[s]);
      const int32_t at = out.tpe.data[expert]++;
      out.ids.data[expert * out.row_stride + static_cast<size_t>(at)] = pair++;
    }
  }
  return *std::max_element(out.tpe.data, out.tpe.data + experts);
}

void Gather(Matrix<const float> tokens, Span<const int32_t> pairs, size_t top_k,
            Matrix<float> out) {
  for (size_t r = 0; r < pairs.size; ++r) {
    std::memcpy(out.Row(r),
                tokens.Row(static_cast<size_t>(pairs.data[r]) / top_k),
                out.cols * sizeof(float));
  }
}

void SiluMul(Matrix<const float> gate, Matrix<const float> up,
             Matrix<float> out) {
  for (size_t r = 0; r < out.rows; ++r) {
    const float* const g = gate.Row(r);
    const float* const u = up.Row(r);
    float* const o = out.Row(r);
    for (size_t c = 0; c < out.cols; ++c) {
      o[c] = g[c] / (1.0f + std::exp(-g[c])) * u[c];
    }
  }
}

void WeightedSumRmsNorm(const CombineInputs& inputs, const float* norm_weight,
                        float eps, Matrix<float> out, Matrix<float> normed) {
  const size_t top_k = inputs.weights.cols;
  for (size_t t = 0; t < out.rows; ++t) {
    float* const o = out.Row(t);
    const float* const residual = inputs.residual.Row(t);
    std::fill(o, o + out.cols, 0.0f);
    for (size_t s = 0; s < top_k; ++s) {
      const float weight = inputs.weights.Row(t)[s];
      const float* const row = inputs.rows.Row(
          inputs.row_index.data == nullptr
              ? t * top_k + s
              : static_cast<size_t>(inputs.row_index.Row(t)[s]));
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

}  // namespace plain
}  // namespace bench
}  // namespace switchyard
