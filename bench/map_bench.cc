// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "bench/bench.h"
#include "bench/inputs.h"
#include "bench/plain_map.h"
#include "switchyard/map.h"
#include "testing/reference_map.h"

namespace switchyard::bench {
namespace {

constexpr size_t kTokens[] = {512, 4096};
constexpr size_t kBlockSize = 64;

struct Shape {
  RouterShape router;
  size_t tokens;
  Spread spread;
  std::string Text() const {
    return RouterText(router.experts, router.top_k, tokens) +
           (spread == Spread::kUniform ? "/uniform" : "/zipf");
  }
  size_t Pairs() const { return tokens * router.top_k; }
  Facts MakeFacts(const std::string& kernel, const char* unit,
                  size_t elements) const {
    return {kernel + "/" + Text(), router.model, unit,
            static_cast<double>(Pairs()), 4.0 * static_cast<double>(elements)};
  }
};

std::vector<int32_t> Values(const Aligned<int32_t>& ids) {
  return {ids.data(), ids.data() + ids.size()};
}
// Returns an output that expects `values`, and kPoison in the rest of the
// memory.
Output Wanted(Aligned<int32_t>& memory, std::vector<int32_t> values) {
  Output output(memory);
  values.resize(memory.size(), -1);
  output.AddExact(values);
  return output;
}

struct AlignedCase {
  explicit AlignedCase(const Shape& shape)
      : s(shape),
        ids(TopKIds(s.tokens, s.router.experts, s.router.top_k, s.spread)),
        counts(s.router.experts),
        offsets(s.router.experts + 1),
        pairs(BucketAlignedSize(s.Pairs(), s.router.experts, {kBlockSize})),
        blocks(pairs.size() / kBlockSize) {}
  AlignedInputs In() const { return {{ids.data(), s.tokens, s.router.top_k}}; }
  AlignedBuckets Out() { return {counts, offsets, pairs, {}, blocks}; }
  Status Call(size_t /*slot*/, Executor& executor) {
    return BucketAligned(In(), Out(), {kBlockSize}, executor);
  }
  std::vector<Output> Wanted() {
    const reference::Aligned r =
        reference::BucketAligned(Values(ids), s.router.top_k, s.router.experts,
                                 kBlockSize, AlignedOptions::kNoCapacity);
    return {bench::Wanted(counts, r.tokens_per_expert),
            bench::Wanted(offsets, r.offsets), bench::Wanted(pairs, r.pairs),
            bench::Wanted(blocks, r.block_experts)};
  }
  const Shape s;
  Aligned<int32_t> ids, counts, offsets, pairs, blocks;
};

// Maps pairs or tokens to 8 ranks. The experts of a rank have consecutive ids.
struct MapCase {
  static constexpr size_t kRanks = 8;
  MapCase(const Shape& shape, bool of_tokens)
      : s(shape),
        tokens(of_tokens),
        ids(TopKIds(s.tokens, s.router.experts, s.router.top_k, s.spread)),
        table(reference::RangeTable(kRanks, s.router.experts / kRanks)),
        pair_counts(kRanks),
        counts(kRanks),
        offsets(kRanks + 1),
        rows(s.Pairs()),
        index(s.Pairs()) {}
  MapInputs In() const {
    return {{ids.data(), s.tokens, s.router.top_k}, table};
  }
  MapOutputs Out() {
    MapOutputs out;
    const AnyMatrix view(index.data(), s.tokens, s.router.top_k);
    out.pairs.counts = pair_counts;
    if (tokens) {
      out.tokens = {counts, offsets, rows};
      out.copy_index = view;
    } else {
      out.pairs.offsets = offsets;
      out.pairs.rows = rows;
      out.pair_index = view;
    }
    return out;
  }
  Status Call(size_t /*slot*/, Executor& executor) {
    return MapPairs(In(), Out(), {}, executor);
  }
  std::vector<Output> Wanted() {
    const std::vector<int32_t> mapped = reference::MapIds(Values(ids), table);
    const auto by = [&](bool once) {
      return reference::MapRows(mapped, s.router.top_k, kRanks, once);
    };
    const reference::Mapped r = by(tokens);
    return {bench::Wanted(pair_counts, by(false).counts),
            bench::Wanted(offsets, r.offsets), bench::Wanted(rows, r.rows),
            bench::Wanted(index, r.index)};
  }
  const Shape s;
  const bool tokens;
  Aligned<int32_t> ids;
  const std::vector<int32_t> table;
  Aligned<int32_t> pair_counts, counts, offsets, rows, index;
};

// Maps experts to replicas. The experts with the lowest ids, an eighth of all
// experts, have four replicas each. The other experts have one replica each.
struct ReplicaCase {
  static constexpr size_t kMost = 4;
  explicit ReplicaCase(const Shape& shape)
      : s(shape),
        ids(TopKIds(s.tokens, s.router.experts, s.router.top_k, s.spread)),
        replica_counts(s.router.experts, 1),
        physical(s.Pairs()),
        counts(s.router.experts) {
    for (size_t i = 0; i < s.router.experts * kMost; ++i) {
      replicas.push_back(static_cast<int32_t>(i));
    }
    std::fill_n(replica_counts.begin(), s.router.experts / 8, int32_t{kMost});
  }
  ReplicaInputs In() const {
    return {{ids.data(), s.tokens, s.router.top_k},
            {replicas.data(), s.router.experts, kMost},
            replica_counts};
  }
  ReplicaOutputs Out() {
    return {{physical.data(), s.tokens, s.router.top_k}, counts};
  }
  Status Call(size_t /*slot*/, Executor& executor) {
    return MapReplicas(In(), Out(), {}, executor);
  }
  std::vector<Output> Wanted() {
    const reference::Replicated r =
        reference::MapReplicas(Values(ids), replicas, replica_counts, kMost, 0);
    return {bench::Wanted(physical, r.physical_ids),
            bench::Wanted(counts, r.tokens_per_expert)};
  }
  const Shape s;
  Aligned<int32_t> ids;
  std::vector<int32_t> replicas, replica_counts;
  Aligned<int32_t> physical, counts;
};

void Add(const Shape& s) {
  const size_t pairs = s.Pairs(), experts = s.router.experts;
  const std::vector<size_t> all = {0, 1, 2, 3};
  Case<AlignedCase> aligned(
      s.MakeFacts("bucket_aligned", "pair", 2 * pairs + 2 * experts),
      [s] { return std::make_unique<AlignedCase>(s); });
  aligned.AddOurs(RunnableIsas(), all);
  aligned.Add({"plain", all}, [](AlignedCase& d) {
    return [&d](size_t) { plain::BucketAligned(d.In(), d.Out(), kBlockSize); };
  });
  Case<ReplicaCase> replicas(
      s.MakeFacts("map_replicas", "pair", 2 * pairs + 5 * experts),
      [s] { return std::make_unique<ReplicaCase>(s); });
  replicas.AddOurs(RunnableIsas(), {0, 1});
  replicas.Add({"plain", {0, 1}}, [](ReplicaCase& d) {
    return [&d](size_t) { plain::MapReplicas(d.In(), d.Out()); };
  });
  for (const bool tokens : {false, true}) {
    Case<MapCase> map(
        s.MakeFacts(tokens ? "map_tokens" : "map_pairs", "pair", 3 * pairs),
        [=] { return std::make_unique<MapCase>(s, tokens); });
    map.AddOurs(RunnableIsas(), all);
    map.Add({"plain", all}, [](MapCase& d) {
      return [&d](size_t) { plain::MapPairs(d.In(), d.Out()); };
    });
  }
}

const Registration registration([] {
  for (const RouterShape& router : kBuckets) {
    if (router.top_k != 8) continue;
    for (const size_t tokens : kTokens) {
      for (const Spread spread : {Spread::kUniform, Spread::kZipf}) {
        Add({router, tokens, spread});
      }
    }
  }
});

}  // namespace
}  // namespace switchyard::bench
