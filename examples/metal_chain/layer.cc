// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "layer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/for_each_range.h"
#include "common/hash_uniform.h"

namespace metal_chain {
namespace {

using example::UniformScale;

// `size` values from stream number `stream`, uniform in
// [center - spread, center + spread).
void Fill(float* out, size_t size, uint32_t stream, float center, float spread,
          switchyard::Executor& executor) {
  const uint32_t key = example::HashKey(stream);
  const auto fill = [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      out[i] =
          center + spread * example::HashUniform(key, static_cast<uint32_t>(i));
    }
  };
  example::ForEachRange(executor, size, size_t{1} << 14, fill);
}

}  // namespace

Layer GenerateLayer(const Shape& shape, switchyard::Executor& executor) {
  const size_t matrix = shape.experts * shape.intermediate * shape.hidden;
  Layer layer = {};
  layer.shape = shape;
  const auto place = [&](size_t size) {
    return std::exchange(layer.num_floats, layer.num_floats + size);
  };
  layer.router = place(shape.experts * shape.hidden);
  layer.gate = place(matrix);
  layer.up = place(matrix);
  layer.down = place(matrix);
  layer.next_norm = place(shape.hidden);

  // Not make_unique: it would write zeros first, from one thread.
  std::unique_ptr<float[]> values(new float[layer.num_floats]);
  float* const at = values.get();
  Fill(at + layer.router, shape.experts * shape.hidden, 1, 0,
       UniformScale(1.5, shape.hidden), executor);
  Fill(at + layer.gate, matrix, 2, 0, UniformScale(1, shape.hidden), executor);
  Fill(at + layer.up, matrix, 3, 0, UniformScale(1, shape.hidden), executor);
  // silu(gate) * up is around 0.6, and top_k of them are averaged.
  Fill(at + layer.down, matrix, 4, 0, UniformScale(4, shape.intermediate),
       executor);
  Fill(at + layer.next_norm, shape.hidden, 5, 1, 0.1f, executor);
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
