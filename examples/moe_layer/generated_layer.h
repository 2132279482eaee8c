// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_GENERATED_LAYER_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_GENERATED_LAYER_H_

#include "layer_weights.h"
#include "model_config.h"
#include "switchyard/executor.h"

namespace moe_layer {

// What the program runs when it is given no checkpoint: the shape of one layer
// of Qwen3-30B-A3B.
MoeShape DefaultShape();

// Weights from an integer hash: the same on every machine, and scaled so that
// activations stay around 1. Has a shared expert if `shape` does.
LayerWeights GenerateLayer(const MoeShape& shape,
                           switchyard::Executor& executor);

// Hidden states [tokens, hidden] from an integer hash: the same everywhere.
// They share a direction, as those of real models do: that is what makes some
// experts busier than others.
FloatBuffer GenerateHidden(size_t tokens, size_t hidden,
                           switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_GENERATED_LAYER_H_
