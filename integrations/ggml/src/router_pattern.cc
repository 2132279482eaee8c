// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <limits>

#include "walk.h"

namespace switchyard_ggml {
namespace {

using switchyard::Divisor;
using switchyard::Score;
using switchyard::WeightOf;

bool IsLastOf(const ggml_tensor* t, const ggml_tensor* weights) {
  return t != nullptr && Whole(t->src[0]) == weights;
}

// Takes the nodes that renormalise weights: a sum, a clamp if there is one,
// and a division.
bool TakeDivision(Cursor& cursor, RouterChain& chain) {
  const ggml_tensor* sum = cursor.Get();
  if (sum->src[0]->ne[0] != chain.top_k) return false;
  cursor.Next();
  const ggml_tensor* divisor = sum;
  float least = 0.0f;
  const ggml_tensor* t = cursor.Get();
  if (t != nullptr && t->op == GGML_OP_CLAMP) {
    least = Param(t, 0);
    if (t->src[0] != sum || !(least >= 0.0f && least <= 1.0f) ||
        Param(t, 1) != std::numeric_limits<float>::infinity()) {
      return false;
    }
    divisor = t;
    cursor.Next();
    t = cursor.Get();
  }
  if (t == nullptr || t->op != GGML_OP_DIV || !IsLastOf(t, chain.weights) ||
      t->src[1] != divisor ||
      // Requires equal shapes, because with as many slots as tokens, DIV
      // might broadcast a sum to other rows.
      !ggml_are_same_shape(t->src[0], sum->src[0])) {
    return false;
  }
  cursor.Next();
  chain.weights = t;
  chain.options.renormalize = true;
  if (divisor == sum) {
    chain.options.divisor = Divisor::kSum;
  } else if (chain.options.score == Score::kSoftmax) {
    chain.options.clamp = least;  // a share of the scores' sum, which is 1
  } else {
    chain.options.divisor = Divisor::kMaxOfSumAndEps;
    chain.options.eps = least;
  }
  return true;
}

bool TakeWeights(Cursor& cursor, const ggml_tensor* probs, RouterChain& chain) {
  const ggml_tensor* t = cursor.Get();
  if (t == nullptr || t->op != GGML_OP_GET_ROWS || !IsWeights(t) ||
      t->src[1]->view_src != chain.ids || t->type != GGML_TYPE_F32) {
    return false;
  }
  const ggml_tensor* of = Whole(t->src[0]);
  if (of != (probs != nullptr ? probs : chain.logits)) return false;
  const ggml_tensor* table = t->src[0];
  if (table->ne[0] != 1 || table->ne[1] != chain.logits->ne[0] ||
      table->ne[2] != chain.logits->ne[1]) {
    return false;
  }
  chain.top_k = t->src[1]->ne[0];
  chain.weights = t;
  cursor.Next();
  t = cursor.Get();
  if (IsLastOf(t, chain.weights) && t->op == GGML_OP_SOFT_MAX) {
    if (probs != nullptr || !IsPlainSoftmax(t) || t->ne[0] != chain.top_k) {
      return false;
    }
    chain.options.weight_of = WeightOf::kSoftmaxOfSelected;
    chain.weights = t;
    cursor.Next();
    t = cursor.Get();
  }
  if (IsLastOf(t, chain.weights) && t->op == GGML_OP_SUM_ROWS) {
    if (chain.options.weight_of != WeightOf::kScore ||
        !TakeDivision(cursor, chain)) {
      return false;
    }
    t = cursor.Get();
  }
  if (IsLastOf(t, chain.weights) && t->op == GGML_OP_SCALE) {
    const float factor = Param(t, 0);
    if (!std::isfinite(factor) || Param(t, 1) != 0.0f) return false;
    chain.options.routed_scaling_factor = factor;
    chain.weights = t;
    cursor.Next();
  }
  return ggml_is_contiguous(chain.weights);
}

}  // namespace

std::optional<RouterChain> MatchRouter(const ggml_cgraph& graph, int begin) {
  RouterChain chain;
  chain.begin = begin;
  chain.options.renormalize = false;
  Cursor cursor(graph, begin);
  const ggml_tensor* t = cursor.Get();
  const ggml_tensor* probs = nullptr;
  if (t == nullptr) return {};
  if (IsProbs(t)) {
    chain.logits = t->src[0];
    chain.options.score =
        t->op == GGML_OP_UNARY ? Score::kSigmoid : Score::kSoftmax;
    probs = t;
    cursor.Next();
  } else if (t->op == GGML_OP_ARGSORT && IsArgsort(t)) {
    chain.logits = t->src[0];
    if (!IsLogits(chain.logits)) return {};
    chain.options.score = Score::kRaw;
  } else {
    return {};
  }
  const ggml_tensor* keys = probs != nullptr ? probs : chain.logits;
  t = cursor.Get();
  if (t != nullptr && IsBiasedProbs(t) && t->src[0] == probs) {
    chain.bias = t->src[1];
    keys = t;
    cursor.Next();
    t = cursor.Get();
  }
  if (t == nullptr || !IsArgsort(t) || t->src[0] != keys) return {};
  chain.ids = t;
  cursor.Next();
  if (!TakeWeights(cursor, probs, chain)) return {};
  chain.end = cursor.end();
  // The chain writes only the first columns of the argsort, so only the view
  // of these columns may read the argsort.
  if (Readers(graph, chain, chain.ids) != 1 || ViewsOf(graph, chain.ids) != 1 ||
      !IsClosed(graph, chain, {chain.ids, chain.weights})) {
    return {};
  }
  chain.kept = {Root(chain.logits)};
  return chain;
}

}  // namespace switchyard_ggml
