// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/activate.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "testing/inputs.h"
#include "tests/device/built_in_test.h"

namespace switchyard {
namespace testing_support {
namespace {

constexpr char kStacked[] = "silu_mul_stacked_f32";
constexpr char kBatched[] = "silu_mul_batched_f32";

enum class Out { kOwn, kGate, kUp };

class DeviceSiluMulTest : public BuiltInTest {
 protected:
  std::string RunSilu(const char* kernel, size_t rows, size_t cols,
                      const std::vector<BoundBuffer>& buffers, How how,
                      device::Size threads) {
    const Work work = {kernel, 256, 3, buffers};
    const int32_t r = static_cast<int32_t>(rows);
    const int32_t c = static_cast<int32_t>(cols);
    if (kernel == kStacked) {
      return Run(work, device::SiluMulStackedParams{c, r}, how, threads);
    }
    return Run(work, device::SiluMulBatchedParams{r, c}, how, threads);
  }

  void ExpectPlain(const char* kernel, size_t rows, size_t cols, Out place) {
    Random random(rows * 10007 + cols);
    const std::vector<float> g = random.Uniforms(rows * cols, -30.0f, 30.0f);
    const std::vector<float> u = random.Uniforms(rows * cols, -2.0f, 2.0f);
    std::vector<float> whole(rows * cols);
    ASSERT_TRUE(Activate({{g.data(), rows, cols}, {u.data(), rows, cols}},
                         {{whole.data(), rows, cols}})
                    .ok());
    const DeviceArray<float> gate(device(), g), up(device(), u);
    ForTileGrids(
        rows, cols, false, [&](How how, device::Size threads, Covered covered) {
          const DeviceArray<float> out(device(), rows * cols);
          if (place == Out::kGate) out.memory().Fill(g);
          if (place == Out::kUp) out.memory().Fill(u);
          const std::vector<float> before = out.Values();
          ASSERT_EQ(RunSilu(kernel, rows, cols,
                            {(place == Out::kGate ? out : gate).At(0),
                             (place == Out::kUp ? out : up).At(1), out.At(2)},
                            how, threads),
                    "");
          ExpectPart(out, before, whole, cols, covered, "out");
        });
  }
};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceSiluMulTest);

TEST_P(DeviceSiluMulTest, EqualsThePlainApi) {
  for (const char* kernel : {kStacked, kBatched}) {
    SCOPED_TRACE(kernel);
    for (const Covered shape :
         {Covered{1, 1}, Covered{1, 1001}, Covered{3, 255}, Covered{2, 256},
          Covered{5, 257}, Covered{9, 31}, Covered{4, 700}}) {
      ExpectPlain(kernel, shape.rows, shape.cols, Out::kOwn);
    }
    // A grid over nothing.
    ExpectPlain(kernel, 0, 300, Out::kOwn);
    ExpectPlain(kernel, 3, 0, Out::kOwn);
  }
}

TEST_P(DeviceSiluMulTest, InPlaceOnGateAndOnUp) {
  for (const char* kernel : {kStacked, kBatched}) {
    SCOPED_TRACE(kernel);
    ExpectPlain(kernel, 5, 700, Out::kGate);
    ExpectPlain(kernel, 5, 700, Out::kUp);
  }
}

TEST_P(DeviceSiluMulTest, EveryThreadOfTheDevicesExecutor) {
  Random random(7);
  // Well over seven grains of 30 us.
  const size_t rows = 1021, cols = 1001;
  const std::vector<float> g = random.Uniforms(rows * cols, -30.0f, 30.0f);
  const std::vector<float> u = random.Uniforms(rows * cols, -2.0f, 2.0f);
  const DeviceArray<float> gate(device(), g), up(device(), u);
  const DeviceArray<float> out(device(), rows * cols);
  executor().Rendezvous();
  ASSERT_EQ(RunSilu(kBatched, rows, cols, {gate.At(0), up.At(1), out.At(2)},
                    kEveryHow[0], device::Size(cols, rows, 1)),
            "");
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
  std::vector<float> whole(rows * cols);
  ASSERT_TRUE(Activate({{g.data(), rows, cols}, {u.data(), rows, cols}},
                       {{whole.data(), rows, cols}})
                  .ok());
  ExpectPart(out, whole, whole, cols, {rows, cols}, "out");
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
