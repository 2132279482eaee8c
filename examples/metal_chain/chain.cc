// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The dispatches, as an engine for Apple Silicon encodes them.

#include <cstdint>

#include "engine.h"
#include "gemm_kernels.h"
#include "gemm_tile.h"
#include "switchyard/device/kernels.h"

namespace metal_chain {
namespace {

int32_t Int(size_t value) { return static_cast<int32_t>(value); }

size_t Tiles(size_t size, size_t tile) { return (size + tile - 1) / tile; }

template <class Params>
void SetParams(MTL::ComputeCommandEncoder& encoder, const Params& params,
               size_t index) {
  encoder.setBytes(&params, sizeof(params), index);
}

}  // namespace

void Engine::EncodeDecode(MTL::ComputeCommandEncoder& encoder,
                          const Activations& at) const {
  const Shape& shape = layer_.shape;
  const size_t slots = shape.top_k;

  EncodeGemv(encoder, pipelines_.router_gemv, layer_.router, shape.experts,
             shape.hidden, nullptr, at.input, true, at.logits);

  encoder.setComputePipelineState(pipelines_.route);
  encoder.setBuffer(at.logits, 0, 0);
  encoder.setBuffer(at.ids, 0, 1);
  encoder.setBuffer(at.weights, 0, 2);
  SetParams(encoder,
            MTL::MoeRouterTopkSoftmaxParams{Int(shape.experts), Int(slots), 1},
            3);
  encoder.dispatchThreadgroups(MTL::Size::Make(1, 1, 1),
                               MTL::Size::Make(32, 1, 1));

  EncodeGemv(encoder, pipelines_.gate_gemv, layer_.gate, shape.intermediate,
             shape.hidden, at.ids, at.input, true, at.gate);
  EncodeGemv(encoder, pipelines_.up_gemv, layer_.up, shape.intermediate,
             shape.hidden, at.ids, at.input, true, at.up);

  encoder.setComputePipelineState(pipelines_.silu_mul_stacked);
  encoder.setBuffer(at.gate, 0, 0);
  encoder.setBuffer(at.up, 0, 1);
  encoder.setBuffer(at.activated, 0, 2);
  SetParams(encoder,
            MTL::SiluMulStackedParams{Int(shape.intermediate), Int(slots)}, 3);
  encoder.dispatchThreadgroups(
      MTL::Size::Make(Tiles(shape.intermediate, 256), slots, 1),
      MTL::Size::Make(256, 1, 1));

  EncodeGemv(encoder, pipelines_.down_gemv, layer_.down, shape.hidden,
             shape.intermediate, at.ids, at.activated, false, at.down);

  encoder.setComputePipelineState(pipelines_.combine_stacked);
  encoder.setBuffer(at.down, 0, 0);
  encoder.setBuffer(at.weights, 0, 1);
  encoder.setBuffer(at.residual, 0, 2);
  encoder.setBuffer(checkpoint_, layer_.next_norm * sizeof(float), 3);
  encoder.setBuffer(at.normed, 0, 4);
  SetParams(encoder,
            MTL::WeightedSumResidualNormStackedParams{Int(shape.hidden),
                                                      Int(slots), kNormEps},
            5);
  encoder.dispatchThreadgroups(MTL::Size::Make(1, 1, 1),
                               MTL::Size::Make(256, 1, 1));
}

void Engine::EncodeGemv(MTL::ComputeCommandEncoder& encoder,
                        const PipelinePtr& pipeline, size_t tensor, size_t rows,
                        size_t cols, const BufferPtr& ids,
                        const BufferPtr& input, bool shared_input,
                        const BufferPtr& out) const {
  const int32_t first = 0;  // the router: a single matrix
  const size_t slots = ids == nullptr ? 1 : layer_.shape.top_k;
  encoder.setComputePipelineState(pipeline);
  encoder.setBuffer(checkpoint_, tensor * sizeof(float), 0);
  if (ids == nullptr) {
    encoder.setBytes(&first, sizeof(first), 1);
  } else {
    encoder.setBuffer(ids, 0, 1);
  }
  encoder.setBuffer(input, 0, 2);
  encoder.setBuffer(out, 0, 3);
  SetParams(encoder, GemvParams{Int(rows), Int(cols), shared_input ? 1 : 0}, 4);
  encoder.dispatchThreadgroups(
      MTL::Size::Make(Tiles(rows, kTileRows), slots, 1),
      MTL::Size::Make(kThreads, 1, 1));
}

void Engine::EncodePrefill(MTL::ComputeCommandEncoder& encoder,
                           const Activations& at, size_t tokens) const {
  const Shape& shape = layer_.shape;
  const size_t pairs = tokens * shape.top_k;
  const size_t row_stride = RowStride(pairs);
  // All the GEMMs', until the end of the encoder.
  encoder.setThreadgroupMemoryLength(kStagedFloats * sizeof(float), 0);

  encoder.setComputePipelineState(pipelines_.router_gemm);
  encoder.setBuffer(checkpoint_, layer_.router * sizeof(float), 0);
  encoder.setBuffer(at.input, 0, 1);
  encoder.setBuffer(at.logits, 0, 2);
  SetParams(encoder,
            GemmParams{Int(tokens), Int(shape.experts), Int(shape.hidden)}, 3);
  encoder.dispatchThreadgroups(
      MTL::Size::Make(Tiles(tokens, kTilePairs),
                      Tiles(shape.experts, kTileRows), 1),
      MTL::Size::Make(kThreads, 1, 1));

  encoder.setComputePipelineState(pipelines_.route);
  encoder.setBuffer(at.logits, 0, 0);
  encoder.setBuffer(at.ids, 0, 1);
  encoder.setBuffer(at.weights, 0, 2);
  SetParams(
      encoder,
      MTL::MoeRouterTopkSoftmaxParams{Int(shape.experts), Int(shape.top_k), 1},
      3);
  encoder.dispatchThreadgroups(MTL::Size::Make(tokens, 1, 1),
                               MTL::Size::Make(32, 1, 1));

  encoder.setComputePipelineState(pipelines_.bucket);
  encoder.setBuffer(at.ids, 0, 0);
  encoder.setBuffer(at.tpe, 0, 1);
  encoder.setBuffer(at.buckets, 0, 2);
  encoder.setBuffer(at.gate_up_args, 0, 3);
  encoder.setBuffer(at.down_args, 0, 4);
  SetParams(encoder,
            MTL::MoeComputeIdsTpeParams{Int(shape.experts), Int(row_stride),
                                        Int(pairs), Int(shape.intermediate),
                                        Int(shape.hidden)},
            5);
  encoder.dispatchThreadgroups(MTL::Size::Make(1, 1, 1),
                               MTL::Size::Make(256, 1, 1));

  EncodeExpertGemm(encoder, pipelines_.gate_gemm, layer_.gate,
                   shape.intermediate, shape.hidden, row_stride, at.input,
                   shape.top_k, at, at.gate, at.gate_up_args);
  EncodeExpertGemm(encoder, pipelines_.up_gemm, layer_.up, shape.intermediate,
                   shape.hidden, row_stride, at.input, shape.top_k, at, at.up,
                   at.gate_up_args);

  encoder.setComputePipelineState(pipelines_.silu_mul_batched);
  encoder.setBuffer(at.gate, 0, 0);
  encoder.setBuffer(at.up, 0, 1);
  encoder.setBuffer(at.activated, 0, 2);
  SetParams(encoder,
            MTL::SiluMulBatchedParams{Int(pairs), Int(shape.intermediate)}, 3);
  encoder.dispatchThreadgroups(
      MTL::Size::Make(Tiles(shape.intermediate, 256), pairs, 1),
      MTL::Size::Make(256, 1, 1));

  EncodeExpertGemm(encoder, pipelines_.down_gemm, layer_.down, shape.hidden,
                   shape.intermediate, row_stride, at.activated, 1, at, at.down,
                   at.down_args);

  encoder.setComputePipelineState(pipelines_.combine_batched);
  encoder.setBuffer(at.down, 0, 0);
  encoder.setBuffer(at.weights, 0, 1);
  encoder.setBuffer(at.residual, 0, 2);
  encoder.setBuffer(checkpoint_, layer_.next_norm * sizeof(float), 3);
  encoder.setBuffer(at.normed, 0, 4);
  SetParams(encoder,
            MTL::WeightedSumResidualNormBatchedParams{
                Int(tokens), Int(shape.top_k), Int(shape.hidden), kNormEps},
            5);
  encoder.dispatchThreadgroups(MTL::Size::Make(tokens, 1, 1),
                               MTL::Size::Make(256, 1, 1));
}

void Engine::EncodeExpertGemm(MTL::ComputeCommandEncoder& encoder,
                              const PipelinePtr& pipeline, size_t tensor,
                              size_t rows, size_t cols, size_t row_stride,
                              const BufferPtr& input, size_t pairs_per_input,
                              const Activations& at, const BufferPtr& out,
                              const BufferPtr& args) const {
  encoder.setComputePipelineState(pipeline);
  encoder.setBuffer(checkpoint_, tensor * sizeof(float), 0);
  encoder.setBuffer(input, 0, 1);
  encoder.setBuffer(out, 0, 2);
  encoder.setBuffer(at.tpe, 0, 3);
  encoder.setBuffer(at.buckets, 0, 4);
  SetParams(encoder,
            ExpertGemmParams{Int(rows), Int(cols), Int(row_stride),
                             Int(pairs_per_input)},
            5);
  encoder.dispatchThreadgroups(args, 0, MTL::Size::Make(kThreads, 1, 1));
}

}  // namespace metal_chain
