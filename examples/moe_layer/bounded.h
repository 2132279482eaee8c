// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_BOUNDED_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_BOUNDED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model_config.h"

namespace moe_layer {

// The steps of the block in double precision, each with a bound on how far a
// float computation of the same step may be off, whatever the order of its
// sums. A sum of n products is allowed (n + 2) * 2^-24 * sum |w * x|, plus what
// its inputs were already off by.

// Exact values, and how far floats may lie from each.
struct Bounded {
  std::vector<double> value;
  std::vector<double> error;

  Bounded() = default;
  explicit Bounded(size_t size) : value(size), error(size) {}
  Bounded(const float* data, size_t size);  // floats taken as exact
  size_t size() const { return value.size(); }
};

// out[o] = sum over i of w[o, i] * x[i], w [out_size, x.size()] dense.
Bounded MatVec(const float* w, size_t out_size, const Bounded& x);

// silu(gate) * up
Bounded SiluMulOf(const Bounded& gate, const Bounded& up);

double Sigmoid(double x);

// Weights of the experts `ids` [top_k], as RouteTopK defines them.
Bounded RouteWeightsOf(const Bounded& logits, const int32_t* ids,
                       const MoeShape& shape);

// Whether `ids` are top_k different experts, best first, as far as the errors
// of the logits let one tell; with exact logits, whether they are the answer.
bool IsTopK(const Bounded& logits, const int32_t* ids, size_t top_k);

// residual + sum over s of weights[s] * rows[s], the last being
// sigmoid(shared_logit) * shared_row if there is one (else both empty).
Bounded CombineOf(const Bounded& weights, const std::vector<Bounded>& rows,
                  const Bounded& shared_logit, const Bounded& shared_row,
                  const float* residual);

// x * weight / sqrt(mean(x^2) + eps), its sum of squares in 32 lanes.
Bounded RmsNormOf(const Bounded& x, const float* weight, float eps);

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_BOUNDED_H_
