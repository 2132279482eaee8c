// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests misuse of devices, encoders and command buffers. Each test checks the
// error message, which dispatches ran, and that the queue still works. Errors
// of built-in kernels are in device_kernel_errors_test.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "device/tests/device_test.h"
#include "device/tests/kernel_cases.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"

namespace switchyard::testing_support {
namespace {

class DeviceErrors : public MisuseTest {
 protected:
  // Encodes a dispatch that counts its runs.
  void Count(Encoder& encoder) {
    encoder.setComputePipelineState(count_);
    DispatchOne(encoder);
  }
  // Encodes a mistake between two correct dispatches, and expects that
  // neither dispatch runs.
  void ExpectEncodeError(const std::string& error, const Encode& encode) {
    SCOPED_TRACE(error);
    const auto buffer = queue_->commandBuffer();
    const auto encoder = buffer->computeCommandEncoder();
    Count(*encoder);
    EXPECT_EQ(buffer->error(), "");
    encode(*encoder);
    EXPECT_EQ(buffer->error(), error);
    Count(*encoder);
    encoder->endEncoding();
    EXPECT_EQ(buffer->status(), CommandBufferStatusNotEnqueued);
    ExpectNotRun(*buffer, error);
  }

  const std::shared_ptr<ComputePipelineState> count_ =
      Pipeline([this](const ThreadgroupContext&) { ++runs_; }, "count");
  const BufferPtr eight_ = device_->newBuffer(8);

  using Calls = std::vector<std::pair<const char*, Encode>>;
  const Calls dispatches_ = {
      {"dispatchThreadgroups", [](Encoder& e) { DispatchOne(e); }},
      {"dispatchThreadgroups",
       [this](Encoder& e) {
         e.dispatchThreadgroups(device_->newBuffer(12), 0, Size(1, 1, 1));
       }},
      {"dispatchThreads",
       [](Encoder& e) { e.dispatchThreads(Size(1, 1, 1), Size(1, 1, 1)); }},
  };
};

TEST_F(DeviceErrors, NoPipelineSet) {
  for (const auto& [name, dispatch] : dispatches_) {
    ExpectNotRun(*Encoded(*queue_, dispatch),
                 std::string(name) +
                     ": no pipeline is set: "
                     "setComputePipelineState is missing");
  }
}

TEST_F(DeviceErrors, NullPipeline) {
  ExpectEncodeError("count: setComputePipelineState: pipeline is null",
                    [](Encoder& e) { e.setComputePipelineState(nullptr); });
}

TEST_F(DeviceErrors, Indices) {
  ExpectEncodeError("count: setBuffer: index 31 is not below 31",
                    [&](Encoder& e) { e.setBuffer(eight_, 0, 31); });
  ExpectEncodeError("count: setBuffer: index 31 is not below 31",
                    [&](Encoder& e) { e.setBuffer(nullptr, 0, 31); });
  ExpectEncodeError("count: setBufferOffset: index 31 is not below 31",
                    [&](Encoder& e) { e.setBufferOffset(0, 31); });
  ExpectEncodeError(
      "count: setBytes: index 18446744073709551615 is not below 31",
      [&](Encoder& e) { e.setBytes("x", 1, SIZE_MAX); });
  ExpectEncodeError(
      "count: setThreadgroupMemoryLength: index 31 is not below 31",
      [&](Encoder& e) { e.setThreadgroupMemoryLength(0, 31); });
}

TEST_F(DeviceErrors, SetBuffers) {
  const BufferPtr buffers[] = {eight_, eight_};
  const size_t offsets[] = {0, 8};
  ExpectEncodeError(
      "count: setBuffers: buffers or offsets is null",
      [&](Encoder& e) { e.setBuffers(nullptr, offsets, Range(0, 2)); });
  ExpectEncodeError(
      "count: setBuffers: buffers or offsets is null",
      [&](Encoder& e) { e.setBuffers(buffers, nullptr, Range(0, 2)); });
  ExpectEncodeError(
      "count: setBuffers: index 31 is not below 31",
      [&](Encoder& e) { e.setBuffers(buffers, offsets, Range(31, 1)); });
  ExpectEncodeError(
      "count: setBuffers: index 18446744073709551615 is not below 31",
      [&](Encoder& e) { e.setBuffers(buffers, offsets, Range(SIZE_MAX, 2)); });
  ExpectEncodeError(
      "count: setBuffers: index 2: offset 8 is past the end of a buffer of 8 "
      "bytes",
      [&](Encoder& e) { e.setBuffers(buffers, offsets, Range(1, 2)); });
}

TEST_F(DeviceErrors, Offsets) {
  ExpectEncodeError(
      "count: setBuffer: index 2: offset 8 is past the end of a buffer of 8 "
      "bytes",
      [&](Encoder& e) { e.setBuffer(eight_, 8, 2); });
  ExpectEncodeError(
      "count: setBufferOffset: index 2: offset 9 is past the end of a buffer "
      "of 8 bytes",
      [&](Encoder& e) {
        e.setBuffer(eight_, 4, 2);
        e.setBufferOffset(7, 2);
        e.setBufferOffset(9, 2);
      });
  ExpectEncodeError("count: setBufferOffset: index 2: nothing is bound",
                    [&](Encoder& e) { e.setBufferOffset(0, 2); });
  ExpectEncodeError("count: setBufferOffset: index 2: nothing is bound",
                    [&](Encoder& e) {
                      e.setBuffer(eight_, 0, 2);
                      e.setBuffer(nullptr, 0, 2);
                      e.setBufferOffset(0, 2);
                    });
}

TEST_F(DeviceErrors, SetBytes) {
  const std::vector<char> bytes(4097);
  ExpectEncodeError("count: setBytes: index 1: length 0 is not 1 to 4096",
                    [&](Encoder& e) { e.setBytes(bytes.data(), 0, 1); });
  ExpectEncodeError("count: setBytes: index 1: length 4097 is not 1 to 4096",
                    [&](Encoder& e) { e.setBytes(bytes.data(), 4097, 1); });
  ExpectEncodeError("count: setBytes: index 1: bytes is null",
                    [&](Encoder& e) { e.setBytes(nullptr, 4, 1); });
}

TEST_F(DeviceErrors, ThreadsPerThreadgroup) {
  const size_t half = size_t{1} << 32;
  const std::pair<const char*, Size> wrong[] = {
      {"1025 x 1 x 1", Size(1025, 1, 1)},
      {"32 x 33 x 1", Size(32, 33, 1)},
      {"0 x 1 x 1", Size(0, 1, 1)},
      {"1 x 0 x 1", Size(1, 0, 1)},
      {"1 x 1 x 0", Size(1, 1, 0)},
      {"4294967296 x 4294967296 x 1", Size(half, half, 1)},
      {"2 x 4611686018427387904 x 2", Size(2, size_t{1} << 62, 2)},
  };
  for (const auto& [text, threads] : wrong) {
    ExpectEncodeError(
        std::string("count: dispatchThreadgroups: threadsPerThreadgroup: ") +
            text + " is not 1 to 1024 threads",
        [&, size = threads](Encoder& e) {
          e.dispatchThreadgroups(Size(1, 1, 1), size);
        });
  }
  ExpectEncodeError(
      "count: dispatchThreads: threadsPerThreadgroup: 1 x 1 x 1025 is not 1 "
      "to 1024 threads",
      [](Encoder& e) { e.dispatchThreads(Size(1, 1, 1), Size(1, 1, 1025)); });
}

TEST_F(DeviceErrors, ThreadgroupMemory) {
  ExpectEncodeError(
      "count: setThreadgroupMemoryLength: index 3: 32769 bytes, the most is "
      "32768",
      [](Encoder& e) { e.setThreadgroupMemoryLength(32769, 3); });
  ExpectEncodeError(
      "count: dispatchThreadgroups: setThreadgroupMemoryLength: 32769 bytes, "
      "the most is 32768",
      [](Encoder& e) {
        e.setThreadgroupMemoryLength(32768, 0);
        e.setThreadgroupMemoryLength(1, 30);
        DispatchOne(e);
      });
}

TEST_F(DeviceErrors, IndirectBuffer) {
  const auto dispatch = [](BufferPtr buffer, size_t offset) {
    return [buffer, offset](Encoder& e) {
      e.dispatchThreadgroups(buffer, offset, Size(1, 1, 1));
    };
  };
  const auto args = device_->newBuffer(20);
  const std::string call = "count: dispatchThreadgroups: indirectBuffer";
  ExpectEncodeError(call + " is null", dispatch(nullptr, 0));
  ExpectEncodeError(call + "Offset: 6 is not a multiple of 4",
                    dispatch(args, 6));
  ExpectEncodeError(call +
                        "Offset: 12 bytes from 12 on are past the end of a "
                        "buffer of 20 bytes",
                    dispatch(args, 12));
  ExpectEncodeError(call +
                        "Offset: 12 bytes from 18446744073709551612 on are "
                        "past the end of a buffer of 20 bytes",
                    dispatch(args, SIZE_MAX - 3));
  ExpectEncodeError(call +
                        "Offset: 12 bytes from 0 on are past the end of a "
                        "buffer of 8 bytes",
                    dispatch(eight_, 0));
}

// Only the first mistake is reported.
TEST_F(DeviceErrors, TheFirstErrorIsKept) {
  ExpectEncodeError("count: setBytes: index 1: bytes is null", [&](Encoder& e) {
    e.setBytes(nullptr, 4, 1);
    e.setBuffer(eight_, 99, 0);
    e.setComputePipelineState(nullptr);
  });
}

TEST_F(DeviceErrors, EncodingAfterEndEncoding) {
  const BufferPtr buffers[] = {eight_};
  const size_t offsets[] = {0};
  Calls calls = {
      {"setComputePipelineState",
       [&](Encoder& e) { e.setComputePipelineState(count_); }},
      {"setBuffer", [&](Encoder& e) { e.setBuffer(eight_, 0, 0); }},
      {"setBufferOffset", [](Encoder& e) { e.setBufferOffset(0, 0); }},
      {"setBuffers",
       [&](Encoder& e) { e.setBuffers(buffers, offsets, Range(0, 1)); }},
      {"setBytes", [](Encoder& e) { e.setBytes("x", 1, 1); }},
      {"setThreadgroupMemoryLength",
       [](Encoder& e) { e.setThreadgroupMemoryLength(16, 0); }},
      {"memoryBarrier",
       [](Encoder& e) { e.memoryBarrier(BarrierScopeBuffers); }},
      {"memoryBarrier", [&](Encoder& e) { e.memoryBarrier(buffers, 1); }},
      {"endEncoding", [](Encoder& e) { e.endEncoding(); }},
  };
  calls.insert(calls.end(), dispatches_.begin(), dispatches_.end());
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    const std::string error =
        std::string("count: ") + name + ": called after endEncoding";
    const auto buffer = queue_->commandBuffer();
    const auto encoder = buffer->computeCommandEncoder();
    Count(*encoder);
    encoder->endEncoding();
    call(*encoder);
    ExpectNotRun(*buffer, error);

    // Mistakes after commit() are reported, too, but do not stop the work.
    // The message does not name the kernel, because the pipeline may no
    // longer exist.
    const auto committed = queue_->commandBuffer();
    const auto late = committed->computeCommandEncoder();
    Count(*late);
    late->endEncoding();
    committed->commit();
    call(*late);
    ExpectRunYetError(*committed, std::string(name) + ": called after commit");
    runs_ = 0;
  }
}

// Tests misuse of devices, queues and command buffers.

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
  // After the mistake the encoder encodes nothing, and further calls are
  // harmless.
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
  first->enqueue();  // from here on this buffer blocks the queue
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
  buffer->waitUntilCompleted();  // this wait must return
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

// The handler throws after the kernel has failed. The kernel's error is
// reported, because it is the first.
TEST_F(DeviceMisuse, HandlerThatThrowsAfterAnError) {
  const auto buffer = Work([] { throw std::runtime_error("first"); });
  buffer->addCompletedHandler(
      [](CommandBuffer*) { throw std::runtime_error("second"); });
  CommitAndWait(*buffer);
  ExpectError(*buffer, "user: first");
  ExpectQueueRuns();
}

// If a kernel waits for a command buffer, the buffer gets an error, because
// the wait would be a deadlock.
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

// A wait in a kernel fails on every thread that runs the kernel, even if the
// wait is for a buffer of another queue. To run that buffer, the waiting
// thread would have to call the executor from one of the executor's bodies.
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

// The buffer's last reference was dropped, so its handler has only a raw
// pointer to the buffer. If the handler makes a new encoder, that encoder
// encodes nothing.
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
  // These names have no suffix, a wrong suffix, or a row type for a kernel
  // without rows.
  for (const char* name :
       {"silu_mul_stacked", "silu_mul_stacked_f1", "silu_mul_stacked_f64",
        "silu_mul_stacked_f16_", "moe_compute_ids_tpe_f16"}) {
    EXPECT_EQ(device_->newComputePipelineState(name, &error), nullptr);
    EXPECT_TRUE(IsUnknown(error, name)) << error;
  }
  // The message lists every name once, and the most similar name first.
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

// A user's kernel fails while it executes. Earlier dispatches have run by
// then, and later dispatches do not run.

struct Pair {
  int32_t first, second;
};

class DeviceUserKernelErrors : public DeviceTest {
 protected:
  void ExpectFails(
      const std::string& error, Body body,
      const Encode& dispatch = [](Encoder& e) { DispatchOne(e); }) {
    ExpectBetweenOthers(error, [&](Encoder& e) {
      e.setComputePipelineState(Pipeline(std::move(body), "faulty"));
      e.setBuffer(eight_, 0, 0);
      e.setBytes("four", 4, 1);
      dispatch(e);
    });
  }

  const BufferPtr eight_ = device_->newBuffer(8);
};

TEST_F(DeviceUserKernelErrors, Throws) {
  ExpectFails("faulty: what I say", [](const ThreadgroupContext&) {
    throw std::runtime_error("what I say");
  });
  const std::string other =
      "faulty: the kernel threw something that is not a std::exception";
  ExpectFails(other, [](const ThreadgroupContext&) { throw 7; });
  // This text is longer than the buffer that formats messages.
  const std::string text(1000, 'x');
  ExpectFails("faulty: " + text, [&](const ThreadgroupContext&) {
    throw std::runtime_error(text);
  });
}

// The whole dispatch fails with one message, and no threadgroup runs twice.
TEST_F(DeviceUserKernelErrors, ThrowsInManyThreadgroups) {
  std::atomic<int> runs{0};
  ExpectFails(
      "faulty: again",
      [&](const ThreadgroupContext&) {
        ++runs;
        throw std::runtime_error("again");
      },
      [](Encoder& e) {
        e.dispatchThreadgroups(Size(10, 10, 10), Size(1, 1, 1));
      });
  EXPECT_GE(runs, 1);
  EXPECT_LE(runs, 1000);
  ExpectFails(
      "faulty: the last one",
      [](const ThreadgroupContext& context) {
        if (context.threadgroup_position_in_grid.width == 99) {
          throw std::runtime_error("the last one");
        }
      },
      [](Encoder& e) {
        e.dispatchThreadgroups(Size(100, 1, 1), Size(1, 1, 1));
      });
}

TEST_F(DeviceUserKernelErrors, Unbound) {
  for (const size_t index : {2u, 30u, 31u, 1000u}) {
    const std::string error =
        "faulty: buffer " + std::to_string(index) + " is not bound";
    ExpectFails(error, [index](const ThreadgroupContext& context) {
      context.buffer<const int32_t>(index);
    });
    ExpectFails(error, [index](const ThreadgroupContext& context) {
      context.params<int32_t>(index);
    });
  }
  ExpectFails(
      "faulty: buffer 0 is not bound",
      [](const ThreadgroupContext& context) { context.buffer<char>(0); },
      [](Encoder& e) {
        e.setBuffer(nullptr, 0, 0);
        DispatchOne(e);
      });
}

TEST_F(DeviceUserKernelErrors, Misaligned) {
  const auto at = [](size_t offset) {
    return [offset](Encoder& e) {
      e.setBufferOffset(offset, 0);
      DispatchOne(e);
    };
  };
  ExpectFails(
      "faulty: buffer 0: its address is not a multiple of 8",
      [](const ThreadgroupContext& context) { context.buffer<double>(0); },
      at(4));
  ExpectFails(
      "faulty: buffer 0: its address is not a multiple of 2",
      [](const ThreadgroupContext& context) { context.buffer<int16_t>(0); },
      at(1));
}

TEST_F(DeviceUserKernelErrors, ReadOnly) {
  // The bytes of setBytes() and a buffer over const memory are read-only.
  ExpectFails("faulty: buffer 1 is written, and is read-only",
              [](const ThreadgroupContext& context) {
                EXPECT_EQ(context.buffer<const char>(1).size, 4u);
                context.buffer<char>(1);
              });
  const int32_t constant = 7;
  const auto buffer = device_->newBufferWithBytesNoCopy(&constant, 4);
  ExpectFails(
      "faulty: buffer 30 is written, and is read-only",
      [](const ThreadgroupContext& context) {
        EXPECT_EQ(context.buffer<const int32_t>(30).data[0], 7);
        context.buffer<int32_t>(30).data[0] = 8;
      },
      [&](Encoder& e) {
        e.setBuffer(buffer, 0, 30);
        DispatchOne(e);
      });
  EXPECT_EQ(constant, 7);
}

TEST_F(DeviceUserKernelErrors, ParamsTooShort) {
  ExpectFails(
      "faulty: buffer 1 (params) needs 8 bytes, 4 are bound: 4 too few",
      [](const ThreadgroupContext& context) { context.params<Pair>(1); });
  ExpectFails(
      "faulty: buffer 0 (params) needs 8 bytes, 7 are bound: 1 too few",
      [](const ThreadgroupContext& context) { context.params<Pair>(0); },
      [](Encoder& e) {
        e.setBufferOffset(1, 0);
        DispatchOne(e);
      });
}

TEST_F(DeviceUserKernelErrors, ThreadgroupMemory) {
  const auto take = [](size_t index) {
    return [index](const ThreadgroupContext& context) {
      context.threadgroup<char>(index);
    };
  };
  const auto with_one = [](Encoder& e) {
    e.setThreadgroupMemoryLength(16, 1);
    DispatchOne(e);
  };
  ExpectFails("faulty: threadgroup memory 0 has no length set", take(0));
  ExpectFails("faulty: threadgroup memory 0 has no length set", take(0),
              with_one);
  ExpectFails("faulty: threadgroup memory 2 has no length set", take(2),
              with_one);
  ExpectFails("faulty: threadgroup memory 31 has no length set", take(31),
              with_one);
}

TEST_F(DeviceUserKernelErrors, GridsThatOverflow) {
  const auto never = [](const ThreadgroupContext&) { FAIL(); };
  const auto threadgroups = [](Size grid) {
    return [grid](Encoder& e) { e.dispatchThreadgroups(grid, Size(2, 1, 1)); };
  };
  const size_t half = size_t{1} << 32;
  ExpectFails("faulty: grid: 4294967296 x 4294967296 x 1 threadgroups overflow",
              never, threadgroups(Size(half, half, 1)));
  ExpectFails("faulty: grid: 4294967296 x 1 x 4294967296 threadgroups overflow",
              never, threadgroups(Size(half, 1, half)));
  ExpectFails(
      "faulty: grid: 18446744073709551615 x 1 x 1 threadgroups overflow", never,
      threadgroups(Size(SIZE_MAX, 1, 1)));
  ExpectFails("faulty: grid: 1 x 1 x 9223372036854775808 threadgroups overflow",
              never, [](Encoder& e) {
                e.dispatchThreads(Size(1, 1, SIZE_MAX), Size(1, 1, 2));
              });
}

// An executor may fail, for example because its pool has no threads left.
TEST(DeviceExecutorErrors, SurfaceWithTheirText) {
  class Broken final : public Executor {
    size_t Concurrency() const noexcept override { return 2; }
    Status ParallelFor(size_t, size_t, Body, void*) noexcept override {
      return Status(StatusCode::kInternal, "Broken: no threads");
    }
  };
  DeviceOptions options;
  options.executor = std::make_shared<Broken>();
  const auto device = CreateDevice(options);
  const auto queue = device->newCommandQueue();
  KernelFunction kernel;
  kernel.name = "any";
  kernel.threadgroup = [](const ThreadgroupContext&) {};
  const auto pipeline = device->newComputePipelineState(kernel);
  for (const size_t threadgroups : {2u, 1u}) {
    // One threadgroup needs no executor.
    const auto buffer = queue->commandBuffer();
    const auto encoder = buffer->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline);
    encoder->dispatchThreadgroups(Size(threadgroups, 1, 1), Size(1, 1, 1));
    encoder->endEncoding();
    buffer->commit();
    buffer->waitUntilCompleted();
    EXPECT_EQ(buffer->status(), threadgroups == 1 ? CommandBufferStatusCompleted
                                                  : CommandBufferStatusError);
    EXPECT_EQ(buffer->error(),
              threadgroups == 1 ? "" : "any: Broken: no threads");
  }
}

}  // namespace
}  // namespace switchyard::testing_support
