// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Naive implementations of aligned buckets, of maps and of replicas.

#ifndef SWITCHYARD_TESTING_REFERENCE_MAP_H_
#define SWITCHYARD_TESTING_REFERENCE_MAP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "switchyard/bucket.h"

namespace switchyard::reference {

// Returns the destination of each pair: map[id], or -1 if the map has no such
// id.
std::vector<int32_t> MapIds(const std::vector<int32_t>& topk_ids,
                            const std::vector<int32_t>& map);
// Returns the table that MapOptions::experts_per_destination stands for.
std::vector<int32_t> RangeTable(size_t num_destinations,
                                size_t experts_per_destination);

struct Aligned {
  std::vector<int32_t> tokens_per_expert, offsets;
  std::vector<int32_t> pairs;  // with sentinels, up to the last offset
  std::vector<int32_t> row_index;
  std::vector<int32_t> block_experts, row_tokens;
  std::vector<int32_t> active_experts;
  size_t max_rows = 0, dropped = 0, over_capacity = 0;
};
Aligned BucketAligned(const std::vector<int32_t>& experts, size_t top_k,
                      size_t num_experts, size_t block_size, size_t capacity);

struct Mapped {
  std::vector<int32_t> counts, offsets, rows;
  std::vector<int32_t> index;   // for each pair, the position of its row, or -1
  std::vector<int32_t> firsts;  // index, or -1 if an earlier pair has this row
};
// Groups pairs by destination. If `once` is true, the function groups tokens
// instead, and each token is in a destination's group at most once.
Mapped MapRows(const std::vector<int32_t>& destinations, size_t top_k,
               size_t num_destinations, bool once);

struct Replicated {
  std::vector<int32_t> physical_ids, tokens_per_expert;
  size_t max_rows = 0, dropped = 0;
};
// Chooses a replica for each pair. `replicas` has a row of max_replicas
// elements for each expert.
Replicated MapReplicas(const std::vector<int32_t>& topk_ids,
                       const std::vector<int32_t>& replicas,
                       const std::vector<int32_t>& replica_counts,
                       size_t max_replicas, size_t first_replica);

struct Exchange {
  std::vector<int64_t> send_counts, send_offsets, recv_counts, recv_offsets,
      put_offsets;
  size_t max_rows = 0;
};
// Computes the exchange of one rank. counts[s * ranks + d] is the number of
// rows from rank s to rank d.
Exchange MapCounts(const std::vector<int64_t>& counts, size_t ranks,
                   size_t rank, size_t row_elements);

}  // namespace switchyard::reference

#endif  // SWITCHYARD_TESTING_REFERENCE_MAP_H_
