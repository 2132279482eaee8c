// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "layer_plan.h"
#include "programs/hash_uniform.h"

namespace moe_layer {

using program::UniformScale;

MoeShape DefaultShape() {
  MoeShape shape;
  shape.hidden = 2048;
  shape.intermediate = 768;
  shape.num_experts = 128;
  shape.top_k = 8;
  shape.route.renormalize = true;
  shape.norm_eps = 1e-6f;
  return shape;
}

LayerPlan PlanGeneratedLayer(const MoeShape& shape) {
  const size_t hidden = shape.hidden;
  LayerPlan plan;
  plan.action = "generating weights";
  plan.title = "generated, shaped like one of Qwen3-30B-A3B";
  plan.source = "the generated layer";
  plan.shape = shape;
  uint32_t num_tensors = 0;
  const auto make = [&](std::vector<uint64_t> dims, float scale,
                        float offset = 0) {
    WeightTensor tensor;
    tensor.shape = std::move(dims);
    tensor.key = program::HashKey(++num_tensors);
    tensor.scale = scale;
    tensor.offset = offset;
    return tensor;
  };
  const auto make_expert = [&](size_t intermediate) {
    // Down has the deviation 4 instead of 1, so that the layer's output stays
    // around 1, although silu(gate) * up is around 0.6 and the output is an
    // average of the rows of top_k experts.
    return LayerPlan::Expert{
        make({intermediate, hidden}, UniformScale(1, hidden)),
        make({intermediate, hidden}, UniformScale(1, hidden)),
        make({hidden, intermediate}, UniformScale(4, intermediate))};
  };
  plan.vectors[kNorm] = make({hidden}, 0.1f, 1.0f);
  plan.vectors[kNextNorm] = make({hidden}, 0.1f, 1.0f);
  // With logits around 1.5, the best of 8 selected experts gets about a quarter
  // of the weight.
  plan.router = make({shape.num_experts, hidden}, UniformScale(1.5, hidden));
  for (size_t e = 0; e < shape.num_experts; ++e) {
    plan.experts.push_back(make_expert(shape.intermediate));
  }
  if (shape.shared_intermediate != 0) {
    plan.shared = make_expert(shape.shared_intermediate);
    plan.shared_logit = make({1, hidden}, UniformScale(1, hidden));
  }
  return plan;
}

}  // namespace moe_layer
