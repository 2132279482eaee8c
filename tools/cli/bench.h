// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_BENCH_H_
#define SWITCHYARD_TOOLS_CLI_BENCH_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/cli/table.h"

namespace swy {

struct BenchOptions {
  std::vector<std::string> kernels;  // empty: all
  // With none of these the short matrix; else one model, what is missing
  // taken from Qwen3-30B-A3B.
  std::vector<size_t> tokens;
  std::optional<size_t> experts, top_k, hidden, intermediate;
  std::string dtype = "f32";  // of row data
  std::vector<size_t> threads = {1};
  std::vector<std::string> isas;  // empty: all that run here
  double seconds = 0.5;           // per shape
  Format format = Format::kText;
  std::string json;  // empty: none
};
CLI::App* AddBench(CLI::App& app, BenchOptions& options);

// `swy bench`: times kernels on ISAs and threads, after all have been seen to
// compute the released bits.
int Bench(const BenchOptions& options);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_BENCH_H_
