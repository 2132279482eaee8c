// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What the program refuses; that it runs is a ctest for each number of threads.

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

TEST(EngineLoop, WrongArgumentsAreOneLineAndExitCode2) {
  const std::string range = "threads: expected a number from 1 to 1024, not ";
  const std::pair<const char*, std::string> cases[] = {
      {"0", range + "'0'"},
      {"1025", range + "'1025'"},
      {"-1", range + "'-1'"},
      {"99999999999999999999", range + "'99999999999999999999'"},
      {"2x", range + "'2x'"},
      {"''", range + "''"},
      {"2 3", "unexpected argument: 3"},
  };
  for (const auto& [arguments, want] : cases) {
    ExpectRefused(RunProgram(ENGINE_LOOP_PROGRAM, arguments),
                  "engine_loop: " + want);
  }
}

TEST(EngineLoop, AWrongEnvironmentIsSaidAtOnce) {
  ExpectRefused(RunProgram(ENGINE_LOOP_PROGRAM, "1", "SWITCHYARD_ISA=AVX99 "),
                "engine_loop: SWITCHYARD_ISA AVX99: not available here; there "
                "are " +
                    IsaChoices());
}

TEST(EngineLoop, LostOutputIsAnError) {
  ExpectToldThatOutputIsLost(ENGINE_LOOP_PROGRAM, "1");
}

}  // namespace
}  // namespace switchyard::testing_support
