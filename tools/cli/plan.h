// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_PLAN_H_
#define SWITCHYARD_TOOLS_CLI_PLAN_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "testing/layer_schedule.h"
#include "tools/cli/cluster.h"

namespace swy {

struct PlanOptions {
  std::vector<size_t> workers = {1, 2, 4, 8, 16, 32, 64, 128};
  size_t tokens = 1, top_k = 8;
  std::string skew = "uniform";
  switchyard::ExpertsPlanOptions layer;
  double row_us = 21;
  switchyard::testing_support::ScheduleCosts costs;
  ClusterOptions cluster;
};
CLI::App* AddPlan(CLI::App& app, PlanOptions& options);

// `swy plan`: simulates a layer's schedule on any number of workers, or of
// nodes.
int PrintPlan(const PlanOptions& options);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_PLAN_H_
