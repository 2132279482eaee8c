// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Grids that nobody lives to see the end of: the first failure ends them. And
// those that one does, past what is shuffled at a time.

#include <atomic>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {
namespace {

class DeviceHugeGrid : public testing::TestWithParam<Setup> {};
INSTANTIATE_TEST_SUITE_P(Setups, DeviceHugeGrid,
                         testing::ValuesIn(EverySetup()),
                         testing::PrintToStringParamName());

TEST_P(DeviceHugeGrid, EndsWithTheFirstFailure) {
  const Watchdog watchdog;
  const Mode& mode = GetParam().mode;
  const auto device = NewDevice(GetParam());
  const auto queue = device->newCommandQueue();
  const auto fails = [](auto& tg) {
    const Size& at = tg.threadgroup_position_in_grid;
    if (at.width == 0 && at.height == 0 && at.depth == 0) {
      throw std::runtime_error("the first");
    }
  };
  const std::string seed =
      mode.schedule_seed == 0
          ? std::string()
          : " (schedule_seed " + std::to_string(mode.schedule_seed) + ")";
  constexpr size_t kOne = 1;
  for (const Size& grid :
       {Size(kOne << 62, 1, 1), Size(kOne << 20, kOne << 21, kOne << 21)}) {
    // Threadgroups that are a grain each, and millions in one.
    for (const double ns : {30000.0, 0.001}) {
      SCOPED_TRACE(ns);
      const auto buffer = Encoded(*queue, [&](Encoder& e) {
        e.setComputePipelineState(
            device->newComputePipelineState(MakeKernel("huge", fails, ns)));
        e.dispatchThreadgroups(grid, Size(1, 1, 1));
      });
      buffer->commit();
      buffer->waitUntilCompleted();
      EXPECT_EQ(buffer->status(), CommandBufferStatusError);
      EXPECT_EQ(buffer->error(), "huge: the first" + seed);
    }
  }
}

TEST_P(DeviceHugeGrid, EachThreadgroupOnce) {
  const auto device = NewDevice(GetParam());
  const auto queue = device->newCommandQueue();
  constexpr size_t kCount = 2 * 65536 + 5;
  for (const double ns : {30000.0, 7.0, 0.001}) {
    SCOPED_TRACE(ns);
    std::vector<std::atomic<int>> runs(kCount);
    KernelFunction kernel;
    kernel.name = "count";
    kernel.threadgroup = [&runs](const ThreadgroupContext& tg) {
      ++runs[tg.threadgroup_position_in_grid.width];
    };
    kernel.threadgroup_ns = ns;
    const auto buffer = Encoded(*queue, [&](Encoder& e) {
      e.setComputePipelineState(device->newComputePipelineState(kernel));
      e.dispatchThreadgroups(Size(kCount, 1, 1), Size(1, 1, 1));
    });
    buffer->commit();
    buffer->waitUntilCompleted();
    EXPECT_EQ(buffer->error(), "");
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(runs[i], 1) << i;
  }
}

}  // namespace
}  // namespace switchyard::testing_support
