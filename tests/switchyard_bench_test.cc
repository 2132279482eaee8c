// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The command line of the benchmarks, on the cheapest of them.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

Outcome Bench(const std::string& arguments, const std::string& before = "") {
  return RunProgram(BENCH_PROGRAM, arguments, before);
}

// One with an ask of its own, and one that nothing is asked of.
constexpr char kAsked[] =
    "--rounds 1 --benchmark_filter=bucket_packed/E=8/k=2/T=512/uniform";
constexpr char kOne[] = "--rounds 1 --benchmark_filter=route/E=8/k=2/T=1/";

TEST(SwitchyardBench, HelpListsTheOptions) {
  const Outcome outcome = Bench("--help");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* option :
       {"--rounds", "--seconds", "--json", "--markdown", "--benchmark_filter",
        "--benchmark_list_tests", "--benchmark_out", "--help"}) {
    EXPECT_TRUE(outcome.Printed(option)) << option;
  }
}

TEST(SwitchyardBench, AFilteredRunTellsNothingOfTheRest) {
  const TempFolder folder;
  const Outcome outcome =
      Bench(std::string(kAsked) + " --json '" + folder.File("json") +
            "' --markdown '" + folder.File("markdown") + "'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Printed(" of 1 asks met\n")) << outcome.out;
  EXPECT_FALSE(outcome.Printed("not run")) << outcome.out;
  const std::string markdown = ReadFile(folder.File("markdown"));
  EXPECT_NE(
      markdown.find("| bucket_packed, E=8/k=2/T=512/uniform, ns a pair |"),
      std::string::npos)
      << markdown;
  EXPECT_EQ(markdown.find("not run"), std::string::npos) << markdown;
  const auto json = nlohmann::json::parse(ReadFile(folder.File("json")));
  EXPECT_EQ(json.at("asks").size(), 1u);
  EXPECT_EQ(json.at("results").size(), 1u);

  const Outcome unasked = Bench(kOne);
  EXPECT_EQ(unasked.exit_code, 0) << unasked.err;
  EXPECT_FALSE(unasked.Printed("asks")) << unasked.out;
}

// Debian's package is compiled with its assertions, which time nothing of ours.
TEST(SwitchyardBench, TellsNothingOfHowGoogleBenchmarkWasBuilt) {
  const Outcome outcome = Bench(kOne);
  EXPECT_EQ(outcome.err.find("DEBUG"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("Run on"), std::string::npos) << outcome.err;
}

TEST(SwitchyardBench, ListsWhatWouldRun) {
  const Outcome outcome = Bench(std::string(kOne) + " --benchmark_list_tests");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out.find("route/E=8/k=2/T=1/"), 0u) << outcome.out;
  EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1) << outcome.out;
}

TEST(SwitchyardBench, RoutersOfOtherScoresAreNamedByTheirSize) {
  const TempFolder folder;
  const std::string path = folder.File("markdown");
  const Outcome outcome =
      Bench("--rounds 1 --benchmark_filter=^route/E=256/k=8/T=1/ --markdown '" +
            path + "'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string markdown = ReadFile(path);
  EXPECT_NE(markdown.find("| E=256/k=8/T=1, DeepSeek-V3's size |"),
            std::string::npos)
      << markdown;
}

TEST(SwitchyardBench, WrongArgumentsAreOneLineAndExitCode2) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--rounds 0", "--rounds: Value 0 not in range 1 to 1000000"},
      {"--rounds -1", "--rounds: Value -1 not in range 1 to 1000000"},
      {"--rounds many", "--rounds: Value many not in range 1 to 1000000"},
      {"--rounds", "--rounds: 1 required N:INT in [1 - 1000000] missing"},
      {"--seconds 0", "--seconds: Value 0 not above 0, up to 86400"},
      {"--seconds -1", "--seconds: Value -1 not above 0, up to 86400"},
      {"--seconds nan", "--seconds: Value nan not above 0, up to 86400"},
      {"--seconds inf", "--seconds: Value inf not above 0, up to 86400"},
      {"--seconds long", "--seconds: Value long not above 0, up to 86400"},
      {"--seconds", "--seconds: 1 required S missing"},
      {"--json ''", "--json: empty"},
      {"--json", "--json: 1 required FILE missing"},
      {"--json /", "--json /: Is a directory"},
      {"--json /no/such/folder/j",
       "--json /no/such/folder/j: No such file or directory"},
      {"--markdown ''", "--markdown: empty"},
      {"--markdown /no/such/folder/m",
       "--markdown /no/such/folder/m: No such file or directory"},
      {"--benchmark_out=/no/such/folder/o",
       "--benchmark_out /no/such/folder/o: No such file or directory"},
      {"--benchmark_filter=nothing_like_it",
       "--benchmark_filter nothing_like_it: matches none; "
       "--benchmark_list_tests has the names"},
      {"--benchmark_min_time=1",
       "The following argument was not expected: --benchmark_min_time=1"},
      {"--benchmark_frobnicate",
       "The following argument was not expected: --benchmark_frobnicate"},
      {"route", "The following argument was not expected: route"},
  };
  for (const auto& [arguments, want] : cases) {
    ExpectRefused(Bench(arguments), "switchyard_bench: " + want);
  }
  // The rest of these lines is the standard library's and CLI11's.
  for (const char* arguments :
       {"--benchmark_filter='['", "--benchmark_format=xml",
        "--benchmark_out_format=xml", "--benchmark_color=blue",
        "--benchmark_list_tests=maybe"}) {
    const Outcome outcome = Bench(arguments);
    const std::string all = arguments;
    const std::string option = all.substr(0, all.find('='));
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(option), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  }
}

TEST(SwitchyardBench, AWrongEnvironmentIsSaidAtOnce) {
  ExpectRefused(Bench("", "SWITCHYARD_ISA=AVX99 "),
                "switchyard_bench: SWITCHYARD_ISA AVX99: not available here; "
                "there are " +
                    IsaChoices());
}

TEST(SwitchyardBench, LostOutputIsAnError) {
  ExpectToldThatOutputIsLost(BENCH_PROGRAM, "--help");
  ExpectToldThatOutputIsLost(BENCH_PROGRAM,
                             "--benchmark_list_tests --benchmark_filter=route");
}

TEST(SwitchyardBench, AFullDiskIsAnError) {
  const Outcome outcome = Bench(std::string(kOne) + " --json /dev/full");
  EXPECT_EQ(outcome.exit_code, 2);
  const std::string line =
      "switchyard_bench: --json /dev/full: No space left on device\n";
  EXPECT_NE(outcome.err.find(line), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace switchyard::testing_support
