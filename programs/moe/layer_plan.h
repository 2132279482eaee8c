// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_LAYER_PLAN_H_
#define SWITCHYARD_PROGRAMS_MOE_LAYER_PLAN_H_

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint.h"
#include "model_config.h"
#include "weight_tensor.h"

namespace moe_layer {

// The tensors of one layer.
struct LayerPlan {
  std::string title;   // one line for people
  std::string action;  // the name of loading it, for messages
  std::string source;  // for messages about the whole layer
  MoeShape shape;
  std::shared_ptr<Checkpoint> checkpoint;  // keeps the mappings alive

  std::array<WeightTensor, kVectors> vectors;
  WeightTensor router;  // [logits, hidden]
  struct Expert {
    // [intermediate, hidden]. If interleaved, `gate` has both, [2 *
    // intermediate, hidden].
    WeightTensor gate, up;
    WeightTensor down;  // [hidden, intermediate]
  };
  std::vector<Expert> experts;
  // The shared expert, if shape.shared_intermediate > 0.
  Expert shared;
  WeightTensor shared_logit;  // [1, hidden], if shape.HasSharedLogit()
};

// Finds every tensor and checks its shape and dtype, but does not read it.
// Throws InputError.
LayerPlan PlanLayer(std::shared_ptr<Checkpoint> checkpoint,
                    const ModelConfig& config, size_t layer);

// The shape that the program runs without a checkpoint: one layer of
// Qwen3-30B-A3B.
MoeShape DefaultShape();

// Plans weights from an integer hash. They are the same on every machine, and
// scaled so that activations stay around 1. Has a shared expert if `shape`
// does.
LayerPlan PlanGeneratedLayer(const MoeShape& shape);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_LAYER_PLAN_H_
