// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The real program, run as a shell would: what it prints, the trace it writes,
// and its exit codes.

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/isa.h"
#include "tests/run_program.h"

namespace metal_chain {
namespace {

using nlohmann::json;

using switchyard::testing_support::ExpectRefused;
using switchyard::testing_support::Outcome;
using switchyard::testing_support::ReadFile;
using switchyard::testing_support::TempFolder;

Outcome RunProgram(const std::string& arguments,
                   const std::string& before = "") {
  return switchyard::testing_support::RunProgram(METAL_CHAIN_PROGRAM, arguments,
                                                 before);
}

const std::vector<std::string> kDecodeKernels = {
    "router_gemv_f32",
    "moe_router_topk_softmax_f32",
    "gate_gemv_f32",
    "up_gemv_f32",
    "silu_mul_stacked_f32",
    "down_gemv_f32",
    "weighted_sum_residual_norm_stacked_f32",
};
const std::vector<std::string> kPrefillKernels = {
    "router_gemm_f32",
    "moe_router_topk_softmax_f32",
    "moe_compute_ids_tpe_f32",
    "gate_gemm_f32",
    "up_gemm_f32",
    "silu_mul_batched_f32",
    "down_gemm_f32",
    "weighted_sum_residual_norm_batched_f32",
};

// Both chains, on `runs_on`, e.g. "AVX2 with 1 thread".
void ExpectEqual(const Outcome& outcome, const std::string& runs_on) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(outcome.Printed("equal: 9 buffers, ")) << outcome.out;
  EXPECT_TRUE(outcome.Printed("equal: 13 buffers, ")) << outcome.out;
  EXPECT_FALSE(outcome.Printed("differs")) << outcome.out;
  EXPECT_TRUE(outcome.Printed("Ran on " + runs_on)) << outcome.out;
}

TEST(MetalChain, EqualsThePlainApiOnEveryIsaAndThreadCount) {
  const auto isas = switchyard::RunnableIsas();
  for (const switchyard::Isa& each : isas) {
    const std::string isa = each.name;
    ExpectEqual(RunProgram("--tokens 200 --threads 1 --isa " + isa),
                isa + " with 1 thread.");
#ifdef SWITCHYARD_WITH_TBB
    ExpectEqual(RunProgram("--tokens 200 --threads 2 --isa " + isa),
                isa + " with 2 threads.");
#endif
  }
  ExpectEqual(RunProgram(""), std::string(isas.data[0].name) + " with ");
}

// Experts without a pair, tiles that are not full, more than one tile.
TEST(MetalChain, EqualsThePlainApiForAnyNumberOfTokens) {
  for (const char* tokens : {"1", "2", "31", "33", "129"}) {
    ExpectEqual(RunProgram(std::string("--tokens ") + tokens), "");
  }
  EXPECT_TRUE(RunProgram("--tokens 1").Printed("\nPrefill, 1 token: "));
}

// Each dispatch of both chains a line, in order.
TEST(MetalChain, PrintsATimeline) {
  const Outcome outcome = RunProgram("--tokens 4096");
  std::vector<std::string> kernels, groups;
  bool total = false;
  std::istringstream stream(outcome.out);
  for (std::string line; std::getline(stream, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
    const std::string first = line.substr(0, line.find(' '));
    if (first.size() > 4 && first.substr(first.size() - 4) == "_f32") {
      kernels.push_back(first);
      EXPECT_EQ(line.back(), '#') << line;
    }
    if (first == "route:" || first == "experts:" || first == "combine:") {
      groups.push_back(first + std::to_string(kernels.size()));
    }
    total = total || first == "total";
  }
  std::vector<std::string> want = kDecodeKernels;
  want.insert(want.end(), kPrefillKernels.begin(), kPrefillKernels.end());
  EXPECT_EQ(kernels, want);
  // Each in front of its first kernel.
  EXPECT_EQ(groups,
            (std::vector<std::string>{"route:0", "experts:2", "combine:6",
                                      "route:7", "experts:10", "combine:14"}));
  EXPECT_TRUE(total);
  EXPECT_TRUE(outcome.Printed("Decode, 1 token: one command buffer, 7 disp"));
  EXPECT_TRUE(
      outcome.Printed("Prefill, 4096 tokens: one command buffer, 8 disp"));
}

// The trace-event format: an object with events of phase X in microseconds, and
// the names of process and threads in events of phase M.
TEST(MetalChain, WritesATrace) {
  const TempFolder folder;
  const std::string path = folder.File("trace.json");
  std::ofstream(path) << std::string(100000, '?');  // to be replaced
  ASSERT_EQ(RunProgram("--trace '" + path + "'").exit_code, 0);
  const json trace = json::parse(ReadFile(path));
  EXPECT_EQ(trace.at("displayTimeUnit"), "ms");
  std::vector<std::string> names, kernels[2], groups[2];
  double end_of_last[2] = {0, 0};
  for (const json& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("pid"), 1);
    const int tid = event.at("tid").get<int>();
    if (event.at("ph") == "M") {
      names.push_back(event.at("name").get<std::string>() + " " +
                      std::to_string(tid) + " " +
                      event.at("args").at("name").get<std::string>());
      continue;
    }
    ASSERT_EQ(event.at("ph"), "X");
    ASSERT_TRUE(tid == 1 || tid == 2);
    const size_t chain = tid == 1 ? 0 : 1;
    kernels[chain].push_back(event.at("name").get<std::string>());
    const double start = event.at("ts").get<double>();
    const double duration = event.at("dur").get<double>();
    EXPECT_GE(start, 0);
    EXPECT_GE(duration, 0);
    // Whole nanoseconds, as doubles.
    EXPECT_GE(start, end_of_last[chain] - 1e-4) << event;
    end_of_last[chain] = start + duration;
    EXPECT_TRUE(event.at("args").at("grid").is_string());
    groups[chain].push_back(event.at("args").at("group"));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"process_name 0 metal_chain",
                                             "thread_name 1 decode",
                                             "thread_name 2 prefill"}));
  EXPECT_EQ(kernels[0], kDecodeKernels);
  EXPECT_EQ(kernels[1], kPrefillKernels);
  EXPECT_EQ(groups[0],
            (std::vector<std::string>{"route", "route", "experts", "experts",
                                      "experts", "experts", "combine"}));
  EXPECT_EQ(groups[1].front(), "route");
  EXPECT_EQ(groups[1].back(), "combine");
  EXPECT_GT(end_of_last[1], end_of_last[0]);
}

// The names that --help lists.
TEST(MetalChain, WritesJson) {
  const TempFolder folder;
  const std::string path = folder.File("out.json");
  const std::string isa = switchyard::RunnableIsas().data[0].name;
  std::ofstream(path) << std::string(1000000, '?');  // to be replaced
  ASSERT_EQ(
      RunProgram("--tokens 33 --threads 1 --json '" + path + "'").exit_code, 0);
  const json file = json::parse(ReadFile(path));
  EXPECT_EQ(file.at("context").at("executable"), "metal_chain");
  EXPECT_TRUE(file.at("context").at("cpu_model").is_string());
  EXPECT_TRUE(file.at("context").at("switchyard").is_string());
  EXPECT_EQ(file.at("isa"), isa);
  EXPECT_EQ(file.at("threads"), 1);
  EXPECT_GT(file.at("peak_memory_bytes").get<double>(), 0x1p20);
  EXPECT_TRUE(file.at("peak_memory_bytes").is_number_integer());
  EXPECT_EQ(file.at("layer").at("experts"), 16);
  EXPECT_EQ(file.at("layer").at("weight_bytes").get<size_t>() % 4, 0u);
  const std::pair<const char*, size_t> chains[] = {{"decode", 1},
                                                   {"prefill", 33}};
  ASSERT_EQ(file.at("chains").size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const json& chain = file.at("chains")[i];
    EXPECT_EQ(chain.at("chain"), chains[i].first);
    EXPECT_EQ(chain.at("tokens"), chains[i].second);
    EXPECT_EQ(chain.at("buffers"), i == 0 ? 9 : 13);
    EXPECT_GT(chain.at("bytes").get<size_t>(), 10000u);
    EXPECT_TRUE(chain.at("differences").empty());
    std::vector<std::string> kernels;
    double end_of_last = 0;
    for (const json& dispatch : chain.at("dispatches")) {
      kernels.push_back(dispatch.at("kernel"));
      EXPECT_EQ(dispatch.at("threadgroups").size(), 3u);
      EXPECT_EQ(dispatch.at("group"),
                kernels.size() <= (i == 0 ? 2 : 3)   ? "route"
                : kernels.size() <= (i == 0 ? 6 : 7) ? "experts"
                                                     : "combine");
      EXPECT_GE(dispatch.at("start_seconds").get<double>(), end_of_last - 1e-9);
      end_of_last = dispatch.at("start_seconds").get<double>() +
                    dispatch.at("seconds").get<double>();
    }
    EXPECT_EQ(kernels, i == 0 ? kDecodeKernels : kPrefillKernels);
    EXPECT_GE(chain.at("seconds").get<double>(), end_of_last - 1e-9);
  }
}

TEST(MetalChain, WrongArgumentsAreOneLineAndExitCode2) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--tokens 0", "--tokens: Value 0 not in range 1 to 4096"},
      {"--tokens 4097", "--tokens: Value 4097 not in range 1 to 4096"},
      {"--tokens -1", "--tokens: Value -1 not in range 1 to 4096"},
      {"--tokens many", "--tokens: Value many not in range 1 to 4096"},
      {"--tokens", "--tokens: 1 required N:INT in [1 - 4096] missing"},
      {"--threads 0", "--threads: Value 0 not in range 1 to 1024"},
      {"--threads 2000", "--threads: Value 2000 not in range 1 to 1024"},
      {"--isa MMX", "--isa MMX: not available here; there are " +
                        switchyard::testing_support::IsaChoices()},
      {"--isa ''", "--isa: empty"},
      {"--full=maybe", "--full: takes no value"},
      {"--full=1", "--full: takes no value"},
      {"--shaders /dev/null", "--shaders: /dev/null: is not a regular file"},
      {"--shaders", "--shaders: 1 required FILE missing"},
      {"--json a --trace ./a", "--json a: is --trace's file"},
      {"--frobnicate", "The following argument was not expected: --frobnicate"},
      {"8", "The following argument was not expected: 8"},
      {"--trace ''", "--trace: empty"},
      {"--trace", "--trace: 1 required FILE missing"},
      {"--trace /", "--trace /: Is a directory"},
      {"--json ''", "--json: empty"},
      {"--json", "--json: 1 required FILE missing"},
      {"--json /", "--json /: Is a directory"},
      {"--trace /no/such/folder/t.json",
       "--trace /no/such/folder/t.json: No such file or directory"},
  };
  for (const auto& [arguments, want] : cases) {
    ExpectRefused(RunProgram(arguments), "metal_chain: " + want);
  }
}

TEST(MetalChain, AWrongEnvironmentIsSaidAtOnce) {
  ExpectRefused(RunProgram("", "SWITCHYARD_ISA=AVX99 "),
                "metal_chain: SWITCHYARD_ISA AVX99: not available here; there "
                "are " +
                    switchyard::testing_support::IsaChoices());
}

TEST(MetalChain, LostOutputIsAnError) {
  for (const char* arguments : {"--tokens 1", "--help"}) {
    switchyard::testing_support::ExpectToldThatOutputIsLost(METAL_CHAIN_PROGRAM,
                                                            arguments);
  }
}

// A pipe that has no reader is refused, not waited for; a reader gets all of
// it.
TEST(MetalChain, ATraceMayGoToAPipe) {
  const TempFolder folder;
  const std::string pipe = folder.File("pipe"), got = folder.File("got");
  const std::string make = "mkfifo '" + pipe + "';";
  const std::string arguments = "--tokens 1 --trace '" + pipe + "'";
  ExpectRefused(RunProgram(arguments, make),
                "metal_chain: --trace " + pipe + ": No such device or address");
  // Number 4 is a reader that is there from the start.
  const Outcome outcome =
      RunProgram(arguments, "exec 4<>'" + pipe + "'; cat '" + pipe + "' >'" +
                                got + "' 4>&- & ");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::string text;  // cat may be a little behind
  for (int i = 0; i < 1000 && (text.empty() || text.back() != '\n'); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    text = ReadFile(got);
  }
  EXPECT_TRUE(json::accept(text)) << text;
}

TEST(MetalChain, AFullDiskIsExitCode2) {
  const Outcome outcome = RunProgram("--trace /dev/full");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err,
            "metal_chain: --trace /dev/full: No space left on device\n");
  EXPECT_FALSE(outcome.Printed("Trace in"));
  const Outcome report = RunProgram("--json /dev/full");
  EXPECT_EQ(report.exit_code, 2);
  EXPECT_EQ(report.err,
            "metal_chain: --json /dev/full: No space left on device\n");
}

// A limit on a file's size is a disk that fills up midway.
TEST(MetalChain, ADiskThatFillsUpLeavesNoPartOfAFile) {
  const TempFolder folder;
  const std::string path = folder.File("trace.json");
  const Outcome outcome =
      RunProgram("--trace '" + path + "'", "trap '' XFSZ; ulimit -f 4; ");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "metal_chain: --trace " + path + ": File too large\n");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(MetalChain, HelpListsTheOptions) {
  const Outcome outcome = RunProgram("--help");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* option : {"--full", "--tokens", "--threads", "--isa",
                             "--trace", "--json", "--help"}) {
    EXPECT_TRUE(outcome.Printed(option)) << option;
  }
  std::istringstream stream(outcome.out);
  for (std::string line; std::getline(stream, line);) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

#ifndef SWITCHYARD_SANITIZED  // needs too much address space
TEST(MetalChain, ARunThatFailsLeavesNoFile) {
  for (const std::string option : {"--trace", "--json"}) {
    const TempFolder folder;
    const std::string path = folder.File("out.json");
    const std::string arguments =
        "--full --threads 1 " + option + " '" + path + "'";
    const Outcome outcome = RunProgram(arguments, "ulimit -v 1000000;");
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.err, "metal_chain: out of memory\n");
    EXPECT_FALSE(std::filesystem::exists(path));
    // The old content stays.
    std::ofstream(path) << "before";
    RunProgram(arguments, "ulimit -v 1000000;");
    EXPECT_EQ(ReadFile(path), "before");
  }
}
#endif

}  // namespace
}  // namespace metal_chain
