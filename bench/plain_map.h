// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_BENCH_PLAIN_MAP_H_
#define SWITCHYARD_BENCH_PLAIN_MAP_H_

#include <cstddef>

#include "switchyard/map.h"

namespace switchyard::bench::plain {

// Straightforward loops, rivals of the map kernels. (See rivals.h.) Ids must be
// int32, contiguous and valid. The functions support up to kMaxExperts buckets.
//
// Writes offsets, pairs and block_experts. First fills the pairs with
// sentinels, which stay in the padding of blocks.
void BucketAligned(const AlignedInputs& inputs, const AlignedBuckets& outputs,
                   size_t block_size);
// Maps ids by a table to at most 64 destinations. Writes the pairs and
// pair_index or, if outputs.tokens has counts, the tokens and copy_index.
void MapPairs(const MapInputs& inputs, const MapOutputs& outputs);
// Replaces logical experts by physical experts, with first_replica = 0.
void MapReplicas(const ReplicaInputs& inputs, const ReplicaOutputs& outputs);

}  // namespace switchyard::bench::plain

#endif  // SWITCHYARD_BENCH_PLAIN_MAP_H_
