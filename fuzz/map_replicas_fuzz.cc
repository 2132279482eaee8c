// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares MapReplicas on every ISA with the reference, on an executor or on a
// team of threads (team_executor.h). Ids may be replaced in place. Also checks
// that invalid calls are refused.

#include "fuzz/call.h"
#include "fuzz/sort_case.h"
#include "src/calls/map.h"
#include "switchyard/map.h"
#include "testing/reference_map.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const Spoiler spoiler(bytes);
  const uint8_t seed = bytes.Byte();  // chooses the numbers of replicas
  SortCase c(bytes, {7, 1, 0, 63, 64}, 200, false);
  const size_t experts = c.buckets;
  const size_t max_replicas = 1 + bytes.Size({0, 1, 3}, 12);
  std::vector<int32_t> table, counts;
  for (size_t i = 0; i < experts * max_replicas; ++i) {
    table.push_back(static_cast<int32_t>(testing_support::Hash(3, i)));
  }
  // If the seed is odd, an eighth of the experts have 0 replicas, or a number
  // that is not valid.
  const int32_t strangers[] = {0, -1, INT32_MIN, INT32_MAX,
                               static_cast<int32_t>(max_replicas + 1)};
  for (size_t e = 0; e < experts; ++e) {
    const uint32_t hash = testing_support::Hash(seed, e);
    counts.push_back(seed % 2 != 0 && hash % 8 == 0
                         ? strangers[hash / 8 % std::size(strangers)]
                         : static_cast<int32_t>(1 + hash / 8 % max_replicas));
  }
  Memory replicas(bytes, Type::kI32, experts, max_replicas, table);
  Memory replica_counts(bytes, Type::kI32, 1, experts, counts);
  Memory physical_ids(bytes, Type::kI32, c.tokens, c.top_k);
  Memory tokens(bytes, Type::kI32, 1, experts);
  ReplicaOptions options;
  options.first_replica = bytes.Size({0, 1, 0x7FFFFFFF}, 1000);
  options.allow_dropped = bytes.Flag();
  const reference::Replicated exact = reference::MapReplicas(
      c.values, table, counts, max_replicas, options.first_replica);

  ReplicaInputs in = {c.ids.view(), replicas.view(),
                      replica_counts.span<int32_t>(),
                      c.scratch.span<int32_t>()};
  ReplicaOutputs out = {physical_ids.view(), tokens.span<int32_t>()};
  const bool in_place = bytes.Flag() && c.ids.view().type == Type::kI32;
  if (in_place) out.physical_ids = c.ids.view();
  const auto run = [&] {
    return c.Run(
        [&](Executor& who) { return MapReplicas(in, out, options, who); });
  };
  if (RefusesSpoilt<calls::ReplicaCall>(spoiler, &in, &out, &options, run)) {
    return 0;
  }

  Report report = kUnwritten;
  report.max_rows = exact.max_rows;
  report.dropped = exact.dropped;
  RunOnEveryIsa<calls::ReplicaCall>(
      in, &out, {options.allow_dropped || report.dropped == 0, report}, run,
      [&](const Isa&) {
        const Memory& written = in_place ? c.ids : physical_ids;
        FUZZ_CHECK(written.Values<int32_t>() == exact.physical_ids,
                   "physical_ids");
        FUZZ_CHECK(tokens.Values<int32_t>() == exact.tokens_per_expert,
                   "tokens_per_expert");
      });
  return 0;
}
