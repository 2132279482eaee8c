// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Defects planted for checked mode to find, each with its clean twin.

#ifndef SWITCHYARD_TESTS_DEVICE_PLANTED_H_
#define SWITCHYARD_TESTS_DEVICE_PLANTED_H_

#include <functional>
#include <string>
#include <vector>

#include "tests/device/checked_kernels.h"

namespace switchyard::testing_support {

struct Planted {
  const char* name;
  // What a run without a schedule_seed says; the clean one says nothing.
  std::string error;
  std::function<std::string(CheckedQueue&, bool clean)> run;
};

// In planted_*.cc.
std::vector<Planted> PlantedInMemory();
std::vector<Planted> PlantedInThreadgroups();
std::vector<Planted> PlantedBetweenThreadgroups();
std::vector<Planted> PlantedBetweenDispatches();

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_DEVICE_PLANTED_H_
