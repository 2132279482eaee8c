// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Grids that nobody lives to see the end of: the first failure ends them. And
// those that one does, past what is shuffled at a time.

#include <atomic>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
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

// Notes how many workers a dispatch is for.
class PricedExecutor final : public Executor {
 public:
  explicit PricedExecutor(size_t fork_ns) : fork_ns_(fork_ns) {}
  size_t Concurrency() const noexcept override { return 16; }
  size_t ForkNs() const noexcept override { return fork_ns_; }
  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    EXPECT_EQ(grain, 1u);
    workers = count;
    body(context, 0, 0, count);
    return Status();
  }
  size_t workers = 0;

 private:
  const size_t fork_ns_;
};

TEST(DeviceGrid, HasTheWorkersThatPayForTheFork) {
  for (const auto& [fork_ns, workers] :
       {std::pair<size_t, size_t>{3000, 16}, {30000, 6}, {60000, 0}}) {
    const auto executor = std::make_shared<PricedExecutor>(fork_ns);
    DeviceOptions options;
    options.executor = executor;
    const auto device = CreateDevice(options);
    const auto queue = device->newCommandQueue();
    const auto buffer = Encoded(*queue, [&](Encoder& e) {
      e.setComputePipelineState(device->newComputePipelineState(MakeKernel(
          "microsecond", [](auto&) {}, 1000.0)));
      e.dispatchThreadgroups(Size(100, 1, 1), Size(1, 1, 1));
    });
    buffer->commit();
    buffer->waitUntilCompleted();
    EXPECT_EQ(buffer->error(), "");
    EXPECT_EQ(executor->workers, workers) << fork_ns;
  }
}

}  // namespace
}  // namespace switchyard::testing_support
