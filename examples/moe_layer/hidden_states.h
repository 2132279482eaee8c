// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_HIDDEN_STATES_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_HIDDEN_STATES_H_

#include <cstddef>

#include "float_buffer.h"
#include "layer_weights.h"
#include "switchyard/executor.h"
#include "switchyard/views.h"

namespace moe_layer {

// Hidden states [tokens, hidden] from an integer hash: the same everywhere.
// They share a direction, as those of real models do: that is what makes some
// experts busier than others.
FloatBuffer GenerateHidden(size_t tokens, size_t hidden,
                           switchyard::Executor& executor);

// The norm that opens the block. In a model, the layer before has left it: it
// is that layer's "next norm". Throws std::runtime_error on failure.
void InputNorm(const LayerWeights& layer,
               switchyard::Matrix<const float> hidden,
               switchyard::Matrix<float> normed,
               switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_HIDDEN_STATES_H_
