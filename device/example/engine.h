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

namespace MTL = switchyard::device;  // as in metal-cpp

using BufferPtr = std::shared_ptr<MTL::Buffer>;

constexpr float kNormEps = 1e-6f;

struct Shape {
  size_t hidden, experts, top_k, intermediate;
};

// One MoE layer, as in a mapped checkpoint.
struct Layer {
  Shape shape;
  std::vector<float> router;     // [experts, hidden]
  std::vector<float> gate, up;   // [experts, intermediate, hidden]
  std::vector<float> down;       // [experts, hidden, intermediate]
  std::vector<float> next_norm;  // [hidden], the norm of the next layer
};

// The buffers for a chain of `tokens`. Pair p belongs to token p / top_k.
struct Buffers {
  size_t tokens;
  BufferPtr input;           // [tokens, hidden], normed
  BufferPtr residual;        // [tokens, hidden], read and written
  BufferPtr logits;          // [tokens, experts]
  BufferPtr ids, weights;    // [tokens, top_k]
  BufferPtr gate, up, silu;  // [pairs, intermediate]
  BufferPtr down;            // [pairs, hidden]
  BufferPtr normed;          // [tokens, hidden], for the next layer
  BufferPtr expert_pairs;    // [experts], number of pairs of each expert
  BufferPtr buckets;         // [experts, pairs], the pairs of each expert
  BufferPtr gate_up_args;    // the grids of the GEMMs, written by a kernel
  BufferPtr down_args;
};

// A dot product in 32 lanes, folded by 16, 8, 4, 2, 1, as a simdgroup does.
float Dot(const float* a, const float* b, size_t size);

// Runs a layer on a device; `layer` must outlive it. Throws
// std::runtime_error with the device's message.
class Engine {
 public:
  // Kernels come from the .metal files in `shaders` if these define a kernel
  // of the same name; the others are the device's built-in kernels.
  Engine(const Layer& layer, std::shared_ptr<switchyard::Executor> executor,
         const std::vector<std::string>& shaders = {});

  // The names of the kernels that come from a file.
  const std::vector<std::string>& shader_kernels() const {
    return shader_kernels_;
  }

  Buffers NewBuffers(const std::vector<float>& input) const;

  // Runs one command buffer with one serial encoder and waits for it. One
  // token uses GEMVs; several tokens sort their pairs by expert and use
  // GEMMs.
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
  // Sets the pipeline and the buffers from index 0 on; the params follow the
  // buffers.
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
