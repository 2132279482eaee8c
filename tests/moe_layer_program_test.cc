// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The program's output, the effect of each option, and refusals.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "report.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "tests/moe_layer_files.h"

namespace moe_layer::testing_support {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Columns of a line: bytes that do not continue a UTF-8 character.
size_t Width(const std::string& line) {
  return static_cast<size_t>(std::count_if(
      line.begin(), line.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Milliseconds and share of the table's row, or NaN.
std::pair<double, double> Row(const std::string& out, const std::string& name) {
  for (const std::string& line : Lines(out)) {
    if (line.rfind(name + "  ", 0) != 0) continue;
    std::istringstream numbers(line.substr(name.size()));
    std::pair<double, double> row;
    if (numbers >> row.first >> row.second) return row;
  }
  return {NAN, NAN};
}

TEST(MoeLayerProgram, RunsEachFamily) {
  std::vector<std::pair<std::string, std::string>> runs;
  for (const char* family : {"qwen3_moe", "qwen2_moe"}) {
    runs.emplace_back(family, "");
    for (const Dtype& dtype : RunnableDtypes()) {
      runs.emplace_back(family, std::string(" --dtype ") + dtype.name);
    }
  }
  for (const auto& [family, options] : runs) {
    const Outcome outcome = RunProgram(CheckpointPath(family) + options);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(outcome.Printed("Every result is within its bound."))
        << outcome.out;
    EXPECT_TRUE(outcome.Printed(family + ", layer"));
    EXPECT_TRUE(outcome.Printed("batch    512 tokens"));
    for (const std::string& line : Lines(outcome.out)) {
      EXPECT_LE(Width(line), 80u) << line;
      EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
    }
    // No terminal: nothing moves.
    EXPECT_EQ(outcome.err.find_first_of("\r\033"), std::string::npos);
    EXPECT_EQ(Lines(outcome.err).size(), 1u) << outcome.err;
  }
}

// The environment is that of a CPU that has no such kernels.
TEST(MoeLayerProgram, CopesWithoutKernels) {
  const std::string avx2 = "DNNL_MAX_CPU_ISA=AVX2 ";
  const Outcome bf16 = RunProgram(CheckpointPath("qwen2_moe"), avx2);
  EXPECT_EQ(bf16.exit_code, 0) << bf16.err;
  EXPECT_TRUE(bf16.Printed("of weights in f32: oneDNN has no bf16 here"));
  EXPECT_TRUE(bf16.Printed("Every result is within its bound."));
  ExpectRefused(RunProgram("--dtype int8", avx2),
                "moe_layer: --dtype int8: oneDNN's int8 GEMMs are not exact on "
                "this CPU, which has no VNNI");
}

TEST(MoeLayerProgram, RowsAddUpToTheTotal) {
  const Outcome outcome = RunProgram(CheckpointPath("qwen2_moe"));
  double ms = 0;
  double share = 0;
  double between = 0;
  for (const char* name :
       {"router GEMM", "route", "bucket", "gate and up GEMMs", "down GEMM",
        "gather, activate, combine", "threads out of work"}) {
    const auto [row_ms, row_share] = Row(outcome.out, name);
    EXPECT_GE(row_ms, 0) << name;
    ms += row_ms;
    share += row_share;
    if (std::strstr(name, "GEMM") == nullptr &&
        std::strstr(name, "threads") == nullptr) {
      between += row_ms;
    }
  }
  // Seven roundings to 0.001 ms and to 0.01 %.
  EXPECT_NEAR(ms, Row(outcome.out, "total").first, 0.006);
  EXPECT_NEAR(share, 100, 0.06);
  EXPECT_NEAR(between, Row(outcome.out, "between the GEMMs").first, 0.004);
}

// The names that --help lists; the figures of the table.
TEST(MoeLayerProgram, WritesJson) {
  const TempFolder folder;
  const std::string path = folder.File("out.json");
  WriteFile(path, std::string(1000000, '?'));  // to be replaced
  const Outcome outcome =
      RunProgram(CheckpointPath("qwen2_moe") +
                 " --tokens 40 --threads 1 --repeat 3 --json '" + path + "'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json file = json::parse(ReadFile(path));
  EXPECT_EQ(file.at("context").at("executable"), "moe_layer");
  for (const char* key : {"cpu_model", "switchyard", "highway", "onednn"}) {
    EXPECT_TRUE(file.at("context").at(key).is_string()) << key;
  }
  EXPECT_EQ(file.at("isa"), switchyard::RunnableIsas().data[0].name);
  EXPECT_EQ(file.at("threads"), 1);
  EXPECT_GT(file.at("peak_memory_bytes").get<double>(), 0x1p20);
  for (const char* key : {"peak_memory_bytes", "weight_bytes_read"}) {
    EXPECT_TRUE(file.at(key).is_number_integer()) << file.at(key);
  }
  EXPECT_TRUE(file.at("layer").at("weight_bytes").is_number_integer());
  EXPECT_EQ(file.at("tokens"), 40);
  EXPECT_EQ(file.at("runs"), 3);
  EXPECT_LE(file.at("fastest_seconds"), file.at("seconds"));
  EXPECT_LE(file.at("seconds"), file.at("slowest_seconds"));
  const double ms = file.at("seconds").get<double>() * 1e3;
  EXPECT_NEAR(ms, Row(outcome.out, "total").first, 6e-4);

  const std::pair<const char*, const char*> stages[] = {
      {"router_gemm", "router GEMM"},
      {"route", "route"},
      {"bucket", "bucket"},
      {"gate_up_gemm", "gate and up GEMMs"},
      {"down_gemm", "down GEMM"},
      {"gather_activate_combine", "gather, activate, combine"},
      {"waiting", "threads out of work"}};
  ASSERT_EQ(file.at("stages").size(), std::size(stages));
  for (size_t i = 0; i < std::size(stages); ++i) {
    const json& stage = file.at("stages")[i];
    EXPECT_EQ(stage.at("stage"), stages[i].first);
    EXPECT_NEAR(stage.at("seconds").get<double>() * 1e3,
                Row(outcome.out, stages[i].second).first, 6e-4);
    EXPECT_GE(stage.at("bytes").get<double>(), 0);
    EXPECT_TRUE(stage.at("bytes").is_number_integer()) << stage;
    EXPECT_TRUE(stage.at("flops").is_number_integer()) << stage;
    EXPECT_EQ(stage.at("flops") > 0,
              std::strstr(stages[i].second, "GEMM") != nullptr);
  }
  EXPECT_NEAR(file.at("between_gemms_seconds").get<double>() * 1e3,
              Row(outcome.out, "between the GEMMs").first, 6e-4);

  EXPECT_GT(file.at("read_bandwidth").get<double>(), 0);
  EXPECT_NEAR(file.at("weight_read_share").get<double>(),
              file.at("weight_bytes_read").get<double>() /
                  file.at("read_bandwidth").get<double>() * 1e3 / ms,
              1e-9);

  const json& layer = file.at("layer");
  EXPECT_EQ(layer.at("dtype"), "bf16");
  EXPECT_LE(file.at("weight_bytes_read"), layer.at("weight_bytes"));
  EXPECT_TRUE(layer.at("title").get<std::string>().find("qwen2_moe") == 0);
  EXPECT_GT(layer.at("shared_intermediate"), 0);
  int pairs = 0;
  for (const json& load : file.at("tokens_per_expert"))
    pairs += load.get<int>();
  EXPECT_EQ(pairs, 40 * layer.at("top_k").get<int>());
  EXPECT_EQ(file.at("tokens_per_expert").size(), layer.at("experts"));
  const json& check = file.at("check");
  EXPECT_EQ(check.at("tokens"), 16);
  EXPECT_EQ(check.at("failure"), "");
  EXPECT_EQ(check.at("steps").size(), 5u);
  EXPECT_EQ(check.at("block").size(), 2u);
  for (const char* part : {"steps", "block"}) {
    for (const json& difference : check.at(part)) {
      EXPECT_EQ(difference.at("holds"), true) << difference;
      EXPECT_LE(difference.at("largest_error"), difference.at("bound_there"));
      EXPECT_LE(difference.at("error_over_bound"), 1.0);
      EXPECT_TRUE(outcome.Printed(difference.at("what"))) << difference;
    }
  }
}

TEST(MoeLayerProgram, JsonThatCannotBeWrittenIsExitCode2) {
  const Outcome outcome =
      RunProgram(CheckpointPath("qwen2_moe") + " --json /dev/full");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(Lines(outcome.err).back(),
            "moe_layer: --json /dev/full: No space left on device");
}

// The program's text for so many threads: no more than TBB has.
std::string Threads(int wanted) {
  const auto executor = switchyard::MakeTbbExecutor(wanted);
  const size_t given = executor->Concurrency();
  return std::to_string(given) + (given == 1 ? " thread\n" : " threads\n");
}

TEST(MoeLayerProgram, EveryOptionMatters) {
  const std::string checkpoint = CheckpointPath("qwen3_moe") + " ";
  const std::pair<const char*, std::string> cases[] = {
      {"--layer 2", "layer 2 of 3"},
      {"--dtype bf16", "dtype    bf16, "},
      {"--dtype f32", "dtype    f32, "},
      {"--tokens 7", "batch    7 tokens"},
      {"--tokens 1 --threads 1", "batch    1 token on 1 thread\n"},
      {"--threads 3", "512 tokens on " + Threads(3)},
      {"--repeat 4", "of 4 runs"},
      {"--top-k 12", "top 12 renormalised"}};
  for (const auto& [options, printed] : cases) {
    const Outcome outcome = RunProgram(checkpoint + options);
    EXPECT_TRUE(outcome.Printed(printed)) << options << "\n" << outcome.out;
    EXPECT_EQ(outcome.exit_code, 0) << options;
  }
  EXPECT_TRUE(RunProgram("--checkpoint " + checkpoint)
                  .Printed("qwen3_moe, layer 1 of 3"));
  for (const switchyard::Isa& isa : switchyard::RunnableIsas()) {
    const Outcome outcome = RunProgram(checkpoint + "--isa " + isa.name);
    EXPECT_TRUE(outcome.Printed(std::string("Ran on ") + isa.name));
    EXPECT_EQ(outcome.exit_code, 0) << isa.name << outcome.err;
  }
}

TEST(MoeLayerProgram, HelpListsTheOptions) {
  const Outcome outcome = RunProgram("--help");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* option :
       {"--checkpoint", "--layer", "--dtype", "--tokens", "--threads", "--isa",
        "--repeat", "--top-k", "--input", "--output", "--json", "--help"}) {
    EXPECT_TRUE(outcome.Printed(option)) << option;
  }
  for (const std::string& line : Lines(outcome.out)) {
    EXPECT_LE(Width(line), 80u) << line;
  }
}

TEST(MoeLayerOptions, OneLineAndExitCode2) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--tokens 0", "--tokens: Value 0 not in range 1 to 1000000"},
      {"--tokens 1000001", "--tokens: Value 1000001 not in range 1 to 1000000"},
      {"--tokens -1", "--tokens: Value -1 not in range 1 to 1000000"},
      {"--tokens many", "--tokens: Value many not in range 1 to 1000000"},
      {"--tokens 3 --input x", "--tokens excludes --input"},
      {"--input ''", "--input: empty"},
      {"--input /no/such", "/no/such: cannot open: No such file or directory"},
      {"--tokens", "--tokens: 1 required T:INT in [1 - 1000000] missing"},
      {"--threads 0", "--threads: Value 0 not in range 1 to 1024"},
      {"--threads 2000", "--threads: Value 2000 not in range 1 to 1024"},
      {"--dtype fp8", "--dtype: fp8 not in {bf16,f32,int8}"},
      {"--dtype ''", "--dtype:  not in {bf16,f32,int8}"},
      {"--repeat 0", "--repeat: Value 0 not in range 1 to 100000"},
      {"--layer -1", "--layer: Value -1 not in range 0 to 2147483647"},
      {"--layer 1", "--layer: needs --checkpoint"},
      {"--top-k 0", "--top-k: Value 0 not in range 1 to 2147483647"},
      {"--top-k 129", "--top-k 129: the layer has 128 experts"},
      {"--isa MMX", "--isa MMX: not available here; there are " +
                        switchyard::testing_support::IsaChoices()},
      {"--json ''", "--json: empty"},
      {"--json /", "--json /: Is a directory"},
      {"--json /no/such/folder/a.json",
       "--json /no/such/folder/a.json: No such file or directory"},
      {"--json a --output ./a", "--json a: is --output's file"},
      {"--frobnicate", "The following argument was not expected: --frobnicate"},
      {"a b", "The following argument was not expected: b"},
      {"--checkpoint ''", "--checkpoint: empty"},
      {"/no/such/folder/", "--checkpoint /no/such/folder: no such folder"},
      {"--checkpoint /dev/null", "--checkpoint /dev/null: not a folder"},
  };
  for (const auto& [arguments, want] : cases) {
    ExpectRefused(RunProgram(arguments), "moe_layer: " + want);
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

TEST(MoeLayerOptions, AWrongEnvironmentIsSaidAtOnce) {
  ExpectRefused(RunProgram("", "SWITCHYARD_ISA=AVX99 "),
                "moe_layer: SWITCHYARD_ISA AVX99: not available here; there "
                "are " +
                    switchyard::testing_support::IsaChoices());
}

TEST(MoeLayerProgram, LostOutputIsAnError) {
  for (const std::string& arguments :
       {std::string("--help"), CheckpointPath("qwen2_moe") + " --repeat 1"}) {
    switchyard::testing_support::ExpectToldThatOutputIsLost(MOE_LAYER_PROGRAM,
                                                            arguments);
  }
}

// Cut short once it is mapped: F32 tensors are used from there.
TEST(MoeLayerProgram, ACheckpointCutWhileItRunsIsOneLine) {
  const TempFolder folder;
  folder.CopyFrom("qwen2_moe");
  const std::string model = folder.File("model.safetensors");
  const std::string err = folder.File("err");
  const Outcome outcome = switchyard::testing_support::RunProgram(
      MOE_LAYER_PROGRAM, "'" + folder.path() + "' --dtype f32 --repeat 100000",
      // Ends as well where there is nothing to wait for.
      "(n=0; until grep -qs ' in ' '" + err +
          "' || [ $((n+=1)) -gt 2000 ]; do sleep 0.05; done; : >'" + model +
          "') &",
      "2>'" + err + "'");
  EXPECT_EQ(outcome.exit_code, 2);
  const std::vector<std::string> lines = Lines(ReadFile(err));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), "moe_layer: " + model +
                              ": cannot read: truncated since it was opened");
}

#ifndef SWITCHYARD_SANITIZED  // needs too much address space
TEST(MoeLayerProgram, OutOfMemoryIsOneLine) {
  const Outcome outcome = RunProgram("--threads 1", "ulimit -v 1000000;");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "moe_layer: out of memory\n");
}
#endif

std::vector<std::string> Chart(std::vector<int32_t> load, bool blocks) {
  return Lines(LoadChart(load, blocks));
}

TEST(MoeLayerProgram, LoadChartFits80Columns) {
  for (const int experts : {1, 2, 12, 63, 64, 65, 128, 896, 5000}) {
    std::vector<int32_t> load(static_cast<size_t>(experts));
    for (size_t e = 0; e < load.size(); ++e) {
      load[e] = static_cast<int32_t>((e * 2654435761u) % 1000000);
    }
    for (const bool blocks : {false, true}) {
      for (const std::string& line : Chart(load, blocks)) {
        EXPECT_LE(Width(line), 80u) << line;
      }
    }
  }
}

TEST(MoeLayerProgram, LoadChartShowsTheLoad) {
  const std::vector<std::string> chart = Chart({1, 10, 0, 5}, true);
  ASSERT_EQ(chart.size(), 6u);
  EXPECT_EQ(chart[0], "      10 │█");
  EXPECT_EQ(chart[1], "         │█");
  EXPECT_EQ(chart[2], "         │█▄");
  EXPECT_EQ(chart[3], "         │██");
  EXPECT_EQ(chart[4], "       0 │██▄");
  EXPECT_EQ(chart[5],
            "busiest 10, mean 4, median 3, least 0; 1 of 4 experts idle");
  for (const std::string& line : Chart({1, 10, 0, 5}, false)) {
    EXPECT_EQ(Width(line), line.size()) << line;
  }
  // However little an expert has to do, it shows.
  EXPECT_EQ(Chart({1, 1000}, true)[4], "       0 │█▁");
  EXPECT_EQ(Chart({0, 1000}, true)[4], "       0 │█");
  EXPECT_EQ(Chart({0, 0}, true)[5],
            "busiest 0, mean 0, median 0, least 0; 2 of 2 experts idle");
}

}  // namespace
}  // namespace moe_layer::testing_support
