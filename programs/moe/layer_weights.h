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
  GemmWeights
      gate_up;       // [2 * intermediate, hidden]: gate, then up, or in turns
  GemmWeights down;  // [hidden, intermediate]
};
struct ExpertGemms {
  std::unique_ptr<const Gemm> gate_up, down;
};

// The weights of one MoE block as its GEMMs read them, and what keeps them in
// memory.
struct LayerWeights {
  std::string title;  // one line for people
  MoeShape shape;
  Dtype dtype;
  // Vectors of floats, each one row or, for biases, one for each expert. Empty:
  // there is none. The layer's scalar is in the shape.
  std::array<switchyard::ConstAnyMatrix, kVectors> vectors;

  // [logits, hidden]; with a shared logit a row more, for that.
  std::unique_ptr<const Gemm> router_gemm;
  GemmWeights router;
  ExpertGemms expert_gemms;
  std::vector<ExpertWeights> experts;
  ExpertGemms shared_gemms;  // where shape.shared_intermediate > 0
  ExpertWeights shared;

  // All that the GEMMs read, matrix by matrix.
  std::vector<switchyard::Span<const std::byte>> matrices;
  double Bytes() const;

  Buffer storage;                          // what had to be converted
  std::shared_ptr<Checkpoint> checkpoint;  // whose mapping holds the rest
};

// Converts and packs on the executor's threads; aligned F32 tensors are used
// where they are mapped if the GEMMs take such. Weights have to be finite.
// Throws InputError and std::bad_alloc.
LayerWeights LoadLayer(const LayerPlan& plan, const Dtype& dtype,
                       switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_LAYER_WEIGHTS_H_
