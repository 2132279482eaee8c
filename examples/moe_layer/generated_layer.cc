// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "generated_layer.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/for_each.h"
#include "common/hash_uniform.h"
#include "progress.h"

namespace moe_layer {
namespace {

using example::HashUniform;
using example::UniformScale;

// A part of a tensor of uniform values in [offset - scale, offset + scale).
struct Fill {
  float* out;
  size_t count;
  uint32_t first;  // index in the tensor
  uint32_t key;
  float scale;
  float offset;
};

}  // namespace

MoeShape DefaultShape() {
  MoeShape shape;
  shape.hidden = 2048;
  shape.intermediate = 768;
  shape.num_experts = 128;
  shape.top_k = 8;
  shape.renormalize = true;
  shape.norm_eps = 1e-6f;
  return shape;
}

LayerWeights GenerateLayer(const MoeShape& shape,
                           switchyard::Executor& executor) {
  const size_t hidden = shape.hidden;
  const size_t shared = shape.shared_intermediate;
  LayerWeights weights;
  weights.title = "generated, shaped like one of Qwen3-30B-A3B";
  weights.shape = shape;
  weights.num_floats =
      (2 + shape.num_experts) * hidden +
      3 * hidden * (shape.num_experts * shape.intermediate + shared) +
      (shared != 0 ? hidden : 0);
  RequireMemory(weights.Bytes(), "the generated layer");
  weights.storage = FloatBuffer(weights.num_floats);

  float* next = weights.storage.data();
  std::vector<Fill> parts;
  uint32_t num_tensors = 0;
  const auto add = [&](size_t count, float scale, float offset = 0) {
    // Small enough to share out among threads.
    constexpr size_t kPart = size_t{1} << 18;
    const uint32_t key = example::HashKey(++num_tensors);
    for (size_t at = 0; at < count; at += kPart) {
      parts.push_back({next + at, std::min(kPart, count - at),
                       static_cast<uint32_t>(at), key, scale, offset});
    }
    return std::exchange(next, next + count);
  };
  const auto add_expert = [&](size_t intermediate) {
    ExpertWeights expert;
    expert.gate = add(intermediate * hidden, UniformScale(1, hidden));
    expert.up = add(intermediate * hidden, UniformScale(1, hidden));
    // silu(gate) * up is around 0.6, and top_k of them are averaged.
    expert.down = add(hidden * intermediate, UniformScale(4, intermediate));
    return expert;
  };
  weights.norm = add(hidden, 0.1f, 1.0f);
  weights.next_norm = add(hidden, 0.1f, 1.0f);
  // Logits around 1.5 give the first of 8 selected experts about a quarter of
  // the weight.
  weights.router = add(shape.num_experts * hidden, UniformScale(1.5, hidden));
  for (size_t e = 0; e < shape.num_experts; ++e) {
    weights.experts.push_back(add_expert(shape.intermediate));
  }
  if (shared != 0) {
    weights.shared = add_expert(shared);
    weights.shared_logit = add(hidden, UniformScale(1, hidden));
  }

  Progress progress("generating weights", weights.num_floats);
  example::ForEach(executor, parts.size(), 1, [&](size_t p) {
    const Fill& fill = parts[p];
    for (uint32_t i = 0; i < fill.count; ++i) {
      fill.out[i] =
          fill.offset + fill.scale * HashUniform(fill.key, fill.first + i);
    }
    progress.Add(fill.count);
  });
  progress.Finish(BytesText(weights.Bytes()));
  return weights;
}

FloatBuffer GenerateHidden(size_t tokens, size_t hidden,
                           switchyard::Executor& executor) {
  FloatBuffer states(tokens * hidden);
  // Far from the numbers of the weights' streams.
  constexpr uint32_t kFirst = 0x80000000u;
  const uint32_t common = example::HashKey(kFirst);
  example::ForEach(executor, tokens, 8, [&](size_t t) {
    const uint32_t own =
        example::HashKey(kFirst + 1 + static_cast<uint32_t>(t));
    float* row = states.data() + t * hidden;
    for (uint32_t h = 0; h < hidden; ++h) {
      // The variance is 1: 0.4^2 + 0.917^2 is, and sqrt(3) makes each part's.
      row[h] = 1.7320508f *
               (0.4f * HashUniform(common, h) + 0.917f * HashUniform(own, h));
    }
  });
  return states;
}

}  // namespace moe_layer
