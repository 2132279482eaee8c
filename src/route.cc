// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/route.h"

namespace switchyard {
namespace {

// ns a row, fitted to one AVX2 core: within 1.8x for E = 8 to 1024, k to 32.
double RowNs(size_t experts, size_t top_k, bool needs_all) {
  const double e = static_cast<double>(experts);
  const double k = static_cast<double>(top_k);
  const double sum_all = needs_all ? 0.45 * e : 0.0;
  if (top_k <= 32) return 20.0 + 0.3 * e + 0.25 * k * k + sum_all;
  return (300.0 + 3.0 * e) * (k / 32.0) + sum_all;
}

}  // namespace

Status RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
                 const RouteOptions& options, Executor& executor) noexcept {
  const auto& [logits] = inputs;
  const auto& [topk_ids, topk_weights] = outputs;
  const size_t tokens = logits.rows, num_experts = logits.cols,
               top_k = topk_ids.cols;
  SWITCHYARD_CHECK_ISA();
  SWITCHYARD_CHECK_F32(RouteTopK, logits);
  SWITCHYARD_CHECK_IDS(RouteTopK, topk_ids);
  SWITCHYARD_CHECK_F32(RouteTopK, topk_weights);
  SWITCHYARD_CHECK(num_experts <= INT32_MAX,
                   "RouteTopK: logits: more than 2^31 - 1 experts");
  SWITCHYARD_CHECK_SHAPE(RouteTopK, topk_ids, tokens, top_k);
  SWITCHYARD_CHECK(top_k >= 1, "RouteTopK: topk_ids: top_k (cols) is 0");
  SWITCHYARD_CHECK(top_k <= num_experts,
                   "RouteTopK: topk_ids: top_k (cols) exceeds the experts");
  SWITCHYARD_CHECK_SHAPE(RouteTopK, topk_weights, tokens, top_k);
  SWITCHYARD_CHECK(options.clamp >= 0.0f && options.clamp <= 1.0f,
                   "RouteTopK: options: clamp is not in [0, 1]");
  SWITCHYARD_CHECK_LISTED(RouteTopK, score, Score, SWITCHYARD_RECIPES);
  SWITCHYARD_CHECK_APART(RouteTopK, topk_ids, logits);
  SWITCHYARD_CHECK_APART(RouteTopK, topk_weights, logits, topk_ids);

  const auto kernel = simd::RouteRows(logits.type, topk_weights.type);
  SWITCHYARD_CHECK_KERNEL(RouteTopK, kernel);
  return internal::RunRows(
      executor, tokens,
      RowNs(num_experts, top_k,
            simd::RouteNeedsAll(options, num_experts, top_k)),
      kernel, {inputs, outputs, options});
}

}  // namespace switchyard
