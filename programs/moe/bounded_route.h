// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_BOUNDED_ROUTE_H_
#define SWITCHYARD_PROGRAMS_MOE_BOUNDED_ROUTE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bounded.h"
#include "model_config.h"

namespace moe_layer {

// What RouteTopK defines, as families in the table need it, in the terms of
// bounded.h.

// What a router has beside logits; null: it has not.
struct RouteVectors {
  const float* correction_bias = nullptr;
  const float* expert_scale = nullptr;
};

// By which experts are selected; those that a dropped group may have are not in
// `possible`, those of groups that are kept for certain in `certain`.
struct RouteKeys {
  Bounded keys;
  std::vector<bool> possible, certain;
};
RouteKeys RouteKeysOf(const Bounded& logits, const MoeShape& shape,
                      const RouteVectors& vectors);

// Whether `ids` are top_k different experts, best first, as far as the errors
// of the keys let one tell; with exact keys, whether they are the answer.
bool IsTopK(const RouteKeys& keys, const int32_t* ids, size_t top_k);

// `ids` [top_k] with the zero experts in the slots that have -1: those with the
// largest keys. Empty if it cannot be.
std::vector<int32_t> WithZeroExperts(const RouteKeys& keys, const int32_t* ids,
                                     const MoeShape& shape);

// Weights of the experts `ids` [top_k].
Bounded RouteWeightsOf(const Bounded& logits, const int32_t* ids,
                       const MoeShape& shape, const RouteVectors& vectors = {});

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_BOUNDED_ROUTE_H_
