// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The seeds' own shaders beside what stands in for them in C++ (seed_*.h):
// right, the same bits where the order is fixed, and nothing found in healthy
// cases. Their defects are in oracle_route.cc and oracle_bucket.cc.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/oracle_case.h"
#include "tests/device/seed_texts.h"

namespace switchyard::testing_support {
namespace {

#ifdef SWITCHYARD_SANITIZED
constexpr uint64_t kCases = 10, kSchedules = 20;
#else
constexpr uint64_t kCases = 60, kSchedules = 1000;
#endif

class DeviceOracleText : public testing::Test {
 protected:
  void SetUp() override { SWITCHYARD_NEEDS_SEEDS(); }

  // The kernels that there is a text of.
  static std::vector<OracleKernel> Kernels() {
    std::vector<OracleKernel> kernels;
    for (const OracleKernel& kernel : OracleKernels()) {
      if (SeedTexts::Of(false).Has(kernel.Name())) kernels.push_back(kernel);
    }
    return kernels;
  }
};

TEST_F(DeviceOracleText, AreAllThere) {
  // Two of routing, one of each other text's kernels but the batched ones.
  EXPECT_EQ(SeedTexts::Of(false).size(), 7u);
  EXPECT_EQ(Kernels().size(), 7u);
}

TEST_F(DeviceOracleText, RandomCasesAreTheSameBits) {
  auto device = SeedTexts::NewOracleDevice(false);
  for (const OracleKernel& kernel : Kernels()) {
    for (uint64_t i = 0; i < kCases; ++i) {
      SCOPED_TRACE(testing::Message() << kernel.Name() << ", seed " << i);
      const OracleWork work = kernel.random(i);
      const Ran text = device.Run(work, Who::kText);
      ASSERT_EQ(work.wrong(text), "") << work.shape;
      ASSERT_EQ(work.DifferByOrder(text, device.Run(work, Who::kSeed)), "")
          << work.shape;
      // The text is as near to the built-in kernel as that one is.
      ASSERT_EQ(work.differ(device.Run(work, Who::kBuiltIn), text), "");
    }
  }
}

TEST_F(DeviceOracleText, RandomCasesAreClean) {
  for (const OracleKernel& kernel : Kernels()) {
    for (uint64_t i = 0; i < kCases; ++i) {
      SCOPED_TRACE(testing::Message() << kernel.Name() << ", seed " << i);
      const OracleWork work = kernel.random(i);
      const Ran in_order =
          SeedTexts::NewOracleDevice(true).Run(work, Who::kText);
      ASSERT_EQ(work.wrong(in_order), "") << work.shape;
      const Ran shuffled =
          SeedTexts::NewOracleDevice(true, i + 1).Run(work, Who::kText);
      ASSERT_EQ(work.wrong(shuffled), "") << "schedule " << i + 1;
      ASSERT_EQ(work.DifferByOrder(in_order, shuffled), "");
    }
  }
}

TEST_F(DeviceOracleText, SameInEverySchedule) {
  const char* const count = std::getenv("SWITCHYARD_SCHEDULES");
  const uint64_t schedules =
      count == nullptr ? kSchedules : std::strtoull(count, nullptr, 10);
  for (const OracleKernel& kernel : Kernels()) {
    const OracleWork work = kernel.fixed();
    const Ran in_order = SeedTexts::NewOracleDevice(true).Run(work, Who::kText);
    ASSERT_EQ(work.wrong(in_order), "") << kernel.Name();
    for (uint64_t schedule = 1; schedule <= schedules; ++schedule) {
      const Ran ran =
          SeedTexts::NewOracleDevice(true, schedule).Run(work, Who::kText);
      ASSERT_EQ(work.wrong(ran), "")
          << kernel.Name() << ", schedule " << schedule;
      ASSERT_EQ(work.DifferByOrder(in_order, ran), "")
          << kernel.Name() << ", schedule " << schedule;
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
