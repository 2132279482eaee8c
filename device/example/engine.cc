// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Encodes the dispatches in the way of an engine for Apple Silicon.

#include "engine.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "programs/program.h"
#include "switchyard/device/kernels.h"
#include "switchyard/device/library.h"
#include "switchyard/views.h"

namespace metal_chain {
namespace {

using switchyard::Span;

// A threadgroup of Gemv() computes 64 rows, and a threadgroup of Gemm()
// computes 64 rows for 32 pairs.
constexpr size_t kThreads = 128, kTileRows = 64, kTilePairs = 32;

int32_t Int(size_t value) { return static_cast<int32_t>(value); }
size_t Tiles(size_t size, size_t tile) { return (size + tile - 1) / tile; }

// Returns row `index` of a matrix that has rows of `size` elements. If a
// kernel's call of Row() throws, the exception becomes the command buffer's
// error.
template <class T>
T* Row(const Span<T>& matrix, size_t index, size_t size) {
  if (size != 0 && index >= matrix.size / size) {
    throw std::out_of_range("a bound buffer is too short for the params");
  }
  return matrix.data + index * size;
}

// Next come the matrix products, which an engine brings along. Threadgroups
// that lie beyond the end of a matrix do nothing.

// A slot is an output row with its own expert. For each slot, multiplies the
// expert's matrix by a vector. The buffers and the grid are:
//   0 weights [experts, rows, cols], 1 expert of each slot i32 [slots],
//   2 input [slots / slots_per_input, cols], 3 out [slots, rows], 4 params
//   grid (ceil(rows / 64), slots)
struct GemvParams {
  int32_t rows, cols, slots_per_input;
  int32_t one_matrix;  // 1 without experts; buffer 1 is then not read
};
void Gemv(const MTL::ThreadgroupContext& context) {
  const auto params = context.params<GemvParams>(4);
  const size_t rows = static_cast<size_t>(params.rows);
  const size_t cols = static_cast<size_t>(params.cols);
  const MTL::Size& at = context.threadgroup_position_in_grid;
  const size_t expert =
      params.one_matrix != 0
          ? 0
          : static_cast<size_t>(
                *Row(context.buffer<const int32_t>(1), at.height, 1));
  const float* const weights =
      Row(context.buffer<const float>(0), expert, rows * cols);
  const float* const input =
      Row(context.buffer<const float>(2),
          at.height / static_cast<size_t>(params.slots_per_input), cols);
  float* const out = Row(context.buffer<float>(3), at.height, rows);
  const size_t first = at.width * kTileRows;
  for (size_t r = first; r < std::min(first + kTileRows, rows); ++r) {
    out[r] = Dot(weights + r * cols, input, cols);
  }
}

// Multiplies the matrix of each expert by the vectors of the expert's pairs.
// The result of a pair is stored at the pair's index. The buffers and the
// grid are:
//   0 weights [experts, rows, cols], 1 input [pairs / pairs_per_input, cols],
//   2 out [pairs, rows], 3 number of pairs of each expert i32 [experts],
//   4 the pairs of each expert i32 [experts, row_stride], 5 params
//   grid (ceil(pairs of the busiest / 32), ceil(rows / 64), experts): as
//   moe_compute_ids_tpe_f32 writes it
struct GemmParams {
  int32_t rows, cols, row_stride, pairs_per_input;
};
void Gemm(const MTL::ThreadgroupContext& context) {
  const auto params = context.params<GemmParams>(5);
  const size_t rows = static_cast<size_t>(params.rows);
  const size_t cols = static_cast<size_t>(params.cols);
  const MTL::Size& at = context.threadgroup_position_in_grid;
  const float* const weights =
      Row(context.buffer<const float>(0), at.depth, rows * cols);
  const auto input = context.buffer<const float>(1);
  const auto out = context.buffer<float>(2);
  const size_t pairs =
      static_cast<size_t>(*Row(context.buffer<const int32_t>(3), at.depth, 1));
  const int32_t* const pair_of = Row(context.buffer<const int32_t>(4), at.depth,
                                     static_cast<size_t>(params.row_stride));
  const size_t row = at.height * kTileRows, first = at.width * kTilePairs;
  for (size_t p = first; p < std::min(first + kTilePairs, pairs); ++p) {
    const auto pair = static_cast<size_t>(pair_of[p]);
    const float* const x =
        Row(input, pair / static_cast<size_t>(params.pairs_per_input), cols);
    float* const y = Row(out, pair, rows);
    for (size_t r = row; r < std::min(row + kTileRows, rows); ++r) {
      y[r] = Dot(weights + r * cols, x, cols);
    }
  }
}

}  // namespace

float Dot(const float* a, const float* b, size_t size) {
  constexpr size_t kLanes = 32;
  float lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  for (size_t l = 0; i + l < size; ++l) lanes[l] += a[i + l] * b[i + l];
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

Engine::Engine(const Layer& layer,
               std::shared_ptr<switchyard::Executor> executor,
               const std::vector<std::string>& shaders)
    : shape_(layer.shape) {
  MTL::DeviceOptions options;
  options.executor = std::move(executor);
  options.time_dispatches = true;
  device_ = MTL::CreateDevice(options);
  queue_ = device_->newCommandQueue();
  // These buffers use the memory of the weights without a copy, and are
  // read-only.
  const auto wrap = [&](const std::vector<float>& weights) {
    return device_->newBufferWithBytesNoCopy(weights.data(),
                                             weights.size() * sizeof(float));
  };
  router_ = wrap(layer.router);
  gate_ = wrap(layer.gate);
  up_ = wrap(layer.up);
  down_ = wrap(layer.down);
  next_norm_ = wrap(layer.next_norm);

  std::map<std::string, std::shared_ptr<MTL::Function>> functions;
  std::string error;
  for (const std::string& file : shaders) {
    const auto library = device_->newLibraryFromFile(file.c_str(), {}, &error);
    if (library == nullptr) {
      throw program::InputError("--shaders: " + program::FirstError(error));
    }
    for (const std::string& name : library->functionNames()) {
      functions[name] = library->newFunction(name.c_str(), &error);
      if (functions[name] == nullptr) throw std::runtime_error(error);
    }
  }
  // Adds a kernel: a built-in kernel by its name, a function of a shader, or
  // a kernel in C++.
  const auto add = [&](const std::string& name, const auto& kernel) {
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
  add("gemv_f32", MTL::KernelFunction{"gemv_f32", Gemv});
  add("gemm_f32", MTL::KernelFunction{"gemm_f32", Gemm});
}

Buffers Engine::NewBuffers(const std::vector<float>& input) const {
  const size_t tokens = input.size() / shape_.hidden;
  const size_t pairs = tokens * shape_.top_k;
  const auto make = [&](size_t rows, size_t cols) {
    return device_->newBuffer(rows * cols * 4, MTL::ResourceStorageModeShared);
  };
  Buffers b = {};
  b.tokens = tokens;
  b.input = make(tokens, shape_.hidden);
  std::memcpy(b.input->contents(), input.data(), b.input->length());
  b.residual = make(tokens, shape_.hidden);
  b.logits = make(tokens, shape_.experts);
  b.ids = make(tokens, shape_.top_k);
  b.weights = make(tokens, shape_.top_k);
  b.gate = make(pairs, shape_.intermediate);
  b.up = make(pairs, shape_.intermediate);
  b.silu = make(pairs, shape_.intermediate);
  b.down = make(pairs, shape_.hidden);
  b.normed = make(tokens, shape_.hidden);
  b.expert_pairs = make(1, shape_.experts);
  b.buckets = make(shape_.experts, pairs);
  b.gate_up_args = make(1, 3);
  b.down_args = make(1, 3);
  return b;
}

std::vector<MTL::DispatchTime> Engine::Run(
    const Buffers& b, const std::vector<float>& residual) const {
  std::memcpy(b.residual->contents(), residual.data(), b.residual->length());
  const auto buffer = queue_->commandBuffer();
  const auto encoder = buffer->computeCommandEncoder(MTL::DispatchTypeSerial);
  if (b.tokens == 1) {
    EncodeDecode(*encoder, b);
  } else {
    EncodePrefill(*encoder, b);
  }
  encoder->endEncoding();
  buffer->commit();
  buffer->waitUntilCompleted();
  if (buffer->status() != MTL::CommandBufferStatusCompleted) {
    throw std::runtime_error(buffer->error());
  }
  return buffer->dispatchTimes();
}

template <class Params>
void Engine::Set(Encoder& encoder, const std::string& kernel,
                 const std::vector<BufferPtr>& buffers,
                 const Params& params) const {
  encoder.setComputePipelineState(pipelines_.at(kernel));
  for (size_t i = 0; i < buffers.size(); ++i) {
    encoder.setBuffer(buffers[i], 0, i);
  }
  encoder.setBytes(&params, sizeof(params), buffers.size());
}

void Engine::EncodeGemv(Encoder& encoder, const BufferPtr& weights, size_t rows,
                        size_t cols, const BufferPtr& ids,
                        const BufferPtr& input, size_t slots,
                        size_t slots_per_input, const BufferPtr& out) const {
  Set(encoder, "gemv_f32", {weights, ids, input, out},
      GemvParams{Int(rows), Int(cols), Int(slots_per_input), ids == nullptr});
  encoder.dispatchThreadgroups(MTL::Size(Tiles(rows, kTileRows), slots, 1),
                               MTL::Size(kThreads, 1, 1));
}

void Engine::EncodeRoute(Encoder& encoder, const Buffers& b) const {
  EncodeGemv(encoder, router_, shape_.experts, shape_.hidden, nullptr, b.input,
             b.tokens, 1, b.logits);
  Set(encoder, "moe_router_topk_softmax_f32", {b.logits, b.ids, b.weights},
      MTL::MoeRouterTopkSoftmaxParams{Int(shape_.experts), Int(shape_.top_k),
                                      1});
  // A shader needs this threadgroup memory for the probabilities, the
  // selected experts and their sum. The built-in kernel needs none.
  encoder.setThreadgroupMemoryLength(
      (shape_.experts + 2 * shape_.top_k + 1) * sizeof(float), 0);
  encoder.dispatchThreadgroups(MTL::Size(b.tokens, 1, 1), MTL::Size(32, 1, 1));
}

void Engine::EncodeDecode(Encoder& encoder, const Buffers& b) const {
  const auto [hidden, experts, slots, intermediate] = shape_;
  encoder.pushDebugGroup("route");
  EncodeRoute(encoder, b);
  encoder.popDebugGroup();

  encoder.pushDebugGroup("experts");
  EncodeGemv(encoder, gate_, intermediate, hidden, b.ids, b.input, slots, slots,
             b.gate);
  EncodeGemv(encoder, up_, intermediate, hidden, b.ids, b.input, slots, slots,
             b.up);
  Set(encoder, "silu_mul_stacked_f32", {b.gate, b.up, b.silu},
      MTL::SiluMulStackedParams{Int(intermediate), Int(slots)});
  encoder.dispatchThreadgroups(MTL::Size(Tiles(intermediate, 256), slots, 1),
                               MTL::Size(256, 1, 1));
  EncodeGemv(encoder, down_, hidden, intermediate, b.ids, b.silu, slots, 1,
             b.down);
  encoder.popDebugGroup();

  encoder.pushDebugGroup("combine");
  Set(encoder, "weighted_sum_residual_norm_stacked_f32",
      {b.down, b.weights, b.residual, next_norm_, b.normed},
      MTL::WeightedSumResidualNormStackedParams{Int(hidden), Int(slots),
                                                kNormEps});
  encoder.dispatchThreadgroups(MTL::Size(1, 1, 1), MTL::Size(256, 1, 1));
  encoder.popDebugGroup();
}

void Engine::EncodeGemm(Encoder& encoder, const BufferPtr& weights, size_t rows,
                        size_t cols, const BufferPtr& input,
                        size_t pairs_per_input, const Buffers& b,
                        const BufferPtr& out, const BufferPtr& args) const {
  Set(encoder, "gemm_f32", {weights, input, out, b.expert_pairs, b.buckets},
      GemmParams{Int(rows), Int(cols), Int(b.tokens * shape_.top_k),
                 Int(pairs_per_input)});
  encoder.dispatchThreadgroups(args, 0, MTL::Size(kThreads, 1, 1));
}

void Engine::EncodePrefill(Encoder& encoder, const Buffers& b) const {
  const auto [hidden, experts, top_k, intermediate] = shape_;
  const size_t pairs = b.tokens * top_k;
  encoder.pushDebugGroup("route");
  EncodeRoute(encoder, b);
  // row_stride is the number of all pairs, so that each expert's row has room
  // for all of them.
  Set(encoder, "moe_compute_ids_tpe_f32",
      {b.ids, b.expert_pairs, b.buckets, b.gate_up_args, b.down_args},
      MTL::MoeComputeIdsTpeParams{Int(experts), Int(pairs), Int(pairs),
                                  Int(intermediate), Int(hidden)});
  encoder.dispatchThreadgroups(MTL::Size(1, 1, 1), MTL::Size(256, 1, 1));
  encoder.popDebugGroup();

  encoder.pushDebugGroup("experts");
  EncodeGemm(encoder, gate_, intermediate, hidden, b.input, top_k, b, b.gate,
             b.gate_up_args);
  EncodeGemm(encoder, up_, intermediate, hidden, b.input, top_k, b, b.up,
             b.gate_up_args);
  Set(encoder, "silu_mul_batched_f32", {b.gate, b.up, b.silu},
      MTL::SiluMulBatchedParams{Int(pairs), Int(intermediate)});
  encoder.dispatchThreadgroups(MTL::Size(Tiles(intermediate, 256), pairs, 1),
                               MTL::Size(256, 1, 1));
  EncodeGemm(encoder, down_, hidden, intermediate, b.silu, 1, b, b.down,
             b.down_args);
  encoder.popDebugGroup();

  encoder.pushDebugGroup("combine");
  Set(encoder, "weighted_sum_residual_norm_batched_f32",
      {b.down, b.weights, b.residual, next_norm_, b.normed},
      MTL::WeightedSumResidualNormBatchedParams{Int(b.tokens), Int(top_k),
                                                Int(hidden), kNormEps});
  encoder.dispatchThreadgroups(MTL::Size(b.tokens, 1, 1), MTL::Size(256, 1, 1));
  encoder.popDebugGroup();
}

}  // namespace metal_chain
