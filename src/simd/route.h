// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_ROUTE_H_
#define SWITCHYARD_SRC_SIMD_ROUTE_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/views.h"

namespace switchyard {
namespace simd {

// Softmax-top-k as route.h defines it, checked: equal rows, ids.cols ==
// weights.cols in [1, logits.cols], logits.cols < 2^31, 0 <= clamp <= 1,
// outputs disjoint from each other and from logits.
struct RouteArgs {
  Matrix<const float> logits;
  Matrix<int32_t> ids;
  Matrix<float> weights;
  bool renormalize;
  float clamp;
};

void RouteRows(const RouteArgs& args, size_t begin, size_t end);

}  // namespace simd
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_H_
