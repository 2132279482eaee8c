// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sets rounding modes and flush-to-zero in the caller and in the threads of a
// pool. The results keep the same bits, and each thread keeps its mode.

#include <atomic>
#include <cfenv>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/faults/layer.h"
#include "tests/target_test.h"

#ifdef SWITCHYARD_WITH_DEVICE
#include "device/tests/device_pass.h"
#endif

namespace switchyard::testing_support {
namespace {

struct FpMode {
  int rounding;
  bool flush_to_zero;
};
constexpr FpMode kFpModes[] = {{FE_TONEAREST, true}, {FE_UPWARD, false},
                               {FE_DOWNWARD, false}, {FE_TOWARDZERO, false},
                               {FE_UPWARD, true},    {FE_DOWNWARD, true}};

// Prints "Up" or "DownFlushed", for example.
std::ostream& operator<<(std::ostream& os, FpMode mode) {
  const char* const rounding = mode.rounding == FE_UPWARD       ? "Up"
                               : mode.rounding == FE_DOWNWARD   ? "Down"
                               : mode.rounding == FE_TOWARDZERO ? "ToZero"
                                                                : "ToNearest";
  return os << rounding << (mode.flush_to_zero ? "Flushed" : "");
}

class ScopedFpMode {
 public:
  explicit ScopedFpMode(FpMode mode) : mode_(mode) {
    if (mode.flush_to_zero) flush_.emplace();
    std::fesetround(mode.rounding);
  }
  ~ScopedFpMode() { std::fesetround(FE_TONEAREST); }

  // Tests the mode by arithmetic, not by reading the control register.
  bool IsInForce() const {
    volatile float tiny = 1e-38f, one = 1.0f, ulp = 0x1p-30f;
    const float half = tiny * 0.25f, up = one + ulp, minus = -one - ulp;
    return (half == 0.0f) == mode_.flush_to_zero &&
           (up > 1.0f) == (mode_.rounding == FE_UPWARD) &&
           (minus < -1.0f) == (mode_.rounding == FE_DOWNWARD) &&
           std::fegetround() == mode_.rounding;
  }

 private:
  const FpMode mode_;
  std::optional<ScopedFlushToZero> flush_;
};

// Starts its own threads, and sets the mode in them while bodies run.
class ModeExecutor final : public Executor {
 public:
  explicit ModeExecutor(FpMode mode) : mode_(mode) {}
  size_t Concurrency() const noexcept override { return 3; }
  Status ParallelFor(size_t count, size_t /*grain*/, Body body,
                     void* context) noexcept override {
    const size_t length = 1 + count / 7;
    std::atomic<size_t> next{0};
    const auto run = [&](size_t worker) {
      const ScopedFpMode mode(mode_);
      for (size_t begin; (begin = next.fetch_add(length)) < count;) {
        body(context, worker, begin, std::min(count, begin + length));
        if (!mode.IsInForce()) ++changed;
        ++ranges;
      }
    };
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 3; ++i) threads.emplace_back(run, i);
    for (std::thread& thread : threads) thread.join();
    return Status();
  }

  std::atomic<size_t> ranges{0}, changed{0};

 private:
  const FpMode mode_;
};

constexpr Shape kShape = {256, 64, 4, 96};

class FpModesTest : public testing::TestWithParam<FpMode> {};
INSTANTIATE_TEST_SUITE_P(Modes, FpModesTest, testing::ValuesIn(kFpModes),
                         testing::PrintToStringParamName());

// Checks that the mode changes arithmetic. If it did not, the other tests
// would test nothing.
TEST_P(FpModesTest, IsInForceWhereItIsSet) {
  EXPECT_TRUE(ScopedFpMode({FE_TONEAREST, false}).IsInForce());
  EXPECT_TRUE(ScopedFpMode(GetParam()).IsInForce());
}

TEST_P(FpModesTest, KernelsGiveTheSameBitsOnEveryIsa) {
  for (const std::string& isa : RunnableIsaNames()) {
    const ScopedIsa scoped(isa);
    for (const uint64_t seed : {1u, 2u, 3u}) {
      Layer layer(kShape, seed);
      const uint64_t expected = layer.Expected();
      const auto call = [&](Executor& executor) {
        const ScopedFpMode mode(GetParam());
        const bool right = layer.IsRight(executor, expected);
        EXPECT_TRUE(mode.IsInForce());
        return right;
      };
      EXPECT_TRUE(call(SerialExecutor())) << isa;
      ModeExecutor threads(GetParam());
      EXPECT_TRUE(layer.IsRight(threads, expected)) << isa;
      EXPECT_TRUE(call(threads)) << isa;
      EXPECT_EQ(threads.changed, 0u);
      EXPECT_GT(threads.ranges, Layer::kSteps);
    }
  }
}

#ifdef SWITCHYARD_WITH_TBB

// TBB's workers inherit the mode of the thread that made the arena.
TEST_P(FpModesTest, TbbExecutorsMadeAndUsedInTheMode) {
  Layer layer(kShape, 1);
  const uint64_t expected = layer.Expected();
  const ScopedFpMode mode(GetParam());
  const auto executor = MakeTbbExecutor();
  ASSERT_NE(executor, nullptr);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(layer.IsRight(*executor, expected));
    ASSERT_TRUE(mode.IsInForce());
  }
}

#endif  // SWITCHYARD_WITH_TBB

#ifdef SWITCHYARD_WITH_DEVICE
TEST_P(FpModesTest, DevicesGiveTheSameBits) {
  const DevicePass pass({64, 32, 4, 8}, 1);
  for (const bool checked : {false, true}) {
    const auto threads = std::make_shared<ModeExecutor>(GetParam());
    device::DeviceOptions options;
    options.executor = threads;
    options.check_kernels = checked;
    const ScopedFpMode mode(GetParam());
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(pass.Run(options), DevicePass::Outcome::kRight);
    }
    EXPECT_TRUE(mode.IsInForce());
    EXPECT_EQ(threads->changed, 0u);
  }
}
#endif  // SWITCHYARD_WITH_DEVICE

}  // namespace
}  // namespace switchyard::testing_support
