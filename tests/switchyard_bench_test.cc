// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the benchmarks' command line and files with the cheapest benchmark.

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
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

constexpr char kQuick[] =
    "--benchmark_min_time=0.00001 --benchmark_repetitions=3 ";
constexpr char kOne[] = "--benchmark_filter='^route/E=8/k=2/T=1/' ";

TEST(SwitchyardBench, HelpListsTheOptionsAndTheDefaults) {
  const Outcome outcome = Bench("--help");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* option :
       {"--benchmark_repetitions=25", "--benchmark_min_time=0.0002",
        "--benchmark_enable_random_interleaving=true", "--benchmark_filter",
        "--benchmark_list_tests", "--benchmark_out"}) {
    EXPECT_TRUE(outcome.Printed(option)) << option;
  }
}

// Returns the names of the contenders, which are the implementations that a
// benchmark compares. In f32 the library runs on each ISA. In bf16 and f16 it
// runs on the best ISA and AVX2 only.
std::set<std::string> Contenders() {
  std::set<std::string> contenders = {"plain",      "onednn:softmax",
                                      "probe",      "plain@bf16",
                                      "probe@bf16", "probe@f16"};
  if (BENCH_HAS_GGML) contenders.insert("ggml");
  for (const Isa& isa : RunnableIsas()) {
    const std::string name = isa.name;
    contenders.insert(name);
    if (name != RunnableIsas().data[0].name && name != "AVX2") continue;
    contenders.insert({name + "@bf16", name + "@f16"});
  }
  return contenders;
}

TEST(SwitchyardBench, ListsABenchmarkPerContender) {
  const Outcome outcome = Bench(std::string(kOne) + "--benchmark_list_tests");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  std::string want;
  for (const Isa& isa : RunnableIsas()) {
    want += "route/E=8/k=2/T=1/" + std::string(isa.name) + "\n";
  }
  EXPECT_EQ(outcome.out.find(want), 0u) << outcome.out;
}

// A name is kernel/shape/contender. The kernel ends at the first slash, and
// the contender starts after the last one.
TEST(SwitchyardBench, NamesHaveNoSpacesAndAreNotTwice) {
  const Outcome outcome = Bench("--benchmark_list_tests");
  std::istringstream lines(outcome.out);
  std::set<std::string> names;
  for (std::string name; std::getline(lines, name);) {
    EXPECT_EQ(name.find(' '), std::string::npos) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_GT(names.size(), 1000u);
}

TEST(SwitchyardBench, TimesTheShapesThatAreAskedFor) {
  const std::string shape =
      "--shape=experts=12,top_k=3,hidden=320,intermediate=64,tokens=5 ";
  const Outcome listed = Bench(shape + "--benchmark_list_tests");
  std::set<std::string> shapes;
  std::istringstream lines(listed.out);
  for (std::string name; std::getline(lines, name);) {
    shapes.insert(name.substr(0, name.rfind('/')));
  }
  EXPECT_EQ(shapes, (std::set<std::string>{
                        "route/E=12/k=3/T=5", "gather/T=5/H=320/k=3",
                        "bucket_packed_row_index/E=12/k=3/T=5/uniform",
                        "activate/15x64", "combine/T=5/H=320/k=3",
                        "combine_indexed/T=5/H=320/k=3"}))
      << listed.out;
  const Outcome outcome = Bench(shape + kQuick);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  // A size that is not given has the value of Qwen3-30B-A3B.
  EXPECT_TRUE(Bench("--shape=tokens=1 --shape=tokens=7 --benchmark_list_tests")
                  .Printed("combine_indexed/T=7/H=2048/AVX2"));
}

TEST(SwitchyardBench, WrongShapesAreOneLineAndExitCode2) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ": not experts=N, top_k=N, hidden=N, intermediate=N or tokens=N"},
      {"experts", ": not a number from 1 to 1000000"},
      {"tokens=0", ": not a number from 1 to 1000000"},
      {"tokens=2x", ": not a number from 1 to 1000000"},
      {"tokens=1000001", ": not a number from 1 to 1000000"},
      {"width=3",
       ": not experts=N, top_k=N, hidden=N, intermediate=N or tokens=N"},
      {"hidden=40", ": hidden and intermediate are multiples of 64"},
      {"experts=4", ": top_k is 8 of 4 experts"},
      {"tokens=1000000,experts=5000,top_k=4000", ": more than 2^31 - 1 pairs"},
  };
  for (const auto& [shape, why] : cases) {
    ExpectRefused(Bench(std::string("--shape=") + shape),
                  std::string("switchyard_bench: --shape ") + shape + why);
  }
  ExpectRefused(Bench("--shape=tokens=3 --shape=experts=128,tokens=3"),
                "switchyard_bench: --shape: twice activate/24x768/" +
                    std::string(RunnableIsas().data[0].name));
  EXPECT_NE(Bench("--shape=tokens=1000000").err.find("GiB of memory"),
            std::string::npos);
}

TEST(SwitchyardBench, PrintsALinePerContender) {
  const Outcome outcome = Bench(std::string(kQuick) + kOne);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  std::istringstream lines(outcome.out);
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_LE(line.size(), 80u) << line;
  }
  const size_t onednn_bf16 = outcome.Printed("/onednn@bf16:softmax ") ? 1 : 0;
  EXPECT_EQ(count, Contenders().size() + onednn_bf16 + 1) << outcome.out;
}

// Tests the JSON that bench/report.py reads.
TEST(SwitchyardBench, WritesGooglesJson) {
  const TempFolder folder;
  for (const char* name : {"first", "second"}) {
    const Outcome outcome =
        Bench(std::string(kQuick) + kOne + "--benchmark_out='" +
              folder.File(name) + "'");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(ReadFile(folder.File(name)));
    for (const char* key : {"date", "num_cpus", "cpu_model", "data_caches",
                            "compiler", "highway", "tbb", "onednn", "ggml"}) {
      EXPECT_TRUE(json.at("context").contains(key)) << key;
    }
    std::string isas;
    for (const Isa& isa : RunnableIsas()) {
      isas += (isas.empty() ? "" : " ") + std::string(isa.name);
    }
    EXPECT_EQ(json.at("context").at("isas"), isas);
    EXPECT_EQ(json.at("context").at("executable"), "switchyard_bench");
    std::multiset<std::string> names, want;
    for (const auto& each : json.at("benchmarks")) {
      if (each.at("run_type") != "iteration") continue;
      const auto timed = each.at("name").get<std::string>();
      names.insert(timed);
      EXPECT_GT(each.at("real_time").get<double>(), 0.0);
      EXPECT_EQ(each.at("time_unit"), "ns");
      EXPECT_EQ(each.at("units").get<double>(), 1.0);
      const double logit = timed.find('@') == std::string::npos ? 4.0 : 2.0;
      EXPECT_EQ(each.at("bytes").get<double>(), logit * 8 + 4.0 * 2 * 2);
      EXPECT_EQ(each.at("label"), "row; Mixtral 8x7B");
      EXPECT_FALSE(each.contains("error_occurred"));
    }
    // This contender runs on some CPUs only.
    names.erase("route/E=8/k=2/T=1/onednn@bf16:softmax");
    for (const std::string& contender : Contenders()) {
      for (int i = 0; i < 3; ++i) want.insert("route/E=8/k=2/T=1/" + contender);
    }
    EXPECT_EQ(names, want);
  }
}

TEST(SwitchyardBench, AWrongResultIsNamedAndNotTimed) {
  const TempFolder folder;
  const Outcome outcome = RunProgram(
      PLANTED_BENCH_PROGRAM,
      std::string(kQuick) +
          "--benchmark_enable_random_interleaving=false --benchmark_out='" +
          folder.File("json") + "'");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err,
            "FAILED: planted/shape/wrong_int: output 0[0] is 7 instead of 1\n"
            "FAILED: planted/shape/wrong_float: output 1[1] is 2.100000 "
            "instead of 2.000000\n"
            "FAILED: planted/shape/other_bits: other bits than right\n"
            "FAILED: planted/shape/writes_nothing: output 1[0] is -nan instead "
            "of 1.000000\n"
            "FAILED: planted/shape/throws: thrown\n"
            "FAILED: planted/shape/wrong_bit@bf16-u8:2: output 0[1] is 0x4001 "
            "instead of 0x4000\n"
            "FAILED: planted/shape/wrong_code@bf16-u8: output 1[1] is 0x5 "
            "instead of 0x4\n"
            "FAILED: planted/shape/far@bf16-u8: output 0[1] is 2.046875 "
            "instead of 2.000000\n"
            "FAILED: planted/shape/writes_nothing@bf16-u8: output 1[0] is 0xff "
            "instead of 0x3\n");
  const auto json = nlohmann::json::parse(ReadFile(folder.File("json")));
  std::set<std::string> wrong, right;
  for (const auto& each : json.at("benchmarks")) {
    if (each.at("run_type") != "iteration") continue;
    const bool error = each.value("error_occurred", false);
    (error ? wrong : right).insert(each.at("name").get<std::string>());
    if (each.at("name") == "planted/shape/wrong_int") {
      EXPECT_EQ(each.at("error_message"), "output 0[0] is 7 instead of 1");
    }
  }
  EXPECT_EQ(wrong,
            (std::set<std::string>{
                "planted/shape/wrong_int", "planted/shape/wrong_float",
                "planted/shape/other_bits", "planted/shape/writes_nothing",
                "planted/shape/throws", "planted/shape/wrong_bit@bf16-u8:2",
                "planted/shape/wrong_code@bf16-u8", "planted/shape/far@bf16-u8",
                "planted/shape/writes_nothing@bf16-u8"}));
  EXPECT_EQ(right,
            (std::set<std::string>{
                "planted/shape/right", "planted/shape/close",
                "planted/shape/right@bf16-u8", "planted/shape/close@bf16-u8",
                "planted_large/first/before", "planted_large/first/after",
                "planted_large/second/before", "planted_large/second/after"}));
}

TEST(SwitchyardBench, WrongArgumentsAreOneLineAndExitCode2) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--benchmark_repetitions=0",
       "--benchmark_repetitions=0: not above 0, up to 1000000"},
      {"--benchmark_repetitions=many",
       "--benchmark_repetitions=many: not above 0, up to 1000000"},
      {"--benchmark_repetitions=2.5",
       "The value of flag --benchmark_repetitions is expected to be a 32-bit "
       "integer, but actually has value \"2.5\"."},
      {"--benchmark_min_time=-1",
       "--benchmark_min_time=-1: not above 0, up to 1000000"},
      {"--benchmark_min_time=nan",
       "--benchmark_min_time=nan: not above 0, up to 1000000"},
      {"--benchmark_min_time",
       "--benchmark_min_time: no such option; --help lists them"},
      {"--benchmark_out=", "--benchmark_out: empty"},
      {"--benchmark_out=/", "--benchmark_out /: Is a directory"},
      {"--benchmark_out=/no/such/folder/o",
       "--benchmark_out /no/such/folder/o: No such file or directory"},
      {"--benchmark_filter=nothing_like_it",
       "Failed to match any benchmarks against regex: nothing_like_it"},
      {"--benchmark_format=xml",
       "--benchmark_format=xml: not console, json or csv"},
      {"--benchmark_out_format=xml",
       "--benchmark_out_format=xml: not console, json or csv"},
      {"--benchmark_frobnicate",
       "--benchmark_frobnicate: no such option; --help lists them"},
      {"route", "route: no such option; --help lists them"},
  };
  for (const auto& [arguments, want] : cases) {
    ExpectRefused(Bench(arguments), "switchyard_bench: " + want);
  }
  // The rest of the line comes from the standard library.
  const Outcome outcome = Bench("--benchmark_filter='['");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.find("switchyard_bench: Could not compile"), 0u);
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
}

// Google Benchmark would empty the file before it knows whether any benchmark
// runs.
TEST(SwitchyardBench, AFileIsKeptWhereNothingRuns) {
  const TempFolder folder;
  const std::string out = folder.File("kept.json");
  std::ofstream(out) << "as it was";
  for (const auto& [arguments, want] :
       std::vector<std::pair<std::string, std::string>>{
           {"--benchmark_filter=nothing_like_it",
            "Failed to match any benchmarks against regex: nothing_like_it"},
           {"--benchmark_filter=-.",
            "Failed to match any benchmarks against regex: -."},
           {"--benchmark_list_tests",
            "--benchmark_list_tests: no --benchmark_out"}}) {
    ExpectRefused(Bench(arguments + " --benchmark_out='" + out + "'"),
                  "switchyard_bench: " + want);
    EXPECT_EQ(ReadFile(out), "as it was") << arguments;
  }
  EXPECT_EQ(
      Bench("--benchmark_filter='[' --benchmark_out='" + out + "'").exit_code,
      2);
  EXPECT_EQ(ReadFile(out), "as it was");
  // One benchmark runs: the filter matches its name together with the suffix
  // that Google Benchmark adds.
  const Outcome timed =
      Bench(std::string(kQuick) +
            "'--benchmark_filter=^threads_idle/activate/F=768/30us/[^:/]*/"
            "iterations:1/manual_time$' --benchmark_out='" +
            out + "'");
  EXPECT_EQ(timed.exit_code, 0) << timed.err;
  EXPECT_NE(ReadFile(out), "as it was");
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
                             std::string(kOne) + "--benchmark_list_tests");
  ExpectToldThatOutputIsLost(BENCH_PROGRAM, std::string(kQuick) + kOne);
}

TEST(SwitchyardBench, AFullDiskIsAnError) {
  const Outcome outcome =
      Bench(std::string(kQuick) + kOne + "--benchmark_out=/dev/full");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err,
            "switchyard_bench: --benchmark_out /dev/full: not written\n");
}

}  // namespace
}  // namespace switchyard::testing_support
