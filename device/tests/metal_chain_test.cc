// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the program metal_chain (device/example) as a shell would.

#include <fstream>
#include <string>
#include <utility>

#include "device/tests/needs_clang.h"
#include "gtest/gtest.h"
#include "switchyard/isa.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

Outcome Chain(const std::string& arguments, const std::string& before = "") {
  return RunProgram(METAL_CHAIN_PROGRAM, arguments, before);
}

// Expects that both chains of kernels (a decode token and a prefill) ran on
// `runs_on`, for example "AVX2 with 1 thread", and gave equal results.
void ExpectEqual(const Outcome& outcome, const std::string& runs_on) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const std::string equal = "equal: 9 buffers have the plain API's bits\n";
  const size_t first = outcome.out.find(equal);
  ASSERT_NE(first, outcome.out.npos) << outcome.out;
  EXPECT_NE(outcome.out.find(equal, first + 1), outcome.out.npos)
      << outcome.out;
  EXPECT_TRUE(outcome.Printed("Ran on " + runs_on)) << outcome.out;
  EXPECT_TRUE(outcome.Printed("\n1 token: one command buffer, 7 disp"));
  EXPECT_TRUE(outcome.Printed(" tokens: one command buffer, 8 dispatches\n"));
  EXPECT_TRUE(outcome.Printed("\ncombine  weighted_sum_residual_norm_stacked"));
}

TEST(MetalChain, EqualsThePlainApiOnEveryIsaAndThreadCount) {
  const auto isas = RunnableIsas();
  for (const Isa& each : isas) {
    const std::string isa = each.name;
    ExpectEqual(Chain("--tokens 200 --threads 1 --isa " + isa),
                isa + " with 1 thread.");
#ifdef SWITCHYARD_WITH_TBB
    ExpectEqual(Chain("--tokens 200 --threads 2 --isa " + isa),
                isa + " with 2 threads.");
#endif
  }
  ExpectEqual(Chain(""), std::string(isas.data[0].name) + " with ");
}

// With these numbers of tokens there are experts without pairs, incomplete
// tiles and several tiles. A pair is a token and one of its selected experts.
TEST(MetalChain, EqualsThePlainApiForAnyNumberOfTokens) {
  for (const char* tokens : {"2", "31", "33", "129"}) {
    ExpectEqual(Chain(std::string("--tokens ") + tokens), "");
  }
}

// The file's kernel is wrong: the program must use it and notice the wrong
// results.
TEST(MetalChain, AWrongShaderIsExitCode1) {
  SWITCHYARD_NEEDS_CLANG();
  const TempFolder folder;
  const std::string file = folder.File("silu.metal");
  std::ofstream(file) << "using namespace metal;\n"
                         "kernel void silu_mul_stacked_f32(\n"
                         "    device const float* gate [[buffer(0)]],\n"
                         "    device const float* up [[buffer(1)]],\n"
                         "    device float* out [[buffer(2)]],\n"
                         "    uint2 at [[thread_position_in_grid]]) {\n"
                         "  if (at.x >= 128) return;\n"
                         "  const uint i = at.y * 128 + at.x;\n"
                         "  const float g = gate[i];\n"
                         "  out[i] = g / (1.0f + exp(-g)) * up[i];\n"
                         "  if (i == 17) out[i] += 1e-3f;\n"
                         "}\n";
  const Outcome outcome = Chain("--shaders '" + file + "'");
  EXPECT_EQ(outcome.exit_code, 1);
  // The message may not be the first line, because AddressSanitizer may print
  // warnings about fibers before it.
  EXPECT_NE(
      outcome.err.find("metal_chain: the device differs from the plain API\n"),
      std::string::npos)
      << outcome.err;
  EXPECT_TRUE(outcome.Printed("silu_mul_stacked_f32 is a shader's\n"));
  EXPECT_TRUE(outcome.Printed("differs: silu, element 17: ")) << outcome.out;
  EXPECT_TRUE(outcome.Printed("equal: 9 buffers have the plain API's values"));
}

TEST(MetalChain, WrongArgumentsAreOneLineAndExitCode2) {
  const std::pair<const char*, std::string> cases[] = {
      {"--tokens 1", "--tokens: Value 1 not in range 2 to 4096"},
      {"--tokens 4097", "--tokens: Value 4097 not in range 2 to 4096"},
      {"--tokens many", "--tokens: Value many not in range 2 to 4096"},
      {"--full=1", "--full: takes no value"},
      {"--shaders /dev/null", "--shaders: /dev/null: is not a regular file"},
      {"--shaders", "--shaders: 1 required FILE missing"},
      {"8", "The following argument was not expected: 8"},
  };
  for (const auto& [arguments, want] : cases) {
    ExpectRefused(Chain(arguments), "metal_chain: " + want);
  }
}

TEST(MetalChain, AWrongEnvironmentIsSaidAtOnce) {
  ExpectRefused(Chain("", "SWITCHYARD_ISA=AVX99 "),
                "metal_chain: SWITCHYARD_ISA AVX99: not available here; there "
                "are " +
                    IsaChoices());
}

TEST(MetalChain, LostOutputIsAnError) {
  for (const char* arguments : {"--tokens 2", "--help"}) {
    ExpectToldThatOutputIsLost(METAL_CHAIN_PROGRAM, arguments);
  }
}

TEST(MetalChain, HelpListsTheOptions) {
  const Outcome outcome = Chain("--help");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* option :
       {"--full", "--tokens", "--threads", "--isa", "--shaders", "--help"}) {
    EXPECT_TRUE(outcome.Printed(option)) << option;
  }
}

}  // namespace
}  // namespace switchyard::testing_support
