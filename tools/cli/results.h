// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_RESULTS_H_
#define SWITCHYARD_TOOLS_CLI_RESULTS_H_

#include <string>
#include <vector>

namespace swy {

struct Benchmark {
  std::string name;           // without what only says how it was timed
  std::vector<double> times;  // nanoseconds per call, one per repetition
  double units = 0.0;         // per call; 0: the file does not say
  std::string failure;        // why there is no time
};

// A file of any program that is built on Google Benchmark, or of swy.
struct Results {
  std::string path;
  std::string date, cpu;  // empty: the file does not say
  std::vector<Benchmark> benchmarks;
};

enum class Clock { kReal, kCpu };

// Throws InputError, one line that names the file and what is wrong.
Results ReadResults(const std::string& path, Clock clock);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_RESULTS_H_
