// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_COMPARE_H_
#define SWITCHYARD_TOOLS_CLI_COMPARE_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/cli/results.h"
#include "tools/cli/table.h"

namespace swy {

struct CompareOptions {
  std::vector<std::string> files;  // old, new; or in the lists
  std::vector<std::string> old_files, new_files;
  std::optional<double> noise;       // percent; by the number of files
  std::optional<double> fail_above;  // percent
  bool changed = false;
  Clock clock = Clock::kReal;
  Format format = Format::kText;
};
CLI::App* AddCompare(CLI::App& app, CompareOptions& options);

// `swy compare`: what has become slower or faster from one run to another, and
// what is noise. 1 if something has become too slow, or fails.
int Compare(const CompareOptions& options);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_COMPARE_H_
