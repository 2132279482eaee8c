// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every built-in kernel and the seed's of the same name, on the same memory.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <ostream>
#include <set>

#include "gtest/gtest.h"
#include "tests/device/oracle_case.h"

namespace switchyard::testing_support {

std::ostream& operator<<(std::ostream& os, const OracleKernel& kernel) {
  return os << kernel.Name();
}

namespace {

// How many random cases each kernel takes, and how many schedules.
#ifdef SWITCHYARD_SANITIZED
constexpr uint64_t kCases = 60, kSchedules = 200;
#else
constexpr uint64_t kCases = 300, kSchedules = 1000;
#endif

// SWITCHYARD_SCHEDULES in the environment, or these; and says so.
uint64_t Schedules() {
  const char* const text = std::getenv("SWITCHYARD_SCHEDULES");
  const uint64_t count =
      text == nullptr ? kSchedules : std::strtoull(text, nullptr, 10);
  std::printf("%llu schedules\n", static_cast<unsigned long long>(count));
  return count;
}

using DeviceOracle = OracleTest;
SWITCHYARD_FOR_EVERY_ISA(DeviceOracle);

TEST_P(DeviceOracle, RandomCasesAreAlike) {
  for (const OracleKernel& kernel : OracleKernels()) {
    for (uint64_t i = 0; i < kCases; ++i) {
      SCOPED_TRACE(testing::Message() << kernel.Name() << ", seed " << i);
      device_.ExpectAlike(kernel.random(i));
      if (HasFatalFailure()) return;
    }
  }
}

class DeviceOracleChecked : public testing::TestWithParam<OracleKernel> {};
INSTANTIATE_TEST_SUITE_P(Kernel, DeviceOracleChecked,
                         testing::ValuesIn(OracleKernels()),
                         testing::PrintToStringParamName());

// Seed and built-in kernel in checked mode, in order and in one schedule: it
// has nothing to say of either, and changes no result. Goes first, so that a
// kernel that writes anywhere is named rather than let loose.
TEST_P(DeviceOracleChecked, RandomCasesAreClean) {
  for (uint64_t i = 0; i < kCases; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << i);
    const OracleWork work = GetParam().random(i);
    const uint64_t schedule = i + 1;
    for (const Who who : {Who::kSeed, Who::kBuiltIn}) {
      SCOPED_TRACE(who == Who::kSeed ? "seed" : "built-in");
      const Ran in_order = OracleDevice(true).Run(work, who);
      ASSERT_EQ(work.wrong(in_order), "");
      const Ran shuffled = OracleDevice(true, schedule).Run(work, who);
      ASSERT_EQ(work.wrong(shuffled), "") << "schedule " << schedule;
      const Ran plain = OracleDevice().Run(work, who);
      ASSERT_EQ(work.DifferByOrder(plain, in_order), "");
      ASSERT_EQ(work.DifferByOrder(plain, shuffled), "")
          << "schedule " << schedule;
    }
  }
}

// The seed in every schedule against the seed in order.
TEST_P(DeviceOracleChecked, SameInEverySchedule) {
  const OracleWork work = GetParam().fixed();
  const Ran in_order = OracleDevice(true).Run(work, Who::kSeed);
  ASSERT_EQ(work.wrong(in_order), "");
  std::set<std::map<size_t, Words32>> results;
  const uint64_t schedules = Schedules();
  for (uint64_t schedule = 1; schedule <= schedules; ++schedule) {
    const Ran ran = OracleDevice(true, schedule).Run(work, Who::kSeed);
    ASSERT_EQ(work.wrong(ran), "") << "schedule " << schedule;
    ASSERT_EQ(work.DifferByOrder(in_order, ran), "") << "schedule " << schedule;
    results.insert(ran.after);
  }
  // Results that may come in any order do.
  EXPECT_EQ(results.size() > 1, work.in_any_order);
}

}  // namespace
}  // namespace switchyard::testing_support
