// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A fixture for kernels written thread by thread, run in every mode.

#ifndef SWITCHYARD_TESTS_DEVICE_KERNEL_TEST_H_
#define SWITCHYARD_TESTS_DEVICE_KERNEL_TEST_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {

// Unchecked on three threads, checked, checked in a shuffled order.
class KernelTest : public DeviceTest, public testing::WithParamInterface<Mode> {
 protected:
  KernelTest() : DeviceTest(GetParam()) {}

  // At the end of an error.
  static std::string Seed() {
    const uint64_t seed = GetParam().schedule_seed;
    return seed == 0 ? std::string()
                     : " (schedule_seed " + std::to_string(seed) + ")";
  }

  // The error, empty if it completed.
  std::string Run(const KernelFunction& kernel, const Encode& encode) {
    return DeviceTest::Run([&](Encoder& e) {
      e.setComputePipelineState(device_->newComputePipelineState(kernel));
      encode(e);
    });
  }
  template <class T>
  BufferPtr Make(const std::vector<T>& values) {
    return NewBuffer(*device_, values);
  }
  // One threadgroup of `threads`, that reads buffer 0 and writes buffer 1.
  template <class In, class Out, class Kernel>
  std::vector<Out> Threadgroup(const std::vector<In>& in, size_t outputs,
                               size_t threads, const Kernel& kernel) {
    const auto out = Make(std::vector<Out>(outputs, Out(77)));
    EXPECT_EQ(Run(MakeKernel("test", kernel),
                  [&](Encoder& e) {
                    e.setBuffer(Make(in), 0, 0);
                    e.setBuffer(out, 0, 1);
                    e.dispatchThreadgroups(Size(1, 1, 1), Size(threads, 1, 1));
                  }),
              "");
    return Contents<Out>(out);
  }
};

// Full simdgroups, partial ones, and both in one threadgroup.
constexpr size_t kCounts[] = {1, 2, 7, 31, 32, 33, 50, 64, 100, 1023, 1024};

inline size_t Lanes(size_t thread, size_t threads) {
  return std::min<size_t>(32, threads - thread / 32 * 32);
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_DEVICE_KERNEL_TEST_H_
