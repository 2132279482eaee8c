// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The one file that is compiled for the CPU at hand, -O3 -march=native, as
// engines compile theirs: loops that the compiler vectorises, no intrinsics, no
// fast-math. Few headers, since inline functions of theirs that are compiled
// here may be the ones that the whole program gets.

#include <cmath>
#include <cstring>

#include "bench/rivals.h"

namespace switchyard::bench::plain {
namespace {

// Partial sums that a reduction keeps, for without fast-math the compiler may
// not make them.
constexpr size_t kLanes = 32;

float Sum(const float (&sums)[kLanes]) {
  float sum = 0.0f;
  for (const float s : sums) sum += s;
  return sum;
}

// 2^n e^r, to 2 ulp: std::exp would keep loops scalar.
inline float Exp(float x) {
  constexpr float kMagic = 0x1.8p23f;  // its last bits are those of n
  x = x > -87.0f ? x : -87.0f;         // the forms that are single instructions
  x = x < 88.0f ? x : 88.0f;
  const float shifted = x * 0x1.715476p0f + kMagic;
  const float n = shifted - kMagic;
  const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
  float p = 0x1.6850e4p-10f;
  p = p * r + 0x1.123bccp-7f;
  p = p * r + 0x1.555b98p-5f;
  p = p * r + 0x1.55548ep-3f;
  p = p * r + 0x1.fffff8p-2f;
  p = p * (r * r) + r;
  int32_t bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = static_cast<int32_t>(static_cast<uint32_t>(bits) << 23) + 0x3F800000;
  float scale;
  std::memcpy(&scale, &bits, sizeof(scale));
  return p * scale + scale;
}

// Inserts each logit that belongs there into the sorted top_k; of equal ones
// the first stays in front.
void SelectByInsertion(const float* row, size_t experts, size_t top_k,
                       int32_t* ids) {
  float best[kMaxExperts];
  size_t size = 0;
  for (size_t e = 0; e < experts; ++e) {
    const float logit = row[e];
    if (size == top_k && !(logit > best[top_k - 1])) continue;
    size_t at = size < top_k ? size++ : top_k - 1;
    for (; at > 0 && best[at - 1] < logit; --at) {
      best[at] = best[at - 1];
      ids[at] = ids[at - 1];
    }
    best[at] = logit;
    ids[at] = static_cast<int32_t>(e);
  }
}

// The maxima of kLanes groups: their k-th largest is no greater than that of
// the row. The few logits that are not below it are ranked by counting.
void Select(const float* row, size_t experts, size_t top_k, int32_t* ids) {
  if (experts < kLanes || top_k > kLanes) {
    return SelectByInsertion(row, experts, top_k, ids);
  }
  const size_t whole = experts - experts % kLanes;
  float maxima[kLanes];
  for (size_t l = 0; l < kLanes; ++l) maxima[l] = row[l];
  for (size_t e = kLanes; e < whole; e += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) {
      maxima[l] = row[e + l] > maxima[l] ? row[e + l] : maxima[l];
    }
  }
  float bound = -INFINITY;
  int32_t above[kLanes] = {};
  for (size_t i = 0; i < kLanes; ++i) {
    for (size_t l = 0; l < kLanes; ++l) above[l] += maxima[i] > maxima[l];
  }
  for (size_t l = 0; l < kLanes; ++l) {
    const bool enough = above[l] >= static_cast<int32_t>(top_k) - 1;
    const float candidate = enough ? maxima[l] : -INFINITY;
    bound = candidate > bound ? candidate : bound;
  }
  int32_t found[kMaxExperts];
  float logits[kMaxExperts];
  size_t size = 0;
  for (size_t e = 0; e < whole; e += kLanes) {
    uint32_t mask = 0;
    for (size_t l = 0; l < kLanes; ++l) {
      mask |= static_cast<uint32_t>(row[e + l] >= bound) << l;
    }
    for (; mask != 0; mask &= mask - 1) {
      found[size] = static_cast<int32_t>(e) + __builtin_ctz(mask);
      logits[size] = row[found[size]];
      ++size;
    }
  }
  for (size_t e = whole; e < experts; ++e) {
    if (!(row[e] >= bound)) continue;
    found[size] = static_cast<int32_t>(e);
    logits[size++] = row[e];
  }
  if (size > kLanes) return SelectByInsertion(row, experts, top_k, ids);
  for (size_t i = size; i < kLanes; ++i) logits[i] = -INFINITY;
  int32_t rank[kLanes] = {};
  for (size_t j = 0; j < size; ++j) {
    for (size_t i = 0; i < kLanes; ++i) {
      rank[i] += (logits[j] > logits[i]) | ((logits[j] == logits[i]) & (j < i));
    }
  }
  for (size_t i = 0; i < size; ++i) {
    if (rank[i] < static_cast<int32_t>(top_k)) ids[rank[i]] = found[i];
  }
}

}  // namespace

void RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
               bool renormalize) {
  const auto logits = inputs.logits.As<float>();
  const auto ids = outputs.topk_ids.As<int32_t>();
  const auto weights = outputs.topk_weights.As<float>();
  for (size_t t = 0; t < logits.rows; ++t) {
    const float* const row = logits.Row(t);
    int32_t* const row_ids = ids.Row(t);
    float* const row_weights = weights.Row(t);
    Select(row, logits.cols, ids.cols, row_ids);
    for (size_t s = 0; s < ids.cols; ++s) row_weights[s] = row[row_ids[s]];
    const float max = row_weights[0];
    float sum = 0.0f;
    if (!renormalize) {
      float sums[kLanes] = {};
      size_t e = 0;
      for (; e + kLanes <= logits.cols; e += kLanes) {
        for (size_t l = 0; l < kLanes; ++l) sums[l] += Exp(row[e + l] - max);
      }
      for (size_t l = 0; e < logits.cols; ++l, ++e) {
        sums[l] += Exp(row[e] - max);
      }
      sum = Sum(sums);
    }
    for (size_t s = 0; s < ids.cols; ++s) {
      row_weights[s] = Exp(row_weights[s] - max);
    }
    for (size_t s = 0; s < ids.cols && renormalize; ++s) sum += row_weights[s];
    const float scale = 1.0f / sum;
    for (size_t s = 0; s < ids.cols; ++s) row_weights[s] *= scale;
  }
}

size_t BucketPacked(const BucketInputs& inputs, const PackedBuckets& outputs) {
  const auto ids = inputs.topk_ids.As<int32_t>();
  const int32_t* const id = ids.data;
  const size_t pairs = ids.rows * ids.cols;
  int32_t* const counts = outputs.tokens_per_expert.data;
  int32_t* const offsets = outputs.offsets.data;
  int32_t* const row_index = outputs.row_index.As<int32_t>().data;
  const size_t experts = outputs.tokens_per_expert.size;
  static int32_t next[kMaxExperts];
  std::memset(counts, 0, experts * sizeof(int32_t));
  for (size_t p = 0; p < pairs; ++p) ++counts[id[p]];
  int32_t max = 0, sum = 0;
  for (size_t e = 0; e < experts; ++e) {
    next[e] = offsets[e] = sum;
    sum += counts[e];
    max = counts[e] > max ? counts[e] : max;
  }
  offsets[experts] = sum;
  if (row_index == nullptr) {
    for (size_t p = 0; p < pairs; ++p) {
      outputs.pairs.data[next[id[p]]++] = static_cast<int32_t>(p);
    }
  } else {
    for (size_t p = 0; p < pairs; ++p) {
      row_index[p] = next[id[p]]++;
      outputs.pairs.data[row_index[p]] = static_cast<int32_t>(p);
    }
  }
  return static_cast<size_t>(max);
}

void BucketStrided(const BucketInputs& inputs, const StridedBuckets& outputs) {
  const auto ids = inputs.topk_ids.As<int32_t>();
  const int32_t* const id = ids.data;
  const size_t pairs = ids.rows * ids.cols;
  int32_t* const counts = outputs.tokens_per_expert.data;
  std::memset(counts, 0, outputs.tokens_per_expert.size * sizeof(int32_t));
  for (size_t p = 0; p < pairs; ++p) {
    const size_t expert = static_cast<size_t>(id[p]);
    const size_t at = static_cast<size_t>(counts[expert]++);
    outputs.ids.data[expert * outputs.row_stride + at] =
        static_cast<int32_t>(p);
  }
}

void AppendPairs(const BucketInputs& inputs, Span<int32_t> tokens_per_expert,
                 TokenSlot* rows) {
  const auto ids = inputs.topk_ids.As<int32_t>();
  const size_t stride = ids.rows * ids.cols;
  int32_t* const counts = tokens_per_expert.data;
  std::memset(counts, 0, tokens_per_expert.size * sizeof(int32_t));
  for (size_t t = 0; t < ids.rows; ++t) {
    const int32_t* const row = ids.Row(t);
    for (size_t s = 0; s < ids.cols; ++s) {
      const size_t expert = static_cast<size_t>(row[s]);
      const size_t at = static_cast<size_t>(counts[expert]++);
      rows[expert * stride + at] = {static_cast<int32_t>(t),
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
  const auto gates = inputs.gate.As<float>(), ups = inputs.up.As<float>();
  const auto out = outputs.out.As<float>();
  for (size_t r = 0; r < out.rows; ++r) {
    const float* __restrict const gate = gates.Row(r);
    const float* __restrict const up = ups.Row(r);
    float* __restrict const o = out.Row(r);
    const auto silu_mul = [=](size_t c) {
      o[c] = gate[c] * up[c] / (1.0f + Exp(-gate[c]));
    };
    size_t c = 0;
    for (; c + kLanes <= out.cols; c += kLanes) {  // GCC 12: unrolled, 1.1 x
      for (size_t l = 0; l < kLanes; ++l) silu_mul(c + l);
    }
    for (; c < out.cols; ++c) silu_mul(c);
  }
}

void Combine(const CombineInputs& inputs, const CombineOutputs& outputs,
             float eps) {
  const auto rows = inputs.rows.As<float>();
  const auto weights = inputs.topk_weights.As<float>();
  const auto row_index = inputs.row_index.As<int32_t>();
  const auto residuals = inputs.residual.As<float>();
  const float* __restrict const norm_weight =
      inputs.norm_weight.As<float>().data;
  const auto outs = outputs.out.As<float>(),
             normeds = outputs.normed.As<float>();
  for (size_t t = 0; t < outs.rows; ++t) {
    float w[kTopK];
    const float* from[kTopK];
    for (size_t s = 0; s < kTopK; ++s) {
      w[s] = weights.Row(t)[s];
      from[s] = rows.Row(row_index.data == nullptr
                             ? t * kTopK + s
                             : static_cast<size_t>(row_index.Row(t)[s]));
    }
    const float* __restrict const residual = residuals.Row(t);
    float* __restrict const out = outs.Row(t);
    float* __restrict const normed = normeds.Row(t);
    float squares[kLanes] = {};
    for (size_t h = 0; h < outs.cols; h += kLanes) {
      for (size_t l = 0; l < kLanes; ++l) {
        const size_t at = h + l;
        const float sum = ((w[0] * from[0][at] + w[1] * from[1][at]) +
                           (w[2] * from[2][at] + w[3] * from[3][at])) +
                          ((w[4] * from[4][at] + w[5] * from[5][at]) +
                           (w[6] * from[6][at] + w[7] * from[7][at])) +
                          residual[at];
        out[at] = sum;
        squares[l] += sum * sum;
      }
    }
    const float mean = Sum(squares) / static_cast<float>(outs.cols);
    const float scale = 1.0f / std::sqrt(mean + eps);
    for (size_t h = 0; h < outs.cols; ++h) {
      normed[h] = out[h] * scale * norm_weight[h];
    }
  }
}

}  // namespace switchyard::bench::plain
