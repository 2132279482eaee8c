// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_LAYER_WEIGHTS_H_
#define SWITCHYARD_PROGRAMS_MOE_LAYER_WEIGHTS_H_

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "dtype.h"
#include "gemm.h"
#include "layer_plan.h"
#include "memory.h"
#include "model_config.h"
#include "switchyard/executor.h"
#include "switchyard/views.h"

namespace moe_layer {

struct ExpertWeights {
  // [2 * intermediate, hidden]; the rows of gate and up may alternate.
  GemmWeights gate_up;
  GemmWeights down;  // [hidden, intermediate]
};
struct ExpertGemms {
  std::unique_ptr<const Gemm> gate_up, down;
};

// The weights of one MoE block in the form that its GEMMs read, and the owners
// of their memory.
struct LayerWeights {
  std::string title;  // describes the layer in one line
  MoeShape shape;
  Dtype dtype;
  // The layer's vectors, in f32: one row each, but biases of experts have a row
  // for each expert. A missing vector is empty. The layer's scalar is not here
  // but in MoeShape.
  std::array<switchyard::ConstAnyMatrix, kVectors> vectors;

  // The router's weights, [logits, hidden]. If the shared expert has a logit,
  // one more row computes this logit.
  std::unique_ptr<const Gemm> router_gemm;
  GemmWeights router;
  ExpertGemms expert_gemms;
  std::vector<ExpertWeights> experts;
  ExpertGemms shared_gemms;  // null unless shape.shared_intermediate > 0
  ExpertWeights shared;

  // All weight matrices that the GEMMs read.
  std::vector<switchyard::Span<const std::byte>> matrices;
  double Bytes() const;

  Buffer storage;                          // the converted weights
  std::shared_ptr<Checkpoint> checkpoint;  // owns the weights used in place
};

// Converts and packs weights on the executor's threads. Does not copy aligned
// F32 tensors that a GEMM can read in the mapped file. Throws InputError if a
// weight is not finite or the weights exceed the machine's memory, and
// std::bad_alloc if an allocation fails.
LayerWeights LoadLayer(const LayerPlan& plan, const Dtype& dtype,
                       switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_LAYER_WEIGHTS_H_
