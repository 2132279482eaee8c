// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Errors that fail a dispatch of a user's kernel while it executes: dispatches
// before it have run, those after it have not.

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {
namespace {

struct Pair {
  int32_t first, second;
};

class DeviceUserKernelErrors : public DeviceTest {
 protected:
  void ExpectFails(
      const std::string& error, Body body,
      const Encode& dispatch = [](Encoder& e) { DispatchOne(e); }) {
    ExpectBetweenOthers(error, [&](Encoder& e) {
      e.setComputePipelineState(Pipeline(std::move(body), "faulty"));
      e.setBuffer(eight_, 0, 0);
      e.setBytes("four", 4, 1);
      dispatch(e);
    });
  }

  const BufferPtr eight_ = device_->newBuffer(8);
};

TEST_F(DeviceUserKernelErrors, Throws) {
  ExpectFails("faulty: what I say", [](const ThreadgroupContext&) {
    throw std::runtime_error("what I say");
  });
  const std::string other =
      "faulty: the kernel threw something that is not a std::exception";
  ExpectFails(other, [](const ThreadgroupContext&) { throw 7; });
  // Longer than the buffer that texts are formatted in.
  const std::string text(1000, 'x');
  ExpectFails("faulty: " + text, [&](const ThreadgroupContext&) {
    throw std::runtime_error(text);
  });
}

// The dispatch as a whole fails, with one text, and none runs twice.
TEST_F(DeviceUserKernelErrors, ThrowsInManyThreadgroups) {
  std::atomic<int> runs{0};
  ExpectFails(
      "faulty: again",
      [&](const ThreadgroupContext&) {
        ++runs;
        throw std::runtime_error("again");
      },
      [](Encoder& e) {
        e.dispatchThreadgroups(Size(10, 10, 10), Size(1, 1, 1));
      });
  EXPECT_GE(runs, 1);
  EXPECT_LE(runs, 1000);
  ExpectFails(
      "faulty: the last one",
      [](const ThreadgroupContext& context) {
        if (context.threadgroup_position_in_grid.width == 99) {
          throw std::runtime_error("the last one");
        }
      },
      [](Encoder& e) {
        e.dispatchThreadgroups(Size(100, 1, 1), Size(1, 1, 1));
      });
}

TEST_F(DeviceUserKernelErrors, Unbound) {
  for (const size_t index : {2u, 30u, 31u, 1000u}) {
    const std::string error =
        "faulty: buffer " + std::to_string(index) + " is not bound";
    ExpectFails(error, [index](const ThreadgroupContext& context) {
      context.buffer<const int32_t>(index);
    });
    ExpectFails(error, [index](const ThreadgroupContext& context) {
      context.params<int32_t>(index);
    });
  }
  ExpectFails(
      "faulty: buffer 0 is not bound",
      [](const ThreadgroupContext& context) { context.buffer<char>(0); },
      [](Encoder& e) {
        e.setBuffer(nullptr, 0, 0);
        DispatchOne(e);
      });
}

TEST_F(DeviceUserKernelErrors, Misaligned) {
  const auto at = [](size_t offset) {
    return [offset](Encoder& e) {
      e.setBufferOffset(offset, 0);
      DispatchOne(e);
    };
  };
  ExpectFails(
      "faulty: buffer 0: its address is not a multiple of 8",
      [](const ThreadgroupContext& context) { context.buffer<double>(0); },
      at(4));
  ExpectFails(
      "faulty: buffer 0: its address is not a multiple of 2",
      [](const ThreadgroupContext& context) { context.buffer<int16_t>(0); },
      at(1));
}

TEST_F(DeviceUserKernelErrors, ReadOnly) {
  // Bytes of setBytes, and a buffer made from a pointer to const.
  ExpectFails("faulty: buffer 1 is written, and is read-only",
              [](const ThreadgroupContext& context) {
                EXPECT_EQ(context.buffer<const char>(1).size, 4u);
                context.buffer<char>(1);
              });
  const int32_t constant = 7;
  const auto buffer = device_->newBufferWithBytesNoCopy(&constant, 4);
  ExpectFails(
      "faulty: buffer 30 is written, and is read-only",
      [](const ThreadgroupContext& context) {
        EXPECT_EQ(context.buffer<const int32_t>(30).data[0], 7);
        context.buffer<int32_t>(30).data[0] = 8;
      },
      [&](Encoder& e) {
        e.setBuffer(buffer, 0, 30);
        DispatchOne(e);
      });
  EXPECT_EQ(constant, 7);
}

TEST_F(DeviceUserKernelErrors, ParamsTooShort) {
  ExpectFails(
      "faulty: buffer 1 (params) needs 8 bytes, 4 are bound: 4 too few",
      [](const ThreadgroupContext& context) { context.params<Pair>(1); });
  ExpectFails(
      "faulty: buffer 0 (params) needs 8 bytes, 7 are bound: 1 too few",
      [](const ThreadgroupContext& context) { context.params<Pair>(0); },
      [](Encoder& e) {
        e.setBufferOffset(1, 0);
        DispatchOne(e);
      });
}

TEST_F(DeviceUserKernelErrors, ThreadgroupMemory) {
  const auto take = [](size_t index) {
    return [index](const ThreadgroupContext& context) {
      context.threadgroup<char>(index);
    };
  };
  const auto with_one = [](Encoder& e) {
    e.setThreadgroupMemoryLength(16, 1);
    DispatchOne(e);
  };
  ExpectFails("faulty: threadgroup memory 0 has no length set", take(0));
  ExpectFails("faulty: threadgroup memory 0 has no length set", take(0),
              with_one);
  ExpectFails("faulty: threadgroup memory 2 has no length set", take(2),
              with_one);
  ExpectFails("faulty: threadgroup memory 31 has no length set", take(31),
              with_one);
}

TEST_F(DeviceUserKernelErrors, GridsThatOverflow) {
  const auto never = [](const ThreadgroupContext&) { FAIL(); };
  const auto threadgroups = [](Size grid) {
    return [grid](Encoder& e) { e.dispatchThreadgroups(grid, Size(2, 1, 1)); };
  };
  const size_t half = size_t{1} << 32;
  ExpectFails("faulty: grid: 4294967296 x 4294967296 x 1 threadgroups overflow",
              never, threadgroups(Size(half, half, 1)));
  ExpectFails("faulty: grid: 4294967296 x 1 x 4294967296 threadgroups overflow",
              never, threadgroups(Size(half, 1, half)));
  ExpectFails(
      "faulty: grid: 18446744073709551615 x 1 x 1 threadgroups overflow", never,
      threadgroups(Size(SIZE_MAX, 1, 1)));
  ExpectFails("faulty: grid: 1 x 1 x 9223372036854775808 threadgroups overflow",
              never, [](Encoder& e) {
                e.dispatchThreads(Size(1, 1, SIZE_MAX), Size(1, 1, 2));
              });
}

// A pool that has no threads left, say.
TEST(DeviceExecutorErrors, SurfaceWithTheirText) {
  class Broken final : public Executor {
    size_t Concurrency() const noexcept override { return 2; }
    Status ParallelFor(size_t, size_t, Body, void*) noexcept override {
      return Status(StatusCode::kInternal, "Broken: no threads");
    }
  };
  DeviceOptions options;
  options.executor = std::make_shared<Broken>();
  const auto device = CreateDevice(options);
  const auto queue = device->newCommandQueue();
  KernelFunction kernel;
  kernel.name = "any";
  kernel.threadgroup = [](const ThreadgroupContext&) {};
  const auto pipeline = device->newComputePipelineState(kernel);
  for (const size_t threadgroups : {2u, 1u}) {  // one needs no executor
    const auto buffer = queue->commandBuffer();
    const auto encoder = buffer->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline);
    encoder->dispatchThreadgroups(Size(threadgroups, 1, 1), Size(1, 1, 1));
    encoder->endEncoding();
    buffer->commit();
    buffer->waitUntilCompleted();
    EXPECT_EQ(buffer->status(), threadgroups == 1 ? CommandBufferStatusCompleted
                                                  : CommandBufferStatusError);
    EXPECT_EQ(buffer->error(),
              threadgroups == 1 ? "" : "any: Broken: no threads");
  }
}

}  // namespace
}  // namespace switchyard::testing_support
