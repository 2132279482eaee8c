// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/tests/device_pass.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "switchyard/device/kernels.h"

namespace switchyard::testing_support {
namespace {

using namespace device;

constexpr size_t kWidth = 32;

struct ReverseKernel {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto in = buffer<const uint32_t>(tg, 0);
    const auto out = buffer<uint32_t>(tg, 1);
    const auto words = threadgroup_array<uint32_t, kWidth>(tg);
    tg.for_each_thread([&](auto t) {
      words[t.thread_index_in_threadgroup] =
          in[t.thread_position_in_grid().width];
    });
    tg.threadgroup_barrier(mem_flags::mem_threadgroup);
    tg.for_each_thread([&](auto t) {
      out[t.thread_position_in_grid().width] =
          words[kWidth - 1 - t.thread_index_in_threadgroup];
    });
  }
};

template <class T>
bool Holds(const Buffer& buffer, const std::vector<T>& values) {
  return std::memcmp(buffer.contents(), values.data(),
                     values.size() * sizeof(T)) == 0;
}

// Rounds the number of experts up to whole threadgroups, because
// ReverseKernel reads and writes a word for every thread of a threadgroup.
Shape WholeThreadgroups(Shape shape) {
  shape.experts = (shape.experts + kWidth - 1) / kWidth * kWidth;
  return shape;
}

}  // namespace

KernelFunction DevicePass::Reverse() {
  return MakeKernel("reverse", ReverseKernel{});
}

DevicePass::DevicePass(const Shape& shape, uint64_t seed)
    : shape_(WholeThreadgroups(shape)),
      pairs_(shape_.tokens * shape_.top_k),
      layer_(shape_, seed) {
  // RouteAsMetal() renormalises with the default clamp, as the built-in
  // kernel does.
  if (!layer_.RouteAsMetal().ok() || !layer_.Pack(SerialExecutor()).ok()) {
    std::abort();
  }
  reversed_.resize(shape_.experts);
  for (size_t i = 0; i < reversed_.size(); ++i) {
    const size_t first = i / kWidth * kWidth;
    reversed_[i] =
        static_cast<uint32_t>(layer_.counts()[first + kWidth - 1 - i % kWidth]);
  }
}

DevicePass::Outcome DevicePass::Run(Device& device, CommandQueue& queue,
                                    KernelFunction reverse) const noexcept {
  const auto logits = device.newBuffer(layer_.logits().data(),
                                       layer_.logits().size() * sizeof(float));
  const auto ids = device.newBuffer(pairs_ * 4);
  const auto weights = device.newBuffer(pairs_ * 4);
  const auto counts = device.newBuffer(shape_.experts * 4);
  const auto table = device.newBuffer(shape_.experts * pairs_ * 4);
  const auto gate_up = device.newBuffer(12);
  const auto down = device.newBuffer(12);
  const auto reversed = device.newBuffer(shape_.experts * 4);
  for (const auto& buffer :
       {&logits, &ids, &weights, &counts, &table, &gate_up, &down, &reversed}) {
    if (*buffer == nullptr) return Outcome::kRefused;
  }
  const auto route =
      device.newComputePipelineState("moe_router_topk_softmax_f32");
  const auto sort = device.newComputePipelineState("moe_compute_ids_tpe_f32");
  const auto own = device.newComputePipelineState(std::move(reverse));
  if (route == nullptr || sort == nullptr || own == nullptr) {
    return Outcome::kRefused;
  }
  const auto commands = queue.commandBuffer();
  if (commands == nullptr) return Outcome::kRefused;
  {
    const auto encoder = commands->computeCommandEncoder();
    if (encoder == nullptr) return Outcome::kRefused;
    const auto i32 = [](size_t n) { return static_cast<int32_t>(n); };
    const MoeRouterTopkSoftmaxParams route_params = {i32(shape_.experts),
                                                     i32(shape_.top_k), 1};
    encoder->setComputePipelineState(route);
    encoder->setBuffer(logits, 0, 0);
    encoder->setBuffer(ids, 0, 1);
    encoder->setBuffer(weights, 0, 2);
    encoder->setBytes(&route_params, sizeof(route_params), 3);
    encoder->dispatchThreadgroups(Size(shape_.tokens, 1, 1), Size(32, 1, 1));

    const MoeComputeIdsTpeParams sort_params = {
        i32(shape_.experts), i32(pairs_), i32(pairs_), 64, 64};
    encoder->setComputePipelineState(sort);
    encoder->setBuffer(ids, 0, 0);
    encoder->setBuffer(counts, 0, 1);
    encoder->setBuffer(table, 0, 2);
    encoder->setBuffer(gate_up, 0, 3);
    encoder->setBuffer(down, 0, 4);
    encoder->setBytes(&sort_params, sizeof(sort_params), 5);
    encoder->dispatchThreadgroups(Size(1, 1, 1), Size(256, 1, 1));

    encoder->setComputePipelineState(own);
    encoder->setBuffer(counts, 0, 0);
    encoder->setBuffer(reversed, 0, 1);
    encoder->dispatchThreads(Size(shape_.experts, 1, 1), Size(kWidth, 1, 1));
    encoder->endEncoding();
  }
  bool called = false;
  commands->addCompletedHandler([&called](CommandBuffer*) { called = true; });
  commands->commit();
  commands->waitUntilCompleted();
  if (commands->status() == CommandBufferStatusError) return Outcome::kRefused;
  if (commands->status() != CommandBufferStatusCompleted || !called) {
    return Outcome::kWrong;
  }
  const bool right =
      Holds(*ids, layer_.ids()) && Holds(*weights, layer_.weights()) &&
      Holds(*counts, layer_.counts()) && Holds(*reversed, reversed_);
  return right ? Outcome::kRight : Outcome::kWrong;
}

DevicePass::Outcome DevicePass::Run(const DeviceOptions& options,
                                    KernelFunction reverse) const noexcept {
  const auto device = CreateDevice(options);
  if (device == nullptr) return Outcome::kRefused;
  const auto queue = device->newCommandQueue();
  if (queue == nullptr) return Outcome::kRefused;
  return Run(*device, *queue, std::move(reverse));
}

}  // namespace switchyard::testing_support
