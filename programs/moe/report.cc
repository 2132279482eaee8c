// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>

#include "programs/machine.h"
#include "programs/program.h"

namespace moe_layer {
namespace {

using program::BytesText;
using program::Plural;

constexpr const char* kStageNames[kNumStages] = {
    "router GEMM",        "route",     "bucket",
    "gate and up GEMMs",  "down GEMM", "gather, activate, combine",
    "threads out of work"};

// A line as wide as the tables.
const std::string kRule(71, '-');

void PrintCost(const char* name, const StageCost& cost, double total) {
  std::printf("%-28s %10.3f %8.2f %%", name, cost.seconds * 1e3,
              cost.seconds / total * 100);
  if (cost.bytes > 0) std::printf(" %8.1f", cost.bytes / cost.seconds * 1e-9);
  if (cost.flops > 0) std::printf(" %10.1f", cost.flops / cost.seconds * 1e-9);
  std::printf("\n");
}

// Describes the form of the weights that the GEMMs read.
std::string FormText(const LayerWeights& weights) {
  const Gemm& gemm = *weights.expert_gemms.down;
  if (!gemm.TakesPlain()) return "packed for the GEMMs";
  if (weights.dtype.operands == gemm.operands()) return "as stored";
  return std::string("in f32: oneDNN has no ") + weights.dtype.name + " here";
}

std::string Joined(const std::vector<const Gemm*>& gemms) {
  std::set<std::string> names;
  for (const Gemm* gemm : gemms) {
    if (gemm == nullptr) continue;
    for (const std::string& name : gemm->Kernels()) names.insert(name);
  }
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

void PrintLayer(const LayerWeights& weights, size_t tokens, size_t threads) {
  const MoeShape& shape = weights.shape;
  std::printf("layer    %s\n", weights.title.c_str());
  std::printf("dtype    %s, %s of weights %s\n", weights.dtype.name,
              BytesText(weights.Bytes()).c_str(), FormText(weights).c_str());
  std::printf("experts  %zu, top %zu%s, hidden %zu, intermediate %zu\n",
              shape.num_experts, shape.top_k,
              shape.route.renormalize ? " renormalised" : "", shape.hidden,
              shape.intermediate);
  if (shape.shared_intermediate != 0) {
    std::printf("shared   one, intermediate %zu%s\n", shape.shared_intermediate,
                shape.HasSharedLogit() ? ", sigmoid gate" : "");
  }
  std::printf("batch    %zu token%s on %zu thread%s\n", tokens, Plural(tokens),
              threads, Plural(threads));
}

double Timing::WeightReadShare() const {
  return median.weight_bytes / read_bandwidth / median.TotalSeconds();
}

GemmKernels KernelsOf(const LayerWeights& layer) {
  return {
      Joined({layer.router_gemm.get()}),
      Joined(
          {layer.expert_gemms.gate_up.get(), layer.shared_gemms.gate_up.get()}),
      Joined({layer.expert_gemms.down.get(), layer.shared_gemms.down.get()})};
}

Timing TimingOf(std::vector<StageProfile> runs,
                const std::vector<double>& read_bandwidths) {
  std::sort(runs.begin(), runs.end(),
            [](const StageProfile& a, const StageProfile& b) {
              return a.TotalSeconds() < b.TotalSeconds();
            });
  return {runs[(runs.size() - 1) / 2], runs.front().TotalSeconds(),
          runs.back().TotalSeconds(), runs.size(),
          *std::max_element(read_bandwidths.begin(), read_bandwidths.end())};
}

void PrintTimes(const Timing& timing, const GemmKernels& kernels,
                size_t tokens) {
  const StageProfile& median = timing.median;
  const double total = median.TotalSeconds();

  std::printf("\n%-28s %10s %10s %8s %10s\n%s\n", "stage", "ms", "share",
              "GB/s", "GFLOP/s", kRule.c_str());
  for (size_t i = 0; i < kNumStages; ++i) {
    PrintCost(kStageNames[i], median.stages[i], total);
  }
  std::printf("%s\n", kRule.c_str());
  PrintCost("total", {total}, total);
  PrintCost("between the GEMMs", {median.BetweenGemmsSeconds()}, total);
  std::printf(
      "\n%.1f tokens/s; the median of %zu runs of %.3f to %.3f ms\n"
      "Between the GEMMs: route, bucket, gather, activate, combine.\n",
      static_cast<double>(tokens) / total, timing.runs, timing.fastest * 1e3,
      timing.slowest * 1e3);
  std::printf("GEMMs by: router %s,\n  gate and up %s,\n  down %s.\n",
              kernels.router.c_str(), kernels.gate_up.c_str(),
              kernels.down.c_str());
  // Prints a ratio of times and not a percentage of the bandwidth, because a
  // run that finds weights in a cache may take less time than the plain read.
  std::printf(
      "They read %s of weights: %.3f ms at the %.1f GB/s of a plain read.\n"
      "The run takes %.3g times as long.\n",
      BytesText(median.weight_bytes).c_str(),
      median.weight_bytes / timing.read_bandwidth * 1e3,
      timing.read_bandwidth * 1e-9, 1 / timing.WeightReadShare());
}

std::string PlainLoopsText(const Timing& timing) {
  std::vector<double> ratios;
  ratios.reserve(timing.rounds.size());
  for (size_t i = 0; i < timing.rounds.size(); ++i) {
    ratios.push_back(timing.plain_rounds[i] / timing.rounds[i]);
  }
  std::sort(ratios.begin(), ratios.end());
  const size_t quarter = (ratios.size() - 1) / 4;
  const double low = ratios[quarter];
  const double high = ratios[ratios.size() - 1 - quarter];
  const double ratio = *timing.plain_loops / timing.median.TotalSeconds();
  char text[240];
  std::snprintf(text, sizeof(text),
                "Plain loops around the same GEMMs: %.3f ms, %.3g times it; "
                "half of the\nrounds lie between %.3g and %.3g.%s\n",
                *timing.plain_loops * 1e3, ratio, low, high,
                high - low > std::fabs(ratio - 1)
                    ? " That is further apart than\nthe ratio is from 1: no "
                      "difference is shown."
                    : "");
  return text;
}

std::string LoadText(switchyard::Span<const int32_t> load) {
  std::vector<int32_t> sorted(load.data, load.data + load.size);
  std::sort(sorted.rbegin(), sorted.rend());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) /
                      static_cast<double>(sorted.size());
  const double median =
      0.5 * sorted[(sorted.size() - 1) / 2] + 0.5 * sorted[sorted.size() / 2];
  char line[120];
  const auto idle = std::count(sorted.begin(), sorted.end(), 0);
  std::snprintf(line, sizeof(line),
                "busiest %d, mean %.4g, median %.4g, least %d; %zu of %zu "
                "experts idle\n",
                sorted.front(), mean, median, sorted.back(),
                static_cast<size_t>(idle), sorted.size());
  return line;
}

void PrintCheck(const CheckReport& report, switchyard::Type rows) {
  std::printf("\n%zu token%s in double precision\n", report.tokens,
              Plural(report.tokens));
  std::printf("%-32s %13s %12s %12s\n%s\n", "", "largest error", "bound there",
              "error/bound", kRule.c_str());
  const auto print = [](const Difference& difference) {
    std::printf("  %-30s %13.1e %12.1e %12.3g\n", difference.what.c_str(),
                difference.largest, difference.bound, difference.closest);
  };
  std::printf("each step, from what it was given\n");
  for (const Difference& difference : report.steps) print(difference);
  std::printf("the whole block\n");
  for (const Difference& difference : report.block) print(difference);
  std::printf(
      "error/bound is the largest share that any element uses of the error "
      "that "
      "it\nmay have. Above 1 the result is wrong.");
  if (rows == switchyard::Type::kBF16) {
    std::printf(
        " Nearly 1 is usual in bf16, because one\nrounding to it may be half a "
        "unit of the last place off, and the bound\nallows little more.");
  }
  std::printf("\n");
}

}  // namespace moe_layer
