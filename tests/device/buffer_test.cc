// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Buffers: their memory, and that it stays until the work with it is done.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {
namespace {

class DeviceBuffer : public DeviceTest {
 protected:
  // A buffer that counts its deallocations, and tells the thread of the last.
  BufferPtr Counted() {
    return device_->newBufferWithBytesNoCopy(
        static_cast<void*>(memory_), sizeof(memory_), ResourceStorageModeShared,
        [this](void* pointer, size_t size) {
          EXPECT_EQ(pointer, memory_);
          EXPECT_EQ(size, sizeof(memory_));
          deallocated_on_ = std::this_thread::get_id();
          ++deallocated_;
        });
  }
  // A command buffer whose kernel waits for `release_`, and finds every buffer
  // still there.
  std::shared_ptr<CommandBuffer> Blocked(
      const std::function<void(Encoder&)>& bind) {
    const auto buffer = queue_->commandBuffer();
    const auto encoder = buffer->computeCommandEncoder();
    encoder->setComputePipelineState(
        Pipeline([this](const ThreadgroupContext&) {
          release_.Wait();
          EXPECT_EQ(deallocated_, 0);
          ran_ = true;
        }));
    bind(*encoder);
    DispatchOne(*encoder);
    encoder->endEncoding();
    return buffer;
  }

  // In one that is never committed.
  void BindInAnother(const BufferPtr& buffer) {
    const auto other = queue_->commandBuffer();
    other->computeCommandEncoder()->setBuffer(buffer, 0, 0);
  }

  alignas(16) int32_t memory_[4] = {1, 1, 1, 1};
  std::atomic<int> deallocated_{0};
  std::thread::id deallocated_on_;
  Flag release_;
  bool ran_ = false;
};

TEST_F(DeviceBuffer, ZeroedAndPageAligned) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const size_t length : {size_t{1}, page - 1, page, page + 1, 9 * page}) {
    const auto buffer = device_->newBuffer(length);
    ASSERT_NE(buffer, nullptr);
    EXPECT_EQ(buffer->length(), length);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->contents()) % page, 0u);
    unsigned char* const bytes =
        static_cast<unsigned char*>(buffer->contents());
    for (size_t i = 0; i < length; ++i) ASSERT_EQ(bytes[i], 0) << i;
    std::memset(bytes, 1, length);
  }
}

TEST_F(DeviceBuffer, CopyOfBytes) {
  std::vector<int32_t> values(3000);
  std::iota(values.begin(), values.end(), 7);
  const std::vector<int32_t> expected = values;
  const auto buffer = device_->newBuffer(values.data(), 4 * values.size());
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(buffer->length(), 4 * values.size());
  std::fill(values.begin(), values.end(), 0);
  EXPECT_EQ(std::memcmp(buffer->contents(), expected.data(), 12000), 0);
}

TEST_F(DeviceBuffer, NoCopyIsTheSameMemory) {
  alignas(4) unsigned char bytes[64] = {};
  void* const odd = bytes + 1;  // neither aligned nor padded
  const auto buffer = device_->newBufferWithBytesNoCopy(odd, 9);
  EXPECT_EQ(buffer->contents(), odd);
  EXPECT_EQ(buffer->length(), 9u);
  const void* const constant = bytes;
  const auto read_only = device_->newBufferWithBytesNoCopy(constant, 64);
  EXPECT_EQ(read_only->contents(), constant);

  const auto work = queue_->commandBuffer();
  const auto encoder = work->computeCommandEncoder();
  encoder->setComputePipelineState(
      Pipeline([&](const ThreadgroupContext& context) {
        const Span<unsigned char> whole = context.buffer<unsigned char>(0);
        EXPECT_EQ(whole.data, odd);
        EXPECT_EQ(whole.size, 9u);
        whole.data[8] = 7;
        // Whole elements, from the offset on.
        const Span<const int32_t> ints = context.buffer<const int32_t>(1);
        EXPECT_EQ(static_cast<const void*>(ints.data), bytes + 4);
        EXPECT_EQ(ints.size, 15u);
        const Span<const int64_t> longs = context.buffer<const int64_t>(2);
        EXPECT_EQ(longs.size, 1u);
      }));
  encoder->setBuffer(buffer, 0, 0);
  encoder->setBuffer(read_only, 4, 1);
  encoder->setBuffer(device_->newBuffer(15), 0, 2);
  DispatchOne(*encoder);
  encoder->endEncoding();
  CommitAndWait(*work);
  ExpectCompleted(*work);
  EXPECT_EQ(bytes[9], 7);
  EXPECT_EQ(bytes[10], 0);
}

TEST_F(DeviceBuffer, DeallocatedOnceByTheLastReference) {
  auto buffer = Counted();
  auto copy = buffer;
  buffer.reset();
  EXPECT_EQ(deallocated_, 0);
  copy.reset();
  EXPECT_EQ(deallocated_, 1);
  EXPECT_EQ(deallocated_on_, std::this_thread::get_id());
}

// Every way of binding keeps the buffer, whatever is bound afterwards.
TEST_F(DeviceBuffer, KeptUntilTheWorkIsDone) {
  const std::vector<std::function<void(Encoder&)>> ways = {
      [this](Encoder& e) { e.setBuffer(Counted(), 0, 0); },
      [this](Encoder& e) { e.setBuffer(Counted(), 4, 30); },
      [this](Encoder& e) {
        const BufferPtr buffers[] = {nullptr, Counted()};
        const size_t offsets[] = {0, 0};
        e.setBuffers(buffers, offsets, Range(0, 2));
      },
      [this](Encoder& e) {
        e.dispatchThreadgroups(Counted(), 0, Size(1, 1, 1));
      },
      [this](Encoder& e) {
        const auto buffer = Counted();
        e.setBuffer(buffer, 0, 0);
        e.setBuffer(buffer, 4, 1);
        // Another command buffer takes it in between, and is dropped.
        BindInAnother(buffer);
        DispatchOne(e);
        e.setBuffer(buffer, 0, 2);
      },
      [this](Encoder& e) {
        const auto buffer = Counted();
        BindInAnother(buffer);
        e.setBuffer(buffer, 0, 0);
      },
  };
  for (const auto& bind : ways) {
    ran_ = false;
    deallocated_ = 0;
    release_.Clear();
    const auto buffer = Blocked(bind);
    EXPECT_EQ(deallocated_, 0);
    buffer->commit();
    EXPECT_EQ(deallocated_, 0);
    release_.Set();
    buffer->waitUntilCompleted();
    ExpectCompleted(*buffer);
    EXPECT_TRUE(ran_);
    EXPECT_EQ(deallocated_, 1);  // not kept any longer, either
  }
}

// One that is bound, and never committed.
TEST_F(DeviceBuffer, LetGoWithTheCommandBuffer) {
  for (const bool enqueue : {false, true}) {
    deallocated_ = 0;
    auto buffer = Blocked([this](Encoder& e) { e.setBuffer(Counted(), 0, 0); });
    if (enqueue) buffer->enqueue();
    EXPECT_EQ(deallocated_, 0);
    buffer.reset();
    EXPECT_EQ(deallocated_, 1);
    EXPECT_FALSE(ran_);
    ExpectQueueRuns();
  }
}

// A mistake keeps the buffer from running, not from letting go.
TEST_F(DeviceBuffer, LetGoAfterAnError) {
  const auto buffer = Blocked([this](Encoder& e) {
    e.setBuffer(Counted(), 0, 0);
    e.setBytes(nullptr, 1, 1);
  });
  CommitAndWait(*buffer);
  EXPECT_EQ(buffer->status(), CommandBufferStatusError);
  EXPECT_EQ(deallocated_, 1);
}

TEST_F(DeviceBuffer, DeallocatedOnTheQueuesThread) {
  auto buffer = Blocked([this](Encoder& e) { e.setBuffer(Counted(), 0, 0); });
  Flag done;
  std::thread::id queue_thread;
  buffer->addCompletedHandler([&](CommandBuffer*) {
    EXPECT_EQ(deallocated_, 1);
    queue_thread = std::this_thread::get_id();
    done.Set();
  });
  buffer->commit();
  buffer.reset();
  release_.Set();
  done.Wait();
  EXPECT_NE(queue_thread, std::this_thread::get_id());
  EXPECT_EQ(deallocated_on_, queue_thread);
}

TEST_F(DeviceBuffer, DeallocatorThatThrows) {
  const auto thrower = [this] {
    return device_->newBufferWithBytesNoCopy(
        static_cast<void*>(memory_), 4, ResourceStorageModeShared,
        [this](void*, size_t) {
          ++deallocated_;
          if (deallocated_ == 1) throw std::runtime_error("nobody hears this");
          throw 7;
        });
  };
  thrower().reset();
  EXPECT_EQ(deallocated_, 1);
  release_.Set();
  deallocated_ = 0;
  for (int i = 1; i <= 2; ++i) {
    const auto buffer = queue_->commandBuffer();
    const auto encoder = buffer->computeCommandEncoder();
    encoder->setBuffer(thrower(), 0, 0);
    encoder->endEncoding();
    CommitAndWait(*buffer);
    ExpectCompleted(*buffer);
    EXPECT_EQ(deallocated_, i);
  }
  ExpectQueueRuns();
}

}  // namespace
}  // namespace switchyard::testing_support
