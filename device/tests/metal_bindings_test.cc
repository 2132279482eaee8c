// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests dispatches that lack a binding. A missing binding is an error only if
// the kernel uses it.

#include <cstdint>
#include <string>
#include <vector>

#include "device/tests/device_test.h"
#include "device/tests/metal_text.h"
#include "device/tests/needs_clang.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/library.h"

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

// Runs the kernel with only the first `buffers` of its two buffers and
// without threadgroup memory, and returns the error. The fourth thread uses
// threadgroup memory if `last` is above 9.
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

// A struct of pointers, the only binding of the kernel. Host and kernel share
// memory, so the host's addresses are valid in the kernel.

struct Row {
  const float* values;
  uint32_t length;
};
struct Arguments {
  float* out;
  const float* scale;
  Row rows[2];
  const Row* more;
};

// Tests kernels that read pointers from Arguments. If `uses_out` is true, the
// host calls useResource() for the output.
class MetalBindless : public testing::Test {
 protected:
  static std::string Run(bool checked, bool uses_out);
};

std::string MetalBindless::Run(bool checked, bool uses_out) {
  DeviceOptions options;
  options.check_kernels = checked;
  const auto device = CreateDevice(options);
  MetalTexts texts(device);
  const auto function = texts.Get("bindless", "sum_rows");
  if (function == nullptr) return "no function";
  const auto make = [&](float by) {
    std::vector<float> values(16);
    for (size_t i = 0; i < 16; ++i) values[i] = by * static_cast<float>(i);
    return NewBuffer(*device, values);
  };
  const std::vector<BufferPtr> rows = {make(1.0f), make(10.0f), make(100.0f)};
  const auto out = device->newBuffer(64);
  const auto scale = NewBuffer(*device, std::vector<float>{0.5f});
  const auto floats = [](const BufferPtr& buffer) {
    return static_cast<float*>(buffer->contents());
  };
  const auto more =
      NewBuffer(*device, std::vector<Row>{{nullptr, 0}, {floats(rows[2]), 16}});
  const Arguments arguments = {floats(out),
                               floats(scale),
                               {{floats(rows[0]), 16}, {floats(rows[1]), 5}},
                               static_cast<const Row*>(more->contents())};
  const auto queue = device->newCommandQueue();
  const auto commands = Encoded(*queue, [&](Encoder& e) {
    e.setComputePipelineState(device->newComputePipelineState(function));
    e.setBytes(&arguments, sizeof(arguments), 0);
    for (const BufferPtr& row : rows) e.useResource(row, ResourceUsageRead);
    e.useResource(more, ResourceUsageRead);
    e.useResource(scale, ResourceUsageRead);
    if (uses_out) e.useResource(out, ResourceUsageWrite);
    e.dispatchThreads(Size(16, 1, 1), Size(8, 1, 1));
  });
  commands->commit();
  commands->waitUntilCompleted();
  if (!commands->error().empty()) return commands->error();
  for (size_t i = 0; i < 16; ++i) {
    const float sum = (i < 5 ? 111.0f : 101.0f) * static_cast<float>(i);
    EXPECT_EQ(floats(out)[i], 0.5f * sum) << i;
  }
  return "";
}

TEST_F(MetalBindless, FollowsPointers) {
  SWITCHYARD_NEEDS_CLANG();
  EXPECT_EQ(Run(false, true), "");
  EXPECT_EQ(Run(true, true), "");
}

// Without useResource(), Metal does not guarantee that the memory can be
// accessed.
TEST_F(MetalBindless, MemoryThatNobodyUsesIsOutOfBounds) {
  SWITCHYARD_NEEDS_CLANG();
  const std::string error = Run(true, false);
  EXPECT_NE(error.find("sum_rows: threadgroup (0, 0, 0), thread 0: writes "),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace switchyard::testing_support
