// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_REPORT_H_
#define SWITCHYARD_PROGRAMS_MOE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layer_weights.h"
#include "moe_block.h"
#include "reference_check.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace moe_layer {

// Prints the report to stdout, in 80 columns, and makes the text of --json.

void PrintLayer(const LayerWeights& weights, size_t tokens, size_t threads);

// The times of all runs.
struct Timing {
  StageProfile median;
  double fastest, slowest;  // seconds
  size_t runs;
  double read_bandwidth;  // the highest measured bandwidth, in bytes per second
  // With --compare: the seconds of MoeBlock and of the plain loops in each
  // round, and the median of the plain loops.
  std::vector<double> rounds = {}, plain_rounds = {};
  std::optional<double> plain_loops = {};

  // Returns the time of a plain read of the weights' bytes, divided by the time
  // of the median run. It can be above 1 if the run finds weights in a cache.
  double WeightReadShare() const;
};
// Summarises the runs. `read_bandwidths` has the read bandwidth that was
// measured before each run.
Timing TimingOf(std::vector<StageProfile> runs,
                const std::vector<double>& read_bandwidths);

// The names of the kernels that the GEMMs ran.
struct GemmKernels {
  std::string router, gate_up, down;
};
GemmKernels KernelsOf(const LayerWeights& layer);

void PrintTimes(const Timing& timing, const GemmKernels& kernels,
                size_t tokens);

// Returns the result of --compare as a line or two: the plain loops' median
// time divided by MoeBlock's median time, and the range of the middle half of
// the rounds' ratios. If this range is wider than the ratio's distance from 1,
// the text says that no difference is shown.
std::string PlainLoopsText(const Timing& timing);

// Returns a line about the distribution of pairs (a token and one of its
// experts) over the experts. load[e] is the number of expert e's pairs.
std::string LoadText(switchyard::Span<const int32_t> load);

// Prints the results of CheckAgainstDouble(). `rows` is the type to which
// results are rounded.
void PrintCheck(const CheckReport& report, switchyard::Type rows);

// The facts that ReportJson() writes, in addition to facts about the machine.
struct Report {
  const LayerWeights& weights;
  size_t tokens, threads;
  const Timing& timing;
  switchyard::Span<const int32_t> tokens_per_expert;
  const CheckReport& check;
};
// Returns the report as JSON, with the names that --help lists.
std::string ReportJson(const Report& report);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_REPORT_H_
