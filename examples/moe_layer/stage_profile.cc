// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "stage_profile.h"

namespace moe_layer {

double StageProfile::TotalSeconds() const {
  double total = 0;
  for (const StageCost& cost : stages) total += cost.seconds;
  return total;
}

double StageProfile::BetweenGemmsSeconds() const {
  double total = 0;
  for (const Stage stage : {Stage::kRoute, Stage::kBucket, Stage::kGather,
                            Stage::kActivate, Stage::kCombine}) {
    total += (*this)[stage].seconds;
  }
  return total;
}

void AddWork(const MoeShape& shape, size_t tokens, size_t tiles,
             size_t shared_tiles, StageProfile* profile) {
  constexpr double kWord = 4;  // every float and every index
  const auto t = static_cast<double>(tokens);
  const auto pairs = t * static_cast<double>(shape.top_k);
  const auto h = static_cast<double>(shape.hidden);
  const auto f = static_cast<double>(shape.intermediate);
  const auto s = static_cast<double>(shape.shared_intermediate);
  const auto e = static_cast<double>(shape.num_experts);
  const double shared = s > 0 ? 1 : 0;
  const auto set = [&](Stage stage, double words, double flops) {
    (*profile)[stage].bytes = words * kWord;
    (*profile)[stage].flops = flops;
  };
  const auto weights = static_cast<double>(tiles) * f * h +
                       static_cast<double>(shared_tiles) * s * h;
  const double inner = pairs * f + shared * t * s;  // activations
  set(Stage::kRouterGemm, (e + shared) * h + t * h + t * (e + shared),
      2 * t * h * (e + shared));
  set(Stage::kRoute, t * e + 2 * pairs, 0);
  set(Stage::kBucket, 3 * pairs + 2 * e, 0);
  set(Stage::kGather, 2 * pairs * h, 0);
  set(Stage::kGateUpGemm, 2 * weights + (pairs + shared * t) * h + 2 * inner,
      4 * h * inner);
  set(Stage::kActivate, 3 * inner, 0);
  set(Stage::kDownGemm, weights + inner + (pairs + shared * t) * h,
      2 * h * inner);
  // Rows, weights, row_index and residual in; the sum and its norm out.
  set(Stage::kCombine, pairs * (h + 2) + t * h * (3 + shared) + shared * t + h,
      0);
}

}  // namespace moe_layer
