// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests in which order command buffers run, which threads run them, and how
// threads wait for them.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/tests/device_test.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"

namespace switchyard::testing_support {
namespace {

class DeviceQueue : public LogTest {
 protected:
  // Returns the thread that runs buffers for which no thread waits.
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
  // Earlier buffers must be complete, too, whichever thread ran them.
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

// The buffer is enqueued first. It is encoded only after later buffers were
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

// A buffer's encoder holds the buffer's place in the queue even after the
// last reference to the buffer is dropped.
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

// A buffer gives up its place while another thread waits for a later buffer.
// The waiting thread must notice this.
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

// A waiting thread runs buffers that have not started. The queue's thread may
// take such a buffer first, but not in every round.
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
    b->waitUntilCompleted();  // the second wait must return at once
  }
}

// While the first buffer is blocked, threads wait for different buffers.
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

// The kernels of two queues wait for each other, so the queues must run at
// the same time.
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
    // If wait_at_once is false, the queues' threads run both buffers.
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

// A kernel may commit work to another queue, but must not wait for it. The
// DeviceMisuse tests in errors_test.cc test such a wait.
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

// In the next tests, the work of a queue drops the last reference to that
// queue or to another queue. The thread that runs the work must not wait for
// the dropped queue, because two queues could then wait for each other.

// The code that drops the reference.
enum class By { kHandler, kKernel, kDeallocator };

// A ring of queues. The work of each queue drops the next queue in the ring.
struct Ring {
  const char* name;
  std::vector<By> queues;
  bool check_kernels = false;
};
std::ostream& operator<<(std::ostream& os, const Ring& ring) {
  return os << ring.name;
}

class DeviceLastReference : public testing::TestWithParam<Ring> {
 protected:
  // Returns work that waits for the flag `alone` and then drops the last
  // reference to `other`.
  static std::shared_ptr<CommandBuffer> Drops(
      CommandQueue& queue, By by, std::shared_ptr<CommandQueue> other,
      std::shared_ptr<Flag> alone) {
    auto drop = [other = std::move(other), alone = std::move(alone)]() mutable {
      alone->Wait();
      other.reset();
    };
    Device& device = *queue.device();
    KernelFunction kernel;
    kernel.name = "user";
    if (by == By::kKernel) {
      kernel.threadgroup = [drop](const ThreadgroupContext&) mutable {
        drop();
      };
    } else {
      kernel.threadgroup = [](const ThreadgroupContext&) {};
    }
    const auto buffer = Encoded(queue, [&](Encoder& e) {
      e.setComputePipelineState(
          device.newComputePipelineState(std::move(kernel)));
      if (by == By::kDeallocator) {
        static char byte;
        e.setBuffer(device.newBufferWithBytesNoCopy(
                        static_cast<void*>(&byte), 1, ResourceStorageModeShared,
                        [drop](void*, size_t) mutable { drop(); }),
                    0, 0);
      }
      // Two threadgroups are dispatched, so that the executor runs them.
      e.dispatchThreadgroups(Size(2, 1, 1), Size(1, 1, 1));
    });
    if (by == By::kHandler) {
      buffer->addCompletedHandler([drop](CommandBuffer*) mutable { drop(); });
    }
    return buffer;
  }
};
INSTANTIATE_TEST_SUITE_P(
    Rings, DeviceLastReference,
    testing::Values(
        Ring{"OwnHandler", {By::kHandler}}, Ring{"OwnKernel", {By::kKernel}},
        Ring{"OwnKernelChecked", {By::kKernel}, true},
        Ring{"OwnDeallocator", {By::kDeallocator}},
        Ring{"TwoHandlers", {By::kHandler, By::kHandler}},
        Ring{"TwoKernels", {By::kKernel, By::kKernel}},
        Ring{"TwoDeallocators", {By::kDeallocator, By::kDeallocator}},
        Ring{"ThreeHandlers", {By::kHandler, By::kHandler, By::kHandler}},
        Ring{"OneOfEach", {By::kHandler, By::kKernel, By::kDeallocator}},
        Ring{"OneOfEachChecked",
             {By::kHandler, By::kKernel, By::kDeallocator},
             true}),
    [](const testing::TestParamInfo<Ring>& test) {
      return std::string(test.param.name);
    });

TEST_P(DeviceLastReference, DroppedByWork) {
  const Watchdog watchdog;
  const std::vector<By>& ring = GetParam().queues;
  std::vector<std::shared_ptr<Flag>> gone;
  std::vector<std::shared_ptr<CommandQueue>> queues;
  for (size_t i = 0; i < ring.size(); ++i) {
    gone.push_back(std::make_shared<Flag>());
    DeviceOptions options;
    options.executor = std::make_shared<TellingExecutor>(gone.back());
    options.check_kernels = GetParam().check_kernels;
    queues.push_back(CreateDevice(options)->newCommandQueue());
  }
  const auto alone = std::make_shared<Flag>();
  for (size_t i = 0; i < ring.size(); ++i) {
    Drops(*queues[i], ring[i], queues[(i + 1) % ring.size()], alone)->commit();
  }
  queues.clear();
  alone->Set();
  for (const auto& flag : gone) flag->Wait();
}

// Makes a queue with a handler. The handler releases the queue, sends a
// signal, and calls `then`.
void DropInAHandler(void (*then)()) {
  const auto alone = std::make_shared<Flag>();
  const auto dropped = std::make_shared<Flag>();
  auto queue = CreateDevice({})->newCommandQueue();
  auto buffer = queue->commandBuffer();
  buffer->addCompletedHandler(
      [queue, alone, dropped, then](CommandBuffer*) mutable {
        alone->Wait();
        queue.reset();
        dropped->Set();
        then();
      });
  buffer->commit();
  buffer.reset();
  queue.reset();
  alone->Set();
  dropped->Wait();
}

// exit() waits for a queue's work before it destroys static objects, because
// the work may use them.
TEST(DeviceLastReferenceDeathTest, ExitWaitsForTheWork) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto exit_early = [] {
    DropInAHandler([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      std::fputs("the handler returns", stderr);
    });
    std::exit(0);
  };
  EXPECT_EXIT(exit_early(), testing::ExitedWithCode(0), "the handler returns");
}

// The work of a queue may end the program.
TEST(DeviceLastReferenceDeathTest, ExitInAHandler) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto exit_inside = [] {
    const Watchdog watchdog;
    DropInAHandler([] { std::exit(7); });
    Flag().Wait();
  };
  EXPECT_EXIT(exit_inside(), testing::ExitedWithCode(7), "");
}

// In the next tests, threads drop references while work is in flight.

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
  // The results can still be read.
  auto encoder = buffer->computeCommandEncoder();
  buffer.reset();
  EXPECT_FALSE(queue.expired());
  encoder.reset();
  EXPECT_TRUE(queue.expired());
  EXPECT_TRUE(device.expired());
  EXPECT_TRUE(gone_->IsSet());
}

// When a thread drops the last reference, it waits for the work and the
// handlers.
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

// An enqueued buffer that is never committed blocks the queue until it is
// dropped.
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

// The handler runs on the queue's own thread, which cannot wait for itself.
// The thread ends by itself instead.
TEST_F(DeviceLifetime, DroppedInAHandlerOnTheQueuesThread) {
  Flag only_here;
  std::atomic<int> later{0};
  auto buffer = Work([] {});
  auto next = Work([&later] { ++later; });
  buffer->enqueue();
  next->commit();
  // The handler holds the only references to the queue and the buffer.
  // Another handler follows it.
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
  EXPECT_EQ(later, 1);  // committed work must still run
}

// A handler runs on a thread in waitUntilCompleted(). It drops the queue, the
// device and the command buffer that the thread waits for.
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

// A kernel, a handler or a buffer's deallocator holds the last reference and
// drops it.
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

// Each of 12,000 handlers commits the next command buffer and waits for it.
// All must run, and none may be nested more than 256 deep.
TEST_F(DeviceLifetime, HandlersThatWaitAreNotTooDeep) {
  constexpr int kHandlers = 12000, kDeep = 256;
  std::atomic<int> called{0}, deepest{0}, refused{0};
  thread_local int depth = 0;
  std::function<void()> next = [&] {
    const auto buffer = queue_->commandBuffer();
    buffer->addCompletedHandler([&](CommandBuffer*) {
      ++depth;
      deepest = std::max(deepest.load(), depth);
      if (++called < kHandlers) next();
      --depth;
    });
    buffer->commit();
    buffer->waitUntilCompleted();
    if (buffer->error().find("256 deep") != std::string::npos) ++refused;
  };
  next();
  while (called < kHandlers) {
    const auto buffer = queue_->commandBuffer();
    buffer->commit();
    buffer->waitUntilCompleted();
  }
  // This buffer completes after all handlers have returned.
  const auto last = queue_->commandBuffer();
  last->commit();
  last->waitUntilCompleted();
  EXPECT_EQ(called, kHandlers);
  EXPECT_EQ(deepest, kDeep);
  EXPECT_EQ(refused, (kHandlers - 1) / kDeep);
}

}  // namespace
}  // namespace switchyard::testing_support
