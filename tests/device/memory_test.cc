// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The device layer without memory: errors, never an exception or an abort. The
// program's operator new fails on request.

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/device_test.h"

namespace {

std::atomic<bool> g_out_of_memory{false};

void* Allocate(size_t size) {
  if (g_out_of_memory) throw std::bad_alloc();
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Not inlined: GCC warns where it sees the insides of one of a pair alone.
#define SWITCHYARD_NOINLINE __attribute__((noinline))
SWITCHYARD_NOINLINE void* operator new(size_t size) { return Allocate(size); }
SWITCHYARD_NOINLINE void* operator new[](size_t size) { return Allocate(size); }
SWITCHYARD_NOINLINE void operator delete(void* memory) noexcept {
  std::free(memory);
}
SWITCHYARD_NOINLINE void operator delete[](void* memory) noexcept {
  std::free(memory);
}
SWITCHYARD_NOINLINE void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
SWITCHYARD_NOINLINE void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}

namespace switchyard::testing_support {
namespace {

class OutOfMemory {
 public:
  OutOfMemory() { g_out_of_memory = true; }
  ~OutOfMemory() { g_out_of_memory = false; }
};

// On this thread alone: the pool's threads need memory, too.
class DeviceMemory : public DeviceTest {
 protected:
  DeviceMemory() {
    DeviceOptions options;
    options.executor = MakeExecutor(Pool::kSerial);
    options.time_dispatches = true;
    device_ = CreateDevice(options);
    queue_ = device_->newCommandQueue();
  }

  std::shared_ptr<CommandBuffer> Work(const std::function<void()>& what) {
    return Encoded(*queue_, [&](Encoder& e) {
      e.setComputePipelineState(Pipeline(
          [what](const ThreadgroupContext&) { what(); },
          "a kernel whose name is longer than a string keeps in itself"));
      DispatchOne(e);
    });
  }
};

TEST_F(DeviceMemory, NoneForADispatchTime) {
  const auto buffer = Work([] {});
  {
    const OutOfMemory out_of_memory;
    CommitAndWait(*buffer);
  }
  // There was no memory for the text either, so that it is made now.
  ExpectError(*buffer, "out of memory");
  ExpectQueueRuns();
}

TEST_F(DeviceMemory, NoneLeftByAKernel) {
  const auto buffer = Work([] {
    g_out_of_memory = true;
    throw std::bad_alloc();
  });
  CommitAndWait(*buffer);
  g_out_of_memory = false;
  ExpectError(*buffer, "out of memory");
  ExpectQueueRuns();
}

TEST_F(DeviceMemory, NoneLeftByAHandler) {
  const auto buffer = Work([] {});
  buffer->addCompletedHandler([](CommandBuffer*) {
    g_out_of_memory = true;
    throw std::bad_alloc();
  });
  CommitAndWait(*buffer);
  g_out_of_memory = false;
  ExpectError(*buffer, "out of memory");
  ExpectQueueRuns();
}

TEST_F(DeviceMemory, NoneWhileEncoding) {
  const auto buffer = queue_->commandBuffer();
  const auto encoder = buffer->computeCommandEncoder();
  const int32_t value = 1;
  {
    const OutOfMemory out_of_memory;
    // More than any memory kept from earlier buffers.
    for (int i = 0; i < 100000; ++i) encoder->setBytes(&value, 4, 0);
    encoder->endEncoding();
  }
  CommitAndWait(*buffer);
  EXPECT_EQ(buffer->status(), CommandBufferStatusError);
  EXPECT_NE(buffer->error().find("out of memory"), std::string::npos);
  ExpectQueueRuns();
}

TEST_F(DeviceMemory, NoneForObjects) {
  const auto buffer = queue_->commandBuffer();
  int memory = 0;
  int freed = 0;
  Buffer::Deallocator deallocator = [&freed](void*, size_t) { ++freed; };
  KernelFunction kernel = {"kernel", [](const ThreadgroupContext&) {}};
  BufferPtr made, wrapped;
  std::shared_ptr<CommandQueue> queue;
  std::shared_ptr<CommandBuffer> command_buffer;
  std::shared_ptr<Encoder> encoder;
  std::shared_ptr<ComputePipelineState> built_in, own;
  std::shared_ptr<Device> device;
  {
    const OutOfMemory out_of_memory;
    made = device_->newBuffer(16);
    wrapped = device_->newBufferWithBytesNoCopy(
        static_cast<void*>(&memory), sizeof(memory), ResourceStorageModeShared,
        std::move(deallocator));
    queue = device_->newCommandQueue();
    command_buffer = queue_->commandBuffer();
    encoder = buffer->computeCommandEncoder();
    built_in = device_->newComputePipelineState("silu_mul_stacked_f32");
    own = device_->newComputePipelineState(std::move(kernel));
    device = CreateDevice(DeviceOptions());
  }
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(wrapped, nullptr);
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(queue, nullptr);
  EXPECT_EQ(command_buffer, nullptr);
  EXPECT_EQ(encoder, nullptr);
  EXPECT_EQ(built_in, nullptr);
  EXPECT_EQ(own, nullptr);
  EXPECT_EQ(device, nullptr);
  ExpectQueueRuns();
}

}  // namespace
}  // namespace switchyard::testing_support
