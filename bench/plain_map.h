// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_BENCH_PLAIN_MAP_H_
#define SWITCHYARD_BENCH_PLAIN_MAP_H_

#include <cstddef>

#include "switchyard/map.h"

namespace switchyard::bench::plain {

// Straightforward loops. (See rivals.h.) Ids are int32, contiguous and valid,
// and there are at most 1024 buckets.
//
// Writes offsets, pairs and block_experts. Fills the pairs with sentinels
// first.
void BucketAligned(const AlignedInputs& inputs, const AlignedBuckets& outputs,
                   size_t block_size);
// Maps by a table to at most 64 destinations. Writes pairs with pair_index.
// If counts of tokens are given, writes tokens with copy_index instead.
void MapPairs(const MapInputs& inputs, const MapOutputs& outputs);
// Replaces logical experts by physical ones, with first_replica = 0.
void MapReplicas(const ReplicaInputs& inputs, const ReplicaOutputs& outputs);

}  // namespace switchyard::bench::plain

#endif  // SWITCHYARD_BENCH_PLAIN_MAP_H_
