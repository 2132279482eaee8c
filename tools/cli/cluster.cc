// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/cluster.h"

#include <algorithm>
#include <cstdio>

#include "programs/arguments.h"
#include "switchyard/map.h"
#include "tools/cli/isas.h"

namespace swy {
namespace {

using switchyard::ConstAnyMatrix;

// The times of a batch's steps, in microseconds. Each is the time of the node
// that takes longest for the step.
struct Steps {
  double dispatch = 0, products = 0, back = 0;
};

// The steps and messages of all nodes, for some of the batch's tokens.
struct Traffic {
  Steps steps;
  size_t rows = 0;        // rows that go to another node
  double most_bytes = 0;  // the most that a node sends or receives in dispatch
};

// Each node has the next ceil(num_experts / nodes) experts, in order, so the
// last nodes may have fewer or none. Tokens are spread over nodes in order,
// as evenly as their number allows.
class Cluster {
 public:
  Cluster(const ClusterBatch& batch, const ClusterOptions& options,
          size_t nodes)
      : batch_(batch),
        options_(options),
        nodes_(nodes),
        experts_per_node_((batch.layer.num_experts + nodes - 1) / nodes),
        row_bytes_(options.row_bytes != 0 ? options.row_bytes
                                          : batch.layer.hidden + 8),
        back_bytes_(options.back_bytes != 0 ? options.back_bytes
                                            : 2 * batch.layer.hidden) {}

  // Returns the traffic of the tokens first, first + step, first + 2 * step
  // and so on.
  Traffic Measure(size_t first, size_t step) const {
    std::vector<int64_t> counts;
    std::vector<std::vector<int32_t>> local_ids(nodes_);
    for (size_t node = 0; node < nodes_; ++node) {
      AddNode(node, first, step, &counts, &local_ids);
    }
    Traffic traffic;
    // A node sends and receives at the same time.
    double most_rows = 0;
    for (size_t node = 0; node < nodes_; ++node) {
      std::vector<int64_t> sent(nodes_), received(nodes_), offsets(nodes_ + 1);
      switchyard::CountsOutputs out = {received, offsets};
      out.send_counts = sent;
      Check(switchyard::MapCounts({{counts.data(), nodes_, nodes_}}, out,
                                  {node}));
      int64_t rows_out = 0, rows_in = 0;
      for (size_t other = 0; other < nodes_; ++other) {
        if (other == node) continue;
        rows_out += sent[other];
        rows_in += received[other];
      }
      traffic.rows += static_cast<size_t>(rows_out);
      most_rows =
          std::max(most_rows, static_cast<double>(std::max(rows_out, rows_in)));
      traffic.steps.products =
          std::max(traffic.steps.products, ProductsOf(local_ids[node]));
    }
    traffic.most_bytes = most_rows * static_cast<double>(row_bytes_);
    // Dispatch takes two messages: the numbers of rows, and the rows.
    traffic.steps.dispatch = 2 * Latency() + Transfer(traffic.most_bytes);
    traffic.steps.back =
        Latency() + Transfer(most_rows * static_cast<double>(back_bytes_));
    return traffic;
  }

 private:
  double Latency() const { return nodes_ == 1 ? 0 : options_.latency_us; }
  // 1 GB/s is 1000 bytes in a microsecond.
  double Transfer(double bytes) const {
    return bytes / (1000 * options_.gb_per_s);
  }

  // Appends to `counts` the number of rows that `node` sends to each node.
  // For each pair of a token of `node` and one of its experts, appends the
  // expert's local id to (*local_ids)[m], where m is the node that has the
  // expert.
  void AddNode(size_t node, size_t first, size_t step,
               std::vector<int64_t>* counts,
               std::vector<std::vector<int32_t>>* local_ids) const {
    const size_t begin = batch_.tokens * node / nodes_;
    const size_t end = batch_.tokens * (node + 1) / nodes_;
    std::vector<int32_t> ids;
    for (size_t t = begin; t < end; ++t) {
      if (t % step != first) continue;
      const auto row =
          batch_.topk_ids.begin() + static_cast<ptrdiff_t>(t * batch_.top_k);
      ids.insert(ids.end(), row, row + static_cast<ptrdiff_t>(batch_.top_k));
    }
    const size_t tokens = ids.size() / batch_.top_k;
    std::vector<int32_t> pairs(nodes_), once(nodes_), offsets(nodes_ + 1),
        rows(ids.size());
    switchyard::MapOutputs out;
    out.pairs.counts = pairs;
    if (options_.sends_tokens_once) out.tokens = {once, offsets, rows};
    Check(
        switchyard::MapPairs({ConstAnyMatrix(ids.data(), tokens, batch_.top_k)},
                             out, {experts_per_node_}));
    const std::vector<int32_t>& sent =
        options_.sends_tokens_once ? once : pairs;
    counts->insert(counts->end(), sent.begin(), sent.end());
    for (const int32_t id : ids) {
      const auto expert = static_cast<size_t>(id);
      (*local_ids)[expert / experts_per_node_].push_back(
          static_cast<int32_t>(expert % experts_per_node_));
    }
  }

  // Returns the time of the products of a node's pairs.
  double ProductsOf(const std::vector<int32_t>& ids) const {
    if (ids.empty()) return 0;
    switchyard::ExpertsPlanOptions layer = batch_.layer;
    layer.num_experts = experts_per_node_;
    layer.workers = options_.workers;
    std::vector<int32_t> memory(ExpertsPlanSize(ids.size(), 1, layer));
    switchyard::ExpertsPlan plan;
    Check(PlanExperts({{ids.data(), ids.size(), 1}}, {memory, &plan}, layer));
    return Simulate(plan, layer, options_.workers, batch_.costs).makespan;
  }

  const ClusterBatch& batch_;
  const ClusterOptions& options_;
  const size_t nodes_, experts_per_node_, row_bytes_, back_bytes_;
};

// Returns the time of two half-batches. The network and the workers of a node
// each do one thing at a time: the network sends the rows of both halves and
// then their results, and the workers run the experts of one half and then of
// the other.
double Overlapped(const Steps& a, const Steps& b) {
  const double a_there = a.dispatch, b_there = a_there + b.dispatch;
  const double a_done = a_there + a.products;
  const double b_done = std::max(a_done, b_there) + b.products;
  const double a_back = std::max(a_done, b_there) + a.back;
  return std::max(b_done, a_back) + b.back;
}

}  // namespace

void PrintCluster(const ClusterBatch& batch, const ClusterOptions& options) {
  std::printf("%5s %10s %9s %11s %11s %9s %10s %10s %7s\n", "nodes",
              "rows/token", "most MB", "dispatch us", "products us", "back us",
              "step us", "halves us", "speedup");
  const Steps alone = Cluster(batch, options, 1).Measure(0, 1).steps;
  for (const size_t nodes : options.nodes) {
    const Cluster cluster(batch, options, nodes);
    const Traffic all = cluster.Measure(0, 1);
    const double step =
        all.steps.dispatch + all.steps.products + all.steps.back;
    const double halves =
        Overlapped(cluster.Measure(0, 2).steps, cluster.Measure(1, 2).steps);
    std::printf(
        "%5zu %10.2f %9.3f %11.1f %11.1f %9.1f %10.1f %10.1f %7.2f\n", nodes,
        static_cast<double>(all.rows) / static_cast<double>(batch.tokens),
        all.most_bytes / 1e6, all.steps.dispatch, all.steps.products,
        all.steps.back, step, halves, alone.products / std::min(step, halves));
  }
}

}  // namespace swy
