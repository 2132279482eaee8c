// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the memory of buffers: it stays allocated until the work that uses it
// is done.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device/tests/checked_kernels.h"
#include "device/tests/device_test.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"

namespace switchyard::testing_support {
namespace {

class DeviceBuffer : public DeviceTest {
 protected:
  // Returns a buffer that counts its deallocations, and stores the thread
  // that made the last deallocation.
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
  // Returns a command buffer with a kernel that waits for `release_`, and
  // then checks that no buffer was deallocated.
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

  // Binds the buffer in a command buffer that is never committed.
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
  // The address is not aligned, and the memory after it has no padding.
  void* const odd = bytes + 1;
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
        // The span has only whole elements, and starts at the offset.
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

// Each way to bind a buffer keeps the buffer alive, even if another buffer is
// bound later.
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
        // Another command buffer retains the buffer, and is dropped before
        // the dispatch.
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
    EXPECT_EQ(deallocated_, 1);  // released after the work
  }
}

// The buffer is bound in a command buffer that is never committed. It is
// released together with that command buffer.
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

// After a mistake the command buffer does not run, but it still releases its
// buffers.
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

// The following tests are about fills, copies, and buffers of heaps.

using EncodeBlit = std::function<void(BlitCommandEncoder&)>;

class DeviceBlit : public DeviceTest, public testing::WithParamInterface<Mode> {
 protected:
  DeviceBlit() : DeviceTest(GetParam()) {}
  std::string Blit(const EncodeBlit& encode) {
    const auto commands = queue_->commandBuffer();
    const auto encoder = commands->blitCommandEncoder();
    encode(*encoder);
    encoder->endEncoding();
    CommitAndWait(*commands);
    return commands->error();
  }
};

TEST_P(DeviceBlit, FillsAndCopies) {
  std::vector<unsigned char> bytes(100);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(i);
  }
  const auto x = NewBuffer(*device_, bytes);
  const auto y = NewBuffer(*device_, std::vector<unsigned char>(50, 200));
  EXPECT_EQ(Blit([&](BlitCommandEncoder& e) {
              e.fillBuffer(y, Range(1, 3), 9);
              e.fillBuffer(y.get(), Range(50, 0), 1);
              e.copyFromBuffer(x, 93, y, 10, 7);
              e.copyFromBuffer(x.get(), 0, x.get(), 60, 40);
              e.copyFromBuffer(x, 5, y, 0, 0);
              e.synchronizeResource(y);
            }),
            "");
  std::vector<unsigned char> want(50, 200);
  for (size_t i = 1; i < 4; ++i) want[i] = 9;
  for (size_t i = 0; i < 7; ++i) {
    want[10 + i] = static_cast<unsigned char>(93 + i);
  }
  EXPECT_EQ(Contents<unsigned char>(y), want);
  for (size_t i = 0; i < 40; ++i) {
    bytes[60 + i] = static_cast<unsigned char>(i);
  }
  EXPECT_EQ(Contents<unsigned char>(x), bytes);
}

// Blits run in the order of the command buffer, and keep their buffers alive
// until they have run.
TEST_P(DeviceBlit, BetweenDispatches) {
  auto from = NewBuffer(*device_, std::vector<int32_t>{1, 2, 3});
  const auto to = NewBuffer(*device_, std::vector<int32_t>{0, 0, 0});
  const auto commands = queue_->commandBuffer();
  int32_t seen = 0;
  const auto dispatch = [&](auto body) {
    const auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(Pipeline(body));
    encoder->setBuffer(to, 0, 0);
    DispatchOne(*encoder);
    encoder->endEncoding();
  };
  dispatch(
      [](const ThreadgroupContext& tg) { tg.buffer<int32_t>(0).data[1] = 50; });
  const auto blit = commands->blitCommandEncoder();
  blit->copyFromBuffer(from, 0, to, 0, 8);
  blit->endEncoding();
  dispatch([&](const ThreadgroupContext& tg) {
    seen = tg.buffer<const int32_t>(0).data[1];
  });
  from.reset();
  CommitAndWait(*commands);
  ExpectCompleted(*commands);
  EXPECT_EQ(seen, 2);
}

TEST_P(DeviceBlit, Mistakes) {
  const auto x = device_->newBuffer(10);
  const char bytes[10] = {};
  const auto constant = device_->newBufferWithBytesNoCopy(
      static_cast<const void*>(bytes), sizeof(bytes));
  const auto expect = [&](const char* error, const EncodeBlit& encode) {
    EXPECT_EQ(Blit(encode), error);
  };
  expect("fillBuffer: buffer is null",
         [](BlitCommandEncoder& e) { e.fillBuffer(nullptr, Range(0, 1), 0); });
  expect(
      "fillBuffer: buffer: 3 bytes from 8 on are past the end of a buffer "
      "of 10 bytes",
      [&](BlitCommandEncoder& e) { e.fillBuffer(x, Range(8, 3), 0); });
  expect(
      "fillBuffer: buffer: 1 bytes from 18446744073709551615 on are past "
      "the end of a buffer of 10 bytes",
      [&](BlitCommandEncoder& e) { e.fillBuffer(x, Range(SIZE_MAX, 1), 0); });
  expect("fillBuffer: buffer is read-only", [&](BlitCommandEncoder& e) {
    e.fillBuffer(constant, Range(0, 1), 0);
  });
  expect("copyFromBuffer: source is null",
         [&](BlitCommandEncoder& e) { e.copyFromBuffer(nullptr, 0, x, 0, 1); });
  expect("copyFromBuffer: destination is null",
         [&](BlitCommandEncoder& e) { e.copyFromBuffer(x, 0, nullptr, 0, 1); });
  expect(
      "copyFromBuffer: source: 11 bytes from 0 on are past the end of a "
      "buffer of 10 bytes",
      [&](BlitCommandEncoder& e) { e.copyFromBuffer(constant, 0, x, 0, 11); });
  expect(
      "copyFromBuffer: destination is read-only",
      [&](BlitCommandEncoder& e) { e.copyFromBuffer(x, 0, constant, 0, 1); });
  expect("copyFromBuffer: source and destination overlap",
         [&](BlitCommandEncoder& e) { e.copyFromBuffer(x, 0, x, 4, 5); });
  expect("", [&](BlitCommandEncoder& e) { e.copyFromBuffer(x, 0, x, 5, 5); });
  expect("synchronizeResource: resource is null",
         [](BlitCommandEncoder& e) { e.synchronizeResource(nullptr); });
  const auto commands = queue_->commandBuffer();
  const auto open = commands->computeCommandEncoder();
  commands->blitCommandEncoder();
  EXPECT_EQ(commands->error(), "blitCommandEncoder: another encoder is open");
}

// A copy of memory that was never written counts as never written, too.
TEST(DeviceBlitChecked, NeverWritten) {
  CheckedQueue q;
  const auto fresh = q.device->newBuffer(8), copy = q.device->newBuffer(8);
  const auto out = q.device->newBuffer(8);
  const auto commands = q.queue->commandBuffer();
  const auto blit = commands->blitCommandEncoder();
  blit->fillBuffer(fresh, Range(0, 4), 1);
  blit->copyFromBuffer(fresh, 0, copy, 0, 8);
  blit->endEncoding();
  const auto encoder = commands->computeCommandEncoder();
  q.Dispatch(*encoder, "copy", kCopy, {copy, out}, 1, 2);
  encoder->endEncoding();
  commands->commit();
  commands->waitUntilCompleted();
  EXPECT_EQ(commands->error(),
            "copy: threadgroup (0, 0, 0), thread 1: reads buffer 0[1], which "
            "nothing has written since newBuffer()");
}

INSTANTIATE_TEST_SUITE_P(Modes, DeviceBlit, testing::ValuesIn(kModes),
                         testing::PrintToStringParamName());

using DeviceHeap = DeviceTest;

std::shared_ptr<Heap> NewHeap(Device& device, size_t size,
                              HeapType type = HeapTypeAutomatic) {
  HeapDescriptor* descriptor = HeapDescriptor::alloc()->init();
  descriptor->setSize(size);
  descriptor->setType(type);
  descriptor->setStorageMode(StorageModePrivate);
  Heap* heap = device.newHeap(descriptor);
  descriptor->release();
  return TransferPtr(heap);
}

TEST_F(DeviceHeap, CountsWhatItsBuffersTake) {
  auto heap = NewHeap(*device_, 1024);
  EXPECT_EQ(heap->size(), 1024u);
  EXPECT_EQ(heap->usedSize(), 0u);
  auto a = heap->newBuffer(300, ResourceStorageModePrivate);
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->length(), 300u);
  EXPECT_EQ(heap->usedSize(), 512u);
  EXPECT_EQ(heap->maxAvailableSize(16), 512u);
  EXPECT_EQ(device_->heapBufferSizeAndAlign(300, 0).size, 512u);
  EXPECT_EQ(device_->heapBufferSizeAndAlign(300, 0).align, 256u);
  EXPECT_EQ(heap->newBuffer(513, 0), nullptr);
  auto b = heap->newBuffer(512, 0);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(heap->newBuffer(1, 0), nullptr);
  EXPECT_EQ(heap->newBuffer(SIZE_MAX, 0), nullptr);
  EXPECT_EQ(heap->newBuffer(size_t{0}, 0), nullptr);
  // An offset needs a placement heap.
  EXPECT_EQ(heap->newBuffer(4, 0, 0), nullptr);
  a.reset();
  EXPECT_EQ(heap->usedSize(), 512u);
  EXPECT_NE(heap->newBuffer(1, 0), nullptr);
  heap.reset();
  std::memset(b->contents(), 1, b->length());  // the buffer outlives its heap
  b.reset();
  EXPECT_EQ(device_->currentAllocatedSize(), 0u);
  EXPECT_EQ(device_->newHeap(nullptr), nullptr);
  EXPECT_EQ(NewHeap(*device_, 0), nullptr);
}

TEST_F(DeviceHeap, PlacementSharesMemory) {
  auto heap = NewHeap(*device_, 1000, HeapTypePlacement);
  EXPECT_EQ(heap->newBuffer(4, 0), nullptr);
  EXPECT_EQ(heap->newBuffer(4, 0, 100), nullptr);
  EXPECT_EQ(heap->newBuffer(489, 0, 512), nullptr);
  EXPECT_EQ(heap->newBuffer(1, 0, 1024), nullptr);
  const auto a = heap->newBuffer(1000, 0, 0), b = heap->newBuffer(488, 0, 512);
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  heap.reset();
  static_cast<char*>(a->contents())[512] = 7;
  EXPECT_EQ(static_cast<char*>(b->contents())[0], 7);
}

TEST_F(DeviceHeap, IsKeptByTheCommandBufferThatUsesIt) {
  auto heap = NewHeap(*device_, 1024);
  const std::weak_ptr<Heap> weak = heap;
  const auto commands = Encoded(*queue_, [&](Encoder& e) { e.useHeap(heap); });
  heap.reset();
  CommitAndWait(*commands);
  ExpectCompleted(*commands);
}

TEST(DeviceHeapChecked, NeverWritten) {
  CheckedQueue q;
  for (const HeapType type : {HeapTypeAutomatic, HeapTypePlacement}) {
    const auto heap = NewHeap(*q.device, 4096, type);
    const BufferPtr x = type == HeapTypeAutomatic
                            ? heap->newBuffer(128, 0)
                            : heap->newBuffer(128, 0, 256);
    EXPECT_EQ(q.Run(q.Copy(x, q.Floats(32), 1)),
              "copy: threadgroup (0, 0, 0), thread 0: reads buffer 0[0], which "
              "nothing has written since newBuffer()");
  }
}

}  // namespace
}  // namespace switchyard::testing_support
