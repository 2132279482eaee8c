// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the real program, as a shell would.

#ifndef SWITCHYARD_TESTS_MOE_LAYER_RUN_H_
#define SWITCHYARD_TESTS_MOE_LAYER_RUN_H_

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tests/moe_layer_files.h"

namespace moe_layer {
namespace testing_support {

struct Outcome {
  int exit_code = -1;  // -1: ended by a signal
  std::string out;
  std::string err;
};

// `before`: shell commands to run first, each followed by ";".
inline Outcome RunProgram(const std::string& arguments,
                          const std::string& before = "") {
  const TempFolder folder;
  const std::string command = before + "exec '" MOE_LAYER_PROGRAM "' " +
                              arguments + " >'" + folder.File("out") + "' 2>'" +
                              folder.File("err") + "'";
  const int status = std::system(command.c_str());
  Outcome outcome;
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  outcome.out = ReadFile(folder.File("out"));
  outcome.err = ReadFile(folder.File("err"));
  return outcome;
}

}  // namespace testing_support
}  // namespace moe_layer

#endif  // SWITCHYARD_TESTS_MOE_LAYER_RUN_H_
