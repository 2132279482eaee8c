// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests how examples/engine_loop treats its arguments, a wrong environment
// variable and lost output. Its CMakeLists.txt has tests that run it with
// several numbers of threads.

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

TEST(EngineLoop, WrongArgumentsAreOneLineAndExitCode2) {
  const auto outside = [](const std::string& value) {
    return "threads: Value " + value + " not in range 1 to 1024";
  };
  const std::pair<const char*, std::string> cases[] = {
      {"0", outside("0")},
      {"1025", outside("1025")},
      {"-1", outside("-1")},
      {"99999999999999999999", outside("99999999999999999999")},
      {"2x", outside("2x")},
      {"''", outside("")},
      {"2 3", "The following argument was not expected: 3"},
      {"--tokens 0", "The following argument was not expected: --tokens"},
      {"--thread 3", "The following argument was not expected: --thread"},
  };
  for (const auto& [arguments, want] : cases) {
    ExpectRefused(RunProgram(ENGINE_LOOP_PROGRAM, arguments),
                  "engine_loop: " + want);
  }
}

TEST(EngineLoop, HelpNamesItsArgument) {
  for (const char* help : {"--help", "-h"}) {
    const Outcome outcome = RunProgram(ENGINE_LOOP_PROGRAM, help);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(outcome.Printed("engine_loop [OPTIONS] [threads]"))
        << outcome.out;
    EXPECT_TRUE(outcome.Printed("The engine's threads")) << outcome.out;
    EXPECT_FALSE(outcome.Printed("one thread  ")) << "it ran";
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
