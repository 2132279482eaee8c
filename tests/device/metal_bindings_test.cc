// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Missing bindings of a dispatch: an error where the kernel uses them, nothing
// where it does not.

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/library.h"
#include "tests/device/device_test.h"
#include "tests/device/needs_clang.h"

namespace switchyard::testing_support {
namespace {

constexpr char kSource[] = R"(#include <metal_stdlib>
using namespace metal;
kernel void sum(device const int* x [[buffer(0)]],
                device int* out [[buffer(1)]],
                threadgroup int* part [[threadgroup(0)]],
                uint i [[thread_position_in_grid]]) {
  if (x[i] > 9) part[i] = x[i];
  out[i] = x[i];
}
)";

// Runs with no threadgroup memory, and with so many of the two buffers; the
// fourth thread uses that memory if `last` is above 9.
std::string ErrorOf(bool checked, int32_t last, size_t buffers) {
  DeviceOptions options;
  options.check_kernels = checked;
  const auto device = CreateDevice(options);
  std::string error;
  const auto library = device->newLibrary(kSource, {}, &error);
  if (library == nullptr) return error;
  const auto queue = device->newCommandQueue();
  const auto commands = Encoded(*queue, [&](Encoder& e) {
    e.setComputePipelineState(
        device->newComputePipelineState(library->newFunction("sum")));
    for (size_t i = 0; i < buffers; ++i) {
      e.setBuffer(NewBuffer<int32_t>(*device, {1, 2, 3, last}), 0, i);
    }
    e.setThreadgroupMemoryLength(0, 0);
    e.dispatchThreads(Size(4, 1, 1), Size(4, 1, 1));
  });
  commands->commit();
  commands->waitUntilCompleted();
  return commands->error();
}

TEST(MetalBindings, WhatIsNotThereIsNamedWhereItIsUsed) {
  SWITCHYARD_NEEDS_CLANG();
  for (const bool checked : {false, true}) {
    EXPECT_EQ(ErrorOf(checked, 9, 2), "");
    EXPECT_EQ(ErrorOf(checked, 9, 0), "sum: buffer 0 (x) is not bound");
    EXPECT_EQ(ErrorOf(checked, 9, 1), "sum: buffer 1 (out) is not bound");
  }
  EXPECT_EQ(ErrorOf(true, 10, 2),
            "sum: threadgroup (0, 0, 0), thread 3: writes part[3] at "
            "program_source:7:25, which has 0 elements");
}

}  // namespace
}  // namespace switchyard::testing_support
