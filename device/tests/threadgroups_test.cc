// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests users' kernels: grids, positions, bindings, threadgroup memory and
// times of dispatches.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/tests/device_test.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"

namespace switchyard::testing_support {
namespace {

class DeviceThreadgroups : public DeviceTest {
 protected:
  void Run(const Encode& encode) { EXPECT_EQ(DeviceTest::Run(encode), ""); }
};

size_t Ceil(size_t a, size_t b) { return (a + b - 1) / b; }
bool Equal(const Size& a, const Size& b) {
  return a.width == b.width && a.height == b.height && a.depth == b.depth;
}

TEST_F(DeviceThreadgroups, EachPositionOnce) {
  for (const Size grid : {Size(1, 1, 1), Size(7, 1, 1), Size(1, 5, 1),
                          Size(1, 1, 6), Size(3, 4, 5), Size(64, 9, 2)}) {
    const Size threads(8, 2, 3);
    const size_t count = grid.width * grid.height * grid.depth;
    std::vector<std::atomic<int>> runs(count);
    Run([&](Encoder& e) {
      e.setComputePipelineState(Pipeline([&](const ThreadgroupContext& c) {
        EXPECT_TRUE(Equal(c.threadgroups_per_grid, grid));
        EXPECT_TRUE(Equal(c.threads_per_threadgroup, threads));
        const Size& p = c.threadgroup_position_in_grid;
        ASSERT_TRUE(p.width < grid.width && p.height < grid.height &&
                    p.depth < grid.depth);
        ++runs[(p.depth * grid.height + p.height) * grid.width + p.width];
      }));
      e.dispatchThreadgroups(grid, threads);
    });
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(runs[i], 1) << i;
  }
}

TEST_F(DeviceThreadgroups, ThreadsAtTheEdges) {
  const Size per(4, 2, 3);
  for (const Size threads :
       {Size(1, 1, 1), Size(4, 2, 3), Size(5, 2, 3), Size(8, 3, 7),
        Size(11, 5, 1), Size(3, 1, 2), Size(400, 1, 3)}) {
    const Size grid(Ceil(threads.width, 4), Ceil(threads.height, 2),
                    Ceil(threads.depth, 3));
    std::vector<std::atomic<int>> runs(threads.width * threads.height *
                                       threads.depth);
    std::atomic<size_t> threadgroups{0};
    Run([&](Encoder& e) {
      e.setComputePipelineState(Pipeline([&](const ThreadgroupContext& c) {
        ++threadgroups;
        EXPECT_TRUE(Equal(c.threadgroups_per_grid, grid));
        const Size& p = c.threadgroup_position_in_grid;
        const Size& t = c.threads_per_threadgroup;
        for (size_t z = p.depth * per.depth; z < p.depth * per.depth + t.depth;
             ++z) {
          for (size_t y = p.height * per.height;
               y < p.height * per.height + t.height; ++y) {
            for (size_t x = p.width * per.width;
                 x < p.width * per.width + t.width; ++x) {
              ASSERT_TRUE(x < threads.width && y < threads.height &&
                          z < threads.depth);
              ++runs[(z * threads.height + y) * threads.width + x];
            }
          }
        }
      }));
      e.dispatchThreads(threads, per);
    });
    EXPECT_EQ(threadgroups, grid.width * grid.height * grid.depth);
    for (size_t i = 0; i < runs.size(); ++i) ASSERT_EQ(runs[i], 1) << i;
  }
}

// At the edge of the grid, threads of a smaller threadgroup must have the
// same positions as in a full threadgroup.
TEST_F(DeviceThreadgroups, ThreadsKnowTheirPlaceInTheGrid) {
  const auto out = device_->newBuffer(10 * sizeof(int32_t));
  Run([&](Encoder& e) {
    e.setComputePipelineState(Pipeline([](const ThreadgroupContext& tg) {
      const Span<int32_t> x = tg.buffer<int32_t>(0);
      const size_t first = tg.threadgroup_position_in_grid.width *
                           tg.dispatch_threads_per_threadgroup.width;
      ASSERT_EQ(tg.threads_per_grid.width, x.size);
      for (size_t t = 0; t < tg.threads_per_threadgroup.width; ++t) {
        x.data[first + t] = static_cast<int32_t>(first + t) + 1;
      }
    }));
    e.setBuffer(out, 0, 0);
    e.dispatchThreads(Size(10, 1, 1), Size(4, 1, 1));
  });
  EXPECT_EQ(Contents<int32_t>(out),
            (std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(DeviceThreadgroups, EmptyGrids) {
  Run([&](Encoder& e) {
    e.setComputePipelineState(
        Pipeline([](const ThreadgroupContext&) { FAIL(); }));
    for (const Size empty : {Size(0, 1, 1), Size(1, 0, 1), Size(1, 1, 0),
                             Size(0, SIZE_MAX, SIZE_MAX)}) {
      e.dispatchThreadgroups(empty, Size(8, 1, 1));
      e.dispatchThreads(empty, Size(8, 1, 1));
    }
    e.dispatchThreadgroups(device_->newBuffer(12), 0, Size(8, 1, 1));
  });
}

TEST_F(DeviceThreadgroups, MaximumThreads) {
  Run([&](Encoder& e) {
    e.setComputePipelineState(Pipeline([](const ThreadgroupContext& c) {
      EXPECT_EQ(c.threads_per_threadgroup.width, 1u);
      EXPECT_EQ(c.threads_per_threadgroup.height, 1024u);
    }));
    e.dispatchThreadgroups(Size(1, 1, 1), Size(1, 1024, 1));
  });
}

// An indirect grid is read when the dispatch executes. By then, an earlier
// dispatch or the host has written the grid.
TEST_F(DeviceThreadgroups, IndirectGridIsReadWhenItExecutes) {
  const auto args = device_->newBuffer(20);
  std::atomic<int> runs{0};
  const auto buffer = queue_->commandBuffer();
  const auto encoder = buffer->computeCommandEncoder();
  const auto count = Pipeline([&runs](const ThreadgroupContext& c) {
    EXPECT_TRUE(Equal(c.threadgroups_per_grid, Size(2, 3, 4)) ||
                Equal(c.threadgroups_per_grid, Size(5, 1, 1)));
    ++runs;
  });
  encoder->setComputePipelineState(count);
  encoder->dispatchThreadgroups(args, 4, Size(16, 1, 1));
  encoder->setComputePipelineState(Pipeline([](const ThreadgroupContext& c) {
    const Span<uint32_t> grid = c.buffer<uint32_t>(0);
    ASSERT_EQ(grid.size, 5u);
    grid.data[1] = 5;
    grid.data[2] = grid.data[3] = 1;
  }));
  encoder->setBuffer(args, 0, 0);
  DispatchOne(*encoder);
  encoder->setComputePipelineState(count);
  encoder->dispatchThreadgroups(args, 4, Size(16, 1, 1));
  encoder->endEncoding();
  const uint32_t from_host[] = {99, 2, 3, 4, 99};
  std::memcpy(args->contents(), from_host, sizeof(from_host));
  CommitAndWait(*buffer);
  ExpectCompleted(*buffer);
  EXPECT_EQ(runs, 24 + 5);
}

// Each piece of threadgroup memory is separate from the other pieces, and
// from the memory of threadgroups that run at the same time.
TEST_F(DeviceThreadgroups, MemoryOfItsOwn) {
  const size_t lengths[] = {4, 1000, 0, 17, 31747};  // the sum is 32768
  std::atomic<int> runs{0};
  Run([&](Encoder& e) {
    e.setComputePipelineState(Pipeline([&](const ThreadgroupContext& c) {
      const unsigned char mark =
          static_cast<unsigned char>(c.threadgroup_position_in_grid.width);
      for (size_t i = 0; i < 5; ++i) {
        if (lengths[i] == 0) continue;
        const Span<unsigned char> piece = c.threadgroup<unsigned char>(i);
        ASSERT_EQ(piece.size, lengths[i]);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(piece.data) % 64, 0u);
        std::memset(piece.data, mark + static_cast<int>(i), piece.size);
      }
      EXPECT_EQ(c.threadgroup<char>(2).size, 0u);
      // The span has whole elements only.
      EXPECT_EQ(c.threadgroup<int64_t>(3).size, 2u);
      for (size_t i = 0; i < 5; ++i) {
        if (lengths[i] == 0) continue;
        const Span<unsigned char> piece = c.threadgroup<unsigned char>(i);
        for (size_t j = 0; j < piece.size; ++j) {
          ASSERT_EQ(piece.data[j], static_cast<unsigned char>(mark + i));
        }
      }
      ++runs;
    }));
    for (size_t i = 0; i < 5; ++i) e.setThreadgroupMemoryLength(lengths[i], i);
    e.dispatchThreadgroups(Size(100, 1, 1), Size(1, 1, 1));
  });
  EXPECT_EQ(runs, 100);
}

// A dispatch uses the state that the encoder had when it was encoded.
// Bindings stay for later dispatches.
TEST_F(DeviceThreadgroups, StateOfWhenItWasEncoded) {
  const auto values = device_->newBuffer(16);
  const auto other = device_->newBuffer(16);
  std::string log;  // safe, because each dispatch has one threadgroup
  const auto note = Pipeline([&log](const ThreadgroupContext& c) {
    log += std::to_string(c.params<int32_t>(1)) + ":" +
           std::to_string(c.buffer<const int32_t>(0).size) + ":" +
           std::to_string(c.threadgroup<char>(0).size) + " ";
  });
  Run([&](Encoder& e) {
    const auto dispatch = [&e] { DispatchOne(e); };
    int32_t param = 1;
    e.setComputePipelineState(note);
    e.setBuffer(values, 4, 0);
    e.setBytes(&param, sizeof(param), 1);
    e.setThreadgroupMemoryLength(8, 0);
    param = -1;  // setBytes() has copied the old value
    dispatch();
    dispatch();
    e.setBufferOffset(12, 0);
    dispatch();
    param = 2;
    e.setBytes(&param, sizeof(param), 1);
    e.setThreadgroupMemoryLength(16, 0);
    dispatch();
    const BufferPtr buffers[] = {other, other};
    const size_t offsets[] = {8, 0};
    e.setBuffers(buffers, offsets, Range(0, 2));
    dispatch();
    e.setBuffer(other, 15, 0);
    e.setBufferOffset(0, 0);
    dispatch();
  });
  EXPECT_EQ(log, "1:3:8 1:3:8 1:1:8 2:1:16 0:2:16 0:4:16 ");
}

TEST_F(DeviceThreadgroups, EncodersStartFromNothing) {
  const auto buffer = queue_->commandBuffer();
  const auto first = buffer->computeCommandEncoder();
  first->setBytes("x", 1, 0);
  first->setThreadgroupMemoryLength(16, 0);
  first->endEncoding();
  const auto second = buffer->computeCommandEncoder(DispatchTypeConcurrent);
  EXPECT_EQ(first->dispatchType(), DispatchTypeSerial);
  EXPECT_EQ(second->dispatchType(), DispatchTypeConcurrent);
  int threw = 0;
  second->setComputePipelineState(
      Pipeline([&threw](const ThreadgroupContext& c) {
        EXPECT_THROW(c.buffer<const char>(0), std::invalid_argument);
        EXPECT_THROW(c.threadgroup<char>(0), std::invalid_argument);
        ++threw;
      }));
  DispatchOne(*second);
  second->endEncoding();
  CommitAndWait(*buffer);
  ExpectCompleted(*buffer);
  EXPECT_EQ(threw, 1);
}

// 10 dispatches bind more bytes than one block of the encoder's memory holds.
// 2000 dispatches bind more bytes than the queue keeps for reuse.
TEST_F(DeviceThreadgroups, ManyBytes) {
  std::vector<char> bytes(4096);
  size_t runs = 0;
  const auto check = Pipeline([&](const ThreadgroupContext& c) {
    const Span<const char> bound = c.buffer<const char>(30);
    ASSERT_EQ(bound.size, 4096 - runs % 3);
    for (size_t i = 0; i < bound.size; ++i) {
      ASSERT_EQ(bound.data[i], static_cast<char>(runs % 127));
    }
    ++runs;
  });
  for (const size_t dispatches : {10u, 2000u, 10u}) {
    runs = 0;
    Run([&](Encoder& e) {
      e.setComputePipelineState(check);
      for (size_t i = 0; i < dispatches; ++i) {
        bytes.assign(4096, static_cast<char>(i % 127));
        e.setBytes(bytes.data(), 4096 - i % 3, 30);
        DispatchOne(e);
      }
    });
    EXPECT_EQ(runs, dispatches);
  }
}

TEST_F(DeviceThreadgroups, Times) {
  for (const bool timed : {true, false}) {
    const auto device = NewDevice(timed);
    const auto queue = device->newCommandQueue();
    const auto buffer = queue->commandBuffer();
    const auto encoder = buffer->computeCommandEncoder();
    encoder->setComputePipelineState(
        Pipeline([](const ThreadgroupContext&) {}, "first"));
    encoder->dispatchThreads(Size(10, 3, 1), Size(4, 1, 1));
    encoder->dispatchThreadgroups(Size(0, 1, 1), Size(4, 1, 1));
    encoder->setComputePipelineState(Pipeline(
        [&buffer](const ThreadgroupContext&) {
          // Times are not available before the buffer has completed.
          EXPECT_TRUE(buffer->dispatchTimes().empty());
          throw std::runtime_error("no");
        },
        "second"));
    const uint32_t grid[] = {2, 1, 1};
    encoder->dispatchThreadgroups(device->newBuffer(grid, sizeof(grid)), 0,
                                  Size(4, 1, 1));
    encoder->endEncoding();
    EXPECT_TRUE(buffer->dispatchTimes().empty());
    EXPECT_EQ(buffer->GPUStartTime(), 0.0);
    EXPECT_EQ(buffer->GPUEndTime(), 0.0);
    buffer->addCompletedHandler([timed](CommandBuffer* completed) {
      EXPECT_EQ(completed->dispatchTimes().size(), timed ? 2u : 0u);
    });
    CommitAndWait(*buffer);
    ExpectError(*buffer, "second: no");
    EXPECT_GT(buffer->GPUStartTime(), 0.0);
    EXPECT_LE(buffer->GPUStartTime(), buffer->GPUEndTime());
    const std::vector<DispatchTime> times = buffer->dispatchTimes();
    // The failed dispatch has no times.
    ASSERT_EQ(times.size(), timed ? 2u : 0u);
    double last = buffer->GPUStartTime();
    for (const DispatchTime& time : times) {
      EXPECT_EQ(time.kernel, "first");
      EXPECT_LE(last, time.start);
      EXPECT_LE(time.start, time.end);
      last = time.end;
    }
    EXPECT_LE(last, buffer->GPUEndTime());
    if (timed) {
      EXPECT_TRUE(Equal(times[0].threadgroups, Size(3, 3, 1)));
      EXPECT_TRUE(Equal(times[1].threadgroups, Size(0, 1, 1)));
    }
  }
}

TEST_F(DeviceThreadgroups, WhatTheDeviceTells) {
  EXPECT_STREQ(device_->name(), "Switchyard");
  EXPECT_TRUE(device_->hasUnifiedMemory());
  EXPECT_EQ(device_->maxThreadsPerThreadgroup().width, 1024u);
  EXPECT_EQ(device_->maxThreadgroupMemoryLength(), 32768u);
  const auto pipeline = Pipeline([](const ThreadgroupContext&) {}, "mine");
  EXPECT_EQ(pipeline->label(), "mine");
  EXPECT_EQ(pipeline->maxTotalThreadsPerThreadgroup(), 1024u);
  EXPECT_EQ(pipeline->threadExecutionWidth(), 32u);
  // The default executor may be a thread pool or the serial executor. Both
  // executors must work.
  const auto standard = CreateSystemDefaultDevice();
  ASSERT_NE(standard, nullptr);
  std::atomic<int> runs{0};
  const auto buffer = standard->newCommandQueue()->commandBuffer();
  const auto encoder = buffer->computeCommandEncoder();
  encoder->setComputePipelineState(
      Pipeline([&runs](const ThreadgroupContext&) { ++runs; }));
  encoder->dispatchThreadgroups(Size(100, 1, 1), Size(1, 1, 1));
  encoder->endEncoding();
  CommitAndWait(*buffer);
  ExpectCompleted(*buffer);
  EXPECT_EQ(runs, 100);
}

}  // namespace
}  // namespace switchyard::testing_support
