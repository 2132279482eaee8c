// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests moe_layer's output, the effect of each option, and input that the
// program refuses.

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>
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

// Returns the milliseconds and the share in a row of the table, or NaN.
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
    for (const Dtype& dtype : DtypesOfAnySize()) {
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
      EXPECT_LE(line.size(), 80u) << line;
      EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
    }
    // stderr is not a terminal, so the program shows no progress.
    EXPECT_EQ(outcome.err.find_first_of("\r\033"), std::string::npos);
    EXPECT_EQ(Lines(outcome.err).size(), 1u) << outcome.err;
  }
}

// With DNNL_MAX_CPU_ISA=AVX2, oneDNN has no bf16 kernels, as on an older CPU.
TEST(MoeLayerProgram, CopesWithoutKernels) {
  const std::string avx2 = "DNNL_MAX_CPU_ISA=AVX2 ";
  const Outcome bf16 = RunProgram(CheckpointPath("qwen2_moe"), avx2);
  EXPECT_EQ(bf16.exit_code, 0) << bf16.err;
  EXPECT_TRUE(bf16.Printed("of weights in f32: oneDNN has no bf16 here"));
  EXPECT_TRUE(bf16.Printed("Every result is within its bound."));
}

// Switchyard multiplies the experts, and oneDNN the router.
TEST(MoeLayerProgram, MultipliesQuantisedExperts) {
  const Outcome outcome =
      RunProgram(CheckpointPath("qwen2_moe") + " --dtype int8");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Printed("Every result is within its bound."));
  EXPECT_TRUE(outcome.Printed("gate and up MultiplyTile")) << outcome.out;
  ExpectRefused(RunProgram(CheckpointPath("qwen2_moe") + " --dtype q4_0"),
                "moe_layer: --dtype: experts' weights of 72 columns, which are "
                "no multiple of its blocks, or too many");
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
  // The sums add up seven rows. Each row is rounded to 0.001 ms and to 0.01 %.
  EXPECT_NEAR(ms, Row(outcome.out, "total").first, 0.006);
  EXPECT_NEAR(share, 100, 0.06);
  EXPECT_NEAR(between, Row(outcome.out, "between the GEMMs").first, 0.004);
}

// The JSON has the names that --help lists, and the figures of the table.
TEST(MoeLayerProgram, WritesJson) {
  const TempFolder folder;
  const std::string path = folder.File("out.json");
  WriteFile(path, std::string(1000000, '?'));  // the program has to replace it
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

// --compare also runs on a generated layer.
TEST(MoeLayerProgram, ComparesWithPlainLoops) {
  const TempFolder folder;
  const std::string path = folder.File("out.json");
  const Outcome outcome =
      RunProgram("--compare --tokens 1 --repeat 3 --json '" + path + "'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Printed("Plain loops around the same GEMMs: "));
  EXPECT_TRUE(outcome.Printed("rounds lie between "));
  const json file = json::parse(ReadFile(path));
  EXPECT_GT(file.at("plain_loops_seconds"), 0);
  // Both medians have to be the medians of the rounds in the file.
  for (const auto& [median, rounds] :
       {std::pair("seconds", "round_seconds"),
        std::pair("plain_loops_seconds", "plain_loops_round_seconds")}) {
    auto times = file.at(rounds).get<std::vector<double>>();
    ASSERT_EQ(times.size(), 3u) << rounds;
    std::sort(times.begin(), times.end());
    EXPECT_EQ(times[1], file.at(median)) << rounds;
  }
}

// A single rounding to bf16 uses nearly the whole bound. This looks as if the
// check had nearly failed, so the output has to explain it.
TEST(MoeLayerProgram, SaysWhatItsErrorsAreSharesOf) {
  const std::string arguments = CheckpointPath("qwen2_moe") + " --repeat 1";
  const char* const what = "error/bound is the largest share that any element";
  const char* const rounding = "Nearly 1 is usual in bf16";
  const Outcome bf16 = RunProgram(arguments);
  EXPECT_TRUE(bf16.Printed(what)) << bf16.out;
  EXPECT_TRUE(bf16.Printed(rounding)) << bf16.out;
  const Outcome f32 = RunProgram(arguments + " --dtype f32");
  EXPECT_TRUE(f32.Printed(what)) << f32.out;
  EXPECT_FALSE(f32.Printed(rounding)) << f32.out;
}

TEST(MoeLayerProgram, JsonThatCannotBeWrittenIsExitCode2) {
  const Outcome outcome =
      RunProgram(CheckpointPath("qwen2_moe") + " --json /dev/full");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(Lines(outcome.err).back(),
            "moe_layer: --json /dev/full: No space left on device");
}

// The program refuses a pipe without a reader, instead of waiting for one. If
// there is a reader, it gets the whole text.
TEST(MoeLayerProgram, JsonMayGoToAPipe) {
  const TempFolder folder;
  const std::string pipe = folder.File("pipe"), got = folder.File("got");
  const std::string make = "mkfifo '" + pipe + "';";
  const std::string arguments =
      CheckpointPath("qwen2_moe") + " --repeat 1 --json '" + pipe + "'";
  ExpectRefused(RunProgram(arguments, make),
                "moe_layer: --json " + pipe + ": No such device or address");
  // File descriptor 4 is a reader, and is open from the start.
  const Outcome outcome =
      RunProgram(arguments, "exec 4<>'" + pipe + "'; cat '" + pipe + "' >'" +
                                got + "' 4>&- & ");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::string text;  // cat may need a moment
  for (int i = 0; i < 1000 && (text.empty() || text.back() != '\n'); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    text = ReadFile(got);
  }
  EXPECT_TRUE(json::accept(text)) << text;
}

// A limit on the file size has the effect of a disk that fills up midway.
TEST(MoeLayerProgram, ADiskThatFillsUpLeavesNoPartOfAFile) {
  const TempFolder folder;
  const std::string path = folder.File("out");
  const Outcome outcome =
      RunProgram(CheckpointPath("qwen2_moe") + " --output '" + path + "'",
                 "trap '' XFSZ; ulimit -f 8; ");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(Lines(outcome.err).back(),
            "moe_layer: --output " + path + ": File too large");
  EXPECT_FALSE(std::filesystem::exists(path));
}

// Returns the program's text for `wanted` threads. TBB may have fewer.
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
        "--repeat", "--top-k", "--input", "--output", "--json", "--compare",
        "--help"}) {
    EXPECT_TRUE(outcome.Printed(option)) << option;
  }
  for (const std::string& line : Lines(outcome.out)) {
    EXPECT_LE(line.size(), 80u) << line;
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
      {"--dtype fp8",
       "--dtype: fp8 not in {bf16,f32,int8,q8_0,q4_0,mxfp4,q4_K,q6_K}"},
      {"--dtype ''",
       "--dtype:  not in {bf16,f32,int8,q8_0,q4_0,mxfp4,q4_K,q6_K}"},
      {"--repeat 0", "--repeat: Value 0 not in range 1 to 100000"},
      {"--layer -1", "--layer: Value -1 not in range 0 to 2147483647"},
      {"--layer 1", "--layer: needs --checkpoint"},
      {"--compare --dtype int8", "--compare: not with --dtype int8"},
      {"--compare --checkpoint x", "--checkpoint excludes --compare"},
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

// The program has to refuse before it generates the weights. Otherwise the
// system would kill it for lack of memory.
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

// Cuts the file after the program has mapped it. The program uses F32 tensors
// directly from the mapping.
TEST(MoeLayerProgram, ACheckpointCutWhileItRunsIsOneLine) {
  const TempFolder folder;
  folder.CopyFrom("qwen2_moe");
  const std::string model = folder.File("model.safetensors");
  const std::string err = folder.File("err");
  const Outcome outcome = switchyard::testing_support::RunProgram(
      MOE_LAYER_PROGRAM, "'" + folder.path() + "' --dtype f32 --repeat 100000",
      // The loop ends even if the text never appears.
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
  const TempFolder folder;
  const std::string path = folder.File("out.json");
  for (const bool is_there : {false, true}) {
    if (is_there) std::ofstream(path) << "before";
    const Outcome outcome =
        RunProgram("--threads 1 --json '" + path + "'", "ulimit -v 1000000;");
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.err, "moe_layer: out of memory\n");
    // A file that existed before has its old content. Otherwise no file
    // exists.
    EXPECT_EQ(ReadFile(path), is_there ? "before" : "");
    EXPECT_EQ(std::filesystem::exists(path), is_there);
  }
}
#endif

TEST(MoeLayerProgram, LoadTextSaysTheLoad) {
  const auto text = [](std::vector<int32_t> load) { return LoadText(load); };
  EXPECT_EQ(text({1, 10, 0, 5}),
            "busiest 10, mean 4, median 3, least 0; 1 of 4 experts idle\n");
  EXPECT_EQ(text({0, 0}),
            "busiest 0, mean 0, median 0, least 0; 2 of 2 experts idle\n");
}

// Every user error gives one line on stderr that names the file and the
// tensor, key or option, nothing on stdout, and exit code 2.

// The functions below spoil a copy of a checkpoint.
constexpr char kConfig[] = "config.json";
constexpr char kModel[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr char kRouter[] = "model.layers.0.mlp.gate.weight";

using Spoil = std::function<void(const TempFolder&)>;

Spoil Remove(const std::string& file) {
  return [=](const TempFolder& folder) {
    std::filesystem::remove_all(folder.File(file));
  };
}
Spoil Write(const std::string& file, const std::string& content) {
  return
      [=](const TempFolder& folder) { WriteFile(folder.File(file), content); };
}
// Replaces a file by a pipe without a writer.
Spoil MakePipe(const std::string& file) {
  return [=](const TempFolder& folder) {
    std::filesystem::remove_all(folder.File(file));
    ASSERT_EQ(mkfifo(folder.File(file).c_str(), 0600), 0);
  };
}
Spoil MakeFolder(const std::string& file) {
  return [=](const TempFolder& folder) {
    std::filesystem::remove_all(folder.File(file));
    std::filesystem::create_directory(folder.File(file));
  };
}
Spoil Set(const std::string& key, const json& value) {
  return [=](const TempFolder& folder) {
    folder.EditJson(kConfig, [&](json& config) { config[key] = value; });
  };
}
Spoil Erase(const std::string& key) {
  return [=](const TempFolder& folder) {
    folder.EditJson(kConfig, [&](json& config) { config.erase(key); });
  };
}
// Cuts a file to its first `size` bytes; a negative size removes -`size`
// bytes at the end.
Spoil Cut(const std::string& file, long size) {
  return [=](const TempFolder& folder) {
    const std::string bytes = ReadFile(folder.File(file));
    const size_t keep = size >= 0 ? static_cast<size_t>(size)
                                  : bytes.size() - static_cast<size_t>(-size);
    WriteFile(folder.File(file), bytes.substr(0, keep));
  };
}
Spoil EditHeader(const std::function<void(json&)>& change) {
  return [=](const TempFolder& folder) {
    folder.EditTensors(kModel,
                       [&](json& header, std::string&) { change(header); });
  };
}
Spoil SetRouter(const std::string& member, const json& value) {
  return EditHeader([=](json& header) { header[kRouter][member] = value; });
}
// Returns `whole` with `value` at `place`. `value` may be invalid JSON.
std::string WithText(json whole, const std::string& place,
                     const std::string& value) {
  whole[json::json_pointer(place)] = "PLACE";
  std::string text = whole.dump();
  return text.replace(text.find("\"PLACE\""), 7, value);
}
Spoil SetText(const std::string& file, const std::string& key,
              const std::string& value) {
  return [=](const TempFolder& folder) {
    const json whole = json::parse(ReadFile(folder.File(file)));
    WriteFile(folder.File(file), WithText(whole, "/" + key, value));
  };
}
Spoil SetShapeText(const std::string& value) {
  return [=](const TempFolder& folder) {
    std::string spoilt;
    folder.EditTensors(kModel, [&](const json& header, std::string& data) {
      const std::string place = std::string("/") + kRouter + "/shape";
      spoilt = Safetensors(WithText(header, place, value), data);
    });
    WriteFile(folder.File(kModel), spoilt);
  };
}
// Overwrites an element of a tensor with `bits`, little-endian.
Spoil SetElement(const std::string& file, const std::string& name,
                 size_t element, const std::string& bits) {
  return [=](const TempFolder& folder) {
    folder.EditTensors(file, [&](const json& header, std::string& data) {
      const size_t begin = header[name]["data_offsets"][0].get<size_t>();
      data.replace(begin + element * bits.size(), bits.size(), bits);
    });
  };
}
// Returns nested lists, deep enough to overflow the stack of a recursive
// parser.
std::string Nested(size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}
Spoil EditIndex(const std::function<void(json&)>& change) {
  return [=](const TempFolder& folder) { folder.EditJson(kIndex, change); };
}

// A way to spoil a checkpoint, and the expected message.
struct Case {
  const char* name;
  Spoil spoil;
  // The expected line without "moe_layer: ". Expand() replaces its short
  // forms.
  std::string want;
  std::string options = "";
  const char* family = "qwen2_moe";
};
std::ostream& operator<<(std::ostream& os, const Case& c) {
  return os << c.name;
}

const Case kConfigCases[] = {
    {"ConfigMissing", Remove(kConfig),
     "CONFIG: cannot open: No such file or directory"},
    {"ConfigIsAFolder", MakeFolder(kConfig),
     "CONFIG: cannot open: not a regular file"},
    {"ConfigIsAPipe", MakePipe(kConfig),
     "CONFIG: cannot open: not a regular file"},
    {"ConfigDeepUnused", SetText(kConfig, "unused", Nested(150000)),
     "CONFIG: malformed JSON: DEEP"},
    {"ConfigDeepSize", SetText(kConfig, "hidden_size", Nested(150000)),
     "CONFIG: malformed JSON: DEEP"},
    {"ConfigDeepModelType", SetText(kConfig, "model_type", Nested(150000)),
     "CONFIG: malformed JSON: DEEP"},
    {"ConfigDeepUnclosed", Write(kConfig, std::string(150000, '[')),
     "CONFIG: malformed JSON: DEEP"},
    // Brackets inside a string do not nest, and \" does not end the string.
    {"ConfigBracketsInText",
     SetText(kConfig, "model_type", "\"\\\"" + std::string(70, '{') + "\""),
     "CONFIG: model_type: \"\\\"" + std::string(70, '{') +
         "\" is not supported; there are FAMILIES"},
    {"ConfigDeepEnough", SetText(kConfig, "hidden_size", Nested(63)),
     "CONFIG: hidden_size: SIZE, found " + Nested(63)},
    {"ConfigDeepByOne", SetText(kConfig, "hidden_size", Nested(64)),
     "CONFIG: malformed JSON: DEEP"},
    {"ConfigEmpty", Write(kConfig, ""),
     "CONFIG: malformed JSON: PARSE line 1, column 1: syntax error while "
     "parsing value - unexpected end of input; expected '[', '{', or a "
     "literal"},
    {"ConfigMalformed", Write(kConfig, "{\"a\":\n\n]"),
     "CONFIG: malformed JSON: PARSE line 3, column 1: syntax error while "
     "parsing value - unexpected ']'; expected '[', '{', or a literal"},
    {"ConfigNoObject", Write(kConfig, "[1]"),
     "CONFIG: malformed JSON: not an object"},
    {"ModelTypeMissing", Erase("model_type"), "CONFIG: model_type: missing"},
    {"ModelTypeUnknown", Set("model_type", "new\nmodel"),
     "CONFIG: model_type: \"new\\nmodel\" is not supported; there are "
     "FAMILIES"},
    {"ModelTypeNoText", Set("model_type", 3),
     "CONFIG: model_type: 3 is not supported; there are FAMILIES"},
    {"SizeZero", Set("hidden_size", 0), "CONFIG: hidden_size: SIZE, found 0"},
    {"SizeNegative", Set("num_experts", -4),
     "CONFIG: num_experts: SIZE, found -4"},
    {"SizeHuge", Set("moe_intermediate_size", 3000000000),
     "CONFIG: moe_intermediate_size: SIZE, found 3000000000"},
    {"SizeFraction", Set("num_experts_per_tok", 2.5),
     "CONFIG: num_experts_per_tok: SIZE, found 2.5"},
    {"SizeText", Set("shared_expert_intermediate_size", "56"),
     "CONFIG: shared_expert_intermediate_size: SIZE, found \"56\""},
    {"EpsilonNegative", Set("rms_norm_eps", -1e-6),
     "CONFIG: rms_norm_eps: expected a number from 0 to 1, found -1e-06"},
    {"EpsilonText", Set("rms_norm_eps", "x"),
     "CONFIG: rms_norm_eps: expected a number from 0 to 1, found \"x\""},
    {"RenormalizeNumber", Set("norm_topk_prob", 2),
     "CONFIG: norm_topk_prob: 2 is neither true nor false"},
    {"RenormalizeMissing", Erase("norm_topk_prob"),
     "CONFIG: norm_topk_prob: is missing"},
    {"RenormalizeNull", Set("norm_topk_prob", nullptr),
     "CONFIG: norm_topk_prob: is missing"},
    {"RenormalizeText", Set("norm_topk_prob", "true"),
     "CONFIG: norm_topk_prob: \"true\" is neither true nor false"},
    {"FactorText", Set("routed_scaling_factor", "2.5"),
     "CONFIG: routed_scaling_factor: \"2.5\" is not a finite number", "",
     "deepseek_v3"},
    {"FactorNaN", SetText(kConfig, "routed_scaling_factor", "NaN"),
     "CONFIG: routed_scaling_factor: \"NaN\" is not a finite number", "",
     "deepseek_v3"},
    {"EpsilonInfinity", SetText(kConfig, "rms_norm_eps", "-Infinity"),
     "CONFIG: rms_norm_eps: expected a number from 0 to 1, found "
     "\"-Infinity\""},
    {"OtherNameOfExperts", Set("n_routed_experts", 11),
     "CONFIG: num_experts: 12 differs from n_routed_experts, and both are "
     "names of one field"},
    {"TopKByLayer", Set("num_experts_per_tok", {3, 2}),
     "CONFIG: num_experts_per_tok: SIZE, found [3,2]"},
    {"FactorByLayer", Set("routed_scaling_factor", {1, 2}),
     "CONFIG: routed_scaling_factor: [1,2] is not a finite number", "",
     "deepseek_v3"},
    {"OtherScore", Set("scoring_func", "softmax"),
     "CONFIG: scoring_func: \"softmax\" is not the score of this family", "",
     "deepseek_v3"},
    {"OtherScoreByAnotherName", Set("score_function", "softmax"),
     "CONFIG: score_function: \"softmax\" is not the score of this family", "",
     "deepseek_v3"},
    {"OtherMethod", Set("topk_method", "greedy"),
     "CONFIG: topk_method: \"greedy\" is not the method of this family", "",
     "deepseek_v3"},
    {"WithoutBias", Set("use_routing_bias", false),
     "CONFIG: use_routing_bias: false is not this family's, which has a "
     "correction bias",
     "", "deepseek_v3"},
    {"LayerWithoutAFlag", Set("moe_layer_freq", {1, 0}),
     "--layer 1: CONFIG: layer 1 is dense (moe_layer_freq has no 1 for it)",
     "--layer 1", "deepseek_v3"},
    {"LayerNoMultiple", Set("moe_layer_freq", 2),
     "--layer 1: CONFIG: layer 1 is dense (moe_layer_freq is 2)", "--layer 1",
     "deepseek_v3"},
    {"LayerFlagsNoFlags", Set("moe_layer_freq", {1, 2}),
     "CONFIG: moe_layer_freq: expected a list of 0 and 1 or a number, found "
     "[1,2]",
     "", "deepseek_v3"},
    {"Activation", Set("hidden_act", "gelu"),
     "CONFIG: hidden_act: \"gelu\" is not supported; only \"silu\""},
    {"TopKAboveExperts", Set("num_experts_per_tok", 13),
     "CONFIG: num_experts_per_tok: 13, but num_experts is 12"},
    {"DenseLayersNoList", Set("mlp_only_layers", 1),
     "CONFIG: mlp_only_layers: expected a list of layers, found 1"},
    {"EveryLayerDense", Set("mlp_only_layers", {0, 1}),
     "CONFIG: every layer is dense, none has experts"},
    {"LayerOutOfRange", Set("x", 0), "--layer 2: CONFIG has layers 0 to 1",
     "--layer 2"},
    {"LayerListedDense", Set("x", 0),
     "--layer 0: CONFIG: layer 0 is dense (listed in mlp_only_layers)",
     "--layer 0", "qwen3_moe"},
    {"LayerStepDense", Set("decoder_sparse_step", 2),
     "--layer 0: CONFIG: layer 0 is dense (decoder_sparse_step is 2)",
     "--layer 0"},
    {"LayerBeforeTheFirst", Set("x", 0),
     "--layer 0: CONFIG: layer 0 is dense (first_k_dense_replace is 1)",
     "--layer 0", "deepseek_v3"},
    {"LayerOfAType", Set("mlp_layer_types", {"sparse", "dense"}),
     "--layer 1: CONFIG: layer 1 is dense (mlp_layer_types has \"dense\" for "
     "it)",
     "--layer 1", "deepseek_v3"},
    {"LayerWithoutAType", Set("mlp_layer_types", {"sparse"}),
     "--layer 1: CONFIG: layer 1 is dense (mlp_layer_types has nothing for it)",
     "--layer 1", "deepseek_v3"},
    {"LayerTypesNoWords", Set("mlp_layer_types", {0, 1}),
     "CONFIG: mlp_layer_types: expected a list of words, found [0,1]", "",
     "deepseek_v3"},
    {"LayerByToken", Set("x", 0),
     "--layer 0: CONFIG: layer 0 routes by token id (num_hash_layers is 1)",
     "--layer 0", "deepseek_v4"},
    {"LayerByTokenOfAType", Set("mlp_layer_types", {"hash_moe", "moe"}),
     "--layer 0: CONFIG: layer 0 routes by token id (mlp_layer_types has "
     "\"hash_moe\" for it)",
     "--layer 0", "deepseek_v4"},
    {"EveryLayerByToken", Set("num_hash_layers", 2147483647),
     "CONFIG: every layer is dense, none has experts", "", "deepseek_v4"},
    {"LayerNotListed",
     [](const TempFolder& folder) {
       folder.EditJson(kConfig, [](json& config) {
         config["text_config"]["moe_layers"] = {0};
       });
     },
     "--layer 1: CONFIG: layer 1 is dense (not listed in moe_layers)",
     "--layer 1", "llama4"},
    {"TextConfigSize",
     [](const TempFolder& folder) {
       folder.EditJson(kConfig, [](json& config) {
         config["text_config"]["hidden_size"] = 0;
       });
     },
     "CONFIG: hidden_size: SIZE, found 0", "", "llama4"},
    {"TextConfigNoObject", Set("text_config", 1),
     "CONFIG: model_type: \"llama4\" is not supported; there are FAMILIES", "",
     "llama4"},
    {"GroupsDoNotDivide", Set("n_group", 5),
     "CONFIG: n_group: 5 does not divide num_experts", "", "deepseek_v3"},
    {"GroupsTooSmall", Set("n_group", 12),
     "CONFIG: n_group: 12 leaves too few experts in a group", "",
     "deepseek_v3"},
    {"KeptAboveGroups", Set("topk_group", 5),
     "CONFIG: topk_group: 5 is 0 or above n_group", "", "deepseek_v3"},
    {"ScaleNegative", Set("routed_scaling_factor", -1),
     "CONFIG: routed_scaling_factor: -1 is negative", "", "deepseek_v3"},
    {"SharedTooWide", Set("n_shared_experts", 2147483647),
     "CONFIG: n_shared_experts: 2147483647 times moe_intermediate_size is more "
     "than 2147483647",
     "", "deepseek_v3"},
    {"TooManyZeroExperts", Set("zero_expert_num", 2147483647),
     "CONFIG: zero_expert_num: 2147483647 and num_experts are more than 2^31 - "
     "1",
     "", "longcat_flash"},
    {"NotEnabled", Set("enable_moe_block", false),
     "CONFIG: enable_moe_block: not true: no layer has experts", "", "gemma4"},
    {"OtherActivation", Set("hidden_activation", "silu"),
     "CONFIG: hidden_activation: \"silu\" is not supported; only "
     "\"gelu_pytorch_tanh\"",
     "", "gemma4"},
    {"StackedExperts", Set("num_local_experts", 11),
     "MODEL: tensor 'model.layers.1.mlp.router.weight': shape [12, 64], but "
     "CONFIG makes it [11, 64]",
     "--layer 1", "gpt_oss"},
    {"StackedIntermediate", Set("intermediate_size", 41),
     "MODEL: tensor 'model.layers.1.mlp.experts.gate_up_proj_bias': shape [12, "
     "80], but CONFIG makes it [12, 82]",
     "--layer 1", "gpt_oss"},
    {"NanInAStackedExpert",
     SetElement(kModel, "model.layers.1.mlp.experts.gate_up_proj",
                (3 * 64 + 5) * 80 + 7, {"\0\x7E", 2}),
     "MODEL: tensor 'model.layers.1.mlp.experts.gate_up_proj', gate and up of "
     "expert 3: nan at [7, 5], but weights have to be finite",
     "--layer 1", "gpt_oss"},
    {"NoRootKnown", Set("num_hidden_layers", 3),
     "MODEL: tensor 'model.layers.2.post_attention_layernorm.weight': missing",
     "--layer 2", "deepseek_v3"},
    {"TopKOption", Set("x", 0), "--top-k 13: the layer has 12 experts",
     "--top-k 13"},
};

// Replaces the short forms, such as CONFIG, in `text`.
std::string Expand(std::string text, const TempFolder& folder) {
  const auto replace = [&](const std::string& what, const std::string& with) {
    for (size_t at; (at = text.find(what)) != std::string::npos;) {
      text.replace(at, what.size(), with);
    }
  };
  replace("CONFIG", "$/config.json");
  replace("INDEX", "$/model.safetensors.index.json");
  replace("ROUTER", "MODEL: tensor 'model.layers.0.mlp.gate.weight'");
  replace("MODEL", "$/model.safetensors");
  replace("SIZE", "expected an integer from 1 to 2147483647");
  replace("FAMILIES", KnownFamilies());
  replace("PARSE", "[json.exception.parse_error.101] parse error at");
  replace("DEEP", "nested more than 64 levels deep");
  replace("$", folder.path());
  // The sizes of the header and of the data in the family's first tensor
  // file.
  const char* const shard = "model-00001-of-00002.safetensors";
  const char* const file =
      std::filesystem::exists(folder.File(shard)) ? shard : kModel;
  folder.EditTensors(file, [&](const json& header, const std::string& data) {
    replace("#H", std::to_string(header.dump().size()));
    replace("#D", std::to_string(data.size()));
    replace("#E", std::to_string(data.size() - 1));
  });
  return text;
}

class Errors : public testing::TestWithParam<Case> {};

TEST_P(Errors, OneLineAndExitCode2) {
  const TempFolder folder;
  folder.CopyFrom(GetParam().family);
  const std::string want = Expand(GetParam().want, folder);
  GetParam().spoil(folder);
  ExpectRefused(RunProgram("'" + folder.path() + "' " + GetParam().options),
                "moe_layer: " + want);
}

INSTANTIATE_TEST_SUITE_P(MoeLayerConfig, Errors,
                         testing::ValuesIn(kConfigCases),
                         testing::PrintToStringParamName());

std::vector<Case> MissingKeys() {
  std::vector<Case> cases;
  for (const char* key :
       {"num_hidden_layers", "hidden_size", "moe_intermediate_size",
        "num_experts", "num_experts_per_tok", "rms_norm_eps",
        "shared_expert_intermediate_size"}) {
    cases.push_back(
        {key, Erase(key), std::string("CONFIG: ") + key + ": missing"});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(MoeLayerMissingKey, Errors,
                         testing::ValuesIn(MissingKeys()),
                         testing::PrintToStringParamName());

constexpr char kMalformedEntry[] =
    "ROUTER: malformed header entry: needs dtype, shape and two data_offsets";
const Case kTensorCases[] = {
    {"NoTensorFile", Remove(kModel),
     "$: no *.safetensors file and no model.safetensors.index.json"},
    {"TensorFileIsAFolder", MakeFolder(kModel),
     "MODEL: cannot open: not a regular file"},
    {"TensorFileIsAPipe", MakePipe(kModel),
     "MODEL: cannot open: not a regular file"},
    {"ShapeDeep", SetShapeText(Nested(150000)),
     "MODEL: malformed header: DEEP"},
    {"NanInF32", SetElement(kModel, kRouter, 73, {"\0\0\xC0\x7F", 4}),
     "ROUTER: nan at [1, 1], but weights have to be finite"},
    {"InfinityInF32",
     SetElement(kModel, "model.layers.0.post_attention_layernorm.weight", 71,
                {"\0\0\x80\xFF", 4}),
     "MODEL: tensor 'model.layers.0.post_attention_layernorm.weight': -inf at "
     "[71], but weights have to be finite"},
    {"NanInF16",
     SetElement(kModel, "model.layers.0.mlp.shared_expert.down_proj.weight", 0,
                {"\0\x7E", 2}),
     "MODEL: tensor 'model.layers.0.mlp.shared_expert.down_proj.weight': nan "
     "at [0, 0], but weights have to be finite"},
    {"Empty", Write(kModel, ""),
     "MODEL: truncated: 0 bytes, too short for a safetensors header"},
    {"SevenBytes", Write(kModel, "1234567"),
     "MODEL: truncated: 7 bytes, too short for a safetensors header"},
    {"TruncatedHeader", Write(kModel, Safetensors("{}", "", 3)),
     "MODEL: truncated: a header of 3 bytes, but only 2 are left in the file"},
    {"TruncatedInsideHeader", Cut(kModel, 1000),
     "MODEL: truncated: a header of #H bytes, but only 992 are left in the "
     "file"},
    {"HeaderTooLong", Write(kModel, Safetensors("{}", "", 100000001)),
     "MODEL: not a safetensors file: a header of 100000001 bytes"},
    {"HeaderLength64Bits", Write(kModel, Safetensors("{}", "", ~uint64_t{0})),
     "MODEL: not a safetensors file: a header of 18446744073709551615 bytes"},
    {"HeaderMalformed", Write(kModel, Safetensors("{\"a\"", "")),
     "MODEL: malformed header: PARSE line 1, column 5: syntax error while "
     "parsing object separator - unexpected end of input; expected ':'"},
    {"HeaderEmpty", Write(kModel, Safetensors("", "")),
     "MODEL: malformed header: PARSE line 1, column 1: syntax error while "
     "parsing value - unexpected end of input; expected '[', '{', or a "
     "literal"},
    {"HeaderNoObject", Write(kModel, Safetensors("[]", "")),
     "MODEL: malformed header: not a JSON object"},
    {"TruncatedData", Cut(kModel, -1),
     "MODEL: tensor 'model.layers.1.mlp.shared_expert_gate.weight': truncated "
     "file: the tensor ends at byte #D of the data, which has #E"},
    {"EntryNoObject", EditHeader([](json& h) { h[kRouter] = 5; }),
     kMalformedEntry},
    {"DtypeNoText", SetRouter("dtype", 32), kMalformedEntry},
    {"ShapeMissing", EditHeader([](json& h) { h[kRouter].erase("shape"); }),
     kMalformedEntry},
    {"ShapeNegative", SetRouter("shape", {-12, 72}), kMalformedEntry},
    {"ThreeOffsets", SetRouter("data_offsets", {0, 1, 2}), kMalformedEntry},
    {"OffsetsBackwards", SetRouter("data_offsets", {8, 4}),
     "ROUTER: data_offsets [8, 4] run backwards"},
    {"OffsetsPast64Bits", SetRouter("data_offsets", {0, ~uint64_t{0}}),
     "ROUTER: truncated file: the tensor ends at byte 18446744073709551615 of "
     "the data, which has #D"},
    {"ShapeLargerThanData", SetRouter("shape", {13, 72}),
     "ROUTER: F32 [13, 72] does not fill its 3456 bytes"},
    // This number of 4-byte floats takes 2^64 + 3456 bytes. Modulo 2^64, this
    // is the tensor's size of 3456 bytes.
    {"ShapeOverflows", SetRouter("shape", {(uint64_t{1} << 62) + 864}),
     "ROUTER: F32 [4611686018427388768] does not fill its 3456 bytes"},
    {"TensorsOverlap", EditHeader([](json& h) { h["again"] = h[kRouter]; }),
     "ROUTER: starts at byte 0 of the data, but what precedes it ends at 3456"},
    {"DataOfNoTensor",
     [](const TempFolder& folder) {
       folder.EditTensors(kModel,
                          [](json&, std::string& data) { data += "12345"; });
     },
     "MODEL: 5 bytes of data belong to no tensor"},
    {"TensorMissing", EditHeader([](json& h) {
       h["renamed"] = h[kRouter];
       h.erase(kRouter);
     }),
     "ROUTER: missing"},
    {"ShapeTransposed", SetRouter("shape", {72, 12}),
     "ROUTER: shape [72, 12], but CONFIG makes it [12, 72]"},
    {"ConfigHidden", Set("hidden_size", 73),
     "MODEL: tensor 'model.layers.0.post_attention_layernorm.weight': shape "
     "[72], but CONFIG makes it [73]"},
    {"ConfigExperts", Set("num_experts", 2000000000),
     "ROUTER: shape [12, 72], but CONFIG makes it [2000000000, 72]"},
    {"ConfigIntermediate", Set("moe_intermediate_size", 41),
     "MODEL: tensor 'model.layers.0.mlp.experts.0.gate_proj.weight': shape "
     "[40, 72], but CONFIG makes it [41, 72]"},
    {"ConfigShared", Set("shared_expert_intermediate_size", 57),
     "MODEL: tensor 'model.layers.0.mlp.shared_expert.gate_proj.weight': shape "
     "[56, 72], but CONFIG makes it [57, 72]"},
    {"DtypeInteger", SetRouter("dtype", "I32"),
     "ROUTER: dtype I32 is not supported; there are BF16, F16, F32"},
    {"DtypeNew", SetRouter("dtype", "F6_E9"),
     "ROUTER: dtype F6_E9 is not supported; there are BF16, F16, F32"},
    {"TensorInTwoFiles",
     [](const TempFolder& folder) {
       std::filesystem::rename(folder.File(kModel),
                               folder.File("a.safetensors"));
       WriteFile(folder.File("b.safetensors"),
                 Safetensors("{\"model.norm.weight\":{\"dtype\":\"F32\","
                             "\"shape\":[1],\"data_offsets\":[0,4]}}",
                             "1234"));
     },
     "$/b.safetensors: tensor 'model.norm.weight': also in a.safetensors"},
};
INSTANTIATE_TEST_SUITE_P(MoeLayerTensors, Errors,
                         testing::ValuesIn(kTensorCases),
                         testing::PrintToStringParamName());

std::vector<Case> IndexCases() {
  std::vector<Case> cases = {
      {"Malformed", Write(kIndex, "{"),
       "INDEX: malformed JSON: PARSE line 1, column 2: syntax error while "
       "parsing object key - unexpected end of input; expected string literal"},
      {"IsAPipe", MakePipe(kIndex), "INDEX: cannot open: not a regular file"},
      {"ShardIsAPipe", MakePipe("model-00002-of-00002.safetensors"),
       "$/model-00002-of-00002.safetensors: cannot open: not a regular file"},
      {"Deep", SetText(kIndex, "metadata", Nested(150000)),
       "INDEX: malformed JSON: DEEP"},
      {"InfinityInBf16",
       SetElement("model-00001-of-00002.safetensors",
                  "model.layers.1.mlp.experts.0.up_proj.weight", 40 * 72 - 1,
                  {"\x80\x7F", 2}),
       "$/model-00001-of-00002.safetensors: tensor "
       "'model.layers.1.mlp.experts.0.up_proj.weight': inf at [39, 71], but "
       "weights have to be finite"},
      {"NoWeightMap", EditIndex([](json& i) { i.erase("weight_map"); }),
       "INDEX: malformed index: no weight_map"},
      {"NotAFileName", EditIndex([](json& i) {
         i["weight_map"] = {{"a", "../model.safetensors"}};
       }),
       "INDEX: tensor 'a': expected a file name, found "
       "\"../model.safetensors\""},
      {"NameWithNewline", EditIndex([](json& index) {
         index["weight_map"] = {{"a\nb", 1}};
       }),
       "INDEX: tensor 'a\\nb': expected a file name, found 1"},
      {"NotText", EditIndex([](json& i) {
         i["weight_map"] = {{"a", 1}};
       }),
       "INDEX: tensor 'a': expected a file name, found 1"},
      {"TensorMissing", EditIndex([](json& i) {
         i["weight_map"].erase("model.layers.1.mlp.gate.weight");
       }),
       "INDEX: tensor 'model.layers.1.mlp.gate.weight': missing"},
      {"TensorElsewhere", EditIndex([](json& i) {
         i["weight_map"]["model.layers.1.mlp.gate.weight"] =
             "model-00002-of-00002.safetensors";
       }),
       "$/model-00002-of-00002.safetensors: tensor "
       "'model.layers.1.mlp.gate.weight': missing, though INDEX places it "
       "there"},
      {"ShardMissing", Remove("model-00002-of-00002.safetensors"),
       "$/model-00002-of-00002.safetensors: cannot open: No such file or "
       "directory"},
      {"ShardTruncated", Cut("model-00001-of-00002.safetensors", 100),
       "$/model-00001-of-00002.safetensors: truncated: a header of #H bytes, "
       "but only 92 are left in the file"},
  };
  for (Case& c : cases) c.family = "qwen3_moe";
  return cases;
}
INSTANTIATE_TEST_SUITE_P(MoeLayerIndex, Errors, testing::ValuesIn(IndexCases()),
                         testing::PrintToStringParamName());

// A terminal would obey raw bytes. U+009B, for example, starts a command,
// like ESC [.
TEST(MoeLayerErrors, RawBytesAreEscaped) {
  const TempFolder folder;
  folder.CopyFrom("qwen2_moe");
  const auto refused = [&](const std::string& part) {
    const Outcome outcome = RunProgram("'" + folder.path() + "'");
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    for (const char c : outcome.err.substr(0, outcome.err.size() - 1)) {
      EXPECT_TRUE(c >= ' ' && c < 0x7F) << outcome.err;
    }
  };
  Set("model_type", "\u009b31m\n")(folder);
  refused("model_type: \"\\u009b31m\\n\" is not supported");
  Set("model_type", "qwen2_moe")(folder);
  EditHeader([](json& header) { header["\u009b31m\x1b\u202e"] = 3; })(folder);
  refused("tensor '\\u009b31m\\x1b\\u202e': malformed header entry");
  Write(kConfig,
        "\x9b"
        "31m\x1b[31m")(folder);
  refused("last read: '\\x9b'");
}

TEST(MoeLayerErrors, LongTextIsCut) {
  const TempFolder folder;
  folder.CopyFrom("qwen2_moe");
  Set("model_type", std::string(100000, 'x'))(folder);
  const Outcome outcome = RunProgram(folder.path());
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_LT(outcome.err.size(), 700u);
  EXPECT_EQ(outcome.err.substr(outcome.err.size() - 6), "x ...\n");
}

}  // namespace
}  // namespace moe_layer::testing_support
