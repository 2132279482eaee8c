// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The command line, and the run of Google Benchmark that it asks for.

#ifndef SWITCHYARD_BENCH_OPTIONS_H_
#define SWITCHYARD_BENCH_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "testing/rounds.h"

namespace switchyard::bench {

struct Options {
  testing_support::Effort effort;
  std::string json, markdown;  // files; empty: none
  std::string filter;          // empty: everything
  bool list = false;           // only names
  std::vector<std::string>
      google;  // arguments, as Google Benchmark spells them
};

// Nullopt if only help was asked for, which is then printed. Throws
// program::InputError, before the minutes that a run takes.
std::optional<Options> ParseOptions(int argc, const char* const* argv);

// Runs what has been registered, as far as the filter lets it. Throws
// program::InputError if that is nothing.
void RunBenchmarks(const Options& options);

}  // namespace switchyard::bench

#endif  // SWITCHYARD_BENCH_OPTIONS_H_
