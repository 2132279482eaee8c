// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Device, queue, pipelines and buffers.

#include "engine.h"

#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gemm_kernels.h"

namespace metal_chain {
namespace {

// Of a built-in kernel's name or of a KernelFunction.
template <class Kernel>
PipelinePtr MakePipeline(MTL::Device& device, const Kernel& kernel) {
  std::string error;
  PipelinePtr pipeline = device.newComputePipelineState(kernel, &error);
  if (pipeline == nullptr) throw std::runtime_error(error);
  return pipeline;
}

template <class T>
const std::shared_ptr<T>& NotNull(const std::shared_ptr<T>& object) {
  if (object == nullptr) throw std::bad_alloc();
  return object;
}

// All elements of a chain's buffers are 4 bytes.
BufferPtr NewBuffer(MTL::Device& device, size_t elements) {
  return NotNull(device.newBuffer(elements * sizeof(float),
                                  MTL::ResourceStorageModeShared));
}

BufferPtr NewBuffer(MTL::Device& device, const std::vector<float>& values) {
  return NotNull(device.newBuffer(values.data(), values.size() * sizeof(float),
                                  MTL::ResourceStorageModeShared));
}

// Commits what encode(encoder) encodes, and waits for it.
template <class Encode>
ChainRun RunCommandBuffer(MTL::CommandQueue& queue, const Encode& encode) {
  const std::shared_ptr<MTL::CommandBuffer> buffer =
      NotNull(queue.commandBuffer());
  const std::shared_ptr<MTL::ComputeCommandEncoder> encoder =
      NotNull(buffer->computeCommandEncoder(MTL::DispatchTypeSerial));
  encode(*encoder);
  encoder->endEncoding();
  buffer->commit();
  buffer->waitUntilCompleted();
  if (buffer->status() != MTL::CommandBufferStatusCompleted) {
    throw std::runtime_error(buffer->error());
  }
  return {buffer->GPUStartTime(), buffer->GPUEndTime(),
          buffer->dispatchTimes()};
}

}  // namespace

Engine::Engine(const Layer& layer,
               std::shared_ptr<switchyard::Executor> executor)
    : layer_(layer) {
  MTL::DeviceOptions options;
  options.executor = std::move(executor);
  options.time_dispatches = true;
  device_ = NotNull(MTL::CreateDevice(options));
  queue_ = NotNull(device_->newCommandQueue());
  // Weights stay where they are and cannot be written to.
  checkpoint_ = NotNull(device_->newBufferWithBytesNoCopy(
      layer.checkpoint.get(), layer.num_floats * sizeof(float)));

  const size_t hidden = layer.shape.hidden;
  const size_t intermediate = layer.shape.intermediate;
  MTL::Device& device = *device_;
  Pipelines& p = pipelines_;
  p.router_gemv = MakePipeline(device, GemvKernel("router_gemv_f32", hidden));
  p.gate_gemv = MakePipeline(device, GemvKernel("gate_gemv_f32", hidden));
  p.up_gemv = MakePipeline(device, GemvKernel("up_gemv_f32", hidden));
  p.down_gemv = MakePipeline(device, GemvKernel("down_gemv_f32", intermediate));
  p.router_gemm = MakePipeline(device, GemmKernel("router_gemm_f32", hidden));
  p.gate_gemm = MakePipeline(device, ExpertGemmKernel("gate_gemm_f32", hidden));
  p.up_gemm = MakePipeline(device, ExpertGemmKernel("up_gemm_f32", hidden));
  p.down_gemm =
      MakePipeline(device, ExpertGemmKernel("down_gemm_f32", intermediate));
  p.route = MakePipeline(device, "moe_router_topk_softmax_f32");
  p.bucket = MakePipeline(device, "moe_compute_ids_tpe_f32");
  p.silu_mul_stacked = MakePipeline(device, "silu_mul_stacked_f32");
  p.silu_mul_batched = MakePipeline(device, "silu_mul_batched_f32");
  p.combine_stacked =
      MakePipeline(device, "weighted_sum_residual_norm_stacked_f32");
  p.combine_batched =
      MakePipeline(device, "weighted_sum_residual_norm_batched_f32");
}

Activations Engine::NewActivations(const HiddenStates& hidden) const {
  const Shape& shape = layer_.shape;
  const size_t tokens = hidden.tokens;
  const size_t pairs = tokens * shape.top_k;
  MTL::Device& device = *device_;
  Activations a;
  a.input = NewBuffer(device, hidden.normed);
  a.residual = NewBuffer(device, tokens * shape.hidden);
  a.logits = NewBuffer(device, tokens * shape.experts);
  a.ids = NewBuffer(device, pairs);
  a.weights = NewBuffer(device, pairs);
  a.tokens_per_expert = NewBuffer(device, shape.experts);
  a.buckets = NewBuffer(device, shape.experts * RowStride(pairs));
  a.gate_up_args = NewBuffer(device, 3);
  a.down_args = NewBuffer(device, 3);
  a.gate = NewBuffer(device, pairs * shape.intermediate);
  a.up = NewBuffer(device, pairs * shape.intermediate);
  a.activated = NewBuffer(device, pairs * shape.intermediate);
  a.down = NewBuffer(device, pairs * shape.hidden);
  a.normed = NewBuffer(device, tokens * shape.hidden);
  return a;
}

ChainRun Engine::RunDecode(const HiddenStates& hidden,
                           const Activations& at) const {
  std::memcpy(at.residual->contents(), hidden.residual.data(),
              at.residual->length());
  return RunCommandBuffer(*queue_, [&](MTL::ComputeCommandEncoder& encoder) {
    EncodeDecode(encoder, at);
  });
}

ChainRun Engine::RunPrefill(const HiddenStates& hidden,
                            const Activations& at) const {
  std::memcpy(at.residual->contents(), hidden.residual.data(),
              at.residual->length());
  return RunCommandBuffer(*queue_, [&](MTL::ComputeCommandEncoder& encoder) {
    EncodePrefill(encoder, at, hidden.tokens);
  });
}

}  // namespace metal_chain
