// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_MAP_REPLICAS_H_
#define SWITCHYARD_SRC_SIMD_MAP_REPLICAS_H_

#include <cstddef>
#include <cstdint>

#include "src/simd/row_function.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// Maps logical to physical experts. The caller has checked all fields.
struct ReplicaArgs {
  const ConstAnyMatrix& topk_ids;
  const AnyMatrix& physical_ids;  // may be the same view as topk_ids
  const ConstAnyMatrix& replicas;
  Span<const int32_t> replica_counts;
  uint32_t first_replica;  // below 2^31
  size_t block_tokens;
  // [blocks, num_experts]: the number of pairs of each expert in earlier
  // blocks, from MapScan(). ReplicaPlace() adds one for each pair that it
  // visits in the block.
  int32_t* cursors;
};

// Writes the physical ids of the tokens of blocks [begin, end).
RowFunction<ReplicaArgs> ReplicaPlace() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_MAP_REPLICAS_H_
