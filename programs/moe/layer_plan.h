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

// The tensors of one layer, before they are read.
struct LayerPlan {
  std::string title;   // describes the layer in one line
  std::string action;  // "loading layer 3", for messages
  std::string source;  // the file name in messages about the whole layer
  MoeShape shape;
  std::shared_ptr<Checkpoint> checkpoint;  // keeps the mappings alive

  std::array<WeightTensor, kVectors> vectors;
  WeightTensor router;  // [logits, hidden]
  struct Expert {
    // Two matrices [intermediate, hidden]. If rows of gate and up alternate,
    // `gate` has both, [2 * intermediate, hidden], and `up` is missing.
    WeightTensor gate, up;
    WeightTensor down;  // [hidden, intermediate]
  };
  std::vector<Expert> experts;
  // The shared expert, if shape.shared_intermediate > 0.
  Expert shared;
  WeightTensor shared_logit;  // [1, hidden], if shape.HasSharedLogit()
};

// Finds every tensor of the layer and checks its shape and dtype, but does not
// read the weights. Throws InputError.
LayerPlan PlanLayer(std::shared_ptr<Checkpoint> checkpoint,
                    const ModelConfig& config, size_t layer);

// Returns the shape of the layer that the program runs without a checkpoint:
// one layer of Qwen3-30B-A3B.
MoeShape DefaultShape();

// Plans a layer with weights from an integer hash, so that every machine has
// the same weights. Their scale keeps activations around 1. The layer has a
// shared expert if `shape` has one.
LayerPlan PlanGeneratedLayer(const MoeShape& shape);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_LAYER_PLAN_H_
