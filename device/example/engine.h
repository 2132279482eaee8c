// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_DEVICE_EXAMPLE_ENGINE_H_
#define SWITCHYARD_DEVICE_EXAMPLE_ENGINE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "switchyard/device/device.h"
#include "switchyard/executor.h"

namespace metal_chain {

namespace MTL = switchyard::device;  // the name that metal-cpp uses

using BufferPtr = std::shared_ptr<MTL::Buffer>;

constexpr float kNormEps = 1e-6f;

struct Shape {
  size_t hidden, experts, top_k, intermediate;
};

// The weights of one MoE layer, as a mapped checkpoint has them.
struct Layer {
  Shape shape;
  std::vector<float> router;     // [experts, hidden]
  std::vector<float> gate, up;   // [experts, intermediate, hidden]
  std::vector<float> down;       // [experts, hidden, intermediate]
  std::vector<float> next_norm;  // [hidden], for the norm of the next layer
};

// The buffers of the chain of kernels that computes a layer for `tokens`
// tokens. A pair is a token and one of its selected experts: pair p belongs
// to token p / top_k.
struct Buffers {
  size_t tokens;
  BufferPtr input;           // [tokens, hidden], after the norm
  BufferPtr residual;        // [tokens, hidden], read and written
  BufferPtr logits;          // [tokens, experts]
  BufferPtr ids, weights;    // [tokens, top_k]
  BufferPtr gate, up, silu;  // [pairs, intermediate]
  BufferPtr down;            // [pairs, hidden]
  BufferPtr normed;          // [tokens, hidden], the input of the next layer
  BufferPtr expert_pairs;    // [experts], the number of pairs of each expert
  BufferPtr buckets;         // [experts, pairs], the pairs of each expert
  BufferPtr gate_up_args;    // the grids of the GEMMs; a kernel writes them
  BufferPtr down_args;
};

// Computes a dot product in 32 lanes. The lanes' sums are then added in
// halves (16, 8, 4, 2, 1), as a simdgroup adds them.
float Dot(const float* a, const float* b, size_t size);

// Runs a layer on a device. `layer` must outlive the engine. Errors are
// thrown as std::runtime_error with the device's message.
class Engine {
 public:
  // If a .metal file in `shaders` defines a kernel that the chain uses, that
  // kernel runs. All other kernels are built into the device or part of
  // engine.cc.
  Engine(const Layer& layer, std::shared_ptr<switchyard::Executor> executor,
         const std::vector<std::string>& shaders = {});

  // Returns the names of the kernels that come from a file.
  const std::vector<std::string>& shader_kernels() const {
    return shader_kernels_;
  }

  Buffers NewBuffers(const std::vector<float>& input) const;

  // Encodes the layer with one serial encoder, runs the command buffer, and
  // waits for it. For one token it uses GEMVs. For several tokens it sorts
  // their pairs by expert and uses GEMMs.
  std::vector<MTL::DispatchTime> Run(const Buffers& b,
                                     const std::vector<float>& residual) const;

 private:
  using Encoder = MTL::ComputeCommandEncoder;

  void EncodeDecode(Encoder& encoder, const Buffers& b) const;
  void EncodePrefill(Encoder& encoder, const Buffers& b) const;
  void EncodeRoute(Encoder& encoder, const Buffers& b) const;
  void EncodeGemv(Encoder& encoder, const BufferPtr& weights, size_t rows,
                  size_t cols, const BufferPtr& ids, const BufferPtr& input,
                  size_t slots, size_t slots_per_input,
                  const BufferPtr& out) const;
  void EncodeGemm(Encoder& encoder, const BufferPtr& weights, size_t rows,
                  size_t cols, const BufferPtr& input, size_t pairs_per_input,
                  const Buffers& b, const BufferPtr& out,
                  const BufferPtr& args) const;
  // Sets the pipeline, binds the buffers from index 0 on, and sets the params
  // at the next index.
  template <class Params>
  void Set(Encoder& encoder, const std::string& kernel,
           const std::vector<BufferPtr>& buffers, const Params& params) const;

  const Shape shape_;
  std::shared_ptr<MTL::Device> device_;
  std::shared_ptr<MTL::CommandQueue> queue_;
  BufferPtr router_, gate_, up_, down_, next_norm_;
  std::map<std::string, std::shared_ptr<MTL::ComputePipelineState>> pipelines_;
  std::vector<std::string> shader_kernels_;
};

}  // namespace metal_chain

#endif  // SWITCHYARD_DEVICE_EXAMPLE_ENGINE_H_
