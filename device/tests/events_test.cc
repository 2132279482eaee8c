// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests events between queues and with the host, and handlers of scheduled
// work. No test may wait forever.

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device/tests/device_test.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"

namespace switchyard::testing_support {
namespace {

class DeviceEvents : public LogTest {
 protected:
  // Returns a buffer that waits for one event, works, and signals another
  // event. If a value is 0, the wait or the signal is left out.
  std::shared_ptr<CommandBuffer> Between(
      const std::shared_ptr<CommandQueue>& queue,
      const std::shared_ptr<Event>& wait, uint64_t wait_value,
      const std::shared_ptr<Event>& signal, uint64_t signal_value,
      std::function<void()> what) {
    const auto commands = queue->commandBuffer();
    if (wait_value != 0) commands->encodeWait(wait, wait_value);
    const auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(Pipeline(
        [what = std::move(what)](const ThreadgroupContext&) { what(); }));
    DispatchOne(*encoder);
    encoder->endEncoding();
    if (signal_value != 0) commands->encodeSignalEvent(signal, signal_value);
    return commands;
  }

  std::shared_ptr<CommandQueue> other_ = device_->newCommandQueue();
  const Watchdog watchdog_;
};

// The work of two queues is ordered by events alone. The result must be the
// same whichever thread waits first.
TEST_F(DeviceEvents, OrderTwoQueues) {
  for (const bool first_waits : {true, false}) {
    const std::shared_ptr<Event> event = device_->newEvent();
    log_.clear();
    std::vector<std::shared_ptr<CommandBuffer>> all;
    for (uint64_t i = 0; i < 40; ++i) {
      all.push_back(
          Between(i % 2 == 0 ? queue_ : other_, event, i, event, i + 1,
                  [this, i] { log_ += static_cast<char>('a' + i % 26); }));
    }
    // The buffers that wait are committed first.
    for (size_t i = 0; i < all.size(); ++i) {
      if (i % 2 == 1) all[i]->commit();
    }
    for (size_t i = 0; i < all.size(); i += 2) all[i]->commit();
    (first_waits ? all.front() : all.back())->waitUntilCompleted();
    all[38]->waitUntilCompleted();
    all[39]->waitUntilCompleted();
    EXPECT_EQ(log_, "abcdefghijklmnopqrstuvwxyzabcdefghijklmn");
    for (const auto& commands : all) ExpectCompleted(*commands);
  }
}

TEST_F(DeviceEvents, TheHostSignalsAndWaits) {
  const auto event = device_->newSharedEvent();
  EXPECT_EQ(event->signaledValue(), 0u);
  EXPECT_FALSE(event->waitUntilSignaledValue(1, 0));
  const auto commands =
      Between(queue_, event, 5, event, 6, [this] { log_ += 'k'; });
  commands->commit();
  event->setSignaledValue(4);
  EXPECT_FALSE(event->waitUntilSignaledValue(6, 1));
  log_ += 'h';  // no other thread writes the log yet
  event->setSignaledValue(5);
  EXPECT_TRUE(event->waitUntilSignaledValue(6, 60000));
  EXPECT_EQ(log_, "hk");
  commands->waitUntilCompleted();
  ExpectCompleted(*commands);
  event->setSignaledValue(3);  // has no effect, because values only grow
  EXPECT_EQ(event->signaledValue(), 6u);
}

TEST_F(DeviceEvents, Listeners) {
  const auto event = device_->newSharedEvent();
  SharedEventListener* listener = SharedEventListener::alloc()->init();
  std::string called;
  const auto listen = [&](uint64_t value) {
    event->notifyListener(listener, value,
                          [&called](SharedEvent* e, uint64_t reached) {
                            called += std::to_string(reached) + "/" +
                                      std::to_string(e->signaledValue()) + " ";
                          });
  };
  listen(2);
  listen(1);
  listen(3);
  event->notifyListener(listener, 2, [](SharedEvent*, uint64_t) {
    throw std::runtime_error("lost");
  });
  event->notifyListener(listener, 2, nullptr);
  EXPECT_EQ(called, "");
  const auto commands = Between(queue_, nullptr, 0, event, 2, [] {});
  CommitAndWait(*commands);
  ExpectCompleted(*commands);
  EXPECT_EQ(called, "2/2 2/2 ");
  listen(1);  // the listener is called at once
  EXPECT_EQ(called, "2/2 2/2 2/2 ");
  event->setSignaledValue(3);
  EXPECT_EQ(called, "2/2 2/2 2/2 3/3 ");
  listener->release();
}

TEST_F(DeviceEvents, AWaitThatTakesTooLongIsAnError) {
  DeviceOptions options;
  options.event_timeout_ms = 1;
  device_ = CreateDevice(options);
  queue_ = device_->newCommandQueue();
  const auto event = device_->newEvent();
  const std::shared_ptr<Event> next = device_->newEvent();
  const auto never =
      Between(queue_, event, 7, next, 1, [this] { log_ += 'x'; });
  const auto after =
      Between(queue_, next, 1, nullptr, 0, [this] { log_ += 'a'; });
  never->commit();
  CommitAndWait(*after);
  ExpectError(*never,
              "encodeWait: the event is at 0 after 1 ms, and 7 is waited for");
  ExpectCompleted(*after);  // completes, because a failed buffer signals, too
  EXPECT_EQ(log_, "a");
  event->setLabel("weights");
  const auto labelled = queue_->commandBuffer();
  labelled->encodeWait(event, 1);
  CommitAndWait(*labelled);
  ExpectError(*labelled,
              "encodeWait: the event \"weights\" is at 0 after 1 ms, and 1 is "
              "waited for");
}

// A buffer that has an error before it runs still signals its events.
TEST_F(DeviceEvents, RejectedBuffersSignal) {
  const auto event = device_->newSharedEvent();
  const auto commands = queue_->commandBuffer();
  commands->encodeSignalEvent(event, 3);
  commands->encodeWait(nullptr, 1);
  CommitAndWait(*commands);
  ExpectError(*commands, "encodeWait: event is null");
  EXPECT_EQ(event->signaledValue(), 3u);
}

TEST_F(DeviceEvents, Mistakes) {
  const std::shared_ptr<Event> event = device_->newEvent();
  auto commands = queue_->commandBuffer();
  commands->encodeSignalEvent(nullptr, 1);
  EXPECT_EQ(commands->error(), "encodeSignalEvent: event is null");
  commands = queue_->commandBuffer();
  const auto encoder = commands->computeCommandEncoder();
  commands->encodeWait(event, 1);
  EXPECT_EQ(commands->error(),
            "encodeWait: an encoder is open: endEncoding is missing");
  commands = Work([] {});
  CommitAndWait(*commands);
  commands->encodeSignalEvent(event, 1);
  ExpectError(*commands, "encodeSignalEvent: the command buffer is committed");
}

// When a queue is dropped, the caller waits for its work. Here that work
// waits for another queue's work.
TEST_F(DeviceEvents, QueuesDroppedWhileTheyWait) {
  const std::shared_ptr<Event> event = device_->newEvent();
  Flag go;
  Between(queue_, nullptr, 0, event, 1, [&go] { go.Wait(); })->commit();
  Between(other_, event, 1, nullptr, 0, [this] { log_ += 'o'; })->commit();
  std::thread opens([&go] { go.Set(); });
  other_.reset();
  EXPECT_EQ(log_, "o");
  opens.join();
}

TEST_F(DeviceEvents, ScheduledHandlersComeBeforeTheWork) {
  for (int round = 0; round < 200; ++round) {
    log_.clear();
    const auto commands = Log('k');
    for (const char letter : {'1', '2'}) {
      commands->addScheduledHandler([&, letter](CommandBuffer* scheduled) {
        EXPECT_EQ(scheduled, commands.get());
        EXPECT_EQ(scheduled->status(), CommandBufferStatusScheduled);
        log_ += letter;
      });
    }
    commands->addCompletedHandler([&](CommandBuffer*) { log_ += 'c'; });
    commands->commit();
    commands->waitUntilScheduled();
    EXPECT_GE(commands->status(), CommandBufferStatusScheduled);
    commands->waitUntilCompleted();
    ASSERT_EQ(log_, "12kc");
  }
}

// waitUntilScheduled() returns although the work is still waiting for the
// caller.
TEST_F(DeviceEvents, WaitUntilScheduledDoesNotWaitForTheWork) {
  const auto event = device_->newSharedEvent();
  Flag scheduled;
  const auto commands = Between(queue_, event, 1, nullptr, 0, [] {});
  commands->addScheduledHandler([&](CommandBuffer*) { scheduled.Set(); });
  commands->commit();
  scheduled.Wait();  // the queue's thread sets this flag
  commands->waitUntilScheduled();
  EXPECT_EQ(commands->status(), CommandBufferStatusScheduled);
  event->setSignaledValue(1);
  commands->waitUntilCompleted();
  ExpectCompleted(*commands);
}

TEST_F(DeviceEvents, ScheduledHandlersMustNotWait) {
  const auto later = Log('l');
  const auto commands = Log('k');
  commands->addScheduledHandler([&](CommandBuffer* scheduled) {
    scheduled->waitUntilScheduled();
    later->waitUntilCompleted();
  });
  commands->enqueue();
  later->commit();
  CommitAndWait(*commands);
  later->waitUntilCompleted();
  EXPECT_EQ(log_, "kl");
  ExpectError(*commands, "waitUntilScheduled: called by a scheduled handler");
  ExpectError(*later, "waitUntilCompleted: called by a scheduled handler");
}

TEST_F(DeviceEvents, ScheduledHandlersThatAreMistakes) {
  auto commands = Log('a');
  commands->addScheduledHandler(nullptr);
  EXPECT_EQ(commands->error(), "addScheduledHandler: the handler is empty");
  commands = Log('b');
  commands->addScheduledHandler(
      [](CommandBuffer*) { throw std::runtime_error("no"); });
  CommitAndWait(*commands);
  ExpectError(*commands, "addScheduledHandler: a handler threw: no");
  EXPECT_EQ(log_, "b");
  commands = Log('c');
  commands->waitUntilScheduled();
  EXPECT_EQ(commands->error(),
            "waitUntilScheduled: the command buffer is not committed");
}

// Tests completion handlers: when they run, and which calls they may make.
// Handlers that throw are in device_errors_test, and handlers that release
// the last references in device_queue_test.

using DeviceHandlers = LogTest;

TEST_F(DeviceHandlers, OnceInOrderBeforeWaitReturns) {
  // In some of the 2000 rounds the queue's thread runs the work, and in the
  // other rounds the waiting thread does.
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

// Objects that a handler has captured are released while the buffer still
// exists.
TEST_F(DeviceHandlers, CapturesAreReleased) {
  auto captured = std::make_shared<int>(7);
  const std::weak_ptr<int> weak = captured;
  const auto buffer = Log('a');
  buffer->addCompletedHandler([captured](CommandBuffer*) {});
  // This handler holds the buffer itself. After the call, no cycle of
  // references may remain.
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
    // Only this thread can run the buffer, because this thread is running the
    // queue.
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

// Handlers are nested: each handler may wait for buffers of the outer
// handlers.
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
  buffers[1]->waitUntilCompleted();  // its handler returns last
  EXPECT_EQ(log_, "bcdefghijklmnopqrstuaATSRQPONMLKJIHGFEDCB");
}

// The handler of buffer `a` waits for buffer `b`. `b` cannot start, because
// `held` comes before it in the queue and is not committed. The test's thread
// commits or drops `held` in the meantime.
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
    // No flag shows when the handler sleeps in its wait. After this loop the
    // handler is most likely asleep. If it is still awake, its wait may
    // return without sleeping.
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
    // Only the queue holds a reference to the buffer.
    const auto buffer = Work([&runs] { ++runs; });
    buffer->addCompletedHandler(next);
    buffer->commit();
  };
  next(nullptr);
  done.Wait();
  EXPECT_EQ(runs, kChain);
  ExpectQueueRuns();  // returns after the last handler
}

// Handlers of two queues wait for each other's work.
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

// Another thread waits for the buffer while its handler runs. The wait
// returns only after the handler.
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
