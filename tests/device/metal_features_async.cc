// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The bytes that async_copy.metal is to leave.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/device_test.h"
#include "tests/device/metal_features.h"
#include "tests/device/metal_text.h"

namespace switchyard::testing_support {
namespace {

// Tiles by simdgroups that are whole, and that are not.
Feature Tile(bool edge, size_t threads) {
  const auto in =
      Values(9 * 3, [](size_t i) { return Round<Float16>(Float(i + 1)); });
  std::vector<Float16> right;
  for (size_t i = 7 * 6; i-- > 0;) {
    const size_t x = i % 7, y = i / 7;
    const bool inside = x < 5 && y < 3;
    right.push_back(
        inside || edge ? in[std::min<size_t>(y, 2) * 9 + std::min<size_t>(x, 4)]
                       : Round<Float16>(0.0f));
  }
  return Feature("async_copy", edge ? "tile_edge" : "tile_zero")
      .Threads(threads, threads)
      .In(in)
      .Out(right);
}

Feature Reversed(size_t threads) {
  const auto in = Values(4 * threads, Float);
  std::vector<float> right;
  for (size_t i = threads; i-- > 0;) {
    for (size_t e = 0; e < 4; ++e) right.push_back(in[4 * i + e]);
  }
  return Feature("async_copy", "reversed")
      .Threads(threads, threads)
      .In(in)
      .Out(right)
      .In(std::vector<uint32_t>{1});
}

const bool kAdded =
    AddFeatures({Tile(false, 32), Tile(true, 32), Tile(false, 20),
                 Tile(true, 1), Reversed(32), Reversed(11)});

// The findings of 32 threads.
std::vector<Finding> FindingsOf(Device& device, Library& library,
                                const char* kernel, uint32_t waits) {
  std::string error;
  const auto pipeline = device.newComputePipelineState(
      library.newFunction(kernel, &error), &error);
  EXPECT_NE(pipeline, nullptr) << error;
  const auto in = NewBuffer<float>(device, std::vector<float>(128, 1.0f));
  const auto out = NewBuffer<float>(device, std::vector<float>(128, 2.0f));
  const auto queue = device.newCommandQueue();
  const auto commands = Encoded(*queue, [&](Encoder& e) {
    e.setComputePipelineState(pipeline);
    e.setBuffer(in, 0, 0);
    e.setBuffer(out, 0, 1);
    e.setBytes(&waits, sizeof(waits), 2);
    e.dispatchThreads(Size(32, 1, 1), Size(32, 1, 1));
  });
  commands->commit();
  commands->waitUntilCompleted();
  if (waits == 1) {
    EXPECT_EQ(Contents<float>(out), std::vector<float>(128, 1.0f));
  }
  return commands->findings();
}

TEST(MetalAsyncCopy, WhatIsNotWaitedForIsARace) {
  SWITCHYARD_NEEDS_CLANG();
  const auto device = NewDevice(false, {true, 0});
  MetalTexts texts(device);
  const auto library = texts.Get("async_copy");
  ASSERT_NE(library, nullptr);
  std::vector<std::string> kinds;
  for (const Finding& f : FindingsOf(*device, *library, "reversed", 0)) {
    kinds.push_back(NameOf(f.kind));
    EXPECT_NE(f.text.find(" block["), std::string::npos) << f.text;
  }
  // A lane reads before the one that copies this has come to it.
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  EXPECT_EQ(kinds,
            (std::vector<std::string>{"missing-barrier", "never-written"}));
  EXPECT_EQ(FindingsToText(FindingsOf(*device, *library, "reversed", 1)), "");
}

// Xcode 14.2's own header.
TEST(MetalAsyncCopy, Futures) {
  SWITCHYARD_NEEDS_CLANG();
  const auto device = NewDevice(false, {true, 0});
  std::string error;
  const auto library = device->newLibrary(
      "#include <metal_simdgroup_async>\n"
      "using namespace metal;\n"
      "kernel void named(device const float* in [[buffer(0)]],\n"
      "    device float* out [[buffer(1)]], constant uint& n [[buffer(2)]]) {\n"
      "  threadgroup float block[128];\n"
      "  simdgroup_async_copy(block, in, 128).wait();\n"
      "  simdgroup_future<void> back = simdgroup_async_copy(\n"
      "      out, 64, 1, ulong2(64, 2), block, 64, 1, ulong2(64, 2), "
      "long2(0),\n"
      "      simdgroup_async_copy_clamp_mode::clamp_to_edge);\n"
      "  back.wait();\n"
      "}\n",
      {}, &error);
  ASSERT_NE(library, nullptr) << error;
  EXPECT_EQ(FindingsToText(FindingsOf(*device, *library, "named", 1)), "");
}

}  // namespace
}  // namespace switchyard::testing_support
