// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/plan.h"

#include <cstdio>
#include <map>

#include "programs/arguments.h"
#include "tools/cli/isas.h"

namespace swy {
namespace {

using switchyard::testing_support::Skew;

const std::map<std::string, Skew> kSkews = {
    {"uniform", Skew::kUniform}, {"zipf", Skew::kZipf}, {"hot", Skew::kHot}};

}  // namespace

CLI::App* AddPlan(CLI::App& app, PlanOptions& options) {
  CLI::App* const plan =
      app.add_subcommand("plan", "Simulate how workers or nodes share a layer");
  plan->footer(
      "Compares the plan of layer.h with tiles of whole experts (or of many "
      "rows of\none) and a barrier before the sums. A ratio of 1 is work "
      "shared out evenly.\n"
      "With --nodes, experts and tokens are spread over nodes. Times are those "
      "of the\nbusiest node: two messages to the experts (numbers of rows, "
      "rows), products, and\none message back. Halves are two half-batches; "
      "the messages of one overlap with\nthe products of the other. The "
      "speedup is the time on one node, divided by\nthe shorter time of the "
      "two.");
  options.layer.num_experts = 128;
  options.layer.hidden = 2048;
  options.layer.intermediate = 768;
  const auto count = [plan](const char* name, size_t* value, const char* text,
                            int low = 1) {
    return plan->add_option(name, *value, text)
        ->check(program::Within(low, 1 << 20))
        ->type_name("N")
        ->capture_default_str();
  };
  CLI::Option* const workers =
      plan->add_option("--workers", options.workers,
                       "Numbers of workers, a line each")
          ->check(program::Within(1, 4096))
          ->type_name("N")
          ->capture_default_str();
  count("--tokens", &options.tokens, "Tokens in the batch");
  count("--experts", &options.layer.num_experts, "Experts of the layer");
  count("--top-k", &options.top_k, "Experts per token");
  count("--hidden", &options.layer.hidden, "Columns of a hidden state");
  count("--intermediate", &options.layer.intermediate,
        "Columns between an expert's products");
  count("--shared-intermediate", &options.layer.shared_intermediate,
        "The same for a shared expert; 0: there is none", 0);
  plan->add_option("--skew", options.skew,
                   "Tokens' choice: uniform, zipf, or hot: the first")
      ->check(CLI::IsMember(kSkews).description(""))
      ->type_name("NAME")
      ->capture_default_str();
  const auto time = [plan](const char* name, double* value, const char* text) {
    return plan->add_option(name, *value, text)
        ->check(CLI::Range(0.0, 1e6).description(""))
        ->type_name("US")
        ->capture_default_str();
  };
  time("--row-us", &options.row_us,
       "Time of a row's products; 1/32 of reading weights");
  time("--wake-us", &options.costs.wake, "Time until the last worker starts");
  time("--tile-us", &options.costs.tile, "Time of a tile besides its product");
  time("--claim-us", &options.costs.claim, "Time to claim a task");
  ClusterOptions& cluster = options.cluster;
  CLI::Option* const nodes =
      plan->add_option("--nodes", cluster.nodes,
                       "Numbers of nodes, a line each, instead of workers")
          ->check(program::Within(1, 1024))
          ->type_name("N")
          ->excludes(workers);
  CLI::Option* const of_nodes[] = {
      count("--node-workers", &cluster.workers, "Workers of each node"),
      time("--latency-us", &cluster.latency_us,
           "Time of a message between nodes"),
      plan->add_option("--gb-per-s", cluster.gb_per_s,
                       "Bytes that a node sends in a second, in GB")
          ->check(CLI::Range(1e-6, 1e6).description(""))
          ->type_name("GB")
          ->capture_default_str(),
      count("--row-bytes", &cluster.row_bytes,
            "Bytes of a row to experts; 0: int8 and 8 bytes", 0),
      count("--back-bytes", &cluster.back_bytes,
            "Bytes of a row sent back; 0: bf16", 0),
      plan->add_flag("--once", cluster.sends_tokens_once,
                     "Send a token to a node once, not once per expert")};
  for (CLI::Option* const option : of_nodes) option->needs(nodes);
  return plan;
}

int PrintPlan(const PlanOptions& options) {
  if (options.top_k > options.layer.num_experts) {
    throw program::InputError("--top-k: more than --experts");
  }
  if (options.tokens * options.top_k > size_t{1} << 24) {
    throw program::InputError("--tokens: more than 2^24 (token, expert) pairs");
  }
  const std::vector<int32_t> ids = switchyard::testing_support::SkewedIds(
      options.tokens, options.top_k, options.layer.num_experts,
      kSkews.at(options.skew), 9);
  switchyard::ExpertsPlanOptions layer = options.layer;
  switchyard::testing_support::ScheduleCosts costs = options.costs;
  costs.unit = options.row_us / static_cast<double>(layer.row_cost);
  if (!options.cluster.nodes.empty()) {
    PrintCluster({ids, options.tokens, options.top_k, layer, costs},
                 options.cluster);
    return 0;
  }
  std::printf("%7s %6s %10s %10s %6s %10s %6s\n", "workers", "tasks",
              "ideal us", "plan us", "ratio", "tiles us", "ratio");
  for (const size_t workers : options.workers) {
    layer.workers = workers;
    std::vector<int32_t> memory(
        ExpertsPlanSize(options.tokens, options.top_k, layer));
    switchyard::ExpertsPlan plan;
    Check(PlanExperts({{ids.data(), options.tokens, options.top_k}},
                      {memory, &plan}, layer));
    const auto ours = Simulate(plan, layer, workers, costs);
    const auto tiles = SimulateTiles(plan, layer, workers, costs);
    std::printf("%7zu %6zu %10.1f %10.1f %6.2f %10.1f %6.2f\n", workers,
                plan.tasks.size, ours.ideal, ours.makespan,
                ours.makespan / ours.ideal, tiles.makespan,
                tiles.makespan / tiles.ideal);
  }
  return 0;
}

}  // namespace swy
