// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A project that uses the device layer. Dispatches a built-in kernel and, in
// checked mode, the project's own kernel.

#include "switchyard/device/device.h"

#include <cstdio>
#include <memory>
#include <vector>

#include "switchyard/device/kernel.h"
#include "switchyard/device/kernels.h"
#include "switchyard/device/library.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"

namespace {

namespace MTL = switchyard::device;

struct Fill {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto x = MTL::buffer<float>(tg, 0);
    tg.for_each_thread(
        [&](auto t) { x[t.thread_position_in_grid().width] = 3.0f; });
  }
};

bool Run(const std::shared_ptr<MTL::Device>& device) {
  constexpr size_t kRows = 4, kCols = 256;
  const std::vector<float> gate(kRows * kCols, 0.0f);
  const size_t bytes = gate.size() * sizeof(float);
  const auto up = device->newBuffer(bytes);
  const auto out = device->newBuffer(bytes);
  const auto commands = device->newCommandQueue()->commandBuffer();
  const auto encoder = commands->computeCommandEncoder();
  encoder->setComputePipelineState(
      device->newComputePipelineState(MTL::MakeKernel("fill", Fill())));
  encoder->setBuffer(up, 0, 0);
  encoder->dispatchThreads(MTL::Size(gate.size(), 1, 1), MTL::Size(64, 1, 1));
  const MTL::SiluMulBatchedParams params = {kRows, kCols};
  encoder->setComputePipelineState(
      device->newComputePipelineState("silu_mul_batched_f32"));
  encoder->setBuffer(device->newBuffer(gate.data(), bytes), 0, 0);
  encoder->setBuffer(up, 0, 1);
  encoder->setBuffer(out, 0, 2);
  encoder->setBytes(&params, sizeof(params), 3);
  encoder->dispatchThreadgroups(MTL::Size(1, kRows, 1), MTL::Size(256, 1, 1));
  encoder->endEncoding();
  commands->commit();
  commands->waitUntilCompleted();
  std::fputs(commands->error().c_str(), stderr);
  const float* const values = static_cast<const float*>(out->contents());
  for (size_t i = 0; i < gate.size(); ++i) {
    if (values[i] != 0.0f) return false;  // silu(0) * 3
  }
  return commands->status() == MTL::CommandBufferStatusCompleted;
}

}  // namespace

int main() {
  MTL::DeviceOptions checked;
  checked.check_kernels = true;
#ifdef SWITCHYARD_SHADERS
  MTL::DeviceOptions no_clang;
  no_clang.metal_compiler = "/nowhere";
  if (MTL::CreateDevice(no_clang)->newLibraryFromFile(
          SWITCHYARD_SHADERS "/fill.metallib") == nullptr) {
    return 1;
  }
#endif
  if (!Run(MTL::CreateSystemDefaultDevice())) return 1;
  if (!Run(MTL::CreateDevice(checked))) return 1;
  std::printf(
      "%s, %s\n", switchyard::ActiveIsa().name,
      switchyard::MakeTbbExecutor() != nullptr ? "with TBB" : "without TBB");
}
