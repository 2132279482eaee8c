// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Misuse of devices, encoders and command buffers: its text, what has run, and
// that the queue goes on. The kernels' own errors: device_kernel_errors_test.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {
namespace {

class DeviceErrors : public MisuseTest {
 protected:
  // Encodes one more run.
  void Count(Encoder& encoder) {
    encoder.setComputePipelineState(count_);
    DispatchOne(encoder);
  }
  // A mistake between two good dispatches: none of them runs.
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

// The first mistake is the one that is told.
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

    // After commit() it is told too, and keeps nothing from being done. The
    // kernel may be gone by then: it is not named.
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

}  // namespace
}  // namespace switchyard::testing_support
