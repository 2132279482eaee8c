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
  double flops = 0;  // floating-point operations of the stage's GEMMs
};

// The times of the stages in one run of the block. Once the experts' GEMMs have
// started, threads run different stages at the same time. The times of these
// stages are averages over the threads, so that all stages add up to the run's
// time.
struct StageProfile {
  std::array<StageCost, kNumStages> stages;
  double weight_bytes = 0;  // the weights that GEMMs read, each matrix once

  StageCost& operator[](Stage stage) {
    return stages[static_cast<size_t>(stage)];
  }
  const StageCost& operator[](Stage stage) const {
    return stages[static_cast<size_t>(stage)];
  }
  double TotalSeconds() const;
  // Returns the time of Switchyard's kernels between the GEMMs: route, bucket,
  // gather, activate and combine.
  double BetweenGemmsSeconds() const;
};

// The numbers of tiles in a run. A tile is a group of rows that one product
// multiplies. GEMMs read the weights once for each tile.
struct WeightReads {
  size_t tiles = 0;         // the tiles of all routed experts
  size_t shared_tiles = 0;  // the tiles of the shared expert
  size_t experts = 0;       // the routed experts that have a tile
};

// Sets the bytes and floating-point operations of all stages of `profile`.
void AddWork(const LayerWeights& layer, size_t tokens, const WeightReads& reads,
             StageProfile* profile);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_STAGE_PROFILE_H_
