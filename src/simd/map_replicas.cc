// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/map_replicas.h"

#include <type_traits>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/map_replicas.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Writes the physical ids of a token. It uses no vectors, because each pair
// reads the counter that the previous pair of the expert has written.
// physical_ids may be topk_ids, so each id is read before its place is written.
template <class Id>
HWY_INLINE void PlaceToken(const ReplicaArgs& args, const Id* ids,
                           int32_t* physical, int32_t* cursors) {
  using U = std::make_unsigned_t<Id>;
  const U num_experts = static_cast<U>(args.replica_counts.size);
  const uint32_t most = static_cast<uint32_t>(args.replicas.cols);
  for (size_t i = 0; i < args.topk_ids.cols; ++i) {
    const U id = static_cast<U>(ids[i]);
    int32_t expert = -1;
    if (id < num_experts) {
      const uint32_t n = static_cast<uint32_t>(cursors[id]++);
      const uint32_t count =
          static_cast<uint32_t>(args.replica_counts.data[id]);
      if (count - 1 < most) {  // false for count = 0
        expert = args.replicas.Row<int32_t>(
            static_cast<size_t>(id))[(args.first_replica + n) % count];
      }
    }
    physical[i] = expert;
  }
}

void PlaceReplicas(const ReplicaArgs& args, size_t begin, size_t end) {
  const ConstAnyMatrix& ids = args.topk_ids;
  for (size_t b = begin; b < end; ++b) {
    const size_t first = b * args.block_tokens;
    const size_t last = HWY_MIN(first + args.block_tokens, ids.rows);
    int32_t* const cursors = args.cursors + b * args.replica_counts.size;
    for (size_t t = first; t < last; ++t) {
      int32_t* const physical = args.physical_ids.Row<int32_t>(t);
      if (ids.type == Type::kI64) {
        PlaceToken(args, ids.Row<int64_t>(t), physical, cursors);
      } else {
        PlaceToken(args, ids.Row<int32_t>(t), physical, cursors);
      }
    }
  }
}

SWITCHYARD_ROW_FUNCTION(PlaceReplicas, ReplicaArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(ReplicaPlace, PlaceReplicas, ReplicaArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
