// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// References dropped while work is in flight, by any thread.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {
namespace {

class DeviceLifetime : public DeviceTest {
 protected:
  DeviceLifetime() {
    queue_.reset();
    UseNewDevice(gone_);
  }
  void UseNewDevice(const std::shared_ptr<Flag>& gone) {
    DeviceOptions options;
    options.executor = std::make_shared<TellingExecutor>(gone);
    device_ = CreateDevice(options);
    queue_ = device_->newCommandQueue();
  }
  void DropQueueAndDevice() {
    queue_.reset();
    device_.reset();
  }

  const std::shared_ptr<Flag> gone_ = std::make_shared<Flag>();
};

TEST_F(DeviceLifetime, DeviceGoesWithItsLastUser) {
  DropQueueAndDevice();
  EXPECT_TRUE(gone_->IsSet());
}

TEST_F(DeviceLifetime, PartsKeepTheWhole) {
  const std::weak_ptr<Device> device = device_;
  const std::weak_ptr<CommandQueue> queue = queue_;
  bool ran = false;
  auto buffer = Work([&ran] { ran = true; });
  EXPECT_EQ(queue_->device(), device_);
  DropQueueAndDevice();
  EXPECT_FALSE(device.expired());
  EXPECT_FALSE(queue.expired());
  CommitAndWait(*buffer);
  ExpectCompleted(*buffer);
  EXPECT_TRUE(ran);
  // Results can be asked for as long as one likes.
  auto encoder = buffer->computeCommandEncoder();
  buffer.reset();
  EXPECT_FALSE(queue.expired());
  encoder.reset();
  EXPECT_TRUE(queue.expired());
  EXPECT_TRUE(device.expired());
  EXPECT_TRUE(gone_->IsSet());
}

// The last reference waits for the work, and for the handlers.
TEST_F(DeviceLifetime, DroppedWithWorkInFlight) {
  std::string log;
  Flag started, dropping;
  auto a = Work([&] {
    started.Set();
    dropping.Wait();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    log += 'a';
  });
  auto b = Work([&log] { log += 'b'; });
  b->addCompletedHandler([&log](CommandBuffer* completed) {
    ExpectCompleted(*completed);
    log += 'h';
  });
  a->commit();
  b->commit();
  a.reset();
  b.reset();
  device_.reset();
  started.Wait();
  dropping.Set();
  queue_.reset();
  EXPECT_EQ(log, "abh");
  EXPECT_TRUE(gone_->IsSet());
}

TEST_F(DeviceLifetime, CommandBufferDroppedAfterCommit) {
  std::string log;
  for (int i = 0; i < 100; ++i) Work([&log] { log += 'a'; })->commit();
  ExpectQueueRuns();
  EXPECT_EQ(log, std::string(100, 'a'));
}

// The queue is held up by what is never committed, until that is dropped.
TEST_F(DeviceLifetime, DroppedBehindAnUncommittedBuffer) {
  bool ran = false;
  auto held = Work([] { FAIL(); });
  held->enqueue();
  Work([&ran] { ran = true; })->commit();
  DropQueueAndDevice();
  EXPECT_FALSE(gone_->IsSet());
  held.reset();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(gone_->IsSet());
}

TEST_F(DeviceLifetime, PipelineKeptUntilTheWorkIsDone) {
  auto token = std::make_shared<int>(7);
  const std::weak_ptr<int> weak = token;
  auto held = Work([] {});
  held->enqueue();
  int seen = 0;
  const auto buffer = Work([&seen, token] { seen = *token; });
  token.reset();
  buffer->commit();
  EXPECT_FALSE(weak.expired());
  held->commit();
  buffer->waitUntilCompleted();
  EXPECT_EQ(seen, 7);
  EXPECT_TRUE(weak.expired());
}

// On the queue's own thread, which cannot wait for itself: it ends by itself.
TEST_F(DeviceLifetime, DroppedInAHandlerOnTheQueuesThread) {
  Flag only_here;
  std::atomic<int> later{0};
  auto buffer = Work([] {});
  auto next = Work([&later] { ++later; });
  buffer->enqueue();
  next->commit();
  // The handler holds the only references; there is another after it.
  auto refs = std::make_shared<std::pair<std::shared_ptr<CommandQueue>,
                                         std::shared_ptr<CommandBuffer>>>();
  buffer->addCompletedHandler([refs, &only_here](CommandBuffer* completed) {
    only_here.Wait();
    refs->first.reset();
    refs->second.reset();
    ExpectCompleted(*completed);
  });
  buffer->addCompletedHandler([](CommandBuffer* completed) {
    ExpectCompleted(*completed);
    completed->waitUntilCompleted();
  });
  next.reset();
  device_.reset();
  refs->first = std::move(queue_);
  refs->second = buffer;
  buffer->commit();
  buffer.reset();
  only_here.Set();
  gone_->Wait();
  EXPECT_EQ(later, 1);  // what was committed has run all the same
}

// The same on a thread in waitUntilCompleted, whose buffer goes under its feet.
TEST_F(DeviceLifetime, DroppedInAHandlerWhileWaiting) {
  const std::thread::id here = std::this_thread::get_id();
  bool ran_here = false;
  for (int i = 0; i < 100000 && !ran_here; ++i) {
    const auto gone = std::make_shared<Flag>();
    UseNewDevice(gone);
    auto buffer = Work([] {});
    buffer->addCompletedHandler([&](CommandBuffer*) {
      ran_here = std::this_thread::get_id() == here;
      if (!ran_here) return;
      buffer.reset();
      DropQueueAndDevice();
    });
    CommitAndWait(*buffer);
    if (ran_here) gone->Wait();
  }
  EXPECT_TRUE(ran_here);
}

// A kernel or a handler, or a buffer's deallocator, drops what it captured.
TEST_F(DeviceLifetime, DroppedWithACapture) {
  for (const char* const where : {"kernel", "handler", "deallocator"}) {
    SCOPED_TRACE(where);
    const auto gone = std::make_shared<Flag>();
    Flag done;
    UseNewDevice(gone);
    auto queue = queue_;
    auto buffer = queue_->commandBuffer();
    auto encoder = buffer->computeCommandEncoder();
    const std::string name = where;
    if (name == "kernel") {
      encoder->setComputePipelineState(
          Pipeline([kept = std::move(queue)](const ThreadgroupContext&) {}));
    } else if (name == "deallocator") {
      static char byte;
      encoder->setComputePipelineState(
          Pipeline([](const ThreadgroupContext&) {}));
      encoder->setBuffer(
          device_->newBufferWithBytesNoCopy(
              static_cast<void*>(&byte), 1, ResourceStorageModeShared,
              [kept = std::move(queue)](void*, size_t) mutable {
                kept.reset();
              }),
          0, 0);
    } else {
      encoder->setComputePipelineState(
          Pipeline([](const ThreadgroupContext&) {}));
      buffer->addCompletedHandler([kept = std::move(queue)](CommandBuffer*) {});
    }
    DispatchOne(*encoder);
    encoder->endEncoding();
    encoder.reset();
    auto held = queue_->commandBuffer();
    buffer->commit();
    held.reset();
    buffer.reset();
    DropQueueAndDevice();
    gone->Wait();
  }
}

}  // namespace
}  // namespace switchyard::testing_support
