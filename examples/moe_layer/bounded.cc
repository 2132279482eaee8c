// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bounded.h"

#include <algorithm>
#include <cmath>

#include "switchyard/route.h"

namespace moe_layer {
namespace {

constexpr double kUnit = 0x1p-24;   // of rounding a float
constexpr double kTiny = 0x1p-126;  // below this, relative bounds do not hold

// Of a float sum of n products: n + 2 roundings, to first order.
double SumError(size_t n, double magnitude) {
  return static_cast<double>(n + 2) * kUnit * magnitude +
         static_cast<double>(n) * kTiny;
}

}  // namespace

Bounded::Bounded(const float* data, size_t size)
    : value(data, data + size), error(size) {}

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

Bounded SiluMulOf(const Bounded& gate, const Bounded& up) {
  Bounded out(gate.size());
  for (size_t i = 0; i < gate.size(); ++i) {
    const double silu = gate.value[i] * Sigmoid(gate.value[i]);
    // |silu'| < 1.1; silu itself is within 2.5 ulp, 5 units, and a few more on
    // ISAs without FMA.
    const double silu_error =
        1.1 * gate.error[i] + 10 * kUnit * std::fabs(silu) + kTiny;
    const double up_size = std::fabs(up.value[i]) + up.error[i];
    const double silu_size = std::fabs(silu) + silu_error;
    out.value[i] = silu * up.value[i];
    out.error[i] = silu_error * up_size + std::fabs(silu) * up.error[i] +
                   kUnit * silu_size * up_size + kTiny;
  }
  return out;
}

Bounded RouteWeightsOf(const Bounded& logits, const int32_t* ids,
                       const MoeShape& shape) {
  const double max =
      *std::max_element(logits.value.begin(), logits.value.end());
  const double max_error =
      *std::max_element(logits.error.begin(), logits.error.end());
  double all = 0;
  for (const double logit : logits.value) all += std::exp(logit - max);
  double selected = 0;
  double range = 0;
  for (size_t s = 0; s < shape.top_k; ++s) {
    const double logit = logits.value[static_cast<size_t>(ids[s])];
    selected += std::exp(logit - max);
    range = std::max(range, max - logit);
  }
  const double clamp = switchyard::RouteOptions().clamp;
  const double divisor =
      shape.renormalize ? std::max(selected, clamp * all) : all;
  // The exponents are off by the logits' errors and by rounding l - max, for
  // the numerator and the terms of the sum alike; each exp by 1.5 ulp (a few
  // more without FMA); the sum has top_k terms, or runs in 32 lanes.
  const double terms =
      static_cast<double>(shape.top_k + shape.num_experts / 32) + 24;
  const double relative =
      std::expm1(2 * max_error + 2 * kUnit * (range + 2 * max_error)) +
      terms * kUnit;
  Bounded out(shape.top_k);
  for (size_t s = 0; s < shape.top_k; ++s) {
    const double logit = logits.value[static_cast<size_t>(ids[s])];
    out.value[s] = std::exp(logit - max) / divisor;
    out.error[s] = out.value[s] * relative + kTiny;
  }
  return out;
}

bool IsTopK(const Bounded& logits, const int32_t* ids, size_t top_k) {
  // Whether a may stand before b.
  const auto may_precede = [&](size_t a, size_t b) {
    const double slack = logits.error[a] + logits.error[b];
    const double lead = logits.value[a] - logits.value[b];
    return lead > -slack || (lead == 0 && a < b);
  };
  std::vector<bool> taken(logits.size());
  for (size_t s = 0; s < top_k; ++s) {
    if (ids[s] < 0 || static_cast<size_t>(ids[s]) >= logits.size()) {
      return false;
    }
    const auto id = static_cast<size_t>(ids[s]);
    if (taken[id]) return false;
    taken[id] = true;
    if (s > 0 && !may_precede(static_cast<size_t>(ids[s - 1]), id)) {
      return false;
    }
  }
  for (size_t e = 0; e < logits.size(); ++e) {
    if (taken[e]) continue;
    for (size_t s = 0; s < top_k; ++s) {
      if (!may_precede(static_cast<size_t>(ids[s]), e)) return false;
    }
  }
  return true;
}

Bounded CombineOf(const Bounded& weights, const std::vector<Bounded>& rows,
                  const Bounded& shared_logit, const Bounded& shared_row,
                  const float* residual) {
  const size_t hidden = rows.front().size();
  const bool shared = shared_row.size() != 0;
  double gate = 0;
  double gate_error = 0;
  if (shared) {
    gate = Sigmoid(shared_logit.value[0]);
    // The slope is at most 1/4; 2.5 ulp, and a few more without FMA.
    gate_error = shared_logit.error[0] / 4 + 10 * kUnit * gate + kTiny;
  }
  const size_t terms = rows.size() + 1 + (shared ? 1 : 0);
  Bounded out(hidden);
  for (size_t h = 0; h < hidden; ++h) {
    double sum = residual[h];
    double magnitude = std::fabs(sum);
    double inherited = 0;
    const auto add = [&](double w, double w_error, double x, double x_error) {
      sum += w * x;
      magnitude += (std::fabs(w) + w_error) * (std::fabs(x) + x_error);
      inherited += w_error * std::fabs(x) + (std::fabs(w) + w_error) * x_error;
    };
    for (size_t s = 0; s < rows.size(); ++s) {
      add(weights.value[s], weights.error[s], rows[s].value[h],
          rows[s].error[h]);
    }
    if (shared) {
      add(gate, gate_error, shared_row.value[h], shared_row.error[h]);
    }
    out.value[h] = sum;
    out.error[h] = inherited + SumError(terms, magnitude);
  }
  return out;
}

Bounded RmsNormOf(const Bounded& x, const float* weight, float eps) {
  const auto n = static_cast<double>(x.size());
  double squares = 0;
  double inherited = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    squares += x.value[i] * x.value[i];
    inherited += x.error[i] * (2 * std::fabs(x.value[i]) + x.error[i]);
  }
  const double mean = squares / n + static_cast<double>(eps);
  const double scale = 1 / std::sqrt(mean);
  // The mean is the sum of squares' roundings off, of which the root halves the
  // effect, and by `inherited`, which may be large: no first order there.
  const double lowest = mean - inherited / n;
  const double from_inputs =
      lowest > 0 ? std::sqrt(mean / lowest) - 1 : INFINITY;
  const double roundings = (n / 32 + 10) / 2 + 6;
  Bounded out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double w = static_cast<double>(weight[i]);
    const double relative = from_inputs + roundings * kUnit * (1 + from_inputs);
    out.value[i] = x.value[i] * scale * w;
    out.error[i] =
        std::fabs(scale * w) *
            ((std::fabs(x.value[i]) + x.error[i]) * relative + x.error[i]) +
        kTiny;
  }
  return out;
}

}  // namespace moe_layer
