// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The guide of docs/metal.md: its program on its shader, and the output.

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/metal_text.h"

namespace switchyard::testing_support {
namespace {

namespace MTL = switchyard::device;

// The guide's main(), which gets a path and gives back what it prints.
std::vector<MTL::Finding> Check(const char* path, std::string* printed) {
  std::vector<float> row(256, 1.0f);
  std::vector<MTL::Finding> findings;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    MTL::DeviceOptions options;
    options.check_kernels = true;
    options.schedule_seed = seed;
    auto device = MTL::CreateDevice(options);
    std::string error;
    auto library = device->newLibraryFromFile(path, {}, &error);
    auto function =
        library == nullptr ? nullptr : library->newFunction("row_max", &error);
    auto pipeline = function == nullptr
                        ? nullptr
                        : device->newComputePipelineState(function, &error);
    if (pipeline == nullptr) {
      *printed = error;
      return {};
    }
    auto queue = device->newCommandQueue();
    auto commands = queue->commandBuffer();
    auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline);
    encoder->setBuffer(device->newBuffer(row.data(), 4 * row.size()), 0, 0);
    encoder->setBuffer(device->newBuffer(4 * row.size()), 0, 1);
    encoder->dispatchThreadgroups(MTL::Size(1, 1, 1),
                                  MTL::Size(row.size(), 1, 1));
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    findings = commands->findings();
    if (!findings.empty()) break;
  }
  *printed = MTL::FindingsToText(findings);
  return findings;
}

TEST(DeviceShadersGuide, PrintsWhatItSays) {
  SWITCHYARD_NEEDS_CLANG();
  std::string printed;
  const auto findings = Check(MetalPath("guide").c_str(), &printed);
  std::printf("%s", printed.c_str());
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, MTL::FindingKind::kBarrierFlags);
  EXPECT_EQ(findings[0].where.line, 15u);
  EXPECT_EQ(findings[0].other.line, 12u);
  // The page has these lines, but for the place of the file.
  for (const char* const said :
       {"row_max: threadgroup (0, 0, 0), thread 0: reads part[1] at ",
        "guide.metal:15:43, which thread 32 wrote at ", "guide.metal:12:27",
        "the threadgroup_barrier between them has mem_none, this is "
        "threadgroup memory: it needs mem_threadgroup"}) {
    EXPECT_NE(printed.find(said), std::string::npos) << said;
  }

  // The repaired one is tested too.
  std::string text = TextOfFile(MetalPath("guide"));
  text.replace(text.find("mem_none"), 8, "mem_threadgroup");
  const std::string path = testing::TempDir() + "guide_repaired.metal";
  std::ofstream(path) << text;
  EXPECT_TRUE(Check(path.c_str(), &printed).empty()) << printed;
  EXPECT_EQ(printed, "");
}

}  // namespace
}  // namespace switchyard::testing_support
