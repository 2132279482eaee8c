// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// `swy bench` as users run it. Nothing is said of how fast anything is.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/isa.h"
#include "tests/run_program.h"
#include "tests/swy_program.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

using nlohmann::json;

// Short, on one ISA.
std::string Quick(const std::string& arguments) {
  return "bench --seconds 0 --isa " + RunnableIsaNames().front() + " " +
         arguments;
}

size_t CountLines(const std::string& text, const std::string& begin) {
  const std::vector<std::string> lines = Lines(text);
  return static_cast<size_t>(std::count_if(
      lines.begin(), lines.end(),
      [&](const std::string& line) { return line.rfind(begin, 0) == 0; }));
}

TEST(SwyBench, TimesEveryKernelByDefault) {
  const Outcome outcome = SwyOk(Quick(""));
  for (const char* const kernel :
       {"route/", "bucket/", "gather/", "activate/", "combine/"}) {
    EXPECT_GE(CountLines(outcome.out, kernel), 1u) << outcome.out;
  }
  EXPECT_TRUE(outcome.Printed("verified: the bits of ")) << outcome.out;
  ExpectFitsATerminal(outcome.out);
}

TEST(SwyBench, TimesEveryIsaByDefault) {
  const Outcome outcome = SwyOk("bench --seconds 0 --kernel activate");
  for (const std::string& isa : RunnableIsaNames()) {
    EXPECT_EQ(CountLines(outcome.out, "  " + isa + " "), 2u) << outcome.out;
  }
  ExpectFitsATerminal(outcome.out);
}

TEST(SwyBench, TakesTheShapesOfAModel) {
  const Outcome outcome =
      SwyOk(Quick("--experts 160 --top-k 6 --hidden 512 --intermediate 96 "
                  "--tokens 1 3 1"));
  std::vector<std::string> heads;
  for (const std::string& line : Lines(outcome.out)) {
    if (line.find(", per ") != std::string::npos) heads.push_back(line);
  }
  EXPECT_EQ(
      heads,
      (std::vector<std::string>{
          "route/E=160 k=6 T=1, per row", "route/E=160 k=6 T=3, per row",
          "bucket/E=160 k=6 T=1, per pair", "bucket/E=160 k=6 T=3, per pair",
          "gather/H=512 k=6 T=1, per row", "gather/H=512 k=6 T=3, per row",
          "activate/6x96, per row", "activate/18x96, per row",
          "combine/H=512 k=6 T=1, per row", "combine/H=512 k=6 T=3, per row"}));
  ExpectFitsATerminal(outcome.out);
}

// Of row data; buckets have none. Bytes are half of f32's.
TEST(SwyBench, TakesATypeOfRowData) {
  const TempFolder folder;
  const std::string path = folder.File("out.json");
  const std::string isa = RunnableIsaNames().front();
  for (const char* type : {"bf16", "f16"}) {
    SwyOk(Quick("--tokens 2 --json '" + path + "' --dtype " + type));
    std::map<std::string, double> bytes;
    const json file = json::parse(ReadFile(path));
    for (const json& entry : file.at("benchmarks")) {
      bytes[entry.at("name")] = entry.at("bytes");
    }
    const std::string typed = "/" + isa + "@" + type;
    EXPECT_EQ(bytes,
              (std::map<std::string, double>{
                  {"route/E=128 k=8 T=2" + typed, 0.0},
                  {"bucket/E=128 k=8 T=2/" + isa, 0.0},
                  {"gather/H=2048 k=8 T=2" + typed, 4.0 * 16 * 2048},
                  {"activate/16x768" + typed, 6.0 * 16 * 768},
                  {"combine/H=2048 k=8 T=2" + typed, 2.0 * 2 * 2048 * 11}}));
  }
  const Outcome matrix = SwyOk(Quick("--dtype bf16 --kernel route bucket"));
  EXPECT_EQ(CountLines(matrix.out, "  " + isa + "@bf16 "), 4u) << matrix.out;
  ExpectFitsATerminal(matrix.out);
}

// What is not said is Qwen3-30B-A3B's; never more experts of a token than there
// are.
TEST(SwyBench, CompletesAModel) {
  EXPECT_TRUE(SwyOk(Quick("--tokens 2 --kernel route combine"))
                  .Printed("route/E=128 k=8 T=2, per row (Qwen3-30B-A3B)\n"));
  const Outcome few = SwyOk(Quick("--experts 4 --kernel route"));
  EXPECT_TRUE(few.Printed("route/E=4 k=4 T=1, per row\n")) << few.out;
  EXPECT_TRUE(few.Printed("route/E=4 k=4 T=512, per row\n")) << few.out;
}

#ifdef SWITCHYARD_WITH_TBB
TEST(SwyBench, TimesOnThreads) {
  const std::string isa = RunnableIsaNames().front();
  const std::string two = "--kernel activate --tokens 64 --threads 1 2 1";
  if (MakeTbbExecutor()->Concurrency() < 2) {
    ExpectError(Swy(Quick(two)), "--threads 2: this machine has ");
  } else {
    const Outcome outcome = SwyOk(Quick(two));
    EXPECT_EQ(CountLines(outcome.out, "  " + isa + " "), 1u) << outcome.out;
    EXPECT_EQ(CountLines(outcome.out, "  " + isa + ":2 "), 1u) << outcome.out;
  }
  // No figure is called that of more threads than ran.
  ExpectError(Swy(Quick("--threads 1024")),
              "--threads 1024: this machine has ");
}
#endif

// Contexts, names, counters and labels that scripts/ and `swy compare` read.
TEST(SwyBench, WritesGoogleBenchmarksJson) {
  const TempFolder folder;
  const std::string path = folder.File("out.json");
  SwyOk("bench --seconds 0 --tokens 2 --json '" + path + "'");
  const json file = json::parse(ReadFile(path));
  const json& context = file.at("context");
  for (const char* key :
       {"date", "host_name", "executable", "library_build_type", "cpu_model",
        "data_caches", "isas", "compiler", "highway", "tbb", "onednn", "ggml",
        "switchyard"}) {
    EXPECT_TRUE(context.at(key).is_string()) << key;
  }
  for (const char* key : {"num_cpus", "mhz_per_cpu"}) {
    EXPECT_TRUE(context.at(key).is_number()) << key;
  }
  for (const char* key : {"caches", "load_avg"}) {
    EXPECT_TRUE(context.at(key).is_array()) << key;
  }
  EXPECT_TRUE(context.at("cpu_scaling_enabled").is_boolean());
  std::string isas;
  for (const std::string& isa : RunnableIsaNames()) {
    isas += (isas.empty() ? "" : " ") + isa;
  }
  EXPECT_EQ(context.at("isas"), isas);

  std::map<std::string, size_t> repetitions;
  for (const json& entry : file.at("benchmarks")) {
    const auto name = entry.at("name").get<std::string>();
    EXPECT_EQ(entry.at("run_name"), name);
    EXPECT_EQ(entry.at("run_type"), "iteration");
    EXPECT_EQ(entry.at("time_unit"), "ns");
    EXPECT_EQ(entry.at("repetition_index"), repetitions[name]++);
    EXPECT_GT(entry.at("iterations").get<size_t>(), 0u);
    EXPECT_GT(entry.at("real_time").get<double>(), 0.0) << name;
    EXPECT_GE(entry.at("cpu_time").get<double>(), 0.0) << name;
    EXPECT_EQ(entry.at("threads"), 1);
    const std::string kernel = name.substr(0, name.find('/'));
    const std::map<std::string, std::vector<double>> units_and_bytes = {
        {"route", {2, 0}},
        {"bucket", {16, 0}},
        {"gather", {16, 8.0 * 16 * 2048}},
        {"activate", {16, 12.0 * 16 * 768}},
        {"combine", {2, 4.0 * 2 * 2048 * 11}}};
    for (const char* const count :
         {"units", "bytes", "iterations", "threads"}) {
      EXPECT_TRUE(entry.at(count).is_number_integer()) << entry;
    }
    EXPECT_EQ(entry.at("units"), units_and_bytes.at(kernel)[0]) << name;
    EXPECT_EQ(entry.at("bytes"), units_and_bytes.at(kernel)[1]) << name;
    EXPECT_EQ(
        entry.at("label"),
        std::string(kernel == "bucket" ? "pair" : "row") + "; Qwen3-30B-A3B");
  }
  EXPECT_EQ(repetitions.size(), 5 * RunnableIsaNames().size());
  for (const json& entry : file.at("benchmarks")) {
    EXPECT_EQ(entry.at("repetitions"), repetitions[entry.at("name")]);
  }
  for (const std::string& isa : RunnableIsaNames()) {
    EXPECT_GE(repetitions["route/E=128 k=8 T=2/" + isa], 5u);
  }
}

TEST(SwyBench, PrintsMarkdownAndCsvAlone) {
  const std::string arguments = Quick("--kernel route gather --tokens 1 ");
  const std::vector<std::string> csv =
      Lines(SwyOk(arguments + "--format csv").out);
  ASSERT_EQ(csv.size(), 3u);
  EXPECT_EQ(csv[0],
            "kernel,shape,model,contender,unit,ns,ns_q1,ns_q3,gb_per_s,"
            "of_first");
  EXPECT_EQ(csv[1].rfind("route,E=128 k=8 T=1,Qwen3-30B-A3B," +
                             RunnableIsaNames().front() + ",row,",
                         0),
            0u)
      << csv[1];
  EXPECT_EQ(std::count(csv[1].begin(), csv[1].end(), ','), 9);
  const std::vector<std::string> md =
      Lines(SwyOk(arguments + "--format md").out);
  ASSERT_EQ(md.size(), 4u);
  EXPECT_EQ(md[0].rfind("| kernel | shape | ", 0), 0u) << md[0];
  EXPECT_EQ(md[1], "|---|---|---|---|---|---:|---:|---:|---:|---:|");
  EXPECT_EQ(md[3].rfind("| gather | ", 0), 0u) << md[3];
}

TEST(SwyBench, WrongArgumentsAreErrors) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--isa AVX99", "--isa AVX99: not available here; there are "},
      {"--isa ''", "--isa: empty"},
      {"3", "3"},
      {"--kernel rout", "--kernel: rout not in {route,bucket,gather,"},
      {"--kernel", "--kernel"},
      {"--tokens 0", "--tokens: Value 0 not in range 1 to 1000000"},
      {"--tokens 1 many", "--tokens: Value many not in range 1 to 1000000"},
      {"--experts 0", "--experts: Value 0 not in range 1 to 1000000"},
      {"--experts 1 --experts 2", "--experts"},
      {"--top-k -1", "--top-k: Value -1 not in range 1 to 1000000"},
      {"--top-k 129", "--top-k 129: there are 128 experts"},
      {"--experts 4 --top-k 5", "--top-k 5: there are 4 experts"},
      {"--hidden 0", "--hidden: Value 0 not in range 1 to 1000000"},
      {"--intermediate x", "--intermediate: Value x not in range 1 to 1000000"},
      {"--threads 0", "--threads: Value 0 not in range 1 to 1024"},
      {"--threads 1025", "--threads: Value 1025 not in range 1 to 1024"},
      {"--dtype f64", "--dtype: f64 not in {bf16,f16,f32}"},
      {"--seconds -1", "--seconds: Value -1 not in range 0 to 3600"},
      {"--seconds nan", "--seconds: Value nan not in range 0 to 3600"},
      {"--format xml", "--format: xml not in {text,md,csv}"},
      {"--json ''", "--json: empty"},
      {"--json /", "--json /: Is a directory"},
      {"--json /no/such/folder/a.json",
       "--json /no/such/folder/a.json: No such file or directory"},
      {"--tokens 1000000 --experts 3000 --top-k 3000",
       "--tokens 1000000: times 3000 experts is more than 2^31 - 1 pairs"},
      {"--tokens 1000000 --top-k 128 --hidden 1000000 --kernel combine",
       "combine H=1000000 k=128 T=1000000: needs "},
  };
  for (const auto& [arguments, text] : cases) {
    SCOPED_TRACE(arguments);
    ExpectError(Swy("bench " + arguments), text);
  }
}

TEST(SwyBench, LostOutputIsAnError) {
  ExpectToldThatOutputIsLost(SWY_PROGRAM, Quick("--kernel route"));
  ExpectToldThatOutputIsLost(SWY_PROGRAM, Quick("--kernel route --format csv"));
  const Outcome full = Swy(Quick("--kernel route --json /dev/full"));
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_EQ(full.err, "swy: --json /dev/full: No space left on device\n");
}

}  // namespace
}  // namespace switchyard::testing_support
