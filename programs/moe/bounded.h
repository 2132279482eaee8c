// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_BOUNDED_H_
#define SWITCHYARD_PROGRAMS_MOE_BOUNDED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model_config.h"
#include "switchyard/views.h"

namespace moe_layer {

// The steps of the block in double precision, each with a bound on how far a
// float computation of the same step may be off, whatever the order of its
// sums. A sum of n products is allowed (n + 2) * 2^-24 * sum |w * x|, plus what
// its inputs were already off by. What is written as bf16 is rounded once more,
// by 2^-8 of itself; what is quantised may get any code that its error allows.

// Exact values, and how far floats may lie from each.
struct Bounded {
  std::vector<double> value;
  std::vector<double> error;

  Bounded() = default;
  explicit Bounded(size_t size) : value(size), error(size) {}
  // A row of f32 or bf16, taken as exact.
  explicit Bounded(const switchyard::ConstAnyMatrix& row);
  size_t size() const { return value.size(); }

  // Rounded to f32, which is the computation's own type, to bf16 or, as a row,
  // to i8. The first two, being symmetric, also say what was rounded to this.
  Bounded As(switchyard::Type type) const;
  Bounded Part(size_t begin, size_t end) const;
};

// out[o] = sum over i of w[o, i] * x[i], w [out_size, x.size()] dense.
Bounded MatVec(const float* w, size_t out_size, const Bounded& x);

// As Activate has it, of gate and up with all that is before the activation,
// but for its limits.
Bounded ActivatedOf(Bounded gate, Bounded up,
                    const switchyard::ActivateOptions& options);

// a + b and a * b, one rounding; a factor may be the same for all of a row.
Bounded SumOf(const Bounded& a, const Bounded& b);
Bounded ProductOf(const Bounded& a, const Bounded& b);

double Sigmoid(double x);

// residual + sum over s of weights[s] * rows[s], and the shared expert's row,
// times sigmoid(shared_logit) if there is such, and what is left of the shape:
// factors and norms. What is empty is left out.
struct CombineTerms {
  Bounded weights;
  std::vector<Bounded> rows;
  Bounded shared_logit = {}, shared_row = {};
  Bounded residual = {};
  Bounded identity_weight = {}, identity_row = {};
  const float* routed_norm = nullptr;
  const float* shared_norm = nullptr;
  const float* block_norm = nullptr;
};
Bounded CombineOf(const CombineTerms& terms, const MoeShape& shape);

// x * weight / sqrt(mean(x^2) + eps), its sum of squares in 32 lanes; with
// kPlusOne times 1 + weight.
Bounded RmsNormOf(const Bounded& x, const float* weight, float eps,
                  switchyard::NormKind kind = switchyard::NormKind::kWeight);

constexpr double kUnit = 0x1p-24;   // of rounding a float
constexpr double kTiny = 0x1p-126;  // below this, relative bounds do not hold
// Of a float sum of n products: n + 2 roundings, to first order.
double SumError(size_t n, double magnitude);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_BOUNDED_H_
