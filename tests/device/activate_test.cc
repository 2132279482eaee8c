// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/activate.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "testing/inputs.h"
#include "tests/device/built_in_test.h"

namespace switchyard::testing_support {
namespace {

constexpr char kStacked[] = "silu_mul_stacked_f32";
constexpr char kBatched[] = "silu_mul_batched_f32";

enum class Place { kOwn, kGate, kUp };

Job SiluMulJob(const char* kernel, size_t rows, size_t cols,
               Place out = Place::kOwn) {
  Random random(rows * 10007 + cols);
  const std::vector<float> gate = random.Uniforms(rows * cols, -30.0f, 30.0f);
  const std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
  std::vector<float> whole(rows * cols);
  EXPECT_TRUE(Activate({{gate.data(), rows, cols}, {up.data(), rows, cols}},
                       {{whole.data(), rows, cols}})
                  .ok());
  const int32_t r = static_cast<int32_t>(rows);
  const int32_t c = static_cast<int32_t>(cols);
  Job job = {kernel,
             kernel == kStacked ? Words<SiluMulStackedParams>({{c, r}})
                                : Words<SiluMulBatchedParams>({{r, c}}),
             {In(gate), In(up), Out(whole)}};
  if (out != Place::kOwn) {
    job.arguments[2] = InOut(out == Place::kGate ? gate : up, whole);
    job.arguments[out == Place::kGate ? 0 : 1] = SameAs(2);
  }
  job.rows = rows;
  job.cols = cols;
  return job;
}

using DeviceSiluMulTest = BuiltInTest;
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceSiluMulTest);

TEST_P(DeviceSiluMulTest, EqualsThePlainApi) {
  for (const char* kernel : {kStacked, kBatched}) {
    for (const Covered shape :
         {Covered{1, 1}, Covered{1, 1001}, Covered{3, 255}, Covered{2, 256},
          Covered{5, 257}, Covered{9, 31}, Covered{4, 700},
          // A grid over nothing.
          Covered{0, 300}, Covered{3, 0}}) {
      ExpectPlain(SiluMulJob(kernel, shape.rows, shape.cols));
    }
  }
}

TEST_P(DeviceSiluMulTest, InPlaceOnGateAndOnUp) {
  for (const char* kernel : {kStacked, kBatched}) {
    ExpectPlain(SiluMulJob(kernel, 5, 700, Place::kGate));
    ExpectPlain(SiluMulJob(kernel, 5, 700, Place::kUp));
  }
}

TEST_P(DeviceSiluMulTest, EveryThreadOfTheDevicesExecutor) {
  executor().Rendezvous();
  // Well over seven grains of 30 us.
  ExpectWhole(SiluMulJob(kBatched, 1021, 1001));
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
}

}  // namespace
}  // namespace switchyard::testing_support
