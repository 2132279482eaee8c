// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_ROUTE_H_
#define SWITCHYARD_SRC_SIMD_ROUTE_H_

#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/route.h"
#include "switchyard/types.h"

namespace switchyard::simd {

// How a row is routed, a line each: what RouteOptions asks for, and from
// recipes-inl.h the score of a logit, what selection looks at, and how scores
// become weights.
#define SWITCHYARD_RECIPES(X) X(kSoftmax, SoftmaxScore, LogitKeys, ShareOfSum)

// Whether a row's weights need the scores of all its experts: softmax's exp is
// needed of the selected only, unless the weights are relative to all experts
// or the clamp can matter. It cannot where clamp <= top_k / experts, as the
// selected have at least that share of the sum. The choice must not depend on
// values: not on how they round, either.
inline bool RouteNeedsAll(const RouteOptions& options, size_t experts,
                          size_t top_k) {
  return !options.renormalize ||
         static_cast<double>(options.clamp) * static_cast<double>(experts) >
             static_cast<double>(top_k);
}

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

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_H_
