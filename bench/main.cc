// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// switchyard_bench: times every kernel, ISA and shape, and their rivals. It is
// a Google Benchmark program and takes Google Benchmark's options. Exit codes:
// 0 for success; 1 if a result is wrong; 2 for wrong input.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/ggml.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "programs/machine.h"
#include "programs/program.h"

namespace switchyard::bench {
namespace {

using program::InputError;

// The default options. Each round has a new random order. A sample takes 0.2
// ms: long compared with the clock's half a microsecond, but so short that most
// samples end before the system gives the core to another program. The median
// leaves out the samples that were interrupted.
constexpr const char* kDefaults[] = {
    "--benchmark_min_time=0.0002", "--benchmark_repetitions=25",
    "--benchmark_enable_random_interleaving=true"};

// Adds facts to Google Benchmark's description of the machine.
void AddContext() {
  const nlohmann::ordered_json context = program::Context("");
  for (const char* key :
       {"cpu_model", "data_caches", "isas", "compiler", "highway", "tbb"}) {
    benchmark::AddCustomContext(key, context.at(key).get<std::string>());
  }
  benchmark::AddCustomContext("onednn", onednn::Version());
  benchmark::AddCustomContext("ggml", ggml::Version());
}

// Returns the value of `option` if `argument` sets it.
std::optional<std::string> ValueOf(const char* option,
                                   const std::string& argument) {
  const std::string start = option + std::string("=");
  if (argument.rfind(start, 0) != 0) return std::nullopt;
  return argument.substr(start.size());
}

// Throws InputError for arguments that Google Benchmark would ignore, or for
// which it would exit with its own exit code.
void RequireValid(const std::string& argument) {
  for (const char* option : {"--benchmark_format", "--benchmark_out_format"}) {
    const auto format = ValueOf(option, argument);
    if (format && *format != "console" && *format != "json" &&
        *format != "csv") {
      throw InputError(argument + ": not console, json or csv");
    }
  }
  for (const char* option : {"--benchmark_min_time", "--benchmark_repetitions",
                             "--benchmark_min_warmup_time"}) {
    const auto text = ValueOf(option, argument);
    const double value = text ? std::atof(text->c_str()) : 1.0;
    if (!(value > 0.0 && value <= 1e6)) {
      throw InputError(argument + ": not above 0, up to 1000000");
    }
  }
  if (const auto out = ValueOf("--benchmark_out", argument)) {
    if (out->empty()) throw InputError("--benchmark_out: empty");
    program::RequireWritable("--benchmark_out", *out);
  }
}

// Redirects std::cerr to a string as long as the object exists.
class Messages {
 public:
  Messages() : before_(std::cerr.rdbuf(text_.rdbuf())) {}
  ~Messages() { std::cerr.rdbuf(before_); }
  std::string FirstLine() {
    std::string line;
    std::getline(text_, line);
    return line;
  }

 private:
  std::stringstream text_;
  std::streambuf* before_;
};

void Initialize(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::begin(kDefaults),
                   std::end(kDefaults));
  arguments.insert(arguments.begin(), "switchyard_bench");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  Messages messages;
  benchmark::Initialize(&argc, argv.data());
  // Sets the name again, because Google Benchmark keeps a pointer into
  // `arguments`, and writes the name after `arguments` has been destroyed.
  benchmark::BenchmarkReporter::Context::executable_name = "switchyard_bench";
  if (argc == 1) return;
  const std::string why = messages.FirstLine();
  throw InputError(why.empty() ? std::string(argv[1]) +
                                     ": no such option; --help lists them"
                               : why);
}

// Requires that the filter matches a benchmark. Otherwise Google Benchmark
// would empty the output file before it reports that no name matches.
void RequireMatch(std::string filter) {
  const std::string why =
      "Failed to match any benchmarks against regex: " + filter;
  const bool negated = !filter.empty() && filter[0] == '-';
  if (negated) filter.erase(0, 1);
  try {
    const std::regex regex(filter, std::regex::extended);
    for (const std::string& name : Names()) {
      // Google Benchmark matches names with the suffixes that it adds.
      for (const char* suffix :
           {"", "/real_time", "/iterations:1/manual_time"}) {
        if (std::regex_search(name + suffix, regex) != negated) return;
      }
    }
  } catch (const std::regex_error& error) {
    throw InputError("--benchmark_filter " + filter + ": " + error.what());
  }
  throw InputError(why);
}

// Returns a benchmark's name without the suffix that Google Benchmark adds for
// counts and the clock.
std::string WithoutSuffix(const std::string& name) {
  return name.substr(0, name.find("/iterations:"));
}

// Prints one line per contender. Each line fits in a terminal.
class Lines : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override {
    std::printf("%-66s %12s\n", "median of a call", "ns");
    return true;
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<double> ns;
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) return;
      if (!run.error_occurred) ns.push_back(run.GetAdjustedRealTime());
    }
    const std::string name = WithoutSuffix(runs.front().benchmark_name());
    if (ns.empty()) {
      std::printf("%-66s %12s\n", name.c_str(), "WRONG");
      return;
    }
    const auto middle = ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2);
    std::nth_element(ns.begin(), middle, ns.end());
    std::printf("%-66s %12.1f\n", name.c_str(), *middle);
  }
};

// Writes Google Benchmark's file, and records whether this failed.
class JsonFile : public benchmark::JSONReporter {
 public:
  void Finalize() override {
    JSONReporter::Finalize();
    lost = !GetOutputStream().flush();
  }
  bool lost = false;
};

constexpr char kHelp[] =
    "Times every kernel, ISA and shape, and other code for the same work. The\n"
    "name of a benchmark is kernel/shape/contender. The options are those of\n"
    "Google Benchmark, listed below, and\n"
    "  --shape=experts=N,top_k=N,hidden=N,intermediate=N,tokens=N\n"
    "which times only the kernels of this layer, and may be given several\n"
    "times. Numbers that are left out are those of Qwen3-30B-A3B, with 512\n"
    "tokens. Options that are left out are:";

int Run(const std::vector<std::string>& arguments) {
  std::string out, filter;
  std::vector<LayerShape> shapes;
  std::vector<std::string> google;  // the arguments of Google Benchmark
  bool lines = true, json = true, list = false;
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      std::printf("%s\n", kHelp);
      for (const char* option : kDefaults) std::printf("  %s\n", option);
      benchmark::PrintDefaultHelp();
      return 0;
    }
    if (const auto shape = ValueOf("--shape", argument)) {
      shapes.push_back(ParseShape(*shape));
      continue;
    }
    google.push_back(argument);
    RequireValid(argument);
    out = ValueOf("--benchmark_out", argument).value_or(out);
    filter = ValueOf("--benchmark_filter", argument).value_or(filter);
    const auto lists = ValueOf("--benchmark_list_tests", argument);
    if (lists || argument == "--benchmark_list_tests") list = true;
    if (ValueOf("--benchmark_format", argument)) lines = false;
    const auto format = ValueOf("--benchmark_out_format", argument);
    if (format) json = *format == "json";
  }
  Initialize(google);
  program::RequireEnvironmentIsa();
  AddContext();
  RegisterAll(shapes);
  std::set<std::string> names;
  for (const std::string& name : Names()) {
    if (!names.insert(name).second) throw InputError("--shape: twice " + name);
  }
  if (!out.empty()) {
    if (list) throw InputError("--benchmark_list_tests: no --benchmark_out");
    if (filter != "all") RequireMatch(filter);
  }

  Lines reporter;
  JsonFile file;
  std::stringstream errors;
  reporter.SetErrorStream(&errors);
  const size_t ran = benchmark::RunSpecifiedBenchmarks(
      lines ? &reporter : nullptr, !out.empty() && json ? &file : nullptr);
  if (ran == 0) {
    std::string why;
    std::getline(errors, why);
    throw InputError(why.empty() ? "nothing to run" : why);
  }
  if (file.lost) throw InputError("--benchmark_out " + out + ": not written");
  for (const std::string& failure : Failures()) {
    std::fprintf(stderr, "FAILED: %s\n", failure.c_str());
  }
  return Failures().empty() ? 0 : 1;
}

}  // namespace
}  // namespace switchyard::bench

int main(int argc, char** argv) {
  return program::RunMain("switchyard_bench", 1, [=] {
    return switchyard::bench::Run({argv + 1, argv + argc});
  });
}
