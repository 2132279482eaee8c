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

// The report on stdout, which fits 80 columns, and the text of --json.

void PrintLayer(const LayerWeights& weights, size_t tokens, size_t threads);

// The run with the median time, and what the others took.
struct Timing {
  StageProfile median;
  double fastest, slowest;  // seconds
  size_t runs;
  double read_bandwidth;  // the best, in bytes per second
  // --compare: the seconds of each round, ours and plain loops', and the
  // latter's median.
  std::vector<double> rounds = {}, plain_rounds = {};
  std::optional<double> plain_loops = {};

  // The time of a plain read of the weights' bytes, over the median run's:
  // above 1 where the run finds them in a cache.
  double WeightReadShare() const;
};
// `read_bandwidths`: measured beside each run.
Timing TimingOf(std::vector<StageProfile> runs,
                const std::vector<double>& read_bandwidths);

// oneDNN's kernels, "router: what runs, experts: what runs".
struct GemmKernels {
  std::string router, gate_up, down;
};
GemmKernels KernelsOf(const LayerWeights& layer);

// Row by row.
void PrintTimes(const Timing& timing, const GemmKernels& kernels,
                size_t tokens);

// The result of --compare: the plain loops' median over ours, between which
// values half of the rounds' own ratios lie, and, if these lie further apart
// than the ratio lies from 1, that no difference is shown. A line or two.
std::string PlainLoopsText(const Timing& timing);

// How pairs are spread over the experts, a line.
std::string LoadText(switchyard::Span<const int32_t> load);

// `rows`: the type that results are rounded to.
void PrintCheck(const CheckReport& report, switchyard::Type rows);

// The facts of ReportJson(), besides the machine.
struct Report {
  const LayerWeights& weights;
  size_t tokens, threads;
  const Timing& timing;
  switchyard::Span<const int32_t> tokens_per_expert;
  const CheckReport& check;
};
// The names in it are those that --help lists.
std::string ReportJson(const Report& report);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_REPORT_H_
