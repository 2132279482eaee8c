// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_ENGINE_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_ENGINE_H_

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "layer.h"
#include "switchyard/device/device.h"
#include "switchyard/executor.h"

namespace metal_chain {

namespace MTL = switchyard::device;  // as in metal-cpp

using BufferPtr = std::shared_ptr<MTL::Buffer>;

// Memory that the kernels and the host share.
struct Activations : ActivationsOf<BufferPtr, BufferPtr, BufferPtr> {
  BufferPtr input;  // [tokens, hidden], normed
};

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
  // Kernels that a .metal file of `shaders` has under the names used here are
  // taken from there, the others are the device's own.
  Engine(const Layer& layer, std::shared_ptr<switchyard::Executor> executor,
         const std::vector<std::string>& shaders = {});

  // The kernels that come from a file.
  const std::vector<std::string>& shader_kernels() const {
    return shader_kernels_;
  }

  Activations NewActivations(const HiddenStates& hidden) const;

  // Each is one command buffer with one serial encoder, committed and waited
  // for. Starts from the residual of `hidden`.
  ChainRun RunDecode(const HiddenStates& hidden, const Activations& at) const;
  ChainRun RunPrefill(const HiddenStates& hidden, const Activations& at) const;

 private:
  using Encoder = MTL::ComputeCommandEncoder;

  // Commits what encode(encoder) encodes, and waits for it.
  template <class Encode>
  ChainRun Run(const HiddenStates& hidden, const Activations& at,
               const Encode& encode) const;
  struct Binding;
  template <class Params>
  void Set(Encoder& encoder, const std::string& kernel,
           std::initializer_list<Binding> buffers, const Params& params) const;

  void SetThreadgroupMemory(Encoder& encoder) const;
  void EncodeDecode(Encoder& encoder, const Activations& at) const;
  void EncodePrefill(Encoder& encoder, const Activations& at,
                     size_t tokens) const;
  void EncodeRoute(Encoder& encoder, const Activations& at,
                   size_t tokens) const;
  // Slots of the routed experts, or with ids null the router.
  void EncodeGemv(Encoder& encoder, const Tensor& tensor, const BufferPtr& ids,
                  const BufferPtr& input, bool shared_input,
                  const BufferPtr& out) const;
  void EncodeExpertGemm(Encoder& encoder, const Tensor& tensor,
                        const BufferPtr& input, size_t pairs_per_input,
                        const Activations& at, size_t row_stride,
                        const BufferPtr& out, const BufferPtr& args) const;

  const Layer& layer_;
  std::shared_ptr<MTL::Device> device_;
  std::shared_ptr<MTL::CommandQueue> queue_;
  BufferPtr checkpoint_;
  std::map<std::string, std::shared_ptr<MTL::ComputePipelineState>> pipelines_;
  std::vector<std::string> shader_kernels_;
};

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_ENGINE_H_
