// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Simulates how a layer's tasks are scheduled on any number of workers. `swy
// plan` prints the times, and the tests bound them.

#ifndef SWITCHYARD_TESTING_LAYER_SCHEDULE_H_
#define SWITCHYARD_TESTING_LAYER_SCHEDULE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "src/work_list.h"
#include "switchyard/layer.h"
#include "switchyard/pieces.h"
#include "testing/inputs.h"

namespace switchyard::testing_support {

// How tokens choose experts:
// * kUniform: all experts are equally likely;
// * kZipf: expert n has a share proportional to 1 / n;
// * kHot: all tokens choose the first expert, and their other experts at
//   random.
enum class Skew { kUniform, kZipf, kHot };

// Returns ids [tokens, top_k] that differ within each row. The function uses
// integer arithmetic, so that the ids are the same on every machine.
inline std::vector<int32_t> SkewedIds(size_t tokens, size_t top_k,
                                      size_t experts, Skew skew,
                                      uint64_t seed) {
  std::vector<uint64_t> below;
  uint64_t sum = 0;
  for (size_t e = 0; e < experts; ++e) {
    below.push_back(sum += skew == Skew::kZipf ? 1000000 / (e + 1) : 1);
  }
  Random random(seed);
  std::vector<int32_t> ids;
  for (size_t t = 0; t < tokens; ++t) {
    const size_t first = ids.size();
    if (skew == Skew::kHot) ids.push_back(0);
    while (ids.size() < first + top_k) {
      const auto at =
          std::upper_bound(below.begin(), below.end(), random.Below(sum));
      const auto e = static_cast<int32_t>(at - below.begin());
      if (std::find(ids.begin() + static_cast<ptrdiff_t>(first), ids.end(),
                    e) == ids.end()) {
        ids.push_back(e);
      }
    }
  }
  return ids;
}

// Times in microseconds.
struct ScheduleCosts {
  // The time of one unit of the costs in ExpertsPlanOptions. By default a row
  // costs 16 units. The 21 us for a row were measured for 2048 x 768 in bf16
  // on an AVX-512 core.
  double unit = 21.0 / 16;
  // The time until the last worker is awake, in a team that spins.
  double wake = 3.0;
  double claim = 0.1;
  // The time of a tile without its product: the call and the gather of its
  // rows.
  double tile = 0.5;
  double row = 0.1;
  // The time of the weighted sum of one token.
  double token = 1.5;
};

// Holds the times at which the workers become free, with the earliest on top.
class Workers {
 public:
  Workers(size_t workers, double wake) {
    for (size_t i = 0; i < workers; ++i) free_.push(i == 0 ? 0 : wake);
  }
  // Assigns work that takes `time` to the worker that is free first. The work
  // starts at `ready` or later. Returns the time at which it ends.
  double Work(double time, double ready = 0) {
    const double end = std::max(free_.top(), ready) + time;
    free_.pop();
    free_.push(end);
    last_ = std::max(last_, end);
    return end;
  }
  double last() const { return last_; }

 private:
  std::priority_queue<double, std::vector<double>, std::greater<double>> free_;
  double last_ = 0;
};

struct Schedule {
  double ideal;     // the time if awake workers shared all work evenly
  double makespan;  // the time until the last worker has finished
};

// Returns the cost of all products of `rows` rows of one expert. The cost of
// the shared expert is scaled by its width.
inline double CostOf(const ExpertsPlanOptions& options, int32_t expert,
                     size_t rows) {
  const auto cost =
      static_cast<double>(options.weight_cost +
                          options.row_cost * std::max(rows, options.min_rows));
  return expert != ExpertTile::kShared
             ? cost
             : cost * static_cast<double>(options.shared_intermediate) /
                   static_cast<double>(options.intermediate);
}

// If a product of `cols` columns is cut into `parts` parts, returns the share
// of `part` in the product.
inline double ShareOfPart(size_t cols, size_t tile_columns, int32_t parts,
                          int32_t part) {
  if (parts == 1) return 1;
  const size_t tiles = (cols + tile_columns - 1) / tile_columns;
  const auto begin = [&](int32_t i) {
    return PartBegin(tiles, static_cast<size_t>(parts), static_cast<size_t>(i));
  };
  return static_cast<double>(begin(part + 1) - begin(part)) /
         static_cast<double>(tiles);
}

// Returns the times if workers take the plan's tasks as in RunExperts().
inline Schedule Simulate(const ExpertsPlan& plan,
                         const ExpertsPlanOptions& options, size_t workers,
                         const ScheduleCosts& costs) {
  Workers crew(workers, costs.wake);
  std::vector<double> ready(plan.blocks.size);
  const double sum_of_row =
      costs.token * static_cast<double>(plan.tokens) /
      static_cast<double>(std::max<size_t>(1, plan.num_rows));
  double work = costs.token * static_cast<double>(plan.tokens);
  for (const ExpertTask& task : plan.tasks) {
    const auto index = static_cast<size_t>(task.block);
    const ExpertBlock& block = plan.blocks.data[index];
    const double rows = static_cast<double>(block.rows);
    const double product =
        CostOf(options, block.expert, static_cast<size_t>(block.rows)) *
        costs.unit;
    const double gather = costs.row * rows;
    switch (task.kind) {
      case ExpertTask::kBlock:
        work += product + gather + costs.tile;
        crew.Work(costs.claim + product + gather + 2 * costs.tile +
                  sum_of_row * rows);
        break;
      case ExpertTask::kGateUp: {
        const size_t cols = block.expert == ExpertTile::kShared
                                ? plan.shared_intermediate
                                : plan.intermediate;
        const double part = product * 2 / 3 *
                            ShareOfPart(cols, plan.tile_columns,
                                        block.gate_up_parts, task.part);
        work += part + (task.part == 0 ? gather + costs.tile : 0);
        const double end = crew.Work(costs.claim + part + gather + costs.tile);
        ready[index] = std::max(ready[index], end);
        break;
      }
      case ExpertTask::kDown: {
        const double part = product / 3 *
                            ShareOfPart(plan.hidden, plan.tile_columns,
                                        block.down_parts, task.part);
        work += part;
        crew.Work(costs.claim + part + costs.tile +
                      sum_of_row * rows / block.down_parts,
                  ready[index]);
        break;
      }
    }
  }
  return {work / static_cast<double>(workers), crew.last()};
}

// Returns the times for an engine without a plan. Its workers take tiles of
// many rows or of whole experts, and then compute the tokens' sums. With
// fewer than two tiles per worker, all workers share each product, and the
// products run one after the other. All workers always share the products of
// the shared expert.
inline Schedule SimulateTiles(const ExpertsPlan& plan,
                              const ExpertsPlanOptions& options, size_t workers,
                              const ScheduleCosts& costs) {
  internal::WorkListOptions work_options;
  work_options.workers = workers;
  work_options.tile_rows = options.tile_rows;
  work_options.tile_cost = options.weight_cost;
  work_options.row_cost = options.row_cost;
  std::vector<internal::WorkTile> tiles(
      internal::WorkListSize(plan.num_rows, plan.num_experts, work_options));
  const size_t num_tiles = internal::MakeWorkList(
      {plan.tokens_per_expert, plan.offsets}, work_options, tiles.data());
  if (num_tiles == SIZE_MAX) return {};
  tiles.resize(num_tiles);
  const double crew_size = static_cast<double>(workers);
  double work = costs.token * static_cast<double>(plan.tokens), after = 0;
  Workers crew(workers, costs.wake);
  if (options.shared_intermediate != 0) {
    const double product =
        CostOf(options, ExpertTile::kShared, plan.tokens) * costs.unit;
    work += product;
    after += product / crew_size + 2 * (costs.wake + costs.tile);
  }
  for (const internal::WorkTile& tile : tiles) {
    const double product =
        CostOf(options, tile.expert, static_cast<size_t>(tile.rows)) *
        costs.unit;
    const double more = costs.row * static_cast<double>(tile.rows);
    work += product + more + costs.tile;
    if (workers > 1 && tiles.size() < 2 * workers) {
      after += product / crew_size + more + 2 * (costs.wake + costs.tile);
    } else {
      crew.Work(costs.claim + product + more + 2 * costs.tile);
    }
  }
  const double sums = costs.token * static_cast<double>(plan.tokens);
  return {work / crew_size, crew.last() + after + costs.wake +
                                std::max(sums / crew_size, costs.token)};
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_LAYER_SCHEDULE_H_
