// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_ROUTE_H_
#define SWITCHYARD_SRC_SIMD_ROUTE_H_

#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/route.h"

namespace switchyard::simd {

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

// Softmax by `renormalize` and `clamp`, whatever else the options say; but with
// Score::kRaw, which is route_recipe.cc's, the weights are the logits of the
// selected themselves, all NaN in a row with a NaN.
RowFunction<RouteArgs> RouteRows() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_H_
