// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include <atomic>
#include <cstddef>

#include "src/calls/route.h"
#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/route.h"
#include "src/simd/route_select.h"
#include "src/simd/targets.h"

namespace switchyard {
namespace {

// Returns the time of a row of a plain softmax, in picoseconds, fitted to one
// AVX2 core. The time is right to within 2x for E = 8 to 1024 and k up to 32.
size_t PlainRowPs(const RouteOptions& options, size_t experts, size_t top_k) {
  const internal::DefaultFpEnv fp_env;  // the caller's environment may trap
  const auto mode = simd::SoftmaxMode(options.renormalize, options.clamp);
  const size_t sum_all =
      simd::NeedsAll(mode, experts, top_k) ? 450 * experts : 0;
  if (top_k <= 32) {
    return 20000 + 300 * experts + 250 * top_k * top_k + sum_all;
  }
  return (300000 + 3000 * experts) / 32 * top_k + sum_all;
}

// Returns the time of a row of any other recipe, in picoseconds.
size_t RecipeRowPs(const simd::RouteArgs& args) {
  const internal::DefaultFpEnv fp_env;
  const simd::RoutePlan plan(args);
  RouteOptions plain;
  plain.clamp = 0.0f;
  size_t ps = 20000 + PlainRowPs(plain, plan.columns, plan.top_k);
  const size_t scores = !plan.selects_by_x +
                        (plan.is_share || plan.bounded_by_all) +
                        2 * plan.in_rounds;
  ps += plan.columns * (plan.maps_logits ? 1000 : 0) +
        plan.columns * 700 * scores;
  if (args.options.num_expert_group > 1) ps += 100 * plan.columns;
  return ps + 1500 * plan.slots;
}

[[gnu::noinline]] Status RouteRecipe(const RouteInputs& inputs,
                                     const RouteOutputs& outputs,
                                     const RouteOptions& options,
                                     Executor& executor) {
  std::atomic<size_t> invalid_ids{0}, elsewhere{0};
  const simd::RouteArgs args = {inputs, outputs, options, &invalid_ids,
                                &elsewhere};
  const size_t tokens = inputs.logits.rows;
  const size_t row_ps = tokens <= 1 ? 0 : simd::ComputePs(RecipeRowPs(args));
  const Status status =
      internal::RunRows(executor, tokens, row_ps, simd::RouteRows(), args);
  if (status.ok() && outputs.report != nullptr) {
    outputs.report->invalid_ids = invalid_ids.load(std::memory_order_relaxed);
    outputs.report->elsewhere = elsewhere.load(std::memory_order_relaxed);
  }
  return status;
}

}  // namespace

Status RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
                 const RouteOptions& options, Executor& executor) noexcept {
  const Checked<calls::RouteCall> call(inputs, outputs, options);
  if (!call.status.ok()) return call.status;
  if (!call.is_ordinary) return RouteRecipe(inputs, outputs, options, executor);
  const size_t tokens = call.sizes.tokens;
  const size_t row_ps =
      tokens <= 1 ? 0
                  : simd::ComputePs(PlainRowPs(options, call.sizes.num_experts,
                                               call.sizes.top_k));
  const auto mode = simd::SoftmaxMode(options.renormalize, options.clamp);
  return internal::RunRows(
      executor, tokens, row_ps, simd::SelectRows(),
      {inputs.logits, outputs.topk_ids, outputs.topk_weights, mode});
}

}  // namespace switchyard
