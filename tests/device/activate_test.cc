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

enum class Kernel { kStacked, kBatched };
constexpr Kernel kBoth[] = {Kernel::kStacked, Kernel::kBatched};

enum class Place { kOwn, kGate, kUp };

Job SiluMulJob(Kernel kernel, const RowType& type, size_t rows, size_t cols,
               Place out = Place::kOwn) {
  Random random(rows * 10007 + cols);
  std::vector<float> gate = random.Uniforms(rows * cols, -30.0f, 30.0f);
  std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
  std::vector<float> whole(rows * cols);
  RoundEach(type.type, &gate);
  RoundEach(type.type, &up);
  EXPECT_TRUE(Activate({{gate.data(), rows, cols}, {up.data(), rows, cols}},
                       {{whole.data(), rows, cols}})
                  .ok());
  const int32_t r = static_cast<int32_t>(rows);
  const int32_t c = static_cast<int32_t>(cols);
  const bool stacked = kernel == Kernel::kStacked;
  Job job = {
      std::string(stacked ? "silu_mul_stacked" : "silu_mul_batched") +
          type.suffix,
      stacked ? Words<SiluMulStackedParams>({{c, r}})
              : Words<SiluMulBatchedParams>({{r, c}}),
      {In(gate).As(type.type), In(up).As(type.type), Out(whole).As(type.type)}};
  if (out != Place::kOwn) {
    job.arguments[2] =
        Updated(out == Place::kGate ? gate : up, whole).As(type.type);
    job.arguments[out == Place::kGate ? 0 : 1] = SameAs(2);
  }
  job.rows = rows;
  job.cols = cols;
  return job;
}

template <class Function>
void ForEachKernel(const Function& function) {
  for (const Kernel kernel : kBoth) {
    for (const RowType& type : kRowTypes) function(kernel, type);
  }
}

using DeviceSiluMulTest = BuiltInTest;
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceSiluMulTest);

TEST_P(DeviceSiluMulTest, EqualsThePlainApi) {
  ForEachKernel([this](Kernel kernel, const RowType& type) {
    for (const Covered shape :
         {Covered{1, 1}, Covered{1, 1001}, Covered{3, 255}, Covered{2, 256},
          Covered{5, 257}, Covered{9, 31}, Covered{4, 700},
          // A grid over nothing.
          Covered{0, 300}, Covered{3, 0}}) {
      ExpectPlain(SiluMulJob(kernel, type, shape.rows, shape.cols));
    }
  });
}

TEST_P(DeviceSiluMulTest, InPlaceOnGateAndOnUp) {
  ForEachKernel([this](Kernel kernel, const RowType& type) {
    ExpectPlain(SiluMulJob(kernel, type, 5, 701, Place::kGate));
    ExpectPlain(SiluMulJob(kernel, type, 5, 701, Place::kUp));
  });
}

TEST_P(DeviceSiluMulTest, EveryThreadOfTheDevicesExecutor) {
  executor().Rendezvous();
  // Well over seven grains of 30 us.
  ExpectWhole(SiluMulJob(Kernel::kBatched, kRowTypes[0], 1021, 1001));
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
}

}  // namespace
}  // namespace switchyard::testing_support
