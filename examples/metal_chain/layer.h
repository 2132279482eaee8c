// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_LAYER_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_LAYER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "switchyard/executor.h"

namespace metal_chain {

struct Shape {
  size_t hidden;
  size_t experts;
  size_t top_k;
  size_t intermediate;
};

constexpr Shape kSmallShape = {256, 16, 4, 128};
constexpr Shape kFullShape = {2048, 128, 8, 768};  // Qwen3-30B-A3B
constexpr float kNormEps = 1e-6f;

// One MoE layer in one block of memory, as a mapped checkpoint would be. The
// tensors are at these offsets, in floats.
struct Layer {
  Shape shape;
  std::unique_ptr<const float[]> checkpoint;
  size_t num_floats;

  size_t router;     // [experts, hidden]
  size_t gate;       // [experts, intermediate, hidden]
  size_t up;         // [experts, intermediate, hidden]
  size_t down;       // [experts, hidden, intermediate]
  size_t next_norm;  // [hidden], of the next layer

  const float* tensor(size_t offset) const { return checkpoint.get() + offset; }
};

// What enters the layer, [tokens, hidden] each.
struct HiddenStates {
  size_t tokens;
  std::vector<float> normed;
  std::vector<float> residual;
};

// Values from an integer hash, the same on every machine, of the size that
// trained ones have: logits around 1.5, the rest around 1.
Layer GenerateLayer(const Shape& shape, switchyard::Executor& executor);
HiddenStates GenerateHidden(size_t tokens, const Shape& shape,
                            switchyard::Executor& executor);

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_LAYER_H_
