// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_ROUTE_H_
#define SWITCHYARD_SRC_SIMD_ROUTE_H_

#include "src/simd/row_function.h"
#include "switchyard/route.h"
#include "switchyard/types.h"

namespace switchyard {
namespace simd {

// How a row is routed, a line each: what RouteOptions asks for, and from
// recipes-inl.h the score of a logit, what selection looks at, and how scores
// become weights.
#define SWITCHYARD_RECIPES(X) X(kSoftmax, SoftmaxScore, LogitKeys, ShareOfSum)

// Checked: equal rows, topk_ids.cols == topk_weights.cols in [1, logits.cols],
// logits.cols < 2^31, options as route.h says; outputs disjoint from each other
// and from logits.
struct RouteArgs {
  const RouteInputs& inputs;
  const RouteOutputs& outputs;
  const RouteOptions& options;
};

// `in`: of logits; `out`: of topk_weights.
RowFunction<RouteArgs> RouteRows(Type in, Type out) noexcept;

}  // namespace simd
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_H_
