// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "layer.h"

#include <cstdint>
#include <utility>

#include "programs/for_each.h"
#include "programs/hash_uniform.h"

namespace metal_chain {
namespace {

using program::UniformScale;

// `size` values from stream number `stream`, uniform in
// [center - spread, center + spread).
void Fill(float* out, size_t size, uint32_t stream, float center, float spread,
          switchyard::Executor& executor) {
  const uint32_t key = program::HashKey(stream);
  program::ForEach(executor, size, size_t{1} << 14, [=](size_t i) {
    out[i] =
        center + spread * program::HashUniform(key, static_cast<uint32_t>(i));
  });
}

}  // namespace

Layer GenerateLayer(const Shape& shape, switchyard::Executor& executor) {
  const size_t hidden = shape.hidden, intermediate = shape.intermediate;
  Layer layer = {};
  layer.shape = shape;
  const auto place = [&](const char* name, size_t matrices, size_t rows,
                         size_t cols) {
    const size_t offset = layer.num_floats;
    layer.num_floats += matrices * rows * cols;
    return Tensor{name, offset, rows, cols};
  };
  layer.router = place("router", 1, shape.experts, hidden);
  layer.gate = place("gate", shape.experts, intermediate, hidden);
  layer.up = place("up", shape.experts, intermediate, hidden);
  layer.down = place("down", shape.experts, hidden, intermediate);
  layer.next_norm = place("next_norm", 1, 1, hidden);

  // Not make_unique: it would write zeros first, from one thread.
  std::unique_ptr<float[]> values(new float[layer.num_floats]);
  uint32_t stream = 0;
  const auto fill = [&](const Tensor& tensor, const Tensor* next, float center,
                        float spread) {
    const size_t end = next != nullptr ? next->offset : layer.num_floats;
    Fill(values.get() + tensor.offset, end - tensor.offset, ++stream, center,
         spread, executor);
  };
  fill(layer.router, &layer.gate, 0, UniformScale(1.5, hidden));
  fill(layer.gate, &layer.up, 0, UniformScale(1, hidden));
  fill(layer.up, &layer.down, 0, UniformScale(1, hidden));
  // silu(gate) * up is around 0.6, and top_k of them are averaged.
  fill(layer.down, &layer.next_norm, 0, UniformScale(4, intermediate));
  fill(layer.next_norm, nullptr, 1, 0.1f);
  layer.checkpoint = std::move(values);
  return layer;
}

HiddenStates GenerateHidden(size_t tokens, const Shape& shape,
                            switchyard::Executor& executor) {
  const size_t size = tokens * shape.hidden;
  HiddenStates hidden = {tokens, std::vector<float>(size),
                         std::vector<float>(size)};
  Fill(hidden.normed.data(), size, 6, 0, UniformScale(1, 1), executor);
  Fill(hidden.residual.data(), size, 7, 0, UniformScale(1, 1), executor);
  return hidden;
}

}  // namespace metal_chain
