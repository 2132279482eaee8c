// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_STAGE_PROFILE_H_
#define SWITCHYARD_PROGRAMS_MOE_STAGE_PROFILE_H_

#include <array>
#include <cstddef>

#include "layer_weights.h"

namespace moe_layer {

enum class Stage {
  kRouterGemm,
  kRoute,
  kBucket,
  kGateUpGemm,
  kDownGemm,
  kAroundGemms,  // gather, activate and combine
  kWaiting,      // threads without products left while others still work
};
constexpr size_t kNumStages = static_cast<size_t>(Stage::kWaiting) + 1;

struct StageCost {
  double seconds = 0;
  double bytes = 0;  // the least that the stage must read and write
  double flops = 0;  // of GEMMs only
};

// The times of one run of the block by stage. The stages from the experts'
// GEMMs on are averages over the threads, so that all stages add up to the
// run's time.
struct StageProfile {
  std::array<StageCost, kNumStages> stages;
  double weight_bytes = 0;  // the GEMMs' weights, each matrix once

  StageCost& operator[](Stage stage) {
    return stages[static_cast<size_t>(stage)];
  }
  const StageCost& operator[](Stage stage) const {
    return stages[static_cast<size_t>(stage)];
  }
  double TotalSeconds() const;
  // Switchyard's part: route, bucket, gather, activate and combine.
  double BetweenGemmsSeconds() const;
};

// How often the weights of experts are read.
struct WeightReads {
  size_t tiles = 0;         // of experts
  size_t shared_tiles = 0;  // of the shared one
  size_t experts = 0;       // with any tile
};

// Fills in bytes and flops.
void AddWork(const LayerWeights& layer, size_t tokens, const WeightReads& reads,
             StageProfile* profile);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_STAGE_PROFILE_H_
