// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "testing/reference_activate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "testing/reference.h"

namespace switchyard::reference {
namespace {

const double kMost = static_cast<double>(std::numeric_limits<float>::max());

// Returns the spacing of floats at |x|.
double Ulp(double x) {
  if (!std::isfinite(x)) return 0.0;
  return std::ldexp(1.0, std::max(-126, std::ilogb(x)) - 23);
}

// Returns min(most, x), or NaN if x is NaN.
double AtMost(double most, double x) { return x > most ? most : x; }

// Applies the activation function to the gate `g`, in double precision. Sets
// `ulps` to the largest error that the library may make.
double OfGate(const ActivateOptions& options, double g, bool fma,
              double* ulps) {
  const double few = fma ? 0.0 : 6.0;  // the additional ulps without FMA
  *ulps = 2.5 + few;
  switch (options.activation) {
    case Activation::kSilu:
      return Silu(g);
    case Activation::kGelu:
      *ulps = fma ? 6.5 : 80.0;
      if (std::isinf(g)) return g > 0 ? g : -0.0;
      return g * std::erfc(-g / std::sqrt(2.0)) / 2;
    case Activation::kGeluTanh: {
      if (std::isinf(g)) return g > 0 ? g : -0.0;
      const double y =
          2 * std::sqrt(2 / std::acos(-1.0)) * (g + 0.044715 * g * g * g);
      if (y < 0) *ulps += 3.5 * std::min(-y, 90.0);
      return g / (1 + std::exp(-y));
    }
    case Activation::kRelu:
      *ulps = 0.0;
      return std::isnan(g) ? g : std::max(g, 0.0);
    case Activation::kRelu2:
      *ulps = 0.5;
      return std::isnan(g) ? g : std::max(g, 0.0) * std::max(g, 0.0);
    case Activation::kIdentity:
      *ulps = 0.0;
      return g;
    case Activation::kSwigluOai: {
      const double x = static_cast<double>(options.alpha) * g;
      *ulps += std::min(std::fabs(x), 90.0);  // for the rounding of x
      if (std::isinf(x)) return x > 0 ? g : -0.0;
      return g / (1 + std::exp(-x));
    }
    case Activation::kSitu: {
      const double beta = static_cast<double>(options.beta);
      *ulps = 12.0 + few;
      if (g == -std::numeric_limits<double>::infinity()) return -0.0;
      return beta * std::tanh(g / beta) / (1 + std::exp(-g));
    }
  }
  return 0.0;
}

}  // namespace

Activated::Activated(const ActivateOptions& options, float gate, float up,
                     bool fma) {
  const double limit = options.limit == 0.0f
                           ? std::numeric_limits<double>::infinity()
                           : static_cast<double>(options.limit);
  const bool before = options.limit_place == ActivatePlace::kBefore;
  double g = static_cast<double>(gate), u = static_cast<double>(up);
  if (before) g = AtMost(limit, g);
  u = -AtMost(limit, -AtMost(limit, u));
  double ulps = 0.0;
  of_gate = OfGate(options, g, fma, &ulps);
  // The gate's function may overflow before the product with `up`.
  if (!std::isinf(g) && std::fabs(of_gate) > kMost) {
    of_gate = std::copysign(std::numeric_limits<double>::infinity(), of_gate);
  }
  // The library may return zero for arguments just above those for which the
  // exact result is zero. The 1e-35 allows this.
  error = ulps * Ulp(of_gate) + 1e-35;
  if (!before) of_gate = AtMost(limit, of_gate);
  value = of_gate;
  if (options.layout == GateUpLayout::kUngated) return;
  double factor = u, factor_error = 0.0;
  if (options.activation == Activation::kSwigluOai) {
    factor = u + 1;
    factor_error = Ulp(factor);
  }
  if (options.activation == Activation::kSitu) {
    const double beta = static_cast<double>(options.linear_beta);
    factor = beta * std::tanh(u / beta);
    // The second term covers quotients u / beta that are denormal.
    factor_error = 4 * Ulp(factor) + beta * 0x1p-148;
  }
  value = of_gate * factor;
  error = error * std::fabs(factor) + Ulp(value);
  if (factor_error != 0.0) error += factor_error * std::fabs(of_gate);
}

bool Activated::IsClose(float up, float actual) const {
  const double a = static_cast<double>(actual);
  if (std::isnan(value)) return std::isnan(actual);
  if (std::isinf(value)) {
    // If the gate's function is rounded to 0, an infinite `up` gives NaN.
    return a == value ||
           (std::isnan(a) && std::isinf(up) && std::fabs(of_gate) < 1e-35);
  }
  // Close to the largest float, the library may round to infinity.
  if (std::isinf(actual)) return std::fabs(value) + 2 * error >= kMost;
  return std::fabs(a - value) <= error;
}

}  // namespace switchyard::reference
