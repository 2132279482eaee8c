// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_ENGINE_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_ENGINE_H_

#include <memory>
#include <vector>

#include "layer.h"
#include "switchyard/device/device.h"
#include "switchyard/executor.h"

namespace metal_chain {

namespace MTL = switchyard::device;  // as in metal-cpp

using BufferPtr = std::shared_ptr<MTL::Buffer>;
using PipelinePtr = std::shared_ptr<MTL::ComputePipelineState>;

// What a chain reads and writes for its tokens: memory that the kernels and the
// host share. Pair p is token p / top_k's.
struct Activations {
  BufferPtr input;     // [tokens, hidden], normed
  BufferPtr residual;  // [tokens, hidden], read and written
  BufferPtr logits;    // [tokens, experts]
  BufferPtr ids;       // i32 [tokens, top_k]
  BufferPtr weights;   // [tokens, top_k]
  // Of a prefill only.
  BufferPtr tokens_per_expert;  // i32 [experts]
  BufferPtr buckets;            // i32 [experts, RowStride(pairs)]
  BufferPtr gate_up_args;       // u32 [3]
  BufferPtr down_args;          // u32 [3]

  BufferPtr gate;       // [pairs, intermediate]
  BufferPtr up;         // [pairs, intermediate]
  BufferPtr activated;  // [pairs, intermediate]
  BufferPtr down;       // [pairs, hidden]
  BufferPtr normed;     // [tokens, hidden], for the next layer
};

// Always enough, and no power of two, of which the cache is not fond.
constexpr size_t RowStride(size_t pairs) { return pairs + 16; }

// When a command buffer ran, in seconds of one clock.
struct ChainRun {
  double start;
  double end;
  std::vector<MTL::DispatchTime> dispatches;
};

// A layer on a device. `layer` outlives it. Throws std::runtime_error with the
// device's text if something goes wrong there.
class Engine {
 public:
  Engine(const Layer& layer, std::shared_ptr<switchyard::Executor> executor);

  Activations NewActivations(const HiddenStates& hidden) const;

  // Each is one command buffer with one serial encoder, committed and waited
  // for. Starts from the residual of `hidden`.
  ChainRun RunDecode(const HiddenStates& hidden, const Activations& at) const;
  ChainRun RunPrefill(const HiddenStates& hidden, const Activations& at) const;

 private:
  struct Pipelines {
    PipelinePtr router_gemv, gate_gemv, up_gemv, down_gemv;
    PipelinePtr router_gemm, gate_gemm, up_gemm, down_gemm;
    PipelinePtr route, bucket;
    PipelinePtr silu_mul_stacked, silu_mul_batched;
    PipelinePtr combine_stacked, combine_batched;
  };

  void EncodeDecode(MTL::ComputeCommandEncoder& encoder,
                    const Activations& at) const;
  void EncodePrefill(MTL::ComputeCommandEncoder& encoder, const Activations& at,
                     size_t tokens) const;
  void EncodeRoute(MTL::ComputeCommandEncoder& encoder, const Activations& at,
                   size_t tokens) const;
  // Slots of the routed experts, or with ids null the router.
  void EncodeGemv(MTL::ComputeCommandEncoder& encoder,
                  const PipelinePtr& pipeline, size_t tensor, size_t rows,
                  size_t cols, const BufferPtr& ids, const BufferPtr& input,
                  bool shared_input, const BufferPtr& out) const;
  void EncodeExpertGemm(MTL::ComputeCommandEncoder& encoder,
                        const PipelinePtr& pipeline, size_t tensor, size_t rows,
                        size_t cols, size_t row_stride, const BufferPtr& input,
                        size_t pairs_per_input, const Activations& at,
                        const BufferPtr& out, const BufferPtr& args) const;

  const Layer& layer_;
  std::shared_ptr<MTL::Device> device_;
  std::shared_ptr<MTL::CommandQueue> queue_;
  BufferPtr checkpoint_;
  Pipelines pipelines_;
};

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_ENGINE_H_
