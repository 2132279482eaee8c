// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Wrong arguments of the program: one line on stderr, exit code 2.

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/isa.h"
#include "tests/moe_layer_files.h"

namespace moe_layer {
namespace {

using testing_support::Outcome;
using testing_support::RunProgram;

TEST(MoeLayerOptions, OneLineAndExitCode2) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--tokens 0", "--tokens: Value 0 not in range 1 to 1000000"},
      {"--tokens 1000001", "--tokens: Value 1000001 not in range 1 to 1000000"},
      {"--tokens -1", "--tokens: Value -1 not in range 1 to 1000000"},
      {"--tokens many", "--tokens: Value many not in range 1 to 1000000"},
      {"--tokens", "--tokens: 1 required T:INT in [1 - 1000000] missing"},
      {"--threads 0", "--threads: Value 0 not in range 1 to 1024"},
      {"--threads 2000", "--threads: Value 2000 not in range 1 to 1024"},
      {"--repeat 0", "--repeat: Value 0 not in range 1 to 100000"},
      {"--layer -1", "--layer: Value -1 not in range 0 to 2147483647"},
      {"--layer 1", "--layer: needs --checkpoint"},
      {"--top-k 0", "--top-k: Value 0 not in range 1 to 2147483647"},
      {"--top-k 129", "--top-k 129: the layer has 128 experts"},
      {"--isa MMX", "--isa MMX: not available here; there are " +
                        switchyard::testing_support::IsaChoices()},
      {"--frobnicate", "The following argument was not expected: --frobnicate"},
      {"a b", "The following argument was not expected: b"},
      {"--checkpoint ''", "--checkpoint: empty"},
      {"/no/such/folder/", "--checkpoint /no/such/folder: no such folder"},
      {"--checkpoint /dev/null", "--checkpoint /dev/null: not a folder"},
  };
  for (const auto& [arguments, want] : cases) {
    const Outcome outcome = RunProgram(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.err, "moe_layer: " + want + "\n") << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
  }
}

// Said before the weights are generated, rather than the program killed later.
TEST(MoeLayerOptions, MoreMemoryThanThereIs) {
  const Outcome outcome = RunProgram("--tokens 1000000 --top-k 128");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err.find("moe_layer: --tokens 1000000: needs "), 0u);
  EXPECT_NE(outcome.err.find(" GiB of memory, this machine has "),
            std::string::npos);
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1);
}

}  // namespace
}  // namespace moe_layer
