// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// In which order command buffers run, on which threads, and who waits for whom.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {
namespace {

class DeviceQueue : public LogTest {
 protected:
  // The thread that runs what nobody waits for.
  std::thread::id ThreadOf(const std::shared_ptr<CommandQueue>& queue) {
    std::thread::id id;
    Flag done;
    const auto buffer = Work(queue, [&id] { id = std::this_thread::get_id(); });
    buffer->addCompletedHandler([&done](CommandBuffer*) { done.Set(); });
    buffer->commit();
    done.Wait();
    return id;
  }
};

TEST_F(DeviceQueue, CommitOrderWithoutEnqueue) {
  const auto a = Log('a'), b = Log('b'), c = Log('c');
  b->commit();
  c->commit();
  CommitAndWait(*a);
  EXPECT_EQ(log_, "bca");
  // The buffers before it are complete too, whoever ran them.
  ExpectCompleted(*b);
  ExpectCompleted(*c);
}

TEST_F(DeviceQueue, EnqueueReservesThePlace) {
  const auto a = Log('a'), b = Log('b'), c = Log('c'), d = Log('d');
  a->enqueue();
  c->enqueue();
  EXPECT_EQ(a->status(), CommandBufferStatusEnqueued);
  b->commit();
  d->enqueue();
  d->commit();
  c->commit();
  EXPECT_EQ(b->status(), CommandBufferStatusCommitted);
  EXPECT_EQ(c->status(), CommandBufferStatusCommitted);
  a->commit();
  d->waitUntilCompleted();
  EXPECT_EQ(log_, "acbd");
}

// One that is encoded only after it was enqueued, and after later ones were
// committed.
TEST_F(DeviceQueue, EncodedAfterEnqueue) {
  const auto a = queue_->commandBuffer();
  a->enqueue();
  const auto b = Log('b');
  b->commit();
  const auto encoder = a->computeCommandEncoder();
  encoder->setComputePipelineState(
      Pipeline([this](const ThreadgroupContext&) { log_ += 'a'; }));
  DispatchOne(*encoder);
  encoder->endEncoding();
  a->commit();
  b->waitUntilCompleted();
  EXPECT_EQ(log_, "ab");
}

TEST_F(DeviceQueue, DroppedWithoutCommitGivesItsPlaceUp) {
  auto a = Log('a'), b = Log('b');
  const auto c = Log('c'), d = Log('d');
  a->enqueue();
  c->enqueue();
  b->enqueue();
  d->commit();
  c->commit();
  b.reset();
  a.reset();
  d->waitUntilCompleted();
  EXPECT_EQ(log_, "cd");
}

// The encoder holds the place too.
TEST_F(DeviceQueue, DroppedWithItsEncoder) {
  auto a = queue_->commandBuffer();
  auto encoder = a->computeCommandEncoder();
  a->enqueue();
  a.reset();
  const auto b = Log('b');
  b->commit();
  encoder->memoryBarrier(BarrierScopeBuffers);
  EXPECT_EQ(b->status(), CommandBufferStatusCommitted);
  encoder.reset();
  b->waitUntilCompleted();
  EXPECT_EQ(log_, "b");
}

// Somebody who waits already is told that the place is given up.
TEST_F(DeviceQueue, DroppedWhileOthersWait) {
  auto a = Log('a');
  const auto b = Log('b');
  a->enqueue();
  b->commit();
  std::thread waiter([&b] { b->waitUntilCompleted(); });
  a.reset();
  waiter.join();
  EXPECT_EQ(log_, "b");
  ExpectCompleted(*b);
}

TEST_F(DeviceQueue, CommitReturnsBeforeTheWork) {
  Flag started, release;
  const auto buffer = Work([&] {
    started.Set();
    release.Wait();
  });
  EXPECT_EQ(buffer->status(), CommandBufferStatusNotEnqueued);
  buffer->commit();
  started.Wait();
  EXPECT_EQ(buffer->status(), CommandBufferStatusScheduled);
  EXPECT_EQ(buffer->GPUStartTime(), 0.0);
  const auto next = Log('n');
  next->commit();
  EXPECT_EQ(next->status(), CommandBufferStatusCommitted);
  release.Set();
  next->waitUntilCompleted();
  ExpectCompleted(*buffer);
  ExpectCompleted(*next);
}

TEST_F(DeviceQueue, OneThreadRunsWhatNobodyWaitsFor) {
  const std::thread::id id = ThreadOf(queue_);
  EXPECT_NE(id, std::this_thread::get_id());
  EXPECT_EQ(ThreadOf(queue_), id);
  EXPECT_NE(ThreadOf(device_->newCommandQueue()), id);
}

// The thread that waits runs what has not started. The queue's own thread is
// offered it too, so either may: but not always the other.
TEST_F(DeviceQueue, WaitRunsTheWork) {
  const std::thread::id queue_thread = ThreadOf(queue_);
  const std::thread::id here = std::this_thread::get_id();
  bool ran_here = false;
  for (int i = 0; i < 100000 && !ran_here; ++i) {
    std::thread::id earlier, last;
    const auto a = Work([&] { earlier = std::this_thread::get_id(); });
    const auto b = Work([&] { last = std::this_thread::get_id(); });
    a->commit();
    CommitAndWait(*b);
    for (const std::thread::id id : {earlier, last}) {
      ASSERT_TRUE(id == here || id == queue_thread);
    }
    ran_here = earlier == here && last == here;
  }
  EXPECT_TRUE(ran_here);
}

TEST_F(DeviceQueue, WaitFromSeveralThreads) {
  for (int round = 0; round < 200; ++round) {
    log_.clear();
    Flag go;
    int handled = 0;
    const auto a = Log('a');
    const auto b = Work([&] {
      go.Wait();
      log_ += 'b';
    });
    b->addCompletedHandler([&handled](CommandBuffer*) { ++handled; });
    a->commit();
    b->commit();
    std::vector<std::thread> waiters;
    for (int i = 0; i < 4; ++i) {
      waiters.emplace_back([&, i] {
        if (i % 2 == 0) a->waitUntilCompleted();
        b->waitUntilCompleted();
        EXPECT_EQ(log_, "ab");
        EXPECT_EQ(handled, 1);
        ExpectCompleted(*b);
      });
    }
    go.Set();
    for (std::thread& waiter : waiters) waiter.join();
    b->waitUntilCompleted();  // once more, at no cost
  }
}

// Threads that wait for different buffers, while the first is held back.
TEST_F(DeviceQueue, WaitForWhatCannotStartYet) {
  const auto a = Log('a'), b = Log('b'), c = Log('c');
  a->enqueue();
  b->commit();
  c->commit();
  std::thread for_b([&b] { b->waitUntilCompleted(); });
  std::thread for_c([&c] { c->waitUntilCompleted(); });
  a->commit();
  for_b.join();
  for_c.join();
  EXPECT_EQ(log_, "abc");
}

// Kernels of two queues that wait for each other.
TEST_F(DeviceQueue, QueuesRunAtTheSameTime) {
  const auto other = device_->newCommandQueue();
  for (const bool wait_at_once : {false, true}) {
    Flag first, second;
    const auto a = Work([&] {
      first.Set();
      second.Wait();
    });
    const auto b = Work(other, [&] {
      second.Set();
      first.Wait();
    });
    a->commit();
    b->commit();
    // Else both are on their queues' threads.
    if (!wait_at_once) {
      first.Wait();
      second.Wait();
    }
    a->waitUntilCompleted();
    b->waitUntilCompleted();
    ExpectCompleted(*a);
    ExpectCompleted(*b);
  }
}

// A kernel may commit another queue's work (but wait for none: DeviceMisuse).
TEST_F(DeviceQueue, KernelCommitsToAnotherQueue) {
  const auto other = device_->newCommandQueue();
  int runs = 0;
  const auto b = Work(other, [&runs] { ++runs; });
  const auto a = Work([&] { b->commit(); });
  CommitAndWait(*a);
  ExpectCompleted(*a);
  b->waitUntilCompleted();
  ExpectCompleted(*b);
  EXPECT_EQ(runs, 1);
}

TEST_F(DeviceQueue, ManyBuffersInOrder) {
  constexpr int kBuffers = 500;
  std::vector<int> order;
  std::vector<std::shared_ptr<CommandBuffer>> buffers;
  for (int i = 0; i < kBuffers; ++i) {
    buffers.push_back(Work([&order, i] { order.push_back(i); }));
    buffers.back()->enqueue();
  }
  for (int i = kBuffers - 1; i >= 0; --i) {
    buffers[static_cast<size_t>(i)]->commit();
  }
  buffers.back()->waitUntilCompleted();
  ASSERT_EQ(order.size(), static_cast<size_t>(kBuffers));
  for (int i = 0; i < kBuffers; ++i)
    EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST_F(DeviceQueue, AnEmptyBufferCompletes) {
  const auto buffer = queue_->commandBuffer();
  CommitAndWait(*buffer);
  ExpectCompleted(*buffer);
  EXPECT_GT(buffer->GPUStartTime(), 0.0);
  EXPECT_LE(buffer->GPUStartTime(), buffer->GPUEndTime());
}

}  // namespace
}  // namespace switchyard::testing_support
