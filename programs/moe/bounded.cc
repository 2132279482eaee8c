// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bounded.h"

#include <algorithm>
#include <cmath>

#include "programs/for_each.h"
#include "switchyard/quantize.h"

namespace moe_layer {
namespace {

using switchyard::Type;

constexpr double kBf16Unit = 0x1p-8;

// A row's codes times its scale, amax / 127.
Bounded Quantised(const Bounded& x) {
  // Of three float operations on a code of up to 127.
  constexpr double kCodeError = 127 * 4 * kUnit;
  double amax = 0;
  double lowest = 0;  // what amax may be, too
  double highest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double size = std::fabs(x.value[i]);
    amax = std::max(amax, size);
    lowest = std::max(lowest, size - x.error[i]);
    highest = std::max(highest, size + x.error[i]);
  }
  Bounded out(x.size());
  // The code of the smallest and of the largest value, and what they stand for:
  // all of it is monotonous in value and scale, so the corners are extremes.
  const double scales[] = {lowest / 127, highest / 127};
  for (size_t i = 0; i < x.size(); ++i) {
    if (amax > 0) {
      const double scale = amax / 127;
      out.value[i] = scale * std::nearbyint(x.value[i] / scale);
    }
    if (!(lowest > 0)) {
      out.error[i] = 2 * highest;
      continue;
    }
    double codes[] = {INFINITY, -INFINITY};
    for (const double side : {-1.0, 1.0}) {
      for (const double scale : scales) {
        const double code = (x.value[i] + side * x.error[i]) / scale;
        codes[0] = std::min(codes[0], std::nearbyint(code - kCodeError));
        codes[1] = std::max(codes[1], std::nearbyint(code + kCodeError));
      }
    }
    for (const double code : codes) {
      for (const double scale : scales) {
        const double found = scale * std::clamp(code, -127.0, 127.0);
        out.error[i] =
            std::max(out.error[i], std::fabs(found - out.value[i]) +
                                       2 * kUnit * std::fabs(found) + kTiny);
      }
    }
  }
  return out;
}

// |x| and how much f(x) may be off for each unit that x is, with that of f.
struct Function {
  double value, slope, relative;
};
Function ActivationOf(double x, const switchyard::ActivateOptions& options) {
  using switchyard::Activation;
  // Each within a few ulp, some more on ISAs without FMA.
  constexpr double kUlps = 10 * kUnit;
  switch (options.activation) {
    case Activation::kSilu:
      return {x * Sigmoid(x), 1.1, kUlps};
    case Activation::kGelu:
      return {x / 2 * (1 + std::erf(x / std::sqrt(2.0))), 1.13, 100 * kUnit};
    case Activation::kGeluTanh: {
      const double y =
          std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
      return {x * Sigmoid(2 * y), 1.13,
              (10 + (x < 0 ? 8 * std::fabs(y) : 0)) * kUnit};
    }
    case Activation::kSwigluOai: {
      const double alpha = static_cast<double>(options.alpha);
      return {x * Sigmoid(alpha * x), 1.1, kUlps + 2 * kUnit};
    }
    case Activation::kRelu:
      return {std::max(x, 0.0), 1, kUnit};
    default:  // no family of this program has another
      return {NAN, NAN, NAN};
  }
}

void Clamp(Bounded* x, double least, double most) {
  for (double& value : x->value) value = std::clamp(value, least, most);
}

}  // namespace

double SumError(size_t n, double magnitude) {
  return static_cast<double>(n + 2) * kUnit * magnitude +
         static_cast<double>(n) * kTiny;
}

Bounded::Bounded(const switchyard::ConstAnyMatrix& row) {
  std::vector<float> floats(row.cols);
  program::Check(switchyard::Quantize({row.RowRange(0, 1)}, {floats}));
  value.assign(floats.begin(), floats.end());
  error.resize(row.cols);
}

Bounded Bounded::As(Type type) const {
  if (type == Type::kI8) return Quantised(*this);
  Bounded rounded = *this;
  for (size_t i = 0; type == Type::kBF16 && i < size(); ++i) {
    rounded.error[i] += kBf16Unit * (std::fabs(value[i]) + error[i]) + kTiny;
  }
  return rounded;
}

Bounded Bounded::Part(size_t begin, size_t end) const {
  Bounded part(end - begin);
  for (size_t i = begin; i < end; ++i) {
    part.value[i - begin] = value[i];
    part.error[i - begin] = error[i];
  }
  return part;
}

Bounded MatVec(const float* w, size_t out_size, const Bounded& x) {
  constexpr size_t kLanes = 8;  // for the compiler to vectorise
  const size_t n = x.size();
  Bounded out(out_size);
  for (size_t o = 0; o < out_size; ++o) {
    const float* row = w + o * n;
    double sums[kLanes] = {};
    double magnitudes[kLanes] = {};
    double inherited[kLanes] = {};
    size_t i = 0;
    const auto add = [&](size_t lane) {
      const auto factor = static_cast<double>(row[i + lane]);
      sums[lane] += factor * x.value[i + lane];
      magnitudes[lane] += std::fabs(factor * x.value[i + lane]);
      inherited[lane] += std::fabs(factor) * x.error[i + lane];
    };
    for (; i + kLanes <= n; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) add(lane);
    }
    for (; i < n; ++i) add(0);
    double magnitude = 0;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      out.value[o] += sums[lane];
      out.error[o] += inherited[lane];
      magnitude += magnitudes[lane] + inherited[lane];
    }
    out.error[o] += SumError(n, magnitude);
  }
  return out;
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Bounded ActivatedOf(Bounded gate, Bounded up,
                    const switchyard::ActivateOptions& options) {
  const auto limit = static_cast<double>(options.limit);
  if (limit > 0) {  // before the activation; it brings no error, only less
    Clamp(&gate, -INFINITY, limit);
    Clamp(&up, -limit, limit);
  }
  const bool oai = options.activation == switchyard::Activation::kSwigluOai;
  Bounded out(gate.size());
  for (size_t i = 0; i < gate.size(); ++i) {
    const Function f = ActivationOf(gate.value[i], options);
    const double f_error =
        f.slope * gate.error[i] + f.relative * std::fabs(f.value) + kTiny;
    const double f_size = std::fabs(f.value) + f_error;
    const double u = up.value[i] + (oai ? 1 : 0);
    const double u_error =
        up.error[i] + (oai ? kUnit * (std::fabs(u) + up.error[i]) : 0);
    const double u_size = std::fabs(u) + u_error;
    out.value[i] = f.value * u;
    out.error[i] = f_error * u_size + std::fabs(f.value) * u_error +
                   kUnit * f_size * u_size + kTiny;
  }
  return out;
}

Bounded SumOf(const Bounded& a, const Bounded& b) {
  Bounded out = a;
  for (size_t i = 0; i < a.size(); ++i) {
    out.value[i] += b.value[i];
    out.error[i] += b.error[i];
    out.error[i] += kUnit * (std::fabs(out.value[i]) + out.error[i]);
  }
  return out;
}

Bounded ProductOf(const Bounded& a, const Bounded& b) {
  Bounded out = a;
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t j = b.size() == 1 ? 0 : i;
    const double size = std::fabs(b.value[j]) + b.error[j];
    out.value[i] *= b.value[j];
    out.error[i] = a.error[i] * size + std::fabs(a.value[i]) * b.error[j];
    out.error[i] += kUnit * (std::fabs(out.value[i]) + out.error[i]) + kTiny;
  }
  return out;
}

namespace {

Bounded Times(const Bounded& x, float factor) {
  if (factor == 1) return x;
  Bounded one(1);
  one.value[0] = static_cast<double>(factor);
  return ProductOf(x, one);
}

// 1 + as many as there are: the weighted sum of rows, from `from` on.
Bounded WeightedSum(Bounded from, const Bounded& weights,
                    const std::vector<const Bounded*>& rows) {
  for (size_t h = 0; h < from.size(); ++h) {
    double magnitude = std::fabs(from.value[h]);
    for (size_t s = 0; s < rows.size(); ++s) {
      const double w = weights.value[s];
      const double w_size = std::fabs(w) + weights.error[s];
      const double x = rows[s]->value[h];
      from.value[h] += w * x;
      magnitude += w_size * (std::fabs(x) + rows[s]->error[h]);
      from.error[h] +=
          weights.error[s] * std::fabs(x) + w_size * rows[s]->error[h];
    }
    from.error[h] += SumError(rows.size(), magnitude);
  }
  return from;
}

}  // namespace

Bounded CombineOf(const CombineTerms& terms, const MoeShape& shape) {
  const size_t hidden = terms.rows.front().size();
  const auto norm = [&](Bounded* x, const float* weight) {
    if (weight == nullptr) return;
    *x = RmsNormOf(*x, weight, shape.norm_eps, shape.norm);
  };
  Bounded weights = terms.weights;
  std::vector<const Bounded*> rows;
  for (const Bounded& row : terms.rows) rows.push_back(&row);
  if (terms.identity_row.size() != 0) {
    weights.value.push_back(terms.identity_weight.value[0]);
    weights.error.push_back(terms.identity_weight.error[0]);
    rows.push_back(&terms.identity_row);
  }
  Bounded block = WeightedSum(Bounded(hidden), weights, rows);
  block = Times(block, shape.scales.routed);
  norm(&block, terms.routed_norm);
  if (terms.shared_row.size() != 0) {
    Bounded gate(1);
    gate.value[0] = 1;
    if (terms.shared_logit.size() != 0) {
      gate.value[0] = Sigmoid(terms.shared_logit.value[0]);
      // The slope is at most 1/4; 2.5 ulp, and a few more without FMA.
      gate.error[0] =
          terms.shared_logit.error[0] / 4 + 10 * kUnit * gate.value[0] + kTiny;
    }
    if (terms.shared_norm == nullptr) {
      block = WeightedSum(block, gate, {&terms.shared_row});
    } else {
      Bounded shared = terms.shared_row;
      if (terms.shared_logit.size() != 0) shared = ProductOf(shared, gate);
      norm(&shared, terms.shared_norm);
      block = SumOf(block, shared);
    }
  }
  norm(&block, terms.block_norm);
  block = Times(block, shape.scales.block);
  if (terms.residual.size() != 0) block = SumOf(terms.residual, block);
  return Times(block, shape.scales.out);
}

Bounded RmsNormOf(const Bounded& x, const float* weight, float eps,
                  switchyard::NormKind kind) {
  const double plus = kind == switchyard::NormKind::kPlusOne ? 1 : 0;
  const auto n = static_cast<double>(x.size());
  double squares = 0;
  double least = 0;  // that the squares may be
  for (size_t i = 0; i < x.size(); ++i) {
    const double smallest = std::max(0.0, std::fabs(x.value[i]) - x.error[i]);
    squares += x.value[i] * x.value[i];
    least += smallest * smallest;
  }
  const double mean = squares / n + static_cast<double>(eps);
  const double scale = 1 / std::sqrt(mean);
  // The mean is the sum of squares' roundings off, of which the root halves the
  // effect, and by what the inputs are, which may be much: no first order
  // there.
  const double lowest = least / n + static_cast<double>(eps);
  const double from_inputs =
      lowest > 0 ? std::sqrt(mean / lowest) - 1 : INFINITY;
  const double roundings = (n / 32 + 10) / 2 + 6;
  Bounded out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double w = static_cast<double>(weight[i]) + plus;
    const double relative = from_inputs + roundings * kUnit * (1 + from_inputs);
    out.value[i] = x.value[i] * scale * w;
    const double spread =
        std::fabs(scale * w) *
        ((std::fabs(x.value[i]) + x.error[i]) * relative + x.error[i]);
    // No normed value is above sqrt(n), whatever the inputs.
    const double most = std::fabs(out.value[i]) +
                        std::sqrt(n) * std::fabs(w) * (1 + roundings * kUnit);
    out.error[i] = std::min(spread, most) + kTiny;
  }
  return out;
}

}  // namespace moe_layer
