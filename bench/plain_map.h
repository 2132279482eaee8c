// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_BENCH_PLAIN_MAP_H_
#define SWITCHYARD_BENCH_PLAIN_MAP_H_

#include <cstddef>

#include "switchyard/map.h"

namespace switchyard::bench::plain {

// Straightforward loops: see rivals.h. Ids are int32, contiguous and valid, at
// most 1024 buckets.
//
// With offsets, pairs and block_experts: sentinels everywhere, then pairs.
void BucketAligned(const AlignedInputs& inputs, const AlignedBuckets& outputs,
                   size_t block_size);
// Pairs with pair_index or, if there are counts of tokens, tokens with
// copy_index; by a table, to at most 64 destinations.
void MapPairs(const MapInputs& inputs, const MapOutputs& outputs);

}  // namespace switchyard::bench::plain

#endif  // SWITCHYARD_BENCH_PLAIN_MAP_H_
