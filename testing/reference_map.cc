// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "testing/reference_map.h"

#include <algorithm>

namespace switchyard::reference {

std::vector<int32_t> MapIds(const std::vector<int32_t>& topk_ids,
                            const std::vector<int32_t>& map) {
  std::vector<int32_t> mapped;
  for (const int32_t id : topk_ids) {
    const bool known = id >= 0 && static_cast<size_t>(id) < map.size();
    mapped.push_back(known ? map[static_cast<size_t>(id)] : -1);
  }
  return mapped;
}

namespace {

// Returns the pairs in each bucket, in ascending order.
std::vector<std::vector<size_t>> PairsOf(const std::vector<int32_t>& buckets,
                                         size_t num_buckets) {
  std::vector<std::vector<size_t>> pairs(num_buckets);
  for (size_t p = 0; p < buckets.size(); ++p) {
    const int32_t e = buckets[p];
    if (e >= 0 && static_cast<size_t>(e) < num_buckets) {
      pairs[static_cast<size_t>(e)].push_back(p);
    }
  }
  return pairs;
}

}  // namespace

std::vector<int32_t> RangeTable(size_t num_destinations,
                                size_t experts_per_destination) {
  std::vector<int32_t> table;
  for (size_t d = 0; d < num_destinations; ++d) {
    table.insert(table.end(), experts_per_destination, static_cast<int32_t>(d));
  }
  return table;
}

Aligned BucketAligned(const std::vector<int32_t>& experts, size_t top_k,
                      size_t num_experts, size_t block_size, size_t capacity) {
  Aligned aligned;
  const int32_t sentinel = static_cast<int32_t>(experts.size());
  aligned.row_index.assign(experts.size(), -1);
  const auto pairs_of = PairsOf(experts, num_experts);
  for (size_t e = 0; e < num_experts; ++e) {
    const size_t start = aligned.pairs.size();
    aligned.offsets.push_back(static_cast<int32_t>(start));
    for (const size_t p : pairs_of[e]) {
      if (aligned.pairs.size() - start == capacity) {
        ++aligned.over_capacity;
        continue;
      }
      aligned.row_index[p] = static_cast<int32_t>(aligned.pairs.size());
      aligned.pairs.push_back(static_cast<int32_t>(p));
    }
    const size_t count = aligned.pairs.size() - start;
    aligned.tokens_per_expert.push_back(static_cast<int32_t>(count));
    aligned.max_rows = std::max(aligned.max_rows, count);
    if (count != 0) aligned.active_experts.push_back(static_cast<int32_t>(e));
    for (size_t i = 0; i < count; i += block_size) {
      aligned.block_experts.push_back(static_cast<int32_t>(e));
    }
    while (aligned.pairs.size() % block_size != 0) {
      aligned.pairs.push_back(sentinel);
    }
  }
  aligned.offsets.push_back(static_cast<int32_t>(aligned.pairs.size()));
  for (const int32_t pair : aligned.pairs) {
    aligned.row_tokens.push_back(pair / static_cast<int32_t>(top_k));
  }
  for (const int32_t e : experts) {
    aligned.dropped += e < 0 || static_cast<size_t>(e) >= num_experts;
  }
  return aligned;
}

Mapped MapRows(const std::vector<int32_t>& destinations, size_t top_k,
               size_t num_destinations, bool once) {
  Mapped mapped;
  mapped.index.assign(destinations.size(), -1);
  mapped.firsts = mapped.index;
  const auto pairs_of = PairsOf(destinations, num_destinations);
  for (size_t d = 0; d < num_destinations; ++d) {
    const size_t start = mapped.rows.size();
    mapped.offsets.push_back(static_cast<int32_t>(start));
    for (const size_t p : pairs_of[d]) {
      const int32_t row = static_cast<int32_t>(once ? p / top_k : p);
      const bool there =
          mapped.rows.size() > start && mapped.rows.back() == row;
      if (!there) {
        mapped.firsts[p] = static_cast<int32_t>(mapped.rows.size());
        mapped.rows.push_back(row);
      }
      mapped.index[p] = static_cast<int32_t>(mapped.rows.size()) - 1;
    }
    mapped.counts.push_back(static_cast<int32_t>(mapped.rows.size() - start));
  }
  mapped.offsets.push_back(static_cast<int32_t>(mapped.rows.size()));
  return mapped;
}

Replicated MapReplicas(const std::vector<int32_t>& topk_ids,
                       const std::vector<int32_t>& replicas,
                       const std::vector<int32_t>& replica_counts,
                       size_t max_replicas, size_t first_replica) {
  Replicated all;
  all.physical_ids.assign(topk_ids.size(), -1);
  const auto pairs_of = PairsOf(topk_ids, replica_counts.size());
  size_t placed = 0;
  for (size_t e = 0; e < pairs_of.size(); ++e) {
    const std::vector<size_t>& pairs = pairs_of[e];
    all.tokens_per_expert.push_back(static_cast<int32_t>(pairs.size()));
    all.max_rows = std::max(all.max_rows, pairs.size());
    const auto count = static_cast<size_t>(std::max(0, replica_counts[e]));
    if (count == 0 || count > max_replicas) continue;
    placed += pairs.size();
    for (size_t n = 0; n < pairs.size(); ++n) {
      all.physical_ids[pairs[n]] =
          replicas[e * max_replicas + (first_replica + n) % count];
    }
  }
  all.dropped = topk_ids.size() - placed;
  return all;
}

Exchange MapCounts(const std::vector<int64_t>& counts, size_t ranks,
                   size_t rank, size_t row_elements) {
  const auto elements = [&](size_t from, size_t to) {
    return counts[from * ranks + to] * static_cast<int64_t>(row_elements);
  };
  Exchange all;
  all.send_offsets = all.recv_offsets = {0};
  for (size_t other = 0; other < ranks; ++other) {
    all.send_counts.push_back(elements(rank, other));
    all.recv_counts.push_back(elements(other, rank));
    all.send_offsets.push_back(all.send_offsets.back() + elements(rank, other));
    all.recv_offsets.push_back(all.recv_offsets.back() + elements(other, rank));
    int64_t before = 0, rows = 0;
    for (size_t from = 0; from < ranks; ++from) {
      if (from < rank) before += elements(from, other);
      rows += counts[from * ranks + other];
    }
    all.put_offsets.push_back(before);
    all.max_rows = std::max(all.max_rows, static_cast<size_t>(rows));
  }
  return all;
}

}  // namespace switchyard::reference
