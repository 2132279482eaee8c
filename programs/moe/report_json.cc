// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <dnnl_version.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "programs/json.h"
#include "programs/machine.h"
#include "report.h"
#include "switchyard/isa.h"

namespace moe_layer {
namespace {

using Json = nlohmann::ordered_json;
using program::Count;

constexpr const char* kStageKeys[kNumStages] = {
    "router_gemm",  "route",     "bucket",
    "gate_up_gemm", "down_gemm", "gather_activate_combine",
    "waiting"};

Json LayerJson(const LayerWeights& weights) {
  const MoeShape& shape = weights.shape;
  return {{"title", weights.title},
          {"dtype", weights.dtype.name},
          {"experts", shape.num_experts},
          {"top_k", shape.top_k},
          {"renormalize", shape.route.renormalize},
          {"hidden", shape.hidden},
          {"intermediate", shape.intermediate},
          {"shared_intermediate", shape.shared_intermediate},
          {"weight_bytes", Count(weights.Bytes())}};
}

Json StagesJson(const StageProfile& profile, const GemmKernels& kernels) {
  const std::pair<Stage, const std::string&> gemms[] = {
      {Stage::kRouterGemm, kernels.router},
      {Stage::kGateUpGemm, kernels.gate_up},
      {Stage::kDownGemm, kernels.down}};
  Json stages = Json::array();
  for (size_t i = 0; i < kNumStages; ++i) {
    const StageCost& cost = profile.stages[i];
    stages.push_back({{"stage", kStageKeys[i]},
                      {"seconds", cost.seconds},
                      {"bytes", Count(cost.bytes)},
                      {"flops", Count(cost.flops)}});
  }
  for (const auto& [stage, kernel] : gemms) {
    stages[static_cast<size_t>(stage)]["kernel"] = kernel;
  }
  return stages;
}

// Writes an infinite error as null, because JSON has no infinity.
Json DifferencesJson(const std::vector<Difference>& differences) {
  Json all = Json::array();
  for (const Difference& difference : differences) {
    all.push_back({{"what", difference.what},
                   {"largest_error", difference.largest},
                   {"bound_there", difference.bound},
                   {"error_over_bound", difference.closest},
                   {"holds", difference.Holds()}});
  }
  return all;
}

}  // namespace

std::string ReportJson(const Report& report) {
  const Timing& timing = report.timing;
  const double total = timing.median.TotalSeconds();
  const auto& load = report.tokens_per_expert;
  Json json;
  json["context"] = program::Context("moe_layer");
  json["context"]["onednn"] = std::to_string(DNNL_VERSION_MAJOR) + "." +
                              std::to_string(DNNL_VERSION_MINOR) + "." +
                              std::to_string(DNNL_VERSION_PATCH);
  json["isa"] = switchyard::LastIsa()->name;
  json["threads"] = report.threads;
  json["peak_memory_bytes"] = program::PeakMemory();
  json["layer"] = LayerJson(report.weights);
  json["tokens"] = report.tokens;
  json["runs"] = timing.runs;
  json["seconds"] = total;
  json["fastest_seconds"] = timing.fastest;
  json["slowest_seconds"] = timing.slowest;
  json["between_gemms_seconds"] = timing.median.BetweenGemmsSeconds();
  json["weight_bytes_read"] = Count(timing.median.weight_bytes);
  json["read_bandwidth"] = timing.read_bandwidth;
  json["weight_read_share"] = timing.WeightReadShare();
  json["stages"] = StagesJson(timing.median, KernelsOf(report.weights));
  json["tokens_per_expert"] =
      std::vector<int32_t>(load.data, load.data + load.size);
  json["check"] = {{"tokens", report.check.tokens},
                   {"steps", DifferencesJson(report.check.steps)},
                   {"block", DifferencesJson(report.check.block)},
                   {"failure", report.check.failure}};
  if (timing.plain_loops.has_value()) {
    json["plain_loops_seconds"] = *timing.plain_loops;
    json["round_seconds"] = timing.rounds;
    json["plain_loops_round_seconds"] = timing.plain_rounds;
  }
  return json.dump(1) + "\n";
}

}  // namespace moe_layer
