// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/options.h"

#include <benchmark/benchmark.h>

#include <iostream>
#include <regex>
#include <streambuf>
#include <utility>

#include "programs/arguments.h"
#include "programs/program.h"

namespace switchyard::bench {
namespace {

using program::InputError;

constexpr char kFilter[] = "--benchmark_filter";

// CLI::Range lets NaN through, which no comparison holds for.
std::string CheckSeconds(const std::string& text) {
  double seconds = 0.0;
  if (CLI::detail::lexical_cast(text, seconds) && seconds > 0.0 &&
      seconds <= 86400.0) {
    return "";
  }
  return "Value " + text + " not above 0, up to 86400";
}

// Google Benchmark goes on without one that it cannot compile.
std::string CheckRegex(const std::string& text) {
  try {
    (void)std::regex(text, std::regex::extended);
    return "";
  } catch (const std::regex_error& error) {
    return "Value " + text + " is no regular expression: " + error.what();
  }
}

// Google Benchmark's messages, line by line, without two that mislead. Debian's
// package is "built as DEBUG", for its assertions, but the samples are taken by
// testing/rounds.cc: there is nothing of Google's in what is timed. And that no
// benchmark matches is said by RunBenchmarks.
class Messages : public std::streambuf {
 public:
  explicit Messages(std::ostream& out) : out_(out) {}
  ~Messages() override { Emit(); }

 protected:
  int overflow(int c) override {
    if (c == traits_type::eof()) return 0;
    line_ += static_cast<char>(c);
    if (c == '\n') Emit();
    return c;
  }
  int sync() override {
    out_.flush();
    return 0;
  }

 private:
  void Emit() {
    if (line_.find("Library was built as DEBUG") == std::string::npos &&
        line_.find("Failed to match any benchmarks") == std::string::npos) {
      out_ << line_;
    }
    line_.clear();
  }

  std::ostream& out_;
  std::string line_;
};

// The ones of Google Benchmark's options that mean something here: a shape is
// one of its iterations, so that times and repetitions are --seconds' and
// --rounds'.
void AddGoogleOptions(CLI::App& app, Options& options, std::string& out) {
  constexpr char kGroup[] = "Google Benchmark";
  app.add_option(kFilter, options.filter, "Only kernel/shape that match this")
      ->check(CLI::Validator(CheckRegex, ""))
      ->type_name("REGEX")
      ->group(kGroup);
  app.add_flag("--benchmark_list_tests", options.list,
               "Only list what would run")
      ->group(kGroup);
  app.add_option("--benchmark_out", out, "File to write its report to")
      ->type_name("FILE")
      ->group(kGroup);
  const auto add = [&](const std::string& name,
                       const std::vector<std::string>& choices,
                       const char* what) {
    app.add_option_function<std::string>(
           name,
           [&options, name](const std::string& value) {
             options.google.push_back(name + "=" + value);
           },
           what)
        ->check(CLI::IsMember(choices))
        ->type_name("")
        ->group(kGroup);
  };
  add("--benchmark_out_format", {"json", "console", "csv"},
      "In this format (default: json)");
  add("--benchmark_format", {"console", "json", "csv"},
      "Print in this format (default: console)");
  add("--benchmark_color", {"auto", "true", "false"},
      "Colours on the terminal (default: auto)");
}

}  // namespace

std::optional<Options> ParseOptions(int argc, const char* const* argv) {
  Options options;
  std::string out;
  CLI::App app("Times every kernel on every ISA against its rivals.",
               "switchyard_bench");
  app.add_option("--rounds", options.effort.rounds, "Rounds at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  app.add_option("--seconds", options.effort.seconds,
                 "Seconds per shape, but at least five rounds")
      ->capture_default_str()
      ->check(CLI::Validator(CheckSeconds, ""))
      ->type_name("S");
  app.add_option("--json", options.json, "File to write all figures to")
      ->type_name("FILE");
  app.add_option("--markdown", options.markdown, "File to write the tables to")
      ->type_name("FILE");
  AddGoogleOptions(app, options, out);
  if (!program::Parse(app, argc, argv)) return std::nullopt;
  const std::pair<const char*, std::string> files[] = {
      {"--json", options.json},
      {"--markdown", options.markdown},
      {"--benchmark_out", out}};
  for (const auto& [option, path] : files) {
    if (!path.empty()) program::RequireWritable(option, path);
  }
  if (!out.empty()) options.google.push_back("--benchmark_out=" + out);
  if (options.list) options.google.push_back("--benchmark_list_tests=true");
  return options;
}

void RunBenchmarks(const Options& options) {
  std::vector<std::string> arguments = {"switchyard_bench"};
  arguments.insert(arguments.end(), options.google.begin(),
                   options.google.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.size());
  benchmark::Initialize(&argc, argv.data());

  Messages messages(std::cerr);
  std::ostream errors(&messages);
  benchmark::BenchmarkReporter* const reporter =
      benchmark::CreateDefaultDisplayReporter();
  reporter->SetErrorStream(&errors);
  const size_t ran = benchmark::RunSpecifiedBenchmarks(
      reporter, options.filter.empty() ? "all" : options.filter);
  if (ran == 0) {
    throw InputError(std::string(kFilter) + " " + options.filter +
                     ": matches none; --benchmark_list_tests has the names");
  }
}

}  // namespace switchyard::bench
