// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The last reference to a queue, dropped by the work of another queue or of its
// own: nobody may wait there, or two queues wait for each other.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {
namespace {

// The code that drops the reference.
enum class By { kHandler, kKernel, kDeallocator };

// The work of each queue drops the next queue, the last one's the first.
struct Ring {
  const char* name;
  std::vector<By> queues;
  bool check_kernels = false;
};
std::ostream& operator<<(std::ostream& os, const Ring& ring) {
  return os << ring.name;
}

class DeviceLastReference : public testing::TestWithParam<Ring> {
 protected:
  // Work that drops `other`, as soon as nobody else has it.
  static std::shared_ptr<CommandBuffer> Drops(
      CommandQueue& queue, By by, std::shared_ptr<CommandQueue> other,
      std::shared_ptr<Flag> alone) {
    auto drop = [other = std::move(other), alone = std::move(alone)]() mutable {
      alone->Wait();
      other.reset();
    };
    Device& device = *queue.device();
    KernelFunction kernel;
    kernel.name = "user";
    if (by == By::kKernel) {
      kernel.threadgroup = [drop](const ThreadgroupContext&) mutable {
        drop();
      };
    } else {
      kernel.threadgroup = [](const ThreadgroupContext&) {};
    }
    const auto buffer = Encoded(queue, [&](Encoder& e) {
      e.setComputePipelineState(
          device.newComputePipelineState(std::move(kernel)));
      if (by == By::kDeallocator) {
        static char byte;
        e.setBuffer(device.newBufferWithBytesNoCopy(
                        static_cast<void*>(&byte), 1, ResourceStorageModeShared,
                        [drop](void*, size_t) mutable { drop(); }),
                    0, 0);
      }
      // Two of them, so that it is the executor that runs them.
      e.dispatchThreadgroups(Size(2, 1, 1), Size(1, 1, 1));
    });
    if (by == By::kHandler) {
      buffer->addCompletedHandler([drop](CommandBuffer*) mutable { drop(); });
    }
    return buffer;
  }
};
INSTANTIATE_TEST_SUITE_P(
    Rings, DeviceLastReference,
    testing::Values(
        Ring{"OwnHandler", {By::kHandler}}, Ring{"OwnKernel", {By::kKernel}},
        Ring{"OwnKernelChecked", {By::kKernel}, true},
        Ring{"OwnDeallocator", {By::kDeallocator}},
        Ring{"TwoHandlers", {By::kHandler, By::kHandler}},
        Ring{"TwoKernels", {By::kKernel, By::kKernel}},
        Ring{"TwoDeallocators", {By::kDeallocator, By::kDeallocator}},
        Ring{"ThreeHandlers", {By::kHandler, By::kHandler, By::kHandler}},
        Ring{"OneOfEach", {By::kHandler, By::kKernel, By::kDeallocator}},
        Ring{"OneOfEachChecked",
             {By::kHandler, By::kKernel, By::kDeallocator},
             true}),
    [](const testing::TestParamInfo<Ring>& test) {
      return std::string(test.param.name);
    });

TEST_P(DeviceLastReference, DroppedByWork) {
  const Watchdog watchdog;
  const std::vector<By>& ring = GetParam().queues;
  std::vector<std::shared_ptr<Flag>> gone;
  std::vector<std::shared_ptr<CommandQueue>> queues;
  for (size_t i = 0; i < ring.size(); ++i) {
    gone.push_back(std::make_shared<Flag>());
    DeviceOptions options;
    options.executor = std::make_shared<TellingExecutor>(gone.back());
    options.check_kernels = GetParam().check_kernels;
    queues.push_back(CreateDevice(options)->newCommandQueue());
  }
  const auto alone = std::make_shared<Flag>();
  for (size_t i = 0; i < ring.size(); ++i) {
    Drops(*queues[i], ring[i], queues[(i + 1) % ring.size()], alone)->commit();
  }
  queues.clear();
  alone->Set();
  for (const auto& flag : gone) flag->Wait();
}

// A queue whose handler lets go of it, tells, and is not done yet.
void DropInAHandler(void (*then)()) {
  const auto alone = std::make_shared<Flag>();
  const auto dropped = std::make_shared<Flag>();
  auto queue = CreateDevice({})->newCommandQueue();
  auto buffer = queue->commandBuffer();
  buffer->addCompletedHandler(
      [queue, alone, dropped, then](CommandBuffer*) mutable {
        alone->Wait();
        queue.reset();
        dropped->Set();
        then();
      });
  buffer->commit();
  buffer.reset();
  queue.reset();
  alone->Set();
  dropped->Wait();
}

// Static objects do not go while a queue's work may use them.
TEST(DeviceLastReferenceDeathTest, ExitWaitsForTheWork) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto exit_early = [] {
    DropInAHandler([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      std::fputs("the handler returns", stderr);
    });
    std::exit(0);
  };
  EXPECT_EXIT(exit_early(), testing::ExitedWithCode(0), "the handler returns");
}

// But the work itself may end the program.
TEST(DeviceLastReferenceDeathTest, ExitInAHandler) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto exit_inside = [] {
    const Watchdog watchdog;
    DropInAHandler([] { std::exit(7); });
    Flag().Wait();
  };
  EXPECT_EXIT(exit_inside(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace switchyard::testing_support
