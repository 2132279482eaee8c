// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The plain rivals of the router and the buckets. (See plain-inl.h.)

#include <cmath>
#include <cstring>

#include "bench/plain-inl.h"
#include "bench/rivals.h"
#include "testing/route_scores.h"

namespace switchyard::bench::plain {
namespace {

// Selects by inserting each logit that is large enough into a sorted list of at
// most top_k logits. Among equal logits, the first stays in front.
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

// Selects by a bound. Computes the maxima of kLanes groups of logits: the k-th
// largest maximum is a lower bound for the row's k-th largest logit. Then ranks
// the few logits at or above the bound by counting.
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

const float* Widened(const float* row, size_t, float*) { return row; }
const float* Widened(const BFloat16* row, size_t size, float* buffer) {
  for (size_t i = 0; i < size; ++i) buffer[i] = Load(row[i]);
  return buffer;
}

template <class T>
void RouteTopK(const Matrix<const T>& logits, const RouteOutputs& outputs,
               bool renormalize) {
  const auto ids = outputs.topk_ids.As<int32_t>();
  const auto weights = outputs.topk_weights.As<float>();
  for (size_t t = 0; t < logits.rows; ++t) {
    float buffer[kMaxExperts];
    const float* const row = Widened(logits.Row(t), logits.cols, buffer);
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

void Scores(Score score, const float* row, size_t experts, float* scores) {
  if (score == Score::kSoftmax) {
    float max = row[0];
    for (size_t e = 1; e < experts; ++e) max = row[e] > max ? row[e] : max;
    for (size_t e = 0; e < experts; ++e) scores[e] = Exp(row[e] - max);
    float sums[kLanes] = {};
    for (size_t e = 0; e < experts; ++e) sums[e % kLanes] += scores[e];
    const float scale = 1.0f / Sum(sums);
    for (size_t e = 0; e < experts; ++e) scores[e] *= scale;
    return;
  }
  // Each score has its own loop, so that the compiler can vectorise it.
  const auto exp = [](float x) { return Exp(x); };
#define SWITCHYARD_CASE(name, ...)                                         \
  case Score::name:                                                        \
    for (size_t e = 0; e < experts; ++e) {                                 \
      scores[e] = testing_support::ScoreOfLogit(Score::name, row[e], exp); \
    }                                                                      \
    return;
  switch (score) { SWITCHYARD_SCORES(SWITCHYARD_CASE) }
#undef SWITCHYARD_CASE
}

// Keeps the topk_group groups with the largest sums of their two largest keys.
// Sets the keys of all other groups to -infinity.
void DropGroups(const RouteOptions& options, size_t experts, float* keys) {
  const size_t groups = options.num_expert_group, size = experts / groups;
  float sums[kMaxExperts];
  int32_t kept[kMaxExperts];
  for (size_t g = 0; g < groups; ++g) {
    float first = -INFINITY, second = -INFINITY;
    for (const float* key = keys + g * size; key != keys + (g + 1) * size;
         ++key) {
      const float less = *key < first ? *key : first;
      second = less > second ? less : second;
      first = *key > first ? *key : first;
    }
    sums[g] = first + second;
  }
  SelectByInsertion(sums, groups, options.topk_group, kept);
  for (size_t i = 0; i < options.topk_group; ++i) sums[kept[i]] = INFINITY;
  for (size_t e = 0; e < experts; ++e) {
    if (sums[e / size] != INFINITY) keys[e] = -INFINITY;
  }
}

}  // namespace

void RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
               const RouteOptions& options) {
  const auto logits = inputs.logits.As<float>();
  const auto ids = outputs.topk_ids.As<int32_t>();
  const auto weights = outputs.topk_weights.As<float>();
  const auto bias = inputs.correction_bias.As<float>();
  const bool exp = options.weight_of == WeightOf::kSoftmaxOfSelected;
  for (size_t t = 0; t < logits.rows; ++t) {
    float scores[kMaxExperts], keys[kMaxExperts];
    const float* selected_by = scores;
    Scores(options.score, logits.Row(t), logits.cols, scores);
    if (bias.data != nullptr) {
      for (size_t e = 0; e < logits.cols; ++e) {
        keys[e] = scores[e] + bias.data[e];
      }
      selected_by = keys;
    }
    if (options.num_expert_group > 1) DropGroups(options, logits.cols, keys);
    Select(selected_by, logits.cols, ids.cols, ids.Row(t));
    float* const row_weights = weights.Row(t);
    const float max = exp ? scores[ids.Row(t)[0]] : 0.0f;
    float sum = 0.0f;
    for (size_t s = 0; s < ids.cols; ++s) {
      const float score = scores[ids.Row(t)[s]];
      row_weights[s] = exp ? Exp(score - max) : score;
      sum += row_weights[s];
    }
    const float scale = options.routed_scaling_factor / sum;
    for (size_t s = 0; s < ids.cols; ++s) row_weights[s] *= scale;
  }
}

void RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
               bool renormalize) {
  WithElement(inputs.logits.type, [&](auto element) {
    RouteTopK(inputs.logits.As<decltype(element)>(), outputs, renormalize);
  });
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

}  // namespace switchyard::bench::plain
