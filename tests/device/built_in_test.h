// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Built-in kernels dispatched in every way: direct, indirect and in threads,
// parameters in bytes and in buffers, over grids larger and smaller than the
// work, on memory that notices.

#ifndef SWITCHYARD_TESTS_DEVICE_BUILT_IN_TEST_H_
#define SWITCHYARD_TESTS_DEVICE_BUILT_IN_TEST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/activate.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernels.h"
#include "testing/guarded_buffer.h"
#include "tests/device/device_test.h"
#include "tests/target_test.h"

namespace switchyard {
namespace testing_support {

struct BoundBuffer {
  size_t index;
  std::shared_ptr<device::Buffer> buffer;
  size_t offset;
};

// A vector in a device buffer that starts 5 elements in front of it, so that
// its offset is a multiple of 4 and of nothing more, and ends 0 to 2 elements
// behind it, at a guard page. Must outlive the work that uses it.
template <class T>
class DeviceArray {
 public:
  // Canaries, for a kernel to write.
  DeviceArray(device::Device& device, size_t size)
      : memory_(1, size, 0, Behind(size)),
        buffer_(device.newBufferWithBytesNoCopy(
            static_cast<void*>(memory_.data() - kFront), Bytes(size))) {}
  // Read-only: a kernel that could write it is an error.
  DeviceArray(device::Device& device, const std::vector<T>& values)
      : memory_(values, Behind(values.size())),
        buffer_(device.newBufferWithBytesNoCopy(
            static_cast<const void*>(memory_.data() - kFront),
            Bytes(values.size()))) {}

  BoundBuffer At(size_t index) const {
    return {index, buffer_, kFront * sizeof(T)};
  }
  const std::shared_ptr<device::Buffer>& buffer() const { return buffer_; }
  const Guarded<T>& memory() const { return memory_; }
  std::vector<T> Values() const { return memory_.Values(); }

 private:
  static constexpr size_t kFront = 5;
  // An offset has to be inside the buffer.
  static size_t Behind(size_t size) { return size == 0 ? 1 : size % 3; }
  static size_t Bytes(size_t size) {
    return (kFront + size + Behind(size)) * sizeof(T);
  }

  const Guarded<T> memory_;
  const std::shared_ptr<device::Buffer> buffer_;
};

template <class T>
std::vector<uint32_t> Words(const std::vector<T>& values) {
  static_assert(sizeof(T) == sizeof(uint32_t));
  std::vector<uint32_t> words(values.size());
  if (!values.empty()) {
    std::memcpy(words.data(), values.data(), values.size() * sizeof(T));
  }
  return words;
}

// The part of a matrix that a grid covers.
struct Covered {
  size_t rows;
  size_t cols;
};

// `whole`, [.., cols], where the grid covered it, `before` everywhere else.
template <class T>
void ExpectPart(const DeviceArray<T>& out, const std::vector<T>& before,
                const std::vector<T>& whole, size_t cols, Covered covered,
                const char* name) {
  out.memory().ExpectIntact(name);
  std::vector<uint32_t> expected = Words(before);
  const std::vector<uint32_t> words = Words(whole);
  ASSERT_EQ(words.size(), expected.size()) << name;
  for (size_t r = 0; r < covered.rows; ++r) {
    std::copy_n(words.data() + r * cols, covered.cols,
                expected.data() + r * cols);
  }
  const std::vector<uint32_t> actual = Words(out.Values());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i], expected[i])
        << name << "[" << i / cols << ", " << i % cols << "]";
  }
}

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

inline size_t CeilDiv(size_t a, size_t b) { return (a + b - 1) / b; }

// A kernel and its bindings.
struct Work {
  const char* kernel;
  size_t threads;  // per threadgroup
  size_t params_index;
  std::vector<BoundBuffer> buffers;
  size_t local_memory = 0;
};

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
    device::DeviceOptions options;
    options.executor = std::shared_ptr<Executor>(&pool, [](Executor*) {});
    device_ = device::CreateDevice(options);
    ASSERT_NE(device_, nullptr);
    queue_ = device_->newCommandQueue();
    ASSERT_NE(queue_, nullptr);
    written_ = device_->newBuffer(kWrittenBytes);
    ASSERT_NE(written_, nullptr);
    device::KernelFunction copy;
    copy.name = "copy";
    copy.threadgroup = [](const device::ThreadgroupContext& context) {
      const Span<const unsigned char> from =
          context.buffer<const unsigned char>(kCopyFrom);
      std::memcpy(context.buffer<unsigned char>(kCopyTo).data, from.data,
                  from.size);
    };
    copy_ = device_->newComputePipelineState(copy);
    ASSERT_NE(copy_, nullptr);
  }

  device::Device& device() { return *device_; }
  device::CommandQueue& queue() { return *queue_; }

  // Runs the work over a grid of so many threads, rounded up to threadgroups
  // unless it is encoded in threads; returns the command buffer's error.
  template <class Params>
  std::string Run(const Work& work, const Params& params, How how,
                  device::Size threads) {
    const std::shared_ptr<device::CommandBuffer> commands =
        queue_->commandBuffer();
    const std::shared_ptr<device::ComputeCommandEncoder> encoder =
        commands->computeCommandEncoder();
    Encode(*encoder, work, &params, sizeof(params), how, threads);
    encoder->endEncoding();
    return Finish(*commands);
  }

  // Commits and waits. Kernels that run have to run on the test's ISA.
  std::string Finish(device::CommandBuffer& commands) {
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
                                     ? device::CommandBufferStatusCompleted
                                     : device::CommandBufferStatusError);
    return commands.error();
  }

  void Encode(device::ComputeCommandEncoder& encoder, const Work& work,
              const void* params, size_t params_length, How how,
              device::Size threads) {
    std::string error;
    const std::shared_ptr<device::ComputePipelineState> pipeline =
        device_->newComputePipelineState(work.kernel, &error);
    ASSERT_NE(pipeline, nullptr) << error;
    const device::Size per(work.threads, 1, 1);
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
    for (const BoundBuffer& b : work.buffers) {
      // Whichever call an engine may use for it.
      if (how.grid == Encoding::kThreadgroups) {
        encoder.setBuffer(b.buffer, b.offset, b.index);
      } else if (how.grid == Encoding::kIndirect) {
        encoder.setBuffer(b.buffer, 0, b.index);
        encoder.setBufferOffset(b.offset, b.index);
      } else {
        encoder.setBuffers(&b.buffer, &b.offset, device::Range(b.index, 1));
      }
    }
    if (how.params_written) {
      encoder.setBuffer(written_, kParamsOffset, work.params_index);
    } else {
      encoder.setBytes(params, params_length, work.params_index);
    }
    encoder.setThreadgroupMemoryLength(work.local_memory, 0);
    switch (how.grid) {
      case Encoding::kThreadgroups:
        encoder.dispatchThreadgroups(
            device::Size(width, threads.height, threads.depth), per);
        break;
      case Encoding::kIndirect:
        encoder.dispatchThreadgroups(written_, kGridOffset, per);
        break;
      case Encoding::kThreads:
        encoder.dispatchThreads(threads, per);
        break;
    }
  }

  // check(how, threads, covered) for grids that cover a [rows, cols] output in
  // tiles of 256 columns by one row: all of it, more, less and nothing. Kernels
  // of a single row take no more threadgroups than one in y.
  template <class Check>
  void ForTileGrids(size_t rows, size_t cols, bool single_row,
                    const Check& check) {
    using device::Size;
    const size_t more = single_row ? 1 : rows + 3;
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
        SCOPED_TRACE(testing::Message()
                     << "[" << rows << ", " << cols << "], " << threads.width
                     << " x " << threads.height << " x " << threads.depth
                     << " threads, way " << static_cast<int>(how.grid)
                     << how.params_written);
        check(how, threads, covered);
        if (HasFatalFailure()) return;
      }
    }
  }

  // check(how, threads, rows covered) for grids of one threadgroup of `width`
  // threads per row. Larger ones only with `cut_off`.
  template <class Check>
  void ForRowGrids(size_t rows, size_t width, bool cut_off,
                   const Check& check) {
    for (const size_t grid : {rows, rows / 2, size_t{1}, size_t{0}, rows + 5}) {
      if (grid > rows && !cut_off) continue;
      for (const How& how : kEveryHow) {
        SCOPED_TRACE(testing::Message()
                     << grid << " threadgroups of " << width << ", " << rows
                     << " rows, way " << static_cast<int>(how.grid)
                     << how.params_written);
        check(how, device::Size(grid * width, 1, 1), std::min(grid, rows));
        if (HasFatalFailure()) return;
      }
    }
  }

 private:
  // Bindings that no built-in kernel looks at.
  static constexpr size_t kCopyFrom = 29, kCopyTo = 30;
  static constexpr size_t kWrittenBytes = 256;
  static constexpr size_t kParamsOffset = 4, kGridOffset = 132;

  void EncodeCopy(device::ComputeCommandEncoder& encoder, const void* from,
                  size_t length, size_t offset) {
    encoder.setComputePipelineState(copy_);
    encoder.setBytes(from, length, kCopyFrom);
    encoder.setBuffer(written_, offset, kCopyTo);
    DispatchOne(encoder);
  }

  std::shared_ptr<device::Device> device_;
  std::shared_ptr<device::CommandQueue> queue_;
  std::shared_ptr<device::Buffer> written_;
  std::shared_ptr<device::ComputePipelineState> copy_;
  bool ran_ = false;
};

}  // namespace testing_support
}  // namespace switchyard

#endif  // SWITCHYARD_TESTS_DEVICE_BUILT_IN_TEST_H_
