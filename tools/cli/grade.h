// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_GRADE_H_
#define SWITCHYARD_TOOLS_CLI_GRADE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace swy {

struct GradeOptions {
  std::string only = "*";
  std::string json;  // a file, or empty
  bool grades_own = false;
};
// The command and its arguments are the subcommand's remaining().
CLI::App* AddGrade(CLI::App& app, GradeOptions& options);

// `swy grade`: runs the command once, with all cases on its stdin and its
// answers on its stdout, and prints the grades. With --own, grades RouteTopK()
// on each ISA of this machine. Returns 0 if the router is right, and 1 if
// not.
int Grade(const GradeOptions& options, const std::vector<std::string>& command);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_GRADE_H_
