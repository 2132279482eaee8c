// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Structs of pointers, of which only the struct is bound: memory is shared, so
// that the host's addresses are the kernel's.

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/metal_features.h"
#include "tests/device/metal_text.h"

namespace switchyard::testing_support {
namespace {

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

// Whether the kernel's output is told to be used.
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
    return NewBuffer(*device,
                     Values(16, [=](size_t i) { return by * Float(i); }));
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
    const float sum = 101.0f * Float(i) + (i < 5 ? 10.0f * Float(i) : 0.0f);
    EXPECT_EQ(floats(out)[i], 0.5f * sum) << i;
  }
  return "";
}

TEST_F(MetalBindless, FollowsPointers) {
  SWITCHYARD_NEEDS_CLANG();
  EXPECT_EQ(Run(false, true), "");
  EXPECT_EQ(Run(true, true), "");
}

// Metal does not promise that it is there.
TEST_F(MetalBindless, MemoryThatNobodyUsesIsOutOfBounds) {
  SWITCHYARD_NEEDS_CLANG();
  const std::string error = Run(true, false);
  EXPECT_NE(error.find("sum_rows: threadgroup (0, 0, 0), thread 0: writes "),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace switchyard::testing_support
