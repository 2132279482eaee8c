// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_CLUSTER_H_
#define SWITCHYARD_TOOLS_CLI_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "testing/layer_schedule.h"

namespace swy {

// The network between nodes, and the bytes of its messages.
struct ClusterOptions {
  std::vector<size_t> nodes;  // the numbers of nodes; each number gets a line
  size_t workers = 8;         // of each node
  double latency_us = 100;    // of a message
  double gb_per_s = 1.25;     // the rate at which a node sends or receives
  // The bytes of a row that goes to an expert, and of a row that comes back. A
  // row_bytes of 0 stands for int8 with a scale and the expert's number, a
  // back_bytes of 0 for bf16.
  size_t row_bytes = 0, back_bytes = 0;
  // True if each token is sent once to a node, not once for each of its
  // experts there.
  bool sends_tokens_once = false;
};

// A layer's batch, with the costs of its products.
struct ClusterBatch {
  const std::vector<int32_t>& topk_ids;
  size_t tokens, top_k;
  switchyard::ExpertsPlanOptions layer;
  switchyard::testing_support::ScheduleCosts costs;
};

// Prints the time of an expert-parallel layer for each number of nodes.
void PrintCluster(const ClusterBatch& batch, const ClusterOptions& options);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_CLUSTER_H_
