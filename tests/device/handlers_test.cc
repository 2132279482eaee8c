// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Completion handlers: when they are called, and what they may do. Those that
// throw are in device_misuse_test, those that let go of everything in
// device_lifetime_test.

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {
namespace {

using DeviceHandlers = LogTest;

TEST_F(DeviceHandlers, OnceInOrderBeforeWaitReturns) {
  // Often enough for either thread to have run the work.
  for (int round = 0; round < 2000; ++round) {
    log_.clear();
    const auto buffer = Log('k');
    for (const char letter : {'1', '2', '3'}) {
      buffer->addCompletedHandler([&, letter](CommandBuffer* completed) {
        EXPECT_EQ(completed, buffer.get());
        ExpectCompleted(*completed);
        EXPECT_LE(completed->GPUStartTime(), completed->GPUEndTime());
        log_ += letter;
      });
    }
    CommitAndWait(*buffer);
    ASSERT_EQ(log_, "k123");
  }
}

TEST_F(DeviceHandlers, OfAFailedBuffer) {
  const auto buffer = Work([] { throw std::runtime_error("no"); });
  int called = 0;
  buffer->addCompletedHandler([&](CommandBuffer* completed) {
    ++called;
    ExpectError(*completed, "user: no");
  });
  CommitAndWait(*buffer);
  EXPECT_EQ(called, 1);
}

// A handler's captures are released while the buffer lives on.
TEST_F(DeviceHandlers, CapturesAreReleased) {
  auto captured = std::make_shared<int>(7);
  const std::weak_ptr<int> weak = captured;
  const auto buffer = Log('a');
  buffer->addCompletedHandler([captured](CommandBuffer*) {});
  // Even the buffer itself: no cycle is left.
  buffer->addCompletedHandler([buffer](CommandBuffer*) {});
  captured.reset();
  EXPECT_FALSE(weak.expired());
  CommitAndWait(*buffer);
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(buffer.use_count(), 1);

  captured = std::make_shared<int>(8);
  const std::weak_ptr<int> dropped = captured;
  auto never = Log('n');
  never->addCompletedHandler([captured](CommandBuffer*) { FAIL(); });
  captured.reset();
  never->enqueue();
  never.reset();
  EXPECT_TRUE(dropped.expired());
  ExpectQueueRuns();
}

TEST_F(DeviceHandlers, WaitsForTheOwnBuffer) {
  const auto buffer = Log('a');
  buffer->addCompletedHandler([&](CommandBuffer* completed) {
    completed->waitUntilCompleted();
    buffer->waitUntilCompleted();
    log_ += 'h';
  });
  CommitAndWait(*buffer);
  EXPECT_EQ(log_, "ah");
  ExpectCompleted(*buffer);
}

TEST_F(DeviceHandlers, WaitsForALaterBuffer) {
  const auto a = Log('a'), b = Log('b'), c = Log('c');
  std::thread::id handler, kernel;
  const auto d = Work([&] { kernel = std::this_thread::get_id(); });
  a->addCompletedHandler([&](CommandBuffer*) {
    c->waitUntilCompleted();
    ExpectCompleted(*b);
    ExpectCompleted(*c);
    log_ += '1';
    // Nobody else may run it: the queue's runner is here.
    CommitAndWait(*d);
    handler = std::this_thread::get_id();
  });
  a->addCompletedHandler([&](CommandBuffer*) { log_ += '2'; });
  c->addCompletedHandler([&](CommandBuffer*) { log_ += 'h'; });
  a->enqueue();
  b->commit();
  c->commit();
  CommitAndWait(*a);
  EXPECT_EQ(log_, "abch12");
  EXPECT_EQ(handler, kernel);
  EXPECT_NE(handler, std::thread::id());
}

// Handlers within handlers; each may wait for those around it.
TEST_F(DeviceHandlers, Nested) {
  constexpr size_t kDepth = 20;
  std::vector<std::shared_ptr<CommandBuffer>> buffers;
  for (size_t i = 0; i <= kDepth; ++i) {
    buffers.push_back(Log(static_cast<char>('a' + i)));
  }
  for (size_t i = 0; i < kDepth; ++i) {
    buffers[i]->addCompletedHandler([&, i](CommandBuffer* completed) {
      buffers[i + 1]->waitUntilCompleted();
      completed->waitUntilCompleted();
      for (size_t j = 0; j < i; ++j) buffers[j]->waitUntilCompleted();
      log_ += static_cast<char>('A' + i);
    });
  }
  for (size_t i = 1; i <= kDepth; ++i) buffers[i]->enqueue();
  buffers[0]->commit();  // the last in the queue
  for (size_t i = kDepth; i > 0; --i) buffers[i]->commit();
  buffers[1]->waitUntilCompleted();  // whose handler returns last
  EXPECT_EQ(log_, "bcdefghijklmnopqrstuaATSRQPONMLKJIHGFEDCB");
}

// The later buffer has to wait itself, for one that another thread commits or
// lets go of meanwhile.
TEST_F(DeviceHandlers, WaitsForWhatCannotStartYet) {
  for (const bool commit : {true, false}) {
    log_.clear();
    auto held = Log('x');
    const auto a = Log('a'), b = Log('b');
    Flag in_handler;
    a->addCompletedHandler([&](CommandBuffer*) {
      in_handler.Set();
      b->waitUntilCompleted();
      ExpectCompleted(*b);
      log_ += 'h';
    });
    a->enqueue();
    held->enqueue();
    b->commit();
    a->commit();
    in_handler.Wait();
    // Nothing tells when the handler has gone to sleep: it has by then, or it
    // has been spared that.
    for (int i = 0; i < 10000; ++i) std::this_thread::yield();
    if (commit) held->commit();
    held.reset();
    a->waitUntilCompleted();
    EXPECT_EQ(log_, commit ? "axbh" : "abh");
  }
}

TEST_F(DeviceHandlers, CommitsNewBuffers) {
  constexpr int kChain = 100;
  Flag done;
  int runs = 0;
  std::function<void(CommandBuffer*)> next = [&](CommandBuffer*) {
    if (runs == kChain) {
      done.Set();
      return;
    }
    // Nobody keeps it but the queue.
    const auto buffer = Work([&runs] { ++runs; });
    buffer->addCompletedHandler(next);
    buffer->commit();
  };
  next(nullptr);
  done.Wait();
  EXPECT_EQ(runs, kChain);
  ExpectQueueRuns();  // and the last handler has returned
}

// Two queues whose handlers wait for each other's work.
TEST_F(DeviceHandlers, WaitsForAnotherQueue) {
  const auto other = device_->newCommandQueue();
  for (int round = 0; round < 200; ++round) {
    log_.clear();
    bool ran = false;
    const auto a = Log('a');
    const auto b = Work(other, [&ran] { ran = true; });
    a->addCompletedHandler([&](CommandBuffer*) {
      b->waitUntilCompleted();
      EXPECT_TRUE(ran);
      log_ += 'h';
    });
    b->commit();
    CommitAndWait(*a);
    EXPECT_EQ(log_, "ah");
  }
}

// Another thread waits for the buffer while its handler runs: it returns only
// afterwards.
TEST_F(DeviceHandlers, OthersWaitForTheHandler) {
  const auto buffer = Log('a');
  Flag in_handler, release;
  buffer->addCompletedHandler([&](CommandBuffer*) {
    in_handler.Set();
    release.Wait();
    log_ += 'h';
  });
  buffer->commit();
  std::thread waiter([&] {
    buffer->waitUntilCompleted();
    EXPECT_EQ(log_, "ah");
  });
  in_handler.Wait();
  ExpectCompleted(*buffer);
  release.Set();
  waiter.join();
}

}  // namespace
}  // namespace switchyard::testing_support
