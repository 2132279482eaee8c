// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Fills, copies, and buffers of heaps.

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/checked_kernels.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {
namespace {

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

// In the order of the command buffer, and kept until it has run.
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

// Memory that was never written stays so where it is copied to.
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
                         ModeName);

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
  EXPECT_EQ(heap->newBuffer(4, 0, 0), nullptr);  // no placement heap
  a.reset();
  EXPECT_EQ(heap->usedSize(), 512u);
  EXPECT_NE(heap->newBuffer(1, 0), nullptr);
  heap.reset();
  std::memset(b->contents(), 1, b->length());  // lives on
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
