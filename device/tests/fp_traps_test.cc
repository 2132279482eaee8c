// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Engines may trap floating-point exceptions. The device's own work on
// threads with such traps must not raise any exception.

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "device/tests/device_test.h"
#include "device/tests/kernel_cases.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"

namespace switchyard::testing_support {
namespace {

constexpr int kAll =
    FE_INEXACT | FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW;

// Sets traps for the scope's lifetime. Not all machines can trap, because
// traps are optional on AArch64.
class ScopedTraps {
 public:
  ScopedTraps() {
    std::feclearexcept(FE_ALL_EXCEPT);
    enabled_ = feenableexcept(kAll) != -1;
  }
  ~ScopedTraps() {
    fedisableexcept(FE_ALL_EXCEPT);
    std::feclearexcept(FE_ALL_EXCEPT);
  }
  bool enabled() const { return enabled_; }

 private:
  bool enabled_;
};

class DeviceFpTraps : public testing::TestWithParam<Setup> {
 protected:
  // Encodes, commits and waits with all traps set. The queue's thread has the
  // traps too, because a thread inherits the floating-point mode of its
  // creator.
  void ExpectRuns(const std::shared_ptr<ComputePipelineState>& pipeline,
                  const Encode& encode) {
    SCOPED_TRACE(pipeline->label());
    std::shared_ptr<CommandBuffer> buffer;
    size_t timed = 0;
    {
      const ScopedTraps traps;
      if (!traps.enabled()) return;
      const auto queue = device_->newCommandQueue();
      buffer = Encoded(*queue, [&](Encoder& e) {
        e.setComputePipelineState(pipeline);
        encode(e);
      });
      buffer->commit();
      buffer->waitUntilCompleted();
      timed = buffer->dispatchTimes().size();
    }
    EXPECT_EQ(buffer->error(), "");
    EXPECT_EQ(buffer->status(), CommandBufferStatusCompleted);
    EXPECT_EQ(timed, 1u);
    EXPECT_LE(buffer->GPUStartTime(), buffer->GPUEndTime());
  }

  const std::shared_ptr<Device> device_ = NewDevice(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Setups, DeviceFpTraps, testing::ValuesIn(EverySetup()),
                         testing::PrintToStringParamName());

TEST_P(DeviceFpTraps, BuiltInKernels) {
  for (const KernelCase& c : KernelCases()) {
    std::vector<BufferPtr> buffers;
    for (const Arg& arg : c.args) {
      buffers.push_back(NewBuffer(*device_, arg.Numbers(1.1f, arg.Bytes())));
    }
    ExpectRuns(device_->newComputePipelineState(c.name()), [&](Encoder& e) {
      e.setBytes(c.params.data(), 4 * c.params.size(), c.kernel->params.index);
      for (size_t i = 0; i < buffers.size(); ++i) {
        e.setBuffer(buffers[i], 0, c.args[i].index);
      }
      e.dispatchThreadgroups(c.grid, Size(c.width, 1, 1));
    });
  }
}

// A kernel that raises every exception. Kernels run with all traps masked.
struct Raises {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto x = buffer<const float>(tg, 0);
    const auto out = buffer<float>(tg, 1);
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_position_in_grid().width;
      const float one = x[0], zero = x[1], huge = x[2], tiny = x[3];
      const float values[] = {one / 3.0f,  one / zero,  huge * huge,
                              tiny * tiny, zero / zero, std::sqrt(-one)};
      out[i] = values[i % 6];
    });
  }
};

TEST_P(DeviceFpTraps, OwnKernels) {
  using Limits = std::numeric_limits<float>;
  const BufferPtr in = NewBuffer(
      *device_, std::vector<float>{1.0f, 0.0f, Limits::max(), Limits::min()});
  // The device computes the grain (the least number of threadgroups for a
  // thread) from the time per threadgroup. With some of these times, the
  // grain is not an integer, or is too large or too small. Other times are
  // not positive numbers.
  for (const double ns : {30000.0, 7.0, 0.3, 1e-300, 0.0, -1.0,
                          std::numeric_limits<double>::quiet_NaN(),
                          std::numeric_limits<double>::infinity()}) {
    SCOPED_TRACE(ns);
    const BufferPtr out = NewBuffer(*device_, std::vector<float>(64));
    ExpectRuns(
        device_->newComputePipelineState(MakeKernel("raises", Raises(), ns)),
        [&](Encoder& e) {
          e.setBuffer(in, 0, 0);
          e.setBuffer(out, 0, 1);
          e.dispatchThreads(Size(64, 1, 1), Size(10, 1, 1));
        });
    const std::vector<float> values = Contents<float>(out);
    EXPECT_EQ(values[0], 1.0f / 3.0f);
    EXPECT_EQ(values[1], Limits::infinity());
    EXPECT_EQ(values[2], Limits::infinity());
    EXPECT_EQ(values[3], 0.0f);
    EXPECT_TRUE(std::isnan(values[4]) && std::isnan(values[5]));
  }
}

// The waiting thread formats the error messages.
TEST_P(DeviceFpTraps, Errors) {
  std::string error;
  {
    const ScopedTraps traps;
    const auto queue = device_->newCommandQueue();
    const auto buffer = Encoded(*queue, [&](Encoder& e) {
      e.setComputePipelineState(
          device_->newComputePipelineState("silu_mul_stacked_f32"));
      DispatchOne(e);
    });
    buffer->commit();
    buffer->waitUntilCompleted();
    error = buffer->error();
  }
  EXPECT_EQ(error, "silu_mul_stacked_f32: buffer 3 (params) is not bound");
}

}  // namespace
}  // namespace switchyard::testing_support
