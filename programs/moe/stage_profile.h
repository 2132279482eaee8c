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
  kWaiting,      // threads that have no products left wait for the others
};
constexpr size_t kNumStages = static_cast<size_t>(Stage::kWaiting) + 1;

struct StageCost {
  double seconds = 0;
  double bytes = 0;  // the fewest bytes that the stage must read and write
  double flops = 0;  // the operations of its GEMMs
};

// The times of one run of the block by stage. From the experts' GEMMs on,
// threads run different stages at the same time. The time of these stages is
// the average over the threads, so that all stages add up to the run's time.
struct StageProfile {
  std::array<StageCost, kNumStages> stages;
  double weight_bytes = 0;  // of the GEMMs' weights; counts each matrix once

  StageCost& operator[](Stage stage) {
    return stages[static_cast<size_t>(stage)];
  }
  const StageCost& operator[](Stage stage) const {
    return stages[static_cast<size_t>(stage)];
  }
  double TotalSeconds() const;
  // Returns the time of Switchyard's part: route, bucket, gather, activate and
  // combine.
  double BetweenGemmsSeconds() const;
};

// Tells how often weights are read: once for each tile of rows.
struct WeightReads {
  size_t tiles = 0;         // the tiles of all experts but the shared one
  size_t shared_tiles = 0;  // the tiles of the shared expert
  size_t experts = 0;       // the experts that have any tile
};

// Sets the bytes and flops of all stages.
void AddWork(const LayerWeights& layer, size_t tokens, const WeightReads& reads,
             StageProfile* profile);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_STAGE_PROFILE_H_
