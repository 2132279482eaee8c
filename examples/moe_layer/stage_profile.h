// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_STAGE_PROFILE_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_STAGE_PROFILE_H_

#include <array>
#include <cstddef>

#include "model_config.h"

namespace moe_layer {

enum class Stage {
  kRouterGemm,
  kRoute,
  kBucket,
  kGather,
  kGateUpGemm,
  kActivate,
  kDownGemm,
  kWaiting,  // threads of the expert section that have run out of tiles
  kCombine,
};
constexpr size_t kNumStages = static_cast<size_t>(Stage::kCombine) + 1;

struct StageCost {
  double seconds = 0;
  double bytes = 0;  // that the stage has to read and write at least
  double flops = 0;  // of GEMMs only
};

// Where one run of the block spent its time. The stages inside the expert
// section are averages over the threads, so that all of them add up to the time
// that passed.
struct StageProfile {
  std::array<StageCost, kNumStages> stages;

  StageCost& operator[](Stage stage) {
    return stages[static_cast<size_t>(stage)];
  }
  const StageCost& operator[](Stage stage) const {
    return stages[static_cast<size_t>(stage)];
  }
  double TotalSeconds() const;
  // Route, bucket, gather, activate and combine: what Switchyard does.
  double BetweenGemmsSeconds() const;
};

// Fills in bytes and flops. `tiles` and `shared_tiles` count how often the
// weights of an expert, and of the shared one, are read.
void AddWork(const MoeShape& shape, size_t tokens, size_t tiles,
             size_t shared_tiles, StageProfile* profile);

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_STAGE_PROFILE_H_
