// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Checked mode finds every planted defect, says exactly where, and nothing of
// the clean twins; in any order of threads and threadgroups.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/planted.h"

namespace switchyard::testing_support {
namespace {

std::vector<Planted> All() {
  std::vector<Planted> all;
  for (const auto& some :
       {PlantedInMemory(), PlantedInThreadgroups(),
        PlantedBetweenThreadgroups(), PlantedBetweenDispatches()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// Run it alone to have the list.
TEST(DeviceChecker, FindsWhatIsPlanted) {
  CheckedQueue queue;
  for (const Planted& planted : All()) {
    const std::string error = planted.run(queue, false);
    std::printf("* %s\n    %s\n", planted.name, error.c_str());
    EXPECT_EQ(error, planted.error) << planted.name;
    EXPECT_EQ(planted.run(queue, true), "") << planted.name;
    // And again: the first mistake is the same one.
    EXPECT_EQ(planted.run(queue, false), planted.error) << planted.name;
  }
}

// Which of the defects comes first depends on the order, that there is one does
// not.
TEST(DeviceChecker, FindsItInAnyOrder) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CheckedQueue queue(seed);
    const std::string end = " (schedule_seed " + std::to_string(seed) + ")";
    for (const Planted& planted : All()) {
      const std::string error = planted.run(queue, false);
      EXPECT_NE(error, "") << planted.name << end;
      EXPECT_EQ(planted.run(queue, false), error) << planted.name << end;
      if (error.find("threadgroup (") != std::string::npos) {
        EXPECT_EQ(error.substr(error.size() - end.size()), end);
      }
      EXPECT_EQ(planted.run(queue, true), "") << planted.name << end;
    }
  }
}

// Unchecked, the same kernels run, the broken ones too (those that stay in
// bounds; on one thread).
TEST(DeviceChecker, IsOffByDefault) {
  DeviceOptions options;
  options.executor =
      std::shared_ptr<Executor>(&SerialExecutor(), [](Executor*) {});
  CheckedQueue queue(CreateDevice(options));
  for (const auto& some :
       {PlantedInThreadgroups(), PlantedBetweenThreadgroups(),
        PlantedBetweenDispatches()}) {
    for (const Planted& planted : some) {
      EXPECT_EQ(planted.run(queue, false), "") << planted.name;
      EXPECT_EQ(planted.run(queue, true), "") << planted.name;
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
