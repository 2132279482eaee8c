// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/plain_map.h"

#include <cstdint>
#include <cstring>

#include "bench/rivals.h"

namespace switchyard::bench::plain {
namespace {

// Computes where each bucket starts: the prefix sum of the counts, each rounded
// up to whole blocks.
void Starts(const Span<int32_t>& counts, const Span<int32_t>& offsets,
            int32_t block, int32_t* next) {
  int32_t start = 0;
  for (size_t e = 0; e < counts.size; ++e) {
    next[e] = offsets.data[e] = start;
    start += (counts.data[e] + block - 1) / block * block;
  }
  offsets.data[counts.size] = start;
}

void MapTokens(const Matrix<const int32_t>& ids, const int32_t* table,
               const MapOutputs& outputs) {
  const MapRows& out = outputs.tokens;
  int32_t* const index = outputs.copy_index.As<int32_t>().data;
  int32_t* const counts = out.counts.data;
  static int32_t next[kMaxExperts];
  std::memset(counts, 0, out.counts.size * sizeof(int32_t));
  for (size_t t = 0; t < ids.rows; ++t) {
    uint64_t seen = 0;
    for (size_t s = 0; s < ids.cols; ++s) {
      const int32_t d = table[ids.Row(t)[s]];
      counts[d] += (seen >> d & 1) == 0;
      seen |= uint64_t{1} << d;
    }
  }
  Starts(out.counts, out.offsets, 1, next);
  for (size_t t = 0; t < ids.rows; ++t) {
    uint64_t seen = 0;
    for (size_t s = 0; s < ids.cols; ++s) {
      const int32_t d = table[ids.Row(t)[s]];
      if ((seen >> d & 1) == 0)
        out.rows.data[next[d]++] = static_cast<int32_t>(t);
      seen |= uint64_t{1} << d;
      index[t * ids.cols + s] = next[d] - 1;
    }
  }
}

}  // namespace

void BucketAligned(const AlignedInputs& inputs, const AlignedBuckets& outputs,
                   size_t block_size) {
  const auto ids = inputs.topk_ids.As<int32_t>();
  const int32_t* const id = ids.data;
  const int32_t pairs = static_cast<int32_t>(ids.rows * ids.cols);
  const int32_t block = static_cast<int32_t>(block_size);
  int32_t* const counts = outputs.tokens_per_expert.data;
  const size_t experts = outputs.tokens_per_expert.size;
  static int32_t next[kMaxExperts];
  std::memset(counts, 0, experts * sizeof(int32_t));
  for (int32_t p = 0; p < pairs; ++p) ++counts[id[p]];
  Starts(outputs.tokens_per_expert, outputs.offsets, block, next);
  for (int32_t i = 0; i < outputs.offsets.data[experts]; ++i) {
    outputs.pairs.data[i] = pairs;
  }
  for (int32_t p = 0; p < pairs; ++p) outputs.pairs.data[next[id[p]]++] = p;
  int32_t* blocks = outputs.block_experts.data;
  for (size_t e = 0; e < experts; ++e) {
    for (int32_t i = outputs.offsets.data[e]; i < outputs.offsets.data[e + 1];
         i += block) {
      *blocks++ = static_cast<int32_t>(e);
    }
  }
}

void MapPairs(const MapInputs& inputs, const MapOutputs& outputs) {
  const auto ids = inputs.topk_ids.As<int32_t>();
  const int32_t* const id = ids.data;
  const int32_t* const table = inputs.destinations.data;
  const int32_t pairs = static_cast<int32_t>(ids.rows * ids.cols);
  const MapRows& out = outputs.pairs;
  int32_t* const counts = out.counts.data;
  static int32_t next[kMaxExperts];
  std::memset(counts, 0, out.counts.size * sizeof(int32_t));
  for (int32_t p = 0; p < pairs; ++p) ++counts[table[id[p]]];
  if (outputs.tokens.counts.size != 0) {
    return MapTokens(ids, table, outputs);
  }
  int32_t* const index = outputs.pair_index.As<int32_t>().data;
  Starts(out.counts, out.offsets, 1, next);
  for (int32_t p = 0; p < pairs; ++p) {
    index[p] = next[table[id[p]]]++;
    out.rows.data[index[p]] = p;
  }
}

void MapReplicas(const ReplicaInputs& inputs, const ReplicaOutputs& outputs) {
  const auto ids = inputs.topk_ids.As<int32_t>();
  const auto replicas = inputs.replicas.As<int32_t>();
  const int32_t* const replica_counts = inputs.replica_counts.data;
  int32_t* const counts = outputs.tokens_per_expert.data;
  int32_t* const physical = outputs.physical_ids.As<int32_t>().data;
  std::memset(counts, 0, outputs.tokens_per_expert.size * sizeof(int32_t));
  for (size_t p = 0; p < ids.rows * ids.cols; ++p) {
    const int32_t e = ids.data[p];
    const int32_t n = counts[e]++;
    physical[p] = replicas.Row(static_cast<size_t>(e))[n % replica_counts[e]];
  }
}

}  // namespace switchyard::bench::plain
