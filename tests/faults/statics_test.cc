// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests static objects that use the library in their destructors, in every
// order of destruction. Each order runs in a child, which exits.

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/faults/child.h"
#include "tests/faults/layer.h"

#ifdef SWITCHYARD_WITH_DEVICE
#include "device/tests/device_pass.h"
#endif

namespace switchyard::testing_support {
namespace {

#ifdef SWITCHYARD_WITH_DEVICE
using device::CreateDevice;
using device::DeviceOptions;
using Outcome = DevicePass::Outcome;
#endif  // SWITCHYARD_WITH_DEVICE

constexpr Shape kShape = {256, 64, 4, 96};

// Ends the process with _exit() if `right` is false, because nothing else can
// change the exit code once exit() has begun.
void Require(bool right, const char* what) {
  if (!right) _exit(Tell(what));
}

// Each of these types uses the library in its destructor, with objects that
// its constructor made. MakesAll makes new objects in its destructor.
struct UsesKernels {
  ~UsesKernels() {
    Require(layer.IsRight(SerialExecutor(), expected), "kernels at exit");
  }
  Layer layer{kShape, 1};
  const uint64_t expected = layer.Expected();
};
struct KeepsExecutor {
  // `executor` is null if the library was built without TBB.
  std::unique_ptr<Executor> executor = MakeTbbExecutor();
  Layer layer{kShape, 2};
  const uint64_t expected = layer.Expected();
  KeepsExecutor() { Use(); }
  ~KeepsExecutor() { Use(); }
  void Use() {
    Require(executor == nullptr || layer.IsRight(*executor, expected),
            "an executor at exit");
  }
};
#ifdef SWITCHYARD_WITH_DEVICE
struct KeepsDevice {
  DevicePass pass{kShape, 3};
  std::shared_ptr<device::Device> device = CreateDevice(DeviceOptions());
  std::shared_ptr<device::CommandQueue> queue = device->newCommandQueue();
  KeepsDevice() { Use(); }
  ~KeepsDevice() { Use(); }
  void Use() {
    Require(pass.Run(*device, *queue, DevicePass::Reverse()) == Outcome::kRight,
            "a device at exit");
  }
};
#endif  // SWITCHYARD_WITH_DEVICE
// An object that is made before the library is first used may be destroyed
// after the library's own static objects.
struct MakesAll {
  ~MakesAll() {
    Layer layer(kShape, 4);
    const uint64_t expected = layer.Expected();
    Require(expected != 0, "first kernels at exit");
    const auto executor = MakeTbbExecutor();
    Require(executor == nullptr || layer.IsRight(*executor, expected),
            "an executor made at exit");
#ifdef SWITCHYARD_WITH_DEVICE
    Require(DevicePass(kShape, 4).Run(DeviceOptions()) == Outcome::kRight,
            "a device made at exit");
#endif  // SWITCHYARD_WITH_DEVICE
  }
};

template <class T>
void MakeStatic() {
  static T object;
}
using Make = void (*)();

TEST(Statics, DestroyedInAnyOrder) {
  const std::vector<Make> all = {MakeStatic<UsesKernels>,
                                 MakeStatic<KeepsExecutor>,
#ifdef SWITCHYARD_WITH_DEVICE
                                 MakeStatic<KeepsDevice>,
#endif  // SWITCHYARD_WITH_DEVICE
                                 MakeStatic<MakesAll>};
  size_t orders = 0, expected_orders = 1;
  std::vector<size_t> order;
  for (size_t i = 0; i < all.size(); ++i) {
    order.push_back(i);
    expected_orders *= i + 1;
  }
  do {
    EXPECT_EQ(InChild([&]() -> int {
                for (const size_t i : order) all[i]();
                std::exit(0);
              }),
              "")
        << "made in the order " << testing::PrintToString(order);
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, expected_orders);
}

#ifdef SWITCHYARD_WITH_DEVICE
// The first use of the device is in an exit handler.
TEST(Statics, FirstUseAtExit) {
  EXPECT_EQ(InChild([]() -> int {
              static const auto pass = std::make_unique<DevicePass>(kShape, 5);
              std::atexit([] {
                Require(pass->Run(DeviceOptions()) == Outcome::kRight,
                        "a first device at exit");
              });
              std::exit(0);
            }),
            "");
}
#endif  // SWITCHYARD_WITH_DEVICE

}  // namespace
}  // namespace switchyard::testing_support
