// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/route.h"
#include "src/simd/targets.h"

namespace switchyard {
namespace {

// ps a row, fitted to one AVX2 core: within 2x for E = 8 to 1024, k to 32.
size_t RowPs(const RouteOptions& options, size_t experts, size_t top_k) {
  const internal::DefaultFpEnv fp_env;  // the caller's may trap
  const size_t sum_all =
      simd::RouteNeedsAll(options, experts, top_k) ? 450 * experts : 0;
  if (top_k <= 32) {
    return 20000 + 300 * experts + 250 * top_k * top_k + sum_all;
  }
  return (300000 + 3000 * experts) / 32 * top_k + sum_all;
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
  SWITCHYARD_CHECK(internal::IsUpTo(1.0f, options.clamp),
                   "RouteTopK: options: clamp is not in [0, 1]");
  SWITCHYARD_CHECK_LISTED(RouteTopK, score, Score, SWITCHYARD_RECIPES);
  SWITCHYARD_CHECK_APART(RouteTopK, topk_ids, logits);
  SWITCHYARD_CHECK_APART(RouteTopK, topk_weights, logits, topk_ids);

  const auto kernel = simd::RouteRows(logits.type, topk_weights.type);
  SWITCHYARD_CHECK_KERNEL(RouteTopK, kernel);
  const size_t row_ps =
      tokens <= 1 ? 0 : simd::ComputePs(RowPs(options, num_experts, top_k));
  return internal::RunRows(executor, tokens, row_ps, kernel,
                           {inputs, outputs, options});
}

}  // namespace switchyard
