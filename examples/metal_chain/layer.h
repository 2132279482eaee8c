// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_LAYER_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_LAYER_H_

#include <cstddef>
#include <memory>
#include <string>
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

// Always enough, and no power of two, of which the cache is not fond.
constexpr size_t RowStride(size_t pairs) { return pairs + 16; }

// A matrix, or one per expert, in the layer's memory.
struct Tensor {
  std::string name;
  size_t offset;  // in floats
  size_t rows;    // of one matrix
  size_t cols;
};

// One MoE layer in one block of memory, as a mapped checkpoint would be.
struct Layer {
  Shape shape;
  std::unique_ptr<const float[]> checkpoint;
  size_t num_floats;

  Tensor router;
  Tensor gate, up, down;  // of each expert
  Tensor next_norm;       // a row, of the next layer

  const float* data(const Tensor& t) const {
    return checkpoint.get() + t.offset;
  }
};

// The states that enter the layer, [tokens, hidden] each.
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

// The outputs of a chain: vectors of the host, or buffers of a device. Pair p
// is token p / top_k's.
template <class Floats, class Ints, class Words>
struct ActivationsOf {
  Floats logits, weights;
  Ints ids;
  Floats gate, up, activated, down;
  Floats residual;  // read and written
  Floats normed;    // for the next layer
  // Of a prefill only.
  Ints tokens_per_expert, buckets;
  Words gate_up_args, down_args;
};

// Calls visit(name, rows, cols, member of each of `a`) for all of them.
template <class Visit, class... A>
void ForEachActivation(const Shape& shape, size_t tokens, bool prefill,
                       const Visit& visit, A&... a) {
  const size_t pairs = tokens * shape.top_k;
  visit("logits", tokens, shape.experts, a.logits...);
  visit("ids", tokens, shape.top_k, a.ids...);
  visit("weights", tokens, shape.top_k, a.weights...);
  visit("gate", pairs, shape.intermediate, a.gate...);
  visit("up", pairs, shape.intermediate, a.up...);
  visit("activated", pairs, shape.intermediate, a.activated...);
  visit("down", pairs, shape.hidden, a.down...);
  visit("residual", tokens, shape.hidden, a.residual...);
  visit("normed", tokens, shape.hidden, a.normed...);
  if (!prefill) return;
  visit("tokens_per_expert", 1, shape.experts, a.tokens_per_expert...);
  visit("buckets", shape.experts, RowStride(pairs), a.buckets...);
  visit("gate_up_args", 1, 3, a.gate_up_args...);
  visit("down_args", 1, 3, a.down_args...);
}

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_LAYER_H_
