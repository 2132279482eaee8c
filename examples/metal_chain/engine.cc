// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The dispatches, as an engine for Apple Silicon encodes them.

#include "engine.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <utility>

#include "gemm.h"
#include "programs/program.h"
#include "switchyard/device/kernels.h"
#include "switchyard/device/library.h"

namespace metal_chain {
namespace {

int32_t Int(size_t value) { return static_cast<int32_t>(value); }

size_t Tiles(size_t size, size_t tile) { return (size + tile - 1) / tile; }

template <class T>
const std::shared_ptr<T>& NotNull(const std::shared_ptr<T>& object) {
  if (object == nullptr) throw std::bad_alloc();
  return object;
}

void Dispatch(MTL::ComputeCommandEncoder& encoder,
              const MTL::Size& threadgroups, size_t threads) {
  encoder.dispatchThreadgroups(threadgroups, MTL::Size::Make(threads, 1, 1));
}

}  // namespace

struct Engine::Binding {
  const BufferPtr& buffer;
  size_t offset = 0;
};

// The pipeline, the buffers from index 0 on and, behind them, the params.
template <class Params>
void Engine::Set(Encoder& encoder, const std::string& kernel,
                 std::initializer_list<Binding> buffers,
                 const Params& params) const {
  encoder.setComputePipelineState(pipelines_.at(kernel));
  size_t index = 0;
  for (const Binding& binding : buffers) {
    encoder.setBuffer(binding.buffer, binding.offset, index++);
  }
  encoder.setBytes(&params, sizeof(params), index);
}

Engine::Engine(const Layer& layer,
               std::shared_ptr<switchyard::Executor> executor,
               const std::vector<std::string>& shaders)
    : layer_(layer) {
  MTL::DeviceOptions options;
  options.executor = std::move(executor);
  options.time_dispatches = true;
  device_ = NotNull(MTL::CreateDevice(options));
  queue_ = NotNull(device_->newCommandQueue());
  // Weights stay where they are and cannot be written to.
  checkpoint_ = NotNull(device_->newBufferWithBytesNoCopy(
      layer.checkpoint.get(), layer.num_floats * sizeof(float)));

  std::map<std::string, std::shared_ptr<MTL::Function>> functions;
  for (const std::string& file : shaders) {
    std::string error;
    const auto library = device_->newLibraryFromFile(file.c_str(), {}, &error);
    if (library == nullptr) {
      throw program::InputError("--shaders: " + program::FirstError(error));
    }
    for (const std::string& name : library->functionNames()) {
      functions[name] = library->newFunction(name.c_str(), &error);
      if (functions[name] == nullptr) throw std::runtime_error(error);
    }
  }

  // Adds a built-in kernel by its name, or a KernelFunction.
  const auto add = [&](const std::string& name, const auto& kernel) {
    std::string error;
    pipelines_[name] = device_->newComputePipelineState(kernel, &error);
    if (pipelines_[name] == nullptr) throw std::runtime_error(error);
  };
  for (const char* name :
       {"moe_router_topk_softmax_f32", "moe_compute_ids_tpe_f32",
        "silu_mul_stacked_f32", "silu_mul_batched_f32",
        "weighted_sum_residual_norm_stacked_f32",
        "weighted_sum_residual_norm_batched_f32"}) {
    if (functions.count(name) == 0) {
      add(name, name);
    } else {
      add(name, functions[name]);
      shader_kernels_.push_back(name);
    }
  }
  for (const Tensor* tensor :
       {&layer.router, &layer.gate, &layer.up, &layer.down}) {
    const std::string gemv = tensor->name + "_gemv_f32";
    const std::string gemm = tensor->name + "_gemm_f32";
    add(gemv, GemvKernel(gemv, tensor->cols));
    add(gemm, tensor == &layer.router ? GemmKernel(gemm, tensor->cols)
                                      : ExpertGemmKernel(gemm, tensor->cols));
  }
}

Activations Engine::NewActivations(const HiddenStates& hidden) const {
  const auto bytes = [](size_t elements) { return elements * sizeof(float); };
  Activations a;
  a.input = NotNull(device_->newBuffer(hidden.normed.data(),
                                       bytes(hidden.normed.size()),
                                       MTL::ResourceStorageModeShared));
  ForEachActivation(
      layer_.shape, hidden.tokens, true,
      [&](const char*, size_t rows, size_t cols, BufferPtr& buffer) {
        buffer = NotNull(device_->newBuffer(bytes(rows * cols),
                                            MTL::ResourceStorageModeShared));
      },
      a);
  return a;
}

template <class Encode>
ChainRun Engine::Run(const HiddenStates& hidden, const Activations& at,
                     const Encode& encode) const {
  std::memcpy(at.residual->contents(), hidden.residual.data(),
              at.residual->length());
  const auto buffer = NotNull(queue_->commandBuffer());
  const auto encoder =
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

ChainRun Engine::RunDecode(const HiddenStates& hidden,
                           const Activations& at) const {
  return Run(hidden, at, [&](Encoder& encoder) { EncodeDecode(encoder, at); });
}

ChainRun Engine::RunPrefill(const HiddenStates& hidden,
                            const Activations& at) const {
  return Run(hidden, at, [&](Encoder& encoder) {
    EncodePrefill(encoder, at, hidden.tokens);
  });
}

// The memory that the GEMMs stage in, or a shader's router: probabilities, the
// selected and their sum. The built-in one needs none.
void Engine::SetThreadgroupMemory(Encoder& encoder) const {
  const size_t routed = layer_.shape.experts + 2 * layer_.shape.top_k + 1;
  encoder.setThreadgroupMemoryLength(
      std::max(kStagedFloats, routed) * sizeof(float), 0);
}

void Engine::EncodeRoute(Encoder& encoder, const Activations& at,
                         size_t tokens) const {
  Set(encoder, "moe_router_topk_softmax_f32",
      {{at.logits}, {at.ids}, {at.weights}},
      MTL::MoeRouterTopkSoftmaxParams{Int(layer_.shape.experts),
                                      Int(layer_.shape.top_k), 1});
  SetThreadgroupMemory(encoder);
  Dispatch(encoder, MTL::Size::Make(tokens, 1, 1), 32);
}

void Engine::EncodeDecode(Encoder& encoder, const Activations& at) const {
  const Shape& shape = layer_.shape;
  const size_t slots = shape.top_k;

  encoder.pushDebugGroup("route");
  EncodeGemv(encoder, layer_.router, nullptr, at.input, true, at.logits);
  EncodeRoute(encoder, at, 1);
  encoder.popDebugGroup();
  encoder.pushDebugGroup("experts");
  EncodeGemv(encoder, layer_.gate, at.ids, at.input, true, at.gate);
  EncodeGemv(encoder, layer_.up, at.ids, at.input, true, at.up);

  Set(encoder, "silu_mul_stacked_f32", {{at.gate}, {at.up}, {at.activated}},
      MTL::SiluMulStackedParams{Int(shape.intermediate), Int(slots)});
  Dispatch(encoder, MTL::Size::Make(Tiles(shape.intermediate, 256), slots, 1),
           256);

  EncodeGemv(encoder, layer_.down, at.ids, at.activated, false, at.down);
  encoder.popDebugGroup();

  encoder.pushDebugGroup("combine");
  Set(encoder, "weighted_sum_residual_norm_stacked_f32",
      {{at.down},
       {at.weights},
       {at.residual},
       {checkpoint_, layer_.next_norm.offset * sizeof(float)},
       {at.normed}},
      MTL::WeightedSumResidualNormStackedParams{Int(shape.hidden), Int(slots),
                                                kNormEps});
  Dispatch(encoder, MTL::Size::Make(1, 1, 1), 256);
  encoder.popDebugGroup();
}

void Engine::EncodeGemv(Encoder& encoder, const Tensor& tensor,
                        const BufferPtr& ids, const BufferPtr& input,
                        bool shared_input, const BufferPtr& out) const {
  const int32_t first = 0;  // the router: a single matrix
  const size_t slots = ids == nullptr ? 1 : layer_.shape.top_k;
  Set(encoder, tensor.name + "_gemv_f32",
      {{checkpoint_, tensor.offset * sizeof(float)}, {ids}, {input}, {out}},
      GemvParams{Int(tensor.rows), Int(tensor.cols), shared_input ? 1 : 0});
  if (ids == nullptr) encoder.setBytes(&first, sizeof(first), 1);
  Dispatch(encoder, MTL::Size::Make(Tiles(tensor.rows, kTileRows), slots, 1),
           kThreads);
}

void Engine::EncodePrefill(Encoder& encoder, const Activations& at,
                           size_t tokens) const {
  const Shape& shape = layer_.shape;
  const size_t pairs = tokens * shape.top_k;
  const size_t row_stride = RowStride(pairs);
  SetThreadgroupMemory(encoder);

  encoder.pushDebugGroup("route");
  Set(encoder, "router_gemm_f32",
      {{checkpoint_, layer_.router.offset * sizeof(float)},
       {at.input},
       {at.logits}},
      GemmParams{Int(tokens), Int(shape.experts), Int(shape.hidden)});
  Dispatch(encoder,
           MTL::Size::Make(Tiles(tokens, kTilePairs),
                           Tiles(shape.experts, kTileRows), 1),
           kThreads);
  EncodeRoute(encoder, at, tokens);

  Set(encoder, "moe_compute_ids_tpe_f32",
      {{at.ids},
       {at.tokens_per_expert},
       {at.buckets},
       {at.gate_up_args},
       {at.down_args}},
      MTL::MoeComputeIdsTpeParams{Int(shape.experts), Int(row_stride),
                                  Int(pairs), Int(shape.intermediate),
                                  Int(shape.hidden)});
  Dispatch(encoder, MTL::Size::Make(1, 1, 1), 256);

  encoder.popDebugGroup();
  encoder.pushDebugGroup("experts");
  EncodeExpertGemm(encoder, layer_.gate, at.input, shape.top_k, at, row_stride,
                   at.gate, at.gate_up_args);
  EncodeExpertGemm(encoder, layer_.up, at.input, shape.top_k, at, row_stride,
                   at.up, at.gate_up_args);

  Set(encoder, "silu_mul_batched_f32", {{at.gate}, {at.up}, {at.activated}},
      MTL::SiluMulBatchedParams{Int(pairs), Int(shape.intermediate)});
  Dispatch(encoder, MTL::Size::Make(Tiles(shape.intermediate, 256), pairs, 1),
           256);

  EncodeExpertGemm(encoder, layer_.down, at.activated, 1, at, row_stride,
                   at.down, at.down_args);
  encoder.popDebugGroup();

  encoder.pushDebugGroup("combine");
  Set(encoder, "weighted_sum_residual_norm_batched_f32",
      {{at.down},
       {at.weights},
       {at.residual},
       {checkpoint_, layer_.next_norm.offset * sizeof(float)},
       {at.normed}},
      MTL::WeightedSumResidualNormBatchedParams{Int(tokens), Int(shape.top_k),
                                                Int(shape.hidden), kNormEps});
  Dispatch(encoder, MTL::Size::Make(tokens, 1, 1), 256);
  encoder.popDebugGroup();
}

void Engine::EncodeExpertGemm(Encoder& encoder, const Tensor& tensor,
                              const BufferPtr& input, size_t pairs_per_input,
                              const Activations& at, size_t row_stride,
                              const BufferPtr& out,
                              const BufferPtr& args) const {
  Set(encoder, tensor.name + "_gemm_f32",
      {{checkpoint_, tensor.offset * sizeof(float)},
       {input},
       {out},
       {at.tokens_per_expert},
       {at.buckets}},
      ExpertGemmParams{Int(tensor.rows), Int(tensor.cols), Int(row_stride),
                       Int(pairs_per_input)});
  encoder.dispatchThreadgroups(args, 0, MTL::Size::Make(kThreads, 1, 1));
}

}  // namespace metal_chain
