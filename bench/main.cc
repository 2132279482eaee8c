// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// switchyard_bench: the matrix of kernels, ISAs, shapes and rivals, and what is
// asked of it. Google Benchmark's options, --benchmark_filter=REGEX first of
// all, and those below.

#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "bench/asks.h"
#include "bench/contest.h"
#include "bench/report.h"

namespace {

bool Write(const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return true;
  std::fprintf(stderr, "cannot write %s\n", path.c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace switchyard::bench;
  benchmark::Initialize(&argc, argv);
  CLI::App app("Times every kernel against its rivals.");
  std::string json, markdown;
  app.add_option("--rounds", DefaultEffort().rounds, "rounds at most");
  app.add_option("--seconds", DefaultEffort().seconds,
                 "seconds per shape, at least five rounds");
  app.add_option("--json", json, "file to write all figures to");
  app.add_option("--markdown", markdown, "file to write the tables to");
  CLI11_PARSE(app, argc, argv);

  const Machine machine = DescribeMachine();
  for (const Registration& each : Registrations()) each.add();
  benchmark::RunSpecifiedBenchmarks();

  const std::vector<Ask> asks = Asks(Results());
  std::printf("\n");
  size_t measured = 0, met = 0;
  for (const Ask& ask : asks) {
    if (!ask.Measured()) continue;
    ++measured;
    met += ask.Met() ? 1 : 0;
    std::printf("%-8s %8.4g %s %-5g %s\n", ask.Met() ? "met" : "NOT MET",
                ask.figure, ask.at_most ? "<=" : ">=", ask.bound,
                ask.what.c_str());
  }
  std::printf("%zu of %zu asks met, %zu not run\n", met, measured,
              asks.size() - measured);
  for (const std::string& failure : Failures()) {
    std::fprintf(stderr, "FAILED: %s\n", failure.c_str());
  }
  const bool written = Write(json, Json(machine, Results(), asks)) &&
                       Write(markdown, Markdown(machine, Results(), asks));
  return written && Failures().empty() ? 0 : 1;
}
