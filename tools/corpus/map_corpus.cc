// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs BucketAligned, MapPairs, MapReplicas and MapCounts, and makes work lists
// from the aligned buckets.

#include <string>

#include "src/work_list.h"
#include "switchyard/map.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {
namespace {

// Returns ids, some of them outside [0, experts). A quarter is expert 0.
Rows<int32_t> TopKIds(size_t tokens, size_t top_k, size_t experts, size_t gap) {
  return {tokens, top_k, gap, [experts](size_t i) {
            const uint32_t hash = Hash(37, i);
            const uint32_t kind = hash % 32;
            if (kind == 0) return static_cast<int32_t>(hash);
            if (kind == 1) return -1;
            if (kind < 10) return 0;
            return static_cast<int32_t>((hash >> 5) % experts);
          }};
}

// Returns the destinations of the experts. Some have none.
std::vector<int32_t> Table(size_t experts, size_t destinations) {
  std::vector<int32_t> table(experts);
  for (size_t e = 0; e < experts; ++e) {
    const uint32_t hash = Hash(41, e);
    table[e] = hash % 8 == 0 ? -1 : static_cast<int32_t>(hash % destinations);
  }
  return table;
}

void AddTiles(Digests& digests, const std::vector<int32_t>& counts,
              const std::vector<int32_t>& offsets) {
  size_t rows = 0;
  for (const int32_t count : counts) rows += static_cast<size_t>(count);
  for (const size_t tile_cost : {0u, 24u}) {
    for (const size_t workers : {2u, 64u}) {
      const internal::WorkListOptions options = {workers, 4, 6, tile_cost, 3};
      std::vector<internal::WorkTile> tiles(
          internal::WorkListSize(rows, counts.size(), options));
      const size_t num_tiles =
          internal::MakeWorkList({counts, offsets}, options, tiles.data());
      for (size_t i = 0; i < num_tiles; ++i) {
        digests.exact.Add(static_cast<uint32_t>(tiles[i].first_row));
        digests.exact.Add(tiles[i].rows);
        digests.exact.Add(tiles[i].expert);
      }
    }
  }
}

void RunAligned(Executor& executor, Digests& digests, bool mapped,
                size_t tokens, size_t top_k, size_t experts, size_t gap) {
  Rows<int32_t> topk_ids = TopKIds(tokens, top_k, experts, gap);
  const size_t local = mapped ? experts / 2 + 1 : experts;
  const std::vector<int32_t> map = Table(mapped ? experts : 0, local);
  const size_t num_pairs = tokens * top_k;
  std::vector<int32_t> scratch(BucketScratchSize(num_pairs, local, executor));
  for (const size_t block_size : {1u, 5u, 64u}) {
    for (const size_t capacity : {AlignedOptions::kNoCapacity, size_t{9}}) {
      const AlignedOptions options = {block_size, capacity, true, true};
      const size_t size = BucketAlignedSize(num_pairs, local, options);
      std::vector<int32_t> counts(local), offsets(local + 1), pairs(size),
          blocks(size / block_size), row_tokens(size, -1), active(local);
      Rows<int32_t> row_index(tokens, top_k, gap);
      Report report;
      digests.Check(BucketAligned({topk_ids.view(), map, scratch},
                                  {counts, offsets, pairs, row_index.view(),
                                   blocks, row_tokens, active, &report},
                                  options, executor));
      for (const std::vector<int32_t>* written :
           {&counts, &offsets, &pairs, &blocks, &row_tokens, &active}) {
        digests.exact.Add(*written);
      }
      digests.exact.Add(row_index.view());
      for (const size_t found : {report.max_rows, report.dropped,
                                 report.over_capacity, report.active_experts}) {
        digests.exact.Add(static_cast<uint32_t>(found));
      }
      AddTiles(digests, counts, offsets);
    }
  }
}

void AddRows(Digests& digests, const MapRows& list) {
  const auto rows = static_cast<size_t>(list.offsets.data[list.counts.size]);
  digests.exact.Add(Span<const int32_t>(list.counts));
  digests.exact.Add(Span<const int32_t>(list.offsets));
  digests.exact.Add(Span<const int32_t>(list.rows.data, rows));
  for (const Span<int64_t>& elements :
       {list.element_counts, list.element_offsets}) {
    for (const int64_t n : elements) {
      digests.exact.Add(static_cast<uint32_t>(n));
      digests.exact.Add(static_cast<uint32_t>(n >> 32));
    }
  }
}

void RunMap(Executor& executor, Digests& digests, bool by_table, size_t tokens,
            size_t top_k, size_t destinations, size_t gap) {
  const size_t experts = 3 * destinations, num_pairs = tokens * top_k;
  Rows<int32_t> topk_ids = TopKIds(tokens, top_k, experts, gap);
  const std::vector<int32_t> table =
      Table(by_table ? experts : 0, destinations);
  std::vector<int32_t> scratch(
      BucketScratchSize(num_pairs, destinations, executor));
  std::vector<int32_t> counts[2], offsets[2], rows[2];
  std::vector<int64_t> elements[2], element_offsets[2];
  MapRows lists[2];
  for (size_t i = 0; i < 2; ++i) {
    counts[i].resize(destinations);
    offsets[i].resize(destinations + 1);
    rows[i].resize(num_pairs);
    elements[i].resize(destinations);
    element_offsets[i].resize(destinations + 1);
    lists[i] = {counts[i], offsets[i], rows[i], elements[i],
                element_offsets[i]};
  }
  Rows<int32_t> index(tokens, top_k, gap), copies(tokens, top_k, gap),
      returns(tokens, top_k, gap);
  Report report;
  digests.Check(
      MapPairs({topk_ids.view(), table, scratch},
               {lists[0], index.view(), lists[1], copies.view(), returns.view(),
                &report},
               {by_table ? size_t{0} : size_t{3}, (size_t{1} << 24) + 5, true},
               executor));
  for (const MapRows& list : lists) AddRows(digests, list);
  for (Rows<int32_t>* written : {&index, &copies, &returns}) {
    digests.exact.Add(written->view());
  }
  digests.exact.Add(static_cast<uint32_t>(report.max_rows));
  digests.exact.Add(static_cast<uint32_t>(report.dropped));
}

void RunReplicas(Executor& executor, Digests& digests, size_t tokens,
                 size_t top_k, size_t experts, size_t gap) {
  constexpr size_t kMaxReplicas = 5;
  Rows<int32_t> topk_ids = TopKIds(tokens, top_k, experts, gap);
  Rows<int32_t> replicas(experts, kMaxReplicas, gap, [](size_t i) {
    return static_cast<int32_t>(Hash(43, i) >> 1);
  });
  std::vector<int32_t> counts, tokens_per_expert(experts);
  for (size_t e = 0; e < experts; ++e) {
    counts.push_back(static_cast<int32_t>(Hash(47, e) % (kMaxReplicas + 2)));
  }
  std::vector<int32_t> scratch(
      BucketScratchSize(tokens * top_k, experts, executor));
  Rows<int32_t> physical(tokens, top_k, gap);
  for (const size_t first : {size_t{0}, size_t{3}, size_t{0x7FFFFFFF}}) {
    Report report;
    digests.Check(
        MapReplicas({topk_ids.view(), replicas.view(), counts, scratch},
                    {physical.view(), tokens_per_expert, &report},
                    {first, true}, executor));
    digests.exact.Add(physical.view());
    digests.exact.Add(tokens_per_expert);
    digests.exact.Add(static_cast<uint32_t>(report.max_rows));
    digests.exact.Add(static_cast<uint32_t>(report.dropped));
  }
}

void RunCounts(Digests& digests, size_t ranks, size_t gap) {
  Rows<int32_t> counts(ranks, ranks, gap, [](size_t i) {
    return static_cast<int32_t>(Hash(53, i) % 1000);
  });
  std::vector<int64_t> sent(ranks), send_offsets(ranks + 1), received(ranks),
      recv_offsets(ranks + 1), puts(ranks);
  for (size_t rank = 0; rank < ranks; rank += 1 + ranks / 4) {
    Report report;
    digests.Check(
        MapCounts({counts.view()},
                  {received, recv_offsets, sent, send_offsets, puts, &report},
                  {rank, (size_t{1} << 24) + 5}));
    for (const std::vector<int64_t>* written :
         {&sent, &send_offsets, &received, &recv_offsets, &puts}) {
      for (const int64_t n : *written) {
        digests.exact.Add(static_cast<uint32_t>(n));
        digests.exact.Add(static_cast<uint32_t>(n >> 32));
      }
    }
    digests.exact.Add(static_cast<uint32_t>(report.max_rows));
  }
}

const Registration registration("map", [](std::vector<Case>& cases) {
  const struct {
    const char* name;
    void (*run)(Executor&, Digests&, bool, size_t, size_t, size_t, size_t);
    bool by_table;
  } kinds[] = {{"bucket aligned", RunAligned, false},
               {"bucket aligned, mapped", RunAligned, true},
               {"map by range", RunMap, false},
               {"map by table", RunMap, true}};
  for (const auto& kind : kinds) {
    for (const size_t gap : {0u, 3u}) {
      const auto run = [kind, gap](Executor& executor, Digests& digests) {
        for (const size_t buckets : {1u, 3u, 8u, 17u, 64u, 65u, 128u}) {
          for (const size_t tokens : {1u, 2u, 13u, 100u}) {
            for (const size_t top_k : {1u, 2u, 8u, 10u}) {
              kind.run(executor, digests, kind.by_table, tokens, top_k, buckets,
                       gap);
            }
          }
        }
        // 6,000 tokens have enough pairs for several threads.
        kind.run(executor, digests, kind.by_table, 6000, 8, 40, gap);
      };
      cases.push_back({std::string(kind.name) + (gap ? ", gaps" : ""), run});
    }
  }
  for (const size_t gap : {0u, 3u}) {
    const char* const with = gap ? ", gaps" : "";
    cases.push_back({std::string("map to replicas") + with,
                     [gap](Executor& executor, Digests& digests) {
                       for (const size_t experts : {1u, 3u, 64u, 128u}) {
                         for (const size_t tokens : {1u, 13u, 100u}) {
                           for (const size_t top_k : {1u, 8u, 10u}) {
                             RunReplicas(executor, digests, tokens, top_k,
                                         experts, gap);
                           }
                         }
                       }
                       RunReplicas(executor, digests, 8000, 8, 40, gap);
                     }});
    cases.push_back({std::string("map counts of ranks") + with,
                     [gap](Executor&, Digests& digests) {
                       for (const size_t ranks : {1u, 2u, 15u, 16u, 17u, 64u}) {
                         RunCounts(digests, ranks, gap);
                       }
                     }});
  }
});

}  // namespace
}  // namespace switchyard::corpus
