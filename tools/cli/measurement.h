// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_MEASUREMENT_H_
#define SWITCHYARD_TOOLS_CLI_MEASUREMENT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tools/cli/shapes.h"
#include "tools/cli/table.h"

namespace swy {

// A part of a run, with the median of its rounds.
struct Repetition {
  double nanoseconds;      // per call
  double cpu_nanoseconds;  // of all threads
  size_t calls;
};
// A contender, an ISA on so many threads, at a shape.
struct Measurement {
  std::string contender;  // "AVX2", "AVX2:2"
  size_t threads;
  std::vector<Repetition> repetitions;
};
struct Measured {
  Shape shape;
  std::vector<Measurement> measurements;
};

// For a terminal, a head and what follows for each shape.
std::string TextHead();
std::string Text(const Measured& measured);
// Of all shapes: Markdown or CSV.
std::string Table(Format format, const std::vector<Measured>& all);
// As Google Benchmark writes it, an entry per repetition.
std::string Json(const std::vector<Measured>& all);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_MEASUREMENT_H_
