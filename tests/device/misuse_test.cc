// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Misuse of devices, queues and command buffers.

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/device_test.h"
#include "tests/device/kernel_cases.h"

namespace switchyard::testing_support {
namespace {

class DeviceMisuse : public MisuseTest {
 protected:
  std::shared_ptr<CommandBuffer> CountOne() {
    return Work([this] { ++runs_; });
  }
};

TEST_F(DeviceMisuse, TwoEncodersOpenAtOnce) {
  const auto buffer = queue_->commandBuffer();
  const auto first = buffer->computeCommandEncoder();
  const auto second = buffer->computeCommandEncoder();
  ASSERT_NE(second, nullptr);
  const auto count = Pipeline([this](const ThreadgroupContext&) { ++runs_; });
  for (const auto& encoder : {second, first}) {
    encoder->setComputePipelineState(count);
    DispatchOne(*encoder);
    encoder->endEncoding();
  }
  ExpectNotRun(*buffer, "computeCommandEncoder: another encoder is open");
}

TEST_F(DeviceMisuse, EncoderDroppedWithoutEndEncoding) {
  const auto buffer = queue_->commandBuffer();
  buffer->computeCommandEncoder().reset();
  buffer->computeCommandEncoder()->endEncoding();
  ExpectNotRun(*buffer, "computeCommandEncoder: another encoder is open");
}

TEST_F(DeviceMisuse, CommitWithAnOpenEncoder) {
  const std::string error =
      "commit: an encoder is open: endEncoding is missing";
  const auto buffer = queue_->commandBuffer();
  const auto encoder = buffer->computeCommandEncoder();
  encoder->setComputePipelineState(
      Pipeline([this](const ThreadgroupContext&) { ++runs_; }));
  DispatchOne(*encoder);
  CommitAndWait(*buffer);
  ExpectError(*buffer, error);
  // The encoder is of no use any more, and harmless.
  encoder->setBytes("x", 1, 0);
  DispatchOne(*encoder);
  encoder->endEncoding();
  ExpectError(*buffer, error);
  EXPECT_EQ(runs_, 0);
  ExpectQueueRuns();
}

TEST_F(DeviceMisuse, EncoderAfterCommit) {
  const auto buffer = CountOne();
  buffer->commit();
  const auto encoder = buffer->computeCommandEncoder();
  ASSERT_NE(encoder, nullptr);
  DispatchOne(*encoder);
  ExpectRunYetError(*buffer,
                    "computeCommandEncoder: the command buffer is committed");
}

TEST_F(DeviceMisuse, CommittedTwice) {
  const std::string error = "commit: the command buffer is committed already";
  const auto before_it_runs = CountOne();
  const auto first = queue_->commandBuffer();
  first->enqueue();  // holds the queue up
  before_it_runs->commit();
  before_it_runs->commit();
  EXPECT_EQ(before_it_runs->error(), error);
  EXPECT_EQ(before_it_runs->status(), CommandBufferStatusCommitted);
  first->commit();
  ExpectRunYetError(*before_it_runs, error);

  runs_ = 0;
  const auto afterwards = CountOne();
  CommitAndWait(*afterwards);
  ExpectCompleted(*afterwards);
  afterwards->commit();
  ExpectRunYetError(*afterwards, error);
}

TEST_F(DeviceMisuse, WaitBeforeCommit) {
  const auto buffer = CountOne();
  buffer->waitUntilCompleted();  // returns
  ExpectNotRun(*buffer,
               "waitUntilCompleted: the command buffer is not committed");
}

TEST_F(DeviceMisuse, EnqueuedTwice) {
  const auto buffer = CountOne();
  buffer->enqueue();
  EXPECT_EQ(buffer->error(), "");
  buffer->enqueue();
  ExpectNotRun(*buffer, "enqueue: the command buffer is enqueued already");
}

TEST_F(DeviceMisuse, EnqueuedAfterCommit) {
  const auto buffer = CountOne();
  buffer->commit();
  buffer->enqueue();
  ExpectRunYetError(*buffer, "enqueue: the command buffer is enqueued already");
}

TEST_F(DeviceMisuse, HandlerAfterCommit) {
  const auto buffer = CountOne();
  buffer->commit();
  bool called = false;
  buffer->addCompletedHandler([&called](CommandBuffer*) { called = true; });
  ExpectRunYetError(*buffer,
                    "addCompletedHandler: the command buffer is committed");
  EXPECT_FALSE(called);
}

TEST_F(DeviceMisuse, EmptyHandler) {
  const auto buffer = CountOne();
  buffer->addCompletedHandler(nullptr);
  ExpectNotRun(*buffer, "addCompletedHandler: the handler is empty");
}

TEST_F(DeviceMisuse, HandlerThatThrows) {
  for (const bool exception : {true, false}) {
    runs_ = 0;
    const auto buffer = CountOne();
    buffer->addCompletedHandler([exception](CommandBuffer*) {
      if (exception) throw std::runtime_error("no luck");
      throw 7;
    });
    const std::string error =
        std::string("addCompletedHandler: a handler threw") +
        (exception ? ": no luck" : "");
    bool called = false;
    buffer->addCompletedHandler([&](CommandBuffer* completed) {
      called = true;
      ExpectError(*completed, error);
    });
    buffer->commit();
    ExpectRunYetError(*buffer, error);
    EXPECT_TRUE(called);
  }
}

// The kernel's error came first.
TEST_F(DeviceMisuse, HandlerThatThrowsAfterAnError) {
  const auto buffer = Work([] { throw std::runtime_error("first"); });
  buffer->addCompletedHandler(
      [](CommandBuffer*) { throw std::runtime_error("second"); });
  CommitAndWait(*buffer);
  ExpectError(*buffer, "user: first");
  ExpectQueueRuns();
}

// It would wait for itself.
TEST_F(DeviceMisuse, WaitInsideAKernel) {
  std::shared_ptr<CommandBuffer> own, later;
  own = Work([&] {
    ++runs_;
    own->waitUntilCompleted();
    later->waitUntilCompleted();
  });
  int later_runs = 0;
  later = Work([&] { ++later_runs; });
  own->enqueue();
  later->commit();
  own->commit();
  later->waitUntilCompleted();
  const std::string error = "waitUntilCompleted: called by a kernel";
  ExpectError(*later, error);
  EXPECT_EQ(later_runs, 1);
  ExpectRunYetError(*own, error);
}

// On whatever thread its threadgroups are, and whosever the buffer is: another
// queue's would call the executor inside one of its bodies.
TEST_F(DeviceMisuse, WaitInsideManyThreadgroups) {
  const auto other_queue = device_->newCommandQueue();
  const auto other = Work(other_queue, [] {});
  const auto buffer = queue_->commandBuffer();
  const auto encoder = buffer->computeCommandEncoder();
  std::atomic<int> runs{0};
  encoder->setComputePipelineState(Pipeline([&](const ThreadgroupContext&) {
    ++runs;
    buffer->waitUntilCompleted();
    other->waitUntilCompleted();
  }));
  encoder->dispatchThreadgroups(Size(64, 1, 1), Size(1, 1, 1));
  encoder->endEncoding();
  CommitAndWait(*other);
  EXPECT_EQ(other->status(), CommandBufferStatusCompleted);
  CommitAndWait(*buffer);
  EXPECT_EQ(runs, 64);
  ExpectError(*buffer, "waitUntilCompleted: called by a kernel");
  ExpectQueueRuns();
}

TEST_F(DeviceMisuse, WaitInsideADeallocator) {
  const auto buffer = queue_->commandBuffer();
  int memory = 0;
  int freed = 0;
  {
    const auto bound = device_->newBufferWithBytesNoCopy(
        static_cast<void*>(&memory), sizeof(memory), ResourceStorageModeShared,
        [&](void*, size_t) {
          ++freed;
          buffer->waitUntilCompleted();
        });
    const auto encoder = buffer->computeCommandEncoder();
    encoder->setBuffer(bound, 0, 0);
    encoder->endEncoding();
  }
  CommitAndWait(*buffer);
  EXPECT_EQ(freed, 1);
  ExpectError(*buffer, "waitUntilCompleted: called by a deallocator");
  ExpectQueueRuns();
}

// Only the raw pointer is left in the handler: an encoder of it has nothing to
// encode into.
TEST_F(DeviceMisuse, EncoderOfABufferThatWasLetGo) {
  auto buffer = CountOne();
  Flag dropped, called;
  buffer->addCompletedHandler([&](CommandBuffer* completed) {
    dropped.Wait();
    const auto encoder = completed->computeCommandEncoder();
    ASSERT_NE(encoder, nullptr);
    encoder->setBytes("x", 1, 0);
    encoder->dispatchThreads(Size(1, 1, 1), Size(1, 1, 1));
    encoder->endEncoding();
    ExpectError(*completed,
                "computeCommandEncoder: the command buffer is committed");
    called.Set();
  });
  buffer->commit();
  buffer.reset();
  dropped.Set();
  called.Wait();
  EXPECT_EQ(runs_, 1);
  ExpectQueueRuns();
}

TEST_F(DeviceMisuse, Buffers) {
  const auto never = [](void*, size_t) { FAIL() << "there is no buffer"; };
  EXPECT_EQ(device_->newBuffer(0), nullptr);
  EXPECT_EQ(device_->newBuffer(SIZE_MAX), nullptr);
  EXPECT_EQ(device_->newBuffer(device_->maxBufferLength()), nullptr);
  EXPECT_EQ(device_->newBuffer(nullptr, 8), nullptr);
  EXPECT_EQ(device_->newBuffer("x", 0), nullptr);
  char byte = 0;
  for (const auto options : {ResourceStorageModeShared}) {
    EXPECT_EQ(device_->newBufferWithBytesNoCopy(static_cast<void*>(nullptr), 8,
                                                options, never),
              nullptr);
    EXPECT_EQ(device_->newBufferWithBytesNoCopy(
                  static_cast<const void*>(nullptr), 8, options, never),
              nullptr);
    EXPECT_EQ(device_->newBufferWithBytesNoCopy(static_cast<void*>(&byte), 0,
                                                options, never),
              nullptr);
    EXPECT_EQ(device_->newBufferWithBytesNoCopy(static_cast<const void*>(&byte),
                                                0, options, never),
              nullptr);
  }
}

bool IsUnknown(const std::string& error, const std::string& name) {
  const std::string begin =
      "newComputePipelineState: no built-in kernel is named " + name +
      "; there are ";
  return error.substr(0, begin.size()) == begin;
}

TEST_F(DeviceMisuse, Pipelines) {
  std::string error;
  EXPECT_EQ(device_->newComputePipelineState("moe_router", &error), nullptr);
  EXPECT_TRUE(IsUnknown(error, "moe_router")) << error;
  EXPECT_EQ(device_->newComputePipelineState("", &error), nullptr);
  EXPECT_TRUE(IsUnknown(error, "")) << error;
  // No suffix, another one, one of rows where there are none.
  for (const char* name :
       {"silu_mul_stacked", "silu_mul_stacked_f1", "silu_mul_stacked_f64",
        "silu_mul_stacked_f16_", "moe_compute_ids_tpe_f16"}) {
    EXPECT_EQ(device_->newComputePipelineState(name, &error), nullptr);
    EXPECT_TRUE(IsUnknown(error, name)) << error;
  }
  // All that there are follow, each once, and the one that was meant first.
  EXPECT_EQ(device_->newComputePipelineState("weighted_sum_stacked_f1", &error),
            nullptr);
  const std::string begin =
      "newComputePipelineState: no built-in kernel is named "
      "weighted_sum_stacked_f1; there are weighted_sum_stacked_f16, ";
  EXPECT_EQ(error.substr(0, begin.size()), begin);
  for (const KernelCase& c : KernelCases()) {
    const std::string name = std::string(" ") + c.name();
    const size_t at = (error + ",").find(name + ",");
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_EQ((error + ",").find(name + ",", at + 1), std::string::npos);
  }
  const char* const null = nullptr;
  EXPECT_EQ(device_->newComputePipelineState(null, &error), nullptr);
  EXPECT_EQ(error, "newComputePipelineState: name is null");
  EXPECT_EQ(device_->newComputePipelineState(null), nullptr);
  EXPECT_EQ(device_->newComputePipelineState("moe_router"), nullptr);

  KernelFunction kernel;
  EXPECT_EQ(device_->newComputePipelineState(kernel, &error), nullptr);
  EXPECT_EQ(error, "newComputePipelineState: kernel: no name");
  kernel.name = "mine";
  EXPECT_EQ(device_->newComputePipelineState(kernel, &error), nullptr);
  EXPECT_EQ(error, "newComputePipelineState: no function in kernel mine");
  kernel.threadgroup = [](const ThreadgroupContext&) {};
  error = "as it was";
  const auto pipeline = device_->newComputePipelineState(kernel, &error);
  ASSERT_NE(pipeline, nullptr);
  EXPECT_EQ(pipeline->label(), "mine");
  EXPECT_EQ(error, "as it was");
}

}  // namespace
}  // namespace switchyard::testing_support
