// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The dispatches, as an engine for Apple Silicon encodes them.

#include <cstdint>
#include <initializer_list>

#include "engine.h"
#include "gemm_kernels.h"
#include "gemm_tile.h"
#include "switchyard/device/kernels.h"

namespace metal_chain {
namespace {

using Encoder = MTL::ComputeCommandEncoder;

int32_t Int(size_t value) { return static_cast<int32_t>(value); }

size_t Tiles(size_t size, size_t tile) { return (size + tile - 1) / tile; }

struct Binding {
  const BufferPtr& buffer;
  size_t offset = 0;
};

// The pipeline, the buffers from index 0 on and, behind them, the params.
template <class Params>
void Set(Encoder& encoder, const PipelinePtr& pipeline,
         std::initializer_list<Binding> buffers, const Params& params) {
  encoder.setComputePipelineState(pipeline);
  size_t index = 0;
  for (const Binding& binding : buffers) {
    encoder.setBuffer(binding.buffer, binding.offset, index++);
  }
  encoder.setBytes(&params, sizeof(params), index);
}

void Dispatch(Encoder& encoder, const MTL::Size& threadgroups, size_t threads) {
  encoder.dispatchThreadgroups(threadgroups, MTL::Size::Make(threads, 1, 1));
}

}  // namespace

void Engine::EncodeRoute(Encoder& encoder, const Activations& at,
                         size_t tokens) const {
  Set(encoder, pipelines_.route, {{at.logits}, {at.ids}, {at.weights}},
      MTL::MoeRouterTopkSoftmaxParams{Int(layer_.shape.experts),
                                      Int(layer_.shape.top_k), 1});
  Dispatch(encoder, MTL::Size::Make(tokens, 1, 1), 32);
}

void Engine::EncodeDecode(Encoder& encoder, const Activations& at) const {
  const Shape& shape = layer_.shape;
  const size_t slots = shape.top_k;

  EncodeGemv(encoder, pipelines_.router_gemv, layer_.router, shape.experts,
             shape.hidden, nullptr, at.input, true, at.logits);
  EncodeRoute(encoder, at, 1);
  EncodeGemv(encoder, pipelines_.gate_gemv, layer_.gate, shape.intermediate,
             shape.hidden, at.ids, at.input, true, at.gate);
  EncodeGemv(encoder, pipelines_.up_gemv, layer_.up, shape.intermediate,
             shape.hidden, at.ids, at.input, true, at.up);

  Set(encoder, pipelines_.silu_mul_stacked,
      {{at.gate}, {at.up}, {at.activated}},
      MTL::SiluMulStackedParams{Int(shape.intermediate), Int(slots)});
  Dispatch(encoder, MTL::Size::Make(Tiles(shape.intermediate, 256), slots, 1),
           256);

  EncodeGemv(encoder, pipelines_.down_gemv, layer_.down, shape.hidden,
             shape.intermediate, at.ids, at.activated, false, at.down);

  Set(encoder, pipelines_.combine_stacked,
      {{at.down},
       {at.weights},
       {at.residual},
       {checkpoint_, layer_.next_norm * sizeof(float)},
       {at.normed}},
      MTL::WeightedSumResidualNormStackedParams{Int(shape.hidden), Int(slots),
                                                kNormEps});
  Dispatch(encoder, MTL::Size::Make(1, 1, 1), 256);
}

void Engine::EncodeGemv(Encoder& encoder, const PipelinePtr& pipeline,
                        size_t tensor, size_t rows, size_t cols,
                        const BufferPtr& ids, const BufferPtr& input,
                        bool shared_input, const BufferPtr& out) const {
  const int32_t first = 0;  // the router: a single matrix
  const size_t slots = ids == nullptr ? 1 : layer_.shape.top_k;
  Set(encoder, pipeline,
      {{checkpoint_, tensor * sizeof(float)}, {ids}, {input}, {out}},
      GemvParams{Int(rows), Int(cols), shared_input ? 1 : 0});
  if (ids == nullptr) encoder.setBytes(&first, sizeof(first), 1);
  Dispatch(encoder, MTL::Size::Make(Tiles(rows, kTileRows), slots, 1),
           kThreads);
}

void Engine::EncodePrefill(Encoder& encoder, const Activations& at,
                           size_t tokens) const {
  const Shape& shape = layer_.shape;
  const size_t pairs = tokens * shape.top_k;
  const size_t row_stride = RowStride(pairs);
  // All the GEMMs', until the end of the encoder.
  encoder.setThreadgroupMemoryLength(kStagedFloats * sizeof(float), 0);

  Set(encoder, pipelines_.router_gemm,
      {{checkpoint_, layer_.router * sizeof(float)}, {at.input}, {at.logits}},
      GemmParams{Int(tokens), Int(shape.experts), Int(shape.hidden)});
  Dispatch(encoder,
           MTL::Size::Make(Tiles(tokens, kTilePairs),
                           Tiles(shape.experts, kTileRows), 1),
           kThreads);
  EncodeRoute(encoder, at, tokens);

  Set(encoder, pipelines_.bucket,
      {{at.ids},
       {at.tokens_per_expert},
       {at.buckets},
       {at.gate_up_args},
       {at.down_args}},
      MTL::MoeComputeIdsTpeParams{Int(shape.experts), Int(row_stride),
                                  Int(pairs), Int(shape.intermediate),
                                  Int(shape.hidden)});
  Dispatch(encoder, MTL::Size::Make(1, 1, 1), 256);

  EncodeExpertGemm(encoder, pipelines_.gate_gemm, layer_.gate,
                   shape.intermediate, shape.hidden, row_stride, at.input,
                   shape.top_k, at, at.gate, at.gate_up_args);
  EncodeExpertGemm(encoder, pipelines_.up_gemm, layer_.up, shape.intermediate,
                   shape.hidden, row_stride, at.input, shape.top_k, at, at.up,
                   at.gate_up_args);

  Set(encoder, pipelines_.silu_mul_batched,
      {{at.gate}, {at.up}, {at.activated}},
      MTL::SiluMulBatchedParams{Int(pairs), Int(shape.intermediate)});
  Dispatch(encoder, MTL::Size::Make(Tiles(shape.intermediate, 256), pairs, 1),
           256);

  EncodeExpertGemm(encoder, pipelines_.down_gemm, layer_.down, shape.hidden,
                   shape.intermediate, row_stride, at.activated, 1, at, at.down,
                   at.down_args);

  Set(encoder, pipelines_.combine_batched,
      {{at.down},
       {at.weights},
       {at.residual},
       {checkpoint_, layer_.next_norm * sizeof(float)},
       {at.normed}},
      MTL::WeightedSumResidualNormBatchedParams{Int(tokens), Int(shape.top_k),
                                                Int(shape.hidden), kNormEps});
  Dispatch(encoder, MTL::Size::Make(tokens, 1, 1), 256);
}

void Engine::EncodeExpertGemm(Encoder& encoder, const PipelinePtr& pipeline,
                              size_t tensor, size_t rows, size_t cols,
                              size_t row_stride, const BufferPtr& input,
                              size_t pairs_per_input, const Activations& at,
                              const BufferPtr& out,
                              const BufferPtr& args) const {
  Set(encoder, pipeline,
      {{checkpoint_, tensor * sizeof(float)},
       {input},
       {out},
       {at.tokens_per_expert},
       {at.buckets}},
      ExpertGemmParams{Int(rows), Int(cols), Int(row_stride),
                       Int(pairs_per_input)});
  encoder.dispatchThreadgroups(args, 0, MTL::Size::Make(kThreads, 1, 1));
}

}  // namespace metal_chain
