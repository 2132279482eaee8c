// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests fork() in a process that has used all parts of the library. The child
// does not have the parent's other threads.
// - It can use kernels on SerialExecutor() or on an executor with the child's
//   own threads, and devices that it makes on such executors.
// - It cannot use the parent's TBB executors, devices and queues, nor call
//   MakeTbbExecutor() itself.
// - It ends by _exit() or exec.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/faults/child.h"
#include "tests/faults/layer.h"
#include "tests/target_test.h"

#ifdef SWITCHYARD_WITH_DEVICE
#include "device/tests/device_pass.h"
#endif

namespace switchyard::testing_support {
namespace {

constexpr Shape kShape = {128, 64, 4, 64};

#ifdef SWITCHYARD_WITH_DEVICE
[[maybe_unused]] device::DeviceOptions OnSerial(bool checked) {
  device::DeviceOptions options;
  options.executor =
      std::shared_ptr<Executor>(&SerialExecutor(), [](Executor*) {});
  options.check_kernels = checked;
  return options;
}
#endif  // SWITCHYARD_WITH_DEVICE

TEST(Fork, ChildUsesKernelsAndDevicesOfItsOwn) {
  Layer layer(kShape, 1);
  const uint64_t expected = layer.Expected();
  const auto executor = MakeExecutor(Pool::kShuffle);
#ifdef SWITCHYARD_WITH_DEVICE
  const DevicePass pass(kShape, 2);
  const auto device = device::CreateDevice(device::DeviceOptions());
  const auto queue = device->newCommandQueue();
#endif  // SWITCHYARD_WITH_DEVICE
#ifdef SWITCHYARD_WITH_TBB
  const auto tbb = MakeTbbExecutor();
#endif
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(layer.IsRight(*executor, expected));
#ifdef SWITCHYARD_WITH_TBB
    ASSERT_TRUE(layer.IsRight(*tbb, expected));
#endif
#ifdef SWITCHYARD_WITH_DEVICE
    ASSERT_EQ(pass.Run(*device, *queue, DevicePass::Reverse()),
              DevicePass::Outcome::kRight);
#endif  // SWITCHYARD_WITH_DEVICE
    const auto in_child = [&] {
      if (!layer.IsRight(SerialExecutor(), expected)) {
        return Tell("kernels give other bits");
      }
#ifndef __SANITIZE_THREAD__  // TSan allows no threads in a forked child
      if (!layer.IsRight(*MakeExecutor(Pool::kShuffle), expected)) {
        return Tell("kernels on its own threads give other bits");
      }
#ifdef SWITCHYARD_WITH_DEVICE
      for (const bool checked : {false, true}) {
        if (pass.Run(OnSerial(checked)) != DevicePass::Outcome::kRight) {
          return Tell("a device of its own fails");
        }
      }
#endif  // SWITCHYARD_WITH_DEVICE
#endif
      return 0;
    };
    EXPECT_EQ(InChild(in_child), "");
  }
}

// Kernels hold no locks, so a child never finds a kernel's lock taken.
TEST(Fork, WhileOtherThreadsAreInKernels) {
  std::atomic<bool> stop{false};
  std::atomic<size_t> calls{0}, wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      Layer layer(kShape, t);
      const uint64_t expected = layer.Expected();
      do {
        if (!layer.Run(SerialExecutor()).ok()) ++wrong;
        ++calls;
      } while (!stop);
      if (layer.Digest() != expected) ++wrong;
    });
  }
  Layer layer(kShape, 9);
  const uint64_t expected = layer.Expected();
  for (int i = 0; i < 20; ++i) {
    const auto in_child = [&] {
      return layer.IsRight(SerialExecutor(), expected)
                 ? 0
                 : Tell("kernels give other bits");
    };
    EXPECT_EQ(InChild(in_child), "");
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GE(calls, 3u);
}

}  // namespace
}  // namespace switchyard::testing_support
