// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Refuses each request for memory or for a thread in turn, in a child
// process. One child refuses only its n-th request. Another child refuses its
// n-th and all later requests. The test increases n until a child makes fewer
// than n requests. Each time the library has to report an error, and has to
// work again afterwards.

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/faults/child.h"
#include "tests/faults/failing_allocations.h"
#include "tests/faults/layer.h"

#ifdef SWITCHYARD_WITH_DEVICE
#include "device/tests/device_pass.h"
#endif

namespace switchyard::testing_support {
namespace {

// The shape gives each kernel several grains of 30 us, so that TBB shares out
// the work.
constexpr Shape kShape = {512, 64, 4, 160};

// Describes which requests a child refuses. `asked` is the number of the
// child's requests, refused or not.
struct Refusal {
  uint64_t n;
  Failing which;
  uint64_t asked = 0;

  template <class Work>
  auto During(const Work& work) {
    StartFailing(n, which);
    auto result = work();
    asked = StopFailing();
    return result;
  }
};

// Runs scenario(refusal) in a child for each request. scenario() returns the
// text of a problem, or null.
template <class Scenario>
void RefuseEach(const char* what, const Scenario& scenario) {
  constexpr int kNothingRefused = 1;
  for (const Failing which : {Failing::kOne, Failing::kAllOn}) {
    uint64_t n = 1;
    for (;; ++n) {
      ASSERT_LT(n, 5000u) << "is there no end?";
      int code = 0;
      const std::string ended = InChild(
          [&] {
            Refusal refusal = {n, which};
            const int problem = Tell(scenario(refusal));
            if (problem != 0) return problem;
            return refusal.asked < n ? kNothingRefused : 0;
          },
          &code);
      ASSERT_EQ(ended, "") << what << ": without allocation " << n
                           << (which == Failing::kOne ? "" : " and all after");
      if (code == kNothingRefused) break;
    }
    std::printf("%s: %llu allocations refused %s\n", what,
                static_cast<unsigned long long>(n - 1),
                which == Failing::kOne ? "one by one" : "from one on");
  }
}

TEST(AllocationFailure, KernelsAskForNothing) {
  EXPECT_EQ(InChild([] {
              Layer layer(kShape, 1);
              // The calls below are the first in the process, so they also
              // choose the ISA.
              StartFailing(1, Failing::kAllOn);
              const Status status = layer.Run(SerialExecutor());
              const Status wrong = RouteTopK({}, {});
              const uint64_t asked = StopFailing();
              if (!status.ok()) return Tell(status.message());
              if (wrong.ok()) return Tell("a wrong call is ok");
              return Tell(asked == 0 ? nullptr : "a kernel allocates");
            }),
            "");
}

#ifdef SWITCHYARD_WITH_TBB

const char* RunOrRefuse(Layer& layer, uint64_t expected, const Status& status) {
  if (status.ok()) return layer.Digest() == expected ? nullptr : "wrong bits";
  return status.code() == StatusCode::kOutOfMemory ||
                 status.code() == StatusCode::kInternal
             ? nullptr
             : status.message();
}

TEST(AllocationFailure, KernelsOnTbb) {
  RefuseEach("kernels on TBB", [](Refusal& refusal) {
    Layer layer(kShape, 1);
    const uint64_t expected = layer.Expected();
    const auto executor = MakeTbbExecutor();
    if (executor == nullptr) return "no executor";
    layer.Clear();
    const Status status = refusal.During([&] { return layer.Run(*executor); });
    const char* const problem = RunOrRefuse(layer, expected, status);
    if (problem != nullptr) return problem;
    return layer.IsRight(*executor, expected) ? nullptr : "does not recover";
  });
}

// TBB does not recover if its first use in the process fails. From then on
// MakeTbbExecutor() has to return null, because an executor that hangs would
// be worse.
void MakeTheFirstTbbExecutor(const char* name, int max_concurrency) {
  RefuseEach(name, [max_concurrency](Refusal& refusal) {
    Layer layer(kShape, 1);
    const uint64_t expected = layer.Expected();
    auto executor = refusal.During(
        [max_concurrency] { return MakeTbbExecutor(max_concurrency); });
    const bool made = executor != nullptr;
    if (made && !layer.IsRight(*executor, expected)) {
      return "what was made does not work";
    }
    executor = MakeTbbExecutor(max_concurrency);
    if (executor == nullptr) return made ? "does not recover" : nullptr;
    return layer.IsRight(*executor, expected) ? nullptr : "wrong bits";
  });
}
TEST(AllocationFailure, MakeTheFirstTbbExecutor) {
  MakeTheFirstTbbExecutor("first MakeTbbExecutor", -1);
  MakeTheFirstTbbExecutor("first MakeTbbExecutor(2)", 2);
}
TEST(AllocationFailure, MakeAnotherTbbExecutor) {
  RefuseEach("another MakeTbbExecutor", [](Refusal& refusal) {
    Layer layer(kShape, 1);
    const uint64_t expected = layer.Expected();
    auto executor = MakeTbbExecutor();
    if (!layer.IsRight(*executor, expected)) return "wrong bits";
    executor = nullptr;
    executor = refusal.During([] { return MakeTbbExecutor(); });
    if (executor != nullptr && !layer.IsRight(*executor, expected)) {
      return "what was made does not work";
    }
    executor = MakeTbbExecutor();
    return executor != nullptr && layer.IsRight(*executor, expected)
               ? nullptr
               : "does not recover";
  });
}

#endif  // SWITCHYARD_WITH_TBB

#ifdef SWITCHYARD_WITH_DEVICE

using device::CreateDevice;
using device::DeviceOptions;
using Outcome = DevicePass::Outcome;

constexpr Shape kSmall = {24, 32, 2, 8};  // for checked mode

// Makes and uses a device and its queue while requests for memory are
// refused. Then uses them again, and makes new ones.
const char* UseDevice(Refusal& refusal, const Shape& shape,
                      const DeviceOptions& options) {
  const DevicePass pass(shape, 2);
  auto kernel = DevicePass::Reverse();
  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::CommandQueue> queue;
  const Outcome outcome = refusal.During([&] {
    device = CreateDevice(options);
    if (device != nullptr) queue = device->newCommandQueue();
    if (queue == nullptr) return Outcome::kRefused;
    return pass.Run(*device, *queue, std::move(kernel));
  });
  if (outcome == Outcome::kWrong) return "completed, but wrong";
  if (refusal.asked < refusal.n && outcome != Outcome::kRight) {
    return "an error, though nothing was refused";
  }
  if (queue != nullptr &&
      pass.Run(*device, *queue, DevicePass::Reverse()) != Outcome::kRight) {
    return "the queue does not recover";
  }
  queue = nullptr;
  device = nullptr;
  return pass.Run(options) == Outcome::kRight ? nullptr : "does not recover";
}

std::shared_ptr<Executor> Serial() {
  return std::shared_ptr<Executor>(&SerialExecutor(), [](Executor*) {});
}

TEST(AllocationFailure, Device) {
  RefuseEach("device", [](Refusal& refusal) {
    DeviceOptions options;
    options.executor = Serial();
    return UseDevice(refusal, kShape, options);
  });
}
TEST(AllocationFailure, DeviceThatTimesDispatches) {
  RefuseEach("device with times", [](Refusal& refusal) {
    DeviceOptions options;
    options.executor = Serial();
    options.time_dispatches = true;
    return UseDevice(refusal, kSmall, options);
  });
}
TEST(AllocationFailure, DeviceOnItsOwnExecutor) {
  RefuseEach("device on TBB", [](Refusal& refusal) {
    return UseDevice(refusal, kShape, DeviceOptions());
  });
}
TEST(AllocationFailure, CheckedMode) {
  RefuseEach("checked mode", [](Refusal& refusal) {
    DeviceOptions options;
    options.executor = Serial();
    options.check_kernels = true;
    return UseDevice(refusal, kSmall, options);
  });
}
// A kernel or a handler throws, and there is no memory left to copy the
// exception's text.
TEST(AllocationFailure, ThrownByTheUsersCode) {
  for (const bool by_handler : {false, true}) {
    EXPECT_EQ(InChild([by_handler] {
                const auto fail = [] {
                  StartFailing(1, Failing::kAllOn);
                  throw std::bad_alloc();
                };
                DeviceOptions options;
                options.executor = Serial();
                const auto device = CreateDevice(options);
                const auto buffer = device->newCommandQueue()->commandBuffer();
                const auto encoder = buffer->computeCommandEncoder();
                encoder->setComputePipelineState(
                    device->newComputePipelineState(device::KernelFunction{
                        "a kernel whose name is longer than a string has room",
                        [=](const device::ThreadgroupContext&) {
                          if (!by_handler) fail();
                        }}));
                encoder->dispatchThreadgroups({1, 1, 1}, {1, 1, 1});
                encoder->endEncoding();
                buffer->addCompletedHandler([=](device::CommandBuffer*) {
                  if (by_handler) fail();
                });
                buffer->commit();
                buffer->waitUntilCompleted();
                (void)StopFailing();
                return Tell(buffer->error() == "out of memory"
                                ? nullptr
                                : "another error");
              }),
              "");
  }
}
TEST(AllocationFailure, CheckedModeShuffled) {
  RefuseEach("checked mode, shuffled", [](Refusal& refusal) {
    DeviceOptions options;
    options.executor = Serial();
    options.check_kernels = true;
    options.schedule_seed = 3;
    return UseDevice(refusal, kSmall, options);
  });
}

#endif  // SWITCHYARD_WITH_DEVICE

}  // namespace
}  // namespace switchyard::testing_support
