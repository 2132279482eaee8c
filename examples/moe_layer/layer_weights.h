// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_LAYER_WEIGHTS_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_LAYER_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint.h"
#include "memory.h"
#include "model_config.h"
#include "switchyard/executor.h"

namespace moe_layer {

// `count` little-endian 16-bit floats at `source`, on any byte boundary, to
// float. Exact for every value: denormals, infinities and NaN payloads too.
void ConvertF16(const uint8_t* source, size_t count, float* out) noexcept;
void ConvertBf16(const uint8_t* source, size_t count, float* out) noexcept;

// Matrices are [out, in], row-major and dense, as Hugging Face stores them.
struct ExpertWeights {
  const float* gate = nullptr;  // [intermediate, hidden]
  const float* up = nullptr;    // [intermediate, hidden]
  const float* down = nullptr;  // [hidden, intermediate]
};

// The weights of one MoE block, in f32, and what keeps them in memory.
struct LayerWeights {
  std::string title;  // one line for people
  MoeShape shape;
  const float* norm = nullptr;       // [hidden], opens the block
  const float* next_norm = nullptr;  // [hidden], opens what follows it
  const float* router = nullptr;     // [num_experts, hidden]
  std::vector<ExpertWeights> experts;
  ExpertWeights shared;                 // where shape.shared_intermediate > 0
  const float* shared_logit = nullptr;  // [1, hidden]

  size_t num_floats = 0;
  double Bytes() const { return 4.0 * static_cast<double>(num_floats); }
  FloatBuffer storage;                     // what had to be converted
  std::shared_ptr<Checkpoint> checkpoint;  // whose mapping holds the rest
};

// Loads one layer of a checkpoint. Throws InputError and std::bad_alloc.
class LayerLoader {
 public:
  // Finds every tensor and checks its shape and dtype; reads none yet.
  LayerLoader(std::shared_ptr<Checkpoint> checkpoint, const ModelConfig& config,
              size_t layer);
  LayerLoader(const LayerLoader&) = delete;
  LayerLoader& operator=(const LayerLoader&) = delete;

  const MoeShape& shape() const { return weights_.shape; }

  // Once. Converts on the executor's threads; F32 tensors on a 4-byte boundary
  // are used where they are mapped. Weights have to be finite.
  LayerWeights Load(switchyard::Executor& executor);

 private:
  struct Job {
    // Null: used in place.
    void (*convert)(const uint8_t* source, size_t count, float* out) noexcept;
    const uint8_t* source;
    size_t count;
    const float** target;  // in weights_
    std::string name;      // file and tensor
    std::vector<uint64_t> shape;
    float* out = nullptr;
    size_t first_bad = SIZE_MAX;  // element that is not finite

    size_t OwnedFloats() const;
  };

  void Add(const std::string& name, const std::vector<uint64_t>& shape,
           const float** target);

  LayerWeights weights_;
  std::vector<Job> jobs_;
  std::string label_;
};

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

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_LAYER_WEIGHTS_H_
