// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Built-in kernels dispatched in every way: direct, indirect and in threads,
// parameters in bytes and in buffers, over grids larger and smaller than the
// work.

#ifndef SWITCHYARD_TESTS_DEVICE_BUILT_IN_TEST_H_
#define SWITCHYARD_TESTS_DEVICE_BUILT_IN_TEST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/device/builtin/built_in.h"
#include "src/device/pipeline.h"
#include "switchyard/activate.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernels.h"
#include "tests/device/built_in_job.h"
#include "tests/device/device_test.h"
#include "tests/device/raw_bytes.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {

// The part of its rows and columns that a grid covers.
struct Covered {
  size_t rows;
  size_t cols;
};

enum class Encoding { kThreadgroups, kIndirect, kThreads };

// How a dispatch is encoded. What is written is so by an earlier dispatch of
// the same command buffer: parameters, and always an indirect grid.
struct How {
  Encoding grid;
  bool params_written;
};
constexpr How kEveryHow[] = {
    {Encoding::kThreadgroups, false}, {Encoding::kThreadgroups, true},
    {Encoding::kIndirect, false},     {Encoding::kIndirect, true},
    {Encoding::kThreads, false},      {Encoding::kThreads, true},
};

inline void Bind(Encoder& encoder, const BoundBuffer& b) {
  encoder.setBuffer(b.buffer, b.offset, b.index);
}

inline size_t CeilDiv(size_t a, size_t b) { return (a + b - 1) / b; }

class BuiltInTest : public IsaPoolTest {
 protected:
  void SetUp() override {
    IsaPoolTest::SetUp();
    if (!HasFatalFailure()) Use(executor());
  }
  void TearDown() override {
    EXPECT_TRUE(ran_) << "no kernel of the device ran";
    // For the base's own check: the last grid may have been one of nothing.
    float x = 1.0f;
    EXPECT_TRUE(Activate({{&x, 1, 1}, {&x, 1, 1}}, {{&x, 1, 1}}).ok());
    copy_.reset();
    written_.reset();
    queue_.reset();
    device_.reset();
    IsaPoolTest::TearDown();
  }

  // A device over that executor, from here on.
  void Use(Executor& pool) {
    DeviceOptions options;
    options.executor = std::shared_ptr<Executor>(&pool, [](Executor*) {});
    device_ = CreateDevice(options);
    ASSERT_NE(device_, nullptr);
    queue_ = device_->newCommandQueue();
    ASSERT_NE(queue_, nullptr);
    written_ = device_->newBuffer(kWrittenBytes);
    ASSERT_NE(written_, nullptr);
    KernelFunction copy;
    copy.name = "copy";
    copy.threadgroup = [](const ThreadgroupContext& context) {
      const Span<const unsigned char> from =
          context.buffer<const unsigned char>(kCopyFrom);
      std::memcpy(context.buffer<unsigned char>(kCopyTo).data, from.data,
                  from.size);
    };
    copy_ = device_->newComputePipelineState(copy);
    ASSERT_NE(copy_, nullptr);
  }

  Device& device() { return *device_; }
  CommandQueue& queue() { return *queue_; }

  // A job's memory: arguments of one dispatch.
  class Memory {
   public:
    Memory(Device& device, const Job& job) {
      for (const Given& given : job.arguments) {
        if (given.kind == Given::kRead) {
          arrays_.push_back(
              std::make_shared<Array>(device, given.before, given.element));
        } else if (given.kind == Given::kWritten) {
          arrays_.push_back(std::make_shared<Array>(device, given.before.size(),
                                                    given.element));
          arrays_.back()->memory().Fill(given.before);
        } else {
          arrays_.push_back(nullptr);
        }
      }
      for (size_t i = 0; i < arrays_.size(); ++i) {
        const Given& given = job.arguments[i];
        if (given.kind == Given::kSameAs) arrays_[i] = arrays_[given.same_as];
      }
    }
    bool Has(size_t argument) const { return arrays_[argument] != nullptr; }
    BoundBuffer At(size_t argument, size_t index) const {
      return arrays_[argument]->At(index);
    }
    // Expects the plain API's values where the grid covers them, and nothing
    // else.
    void Expect(const Job& job, Covered covered) const {
      for (size_t i = 0; i < arrays_.size(); ++i) {
        const Given& given = job.arguments[i];
        if (given.kind != Given::kWritten) continue;
        const char* const name = job.BuiltInKernel().arguments[i].name;
        arrays_[i]->memory().ExpectIntact(name);
        RawBytes expected = given.before;
        ASSERT_EQ(given.whole.size(), expected.size()) << name;
        const size_t size = given.element;
        const size_t cols =
            job.rows == 0 ? 0 : expected.size() / size / job.rows;
        const size_t written = std::min(covered.cols, cols);
        for (size_t r = 0; r < covered.rows; ++r) {
          std::copy_n(given.whole.data() + r * cols * size, written * size,
                      expected.data() + r * cols * size);
        }
        const RawBytes actual = arrays_[i]->Values();
        if (actual == expected) continue;
        for (size_t at = 0; at < actual.size(); at += size) {
          uint32_t was = 0, wanted = 0;
          std::memcpy(&was, &actual[at], size);
          std::memcpy(&wanted, &expected[at], size);
          ASSERT_EQ(was, wanted) << name << "[" << at / size / cols << ", "
                                 << at / size % cols << "]";
        }
      }
    }

   private:
    using Array = DeviceArray<unsigned char>;
    std::vector<std::shared_ptr<Array>> arrays_;
  };

  // Over a grid of so many threads, rounded up to threadgroups unless it is
  // encoded in threads.
  void Expect(const Job& job, How how, Size threads, Covered covered) {
    SCOPED_TRACE(testing::Message()
                 << job.kernel << ", [" << job.rows << ", " << job.cols << "], "
                 << threads.width << " x " << threads.height << " x "
                 << threads.depth << " threads, way "
                 << static_cast<int>(how.grid) << how.params_written);
    const Memory memory(*device_, job);
    const auto commands = Encoded(
        *queue_, [&](Encoder& e) { Encode(e, job, memory, how, threads); });
    ASSERT_EQ(Finish(*commands), covered.rows == 0 ? "" : job.error);
    memory.Expect(job, job.error.empty() ? covered : Covered{0, 0});
  }
  void ExpectWhole(const Job& job) {
    Expect(job, kEveryHow[0], job.WholeGrid(), {job.rows, SIZE_MAX});
  }
  // In every way, over grids that cover all of it, more, less and nothing.
  void ExpectPlain(const Job& job) {
    if (job.OverTiles()) {
      ForTileGrids(job);
    } else {
      ForRowGrids(job);
    }
  }

  // Commits and waits. Kernels that run have to run on the test's ISA.
  std::string Finish(CommandBuffer& commands) {
    // Whoever looks before the dispatch that writes it finds nonsense.
    std::memset(written_->contents(), 0xFF, kWrittenBytes);
    {
      const ScopedIsa fresh(GetParam().isa);  // forgets what ran last
      commands.commit();
      commands.waitUntilCompleted();
      if (LastIsa() != nullptr) {
        ran_ = true;
        EXPECT_EQ(LastIsa()->name, GetParam().isa);
      }
    }
    EXPECT_TRUE(CapIsa(GetParam().isa.c_str()).ok());  // the scope lifted it
    EXPECT_EQ(commands.status(), commands.error().empty()
                                     ? CommandBufferStatusCompleted
                                     : CommandBufferStatusError);
    return commands.error();
  }

  void Encode(Encoder& encoder, const Job& job, const Memory& memory, How how,
              Size threads) {
    const void* const params = job.params.data();
    const size_t params_length = 4 * job.params.size();
    const BuiltIn& kernel = job.BuiltInKernel();
    std::string error;
    const auto pipeline =
        device_->newComputePipelineState(job.kernel.c_str(), &error);
    ASSERT_NE(pipeline, nullptr) << error;
    const Size per(job.threads, 1, 1);
    const size_t width = CeilDiv(threads.width, per.width);
    const uint32_t grid[3] = {static_cast<uint32_t>(width),
                              static_cast<uint32_t>(threads.height),
                              static_cast<uint32_t>(threads.depth)};
    if (how.grid == Encoding::kIndirect) {
      EncodeCopy(encoder, grid, sizeof(grid), kGridOffset);
    }
    if (how.params_written) {
      EncodeCopy(encoder, params, params_length, kParamsOffset);
    }
    encoder.setComputePipelineState(pipeline);
    for (size_t i = 0; i < job.arguments.size(); ++i) {
      if (!memory.Has(i)) continue;
      const BoundBuffer b = memory.At(i, kernel.arguments[i].index);
      // Whichever call an engine may use for it.
      if (how.grid == Encoding::kThreadgroups) {
        Bind(encoder, b);
      } else if (how.grid == Encoding::kIndirect) {
        encoder.setBuffer(b.buffer, 0, b.index);
        encoder.setBufferOffset(b.offset, b.index);
      } else {
        encoder.setBuffers(&b.buffer, &b.offset, Range(b.index, 1));
      }
    }
    if (how.params_written) {
      encoder.setBuffer(written_, kParamsOffset, kernel.params.index);
    } else {
      encoder.setBytes(params, params_length, kernel.params.index);
    }
    // Asked for or not.
    encoder.setThreadgroupMemoryLength(
        how.params_written ? job.local_memory : 0, 0);
    if (how.grid == Encoding::kThreadgroups) {
      encoder.dispatchThreadgroups(Size(width, threads.height, threads.depth),
                                   per);
    } else if (how.grid == Encoding::kIndirect) {
      encoder.dispatchThreadgroups(written_, kGridOffset, per);
    } else {
      encoder.dispatchThreads(threads, per);
    }
  }

 private:
  // Bindings that no built-in kernel looks at.
  static constexpr size_t kCopyFrom = 29, kCopyTo = 30;
  static constexpr size_t kWrittenBytes = 256;
  static constexpr size_t kParamsOffset = 4, kGridOffset = 132;

  // Tiles of 256 columns by one row. Kernels of a single row take no more
  // threadgroups than one in y.
  void ForTileGrids(const Job& job) {
    const size_t rows = job.rows, cols = job.cols;
    const size_t more = rows == 1 ? 1 : rows + 3;
    const Size grids[] = {
        Size(cols, rows, 1),    Size(cols + 700, more, 1),
        Size(256, rows, 1),     Size(cols, 1, 1),
        Size(300, rows / 2, 1), Size(cols - cols / 3, rows, 1),
        Size(0, rows, 1),       Size(cols, rows, 0),
    };
    for (const Size& threads : grids) {
      for (const How& how : kEveryHow) {
        const size_t width = how.grid == Encoding::kThreads
                                 ? threads.width
                                 : CeilDiv(threads.width, 256) * 256;
        Covered covered = {std::min(threads.height, rows),
                           std::min(width, cols)};
        if (threads.depth == 0) covered = {0, 0};
        Expect(job, how, threads, covered);
        if (HasFatalFailure()) return;
      }
    }
  }
  // A threadgroup per row. More of them only where the kernel knows its rows.
  void ForRowGrids(const Job& job) {
    const uint8_t rows = job.BuiltInKernel().grid.rows;
    const bool cut_off = rows != kOne && rows != kGridWidth;
    for (const size_t grid :
         std::set<size_t>{job.rows, job.rows / 2, 1, 0, job.rows + 5}) {
      if (grid > job.rows && !cut_off) continue;
      for (const How& how : kEveryHow) {
        Expect(job, how, Size(grid * job.threads, 1, 1),
               {std::min(grid, job.rows), SIZE_MAX});
        if (HasFatalFailure()) return;
      }
    }
  }
  void EncodeCopy(Encoder& encoder, const void* from, size_t length,
                  size_t offset) {
    encoder.setComputePipelineState(copy_);
    encoder.setBytes(from, length, kCopyFrom);
    encoder.setBuffer(written_, offset, kCopyTo);
    DispatchOne(encoder);
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<CommandQueue> queue_;
  BufferPtr written_;
  std::shared_ptr<ComputePipelineState> copy_;
  bool ran_ = false;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_DEVICE_BUILT_IN_TEST_H_
