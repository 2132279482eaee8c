// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bounded_route.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "switchyard/route.h"

namespace moe_layer {
namespace {

using switchyard::BiasPlace;
using switchyard::Divisor;
using switchyard::RouteOptions;
using switchyard::Score;
using switchyard::WeightOf;

// The logits that all else sees.
Bounded MappedOf(Bounded x, const RouteOptions& route,
                 const RouteVectors& vectors) {
  if (!route.bias_in_weight || vectors.correction_bias == nullptr) return x;
  for (size_t e = 0; e < x.size(); ++e) {
    x.value[e] += static_cast<double>(vectors.correction_bias[e]);
    x.error[e] += kUnit * (std::fabs(x.value[e]) + x.error[e]);
  }
  return x;
}

// exp(x - max) of each, without the errors of x, which are the same for all.
struct Exponentials {
  std::vector<double> value;
  double all = 0;
  double max = 0;
  double max_error = 0;

  explicit Exponentials(const Bounded& x)
      : max(*std::max_element(x.value.begin(), x.value.end())),
        max_error(*std::max_element(x.error.begin(), x.error.end())) {
    for (const double logit : x.value) value.push_back(std::exp(logit - max));
    all = std::accumulate(value.begin(), value.end(), 0.0);
  }
  // Of one of them, or a quotient of such. The exponents are off by the logits'
  // errors and by rounding l - max, for the numerator and the terms of the sum
  // alike; each exp by 1.5 ulp (a few more without FMA); the sum has top_k
  // terms, or runs in 32 lanes.
  double RelativeError(double range, size_t top_k) const {
    const auto terms = static_cast<double>(top_k + value.size() / 32 + 24);
    return std::expm1(2 * max_error + 2 * kUnit * (range + 2 * max_error)) +
           terms * kUnit;
  }
};

// Scores of a logit alone that families have, and their errors.
struct Scored {
  double value, error;
};
constexpr struct {
  Score score;
  Scored (*of)(double x, double x_error);
} kScores[] = {
    {Score::kSqrtSoftplus,
     [](double x, double x_error) -> Scored {
       const double value = std::sqrt(x > 0 ? x + std::log1p(std::exp(-x))
                                            : std::log1p(std::exp(x)));
       // Its logarithm's slope is at most 1/2, its own below 1/2 as well.
       return {value,
               value * std::expm1(x_error / 2) + 16 * kUnit * value + kTiny};
     }},
    {Score::kSigmoid,
     [](double x, double x_error) -> Scored {
       const double value = Sigmoid(x);
       return {value, std::min(x_error / 4, value * std::expm1(x_error)) +
                          10 * kUnit * value + kTiny};
     }},
    {Score::kRaw, [](double x, double x_error) -> Scored {
       return {x, x_error};
     }}};

// NaN, which nothing is close to, for a score that no family has.
void ScoreOne(double x, double x_error, Score score, double* value,
              double* error) {
  *value = *error = NAN;
  for (const auto& known : kScores) {
    if (known.score != score) continue;
    const Scored scored = known.of(x, x_error);
    *value = scored.value;
    *error = scored.error;
  }
}

Bounded ScoresOf(const Bounded& x, const RouteOptions& route, size_t top_k) {
  Bounded scores(x.size());
  if (route.score == Score::kSoftmax) {
    const Exponentials exps(x);
    for (size_t e = 0; e < x.size(); ++e) {
      scores.value[e] = exps.value[e] / exps.all;
      scores.error[e] =
          scores.value[e] * exps.RelativeError(exps.max - x.value[e], top_k) +
          kTiny;
    }
    return scores;
  }
  for (size_t e = 0; e < x.size(); ++e) {
    ScoreOne(x.value[e], x.error[e], route.score, &scores.value[e],
             &scores.error[e]);
  }
  return scores;
}

}  // namespace

RouteKeys RouteKeysOf(const Bounded& logits, const MoeShape& shape,
                      const RouteVectors& vectors) {
  const RouteOptions& route = shape.route;
  const size_t count = logits.size();
  RouteKeys out;
  out.possible.assign(count, true);
  out.certain.assign(count, true);
  out.keys = MappedOf(logits, route, vectors);
  const bool groups = route.num_expert_group > 1;
  const bool bias = vectors.correction_bias != nullptr &&
                    route.bias_place == BiasPlace::kScore;
  if (groups || bias) out.keys = ScoresOf(out.keys, route, shape.top_k);
  Bounded& keys = out.keys;
  for (size_t e = 0; bias && e < count; ++e) {
    keys.value[e] += static_cast<double>(vectors.correction_bias[e]);
    keys.error[e] += kUnit * (std::fabs(keys.value[e]) + keys.error[e]);
  }
  if (!groups) return out;

  // A group's score, and how far it may be off: no more than all its terms.
  const size_t size = count / route.num_expert_group;
  std::vector<double> score, slack;
  for (size_t g = 0; g < route.num_expert_group; ++g) {
    const auto first = static_cast<std::ptrdiff_t>(g * size);
    std::vector<double> sorted(
        keys.value.begin() + first,
        keys.value.begin() + first + static_cast<std::ptrdiff_t>(size));
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    double sum = 0;
    for (size_t i = 0; i < route.group_score_of; ++i) sum += sorted[i];
    const double error = *std::max_element(
        keys.error.begin() + first,
        keys.error.begin() + first + static_cast<std::ptrdiff_t>(size));
    score.push_back(sum);
    slack.push_back(static_cast<double>(route.group_score_of) *
                    (error + kUnit * std::fabs(sum)));
  }
  for (size_t g = 0; g < score.size(); ++g) {
    size_t better = 0, as_good = 0;  // for certain; perhaps
    for (size_t other = 0; other < score.size(); ++other) {
      if (other == g) continue;
      const double lead = score[other] - score[g];
      const double unsure = slack[other] + slack[g];
      better += lead > unsure ? 1 : 0;
      as_good += lead >= -unsure ? 1 : 0;
    }
    for (size_t e = g * size; e < (g + 1) * size; ++e) {
      out.possible[e] = better < route.topk_group;
      out.certain[e] = as_good < route.topk_group;
    }
  }
  return out;
}

bool IsTopK(const RouteKeys& route, const int32_t* ids, size_t top_k) {
  const Bounded& keys = route.keys;
  // Whether a may stand before b.
  const auto may_precede = [&](size_t a, size_t b) {
    const double slack = keys.error[a] + keys.error[b];
    const double lead = keys.value[a] - keys.value[b];
    return lead > -slack || (lead == 0 && a < b);
  };
  std::vector<bool> taken(keys.size());
  for (size_t s = 0; s < top_k; ++s) {
    if (ids[s] < 0 || static_cast<size_t>(ids[s]) >= keys.size()) {
      return false;
    }
    const auto id = static_cast<size_t>(ids[s]);
    if (taken[id] || !route.possible[id]) return false;
    taken[id] = true;
    if (s > 0 && !may_precede(static_cast<size_t>(ids[s - 1]), id)) {
      return false;
    }
  }
  for (size_t e = 0; e < keys.size(); ++e) {
    if (taken[e] || !route.certain[e]) continue;
    for (size_t s = 0; s < top_k; ++s) {
      if (!may_precede(static_cast<size_t>(ids[s]), e)) return false;
    }
  }
  return true;
}

std::vector<int32_t> WithZeroExperts(const RouteKeys& keys, const int32_t* ids,
                                     const MoeShape& shape) {
  std::vector<int32_t> zero(shape.route.num_zero_experts);
  std::iota(zero.begin(), zero.end(), static_cast<int32_t>(shape.num_experts));
  std::stable_sort(zero.begin(), zero.end(), [&](int32_t a, int32_t b) {
    return keys.keys.value[static_cast<size_t>(a)] >
           keys.keys.value[static_cast<size_t>(b)];
  });
  std::vector<int32_t> all(ids, ids + shape.top_k);
  size_t used = 0;
  for (int32_t& id : all) {
    if (id != -1) continue;
    if (used == zero.size()) return {};
    id = zero[used++];
  }
  return all;
}

Bounded RouteWeightsOf(const Bounded& logits, const int32_t* ids,
                       const MoeShape& shape, const RouteVectors& vectors) {
  const RouteOptions& route = shape.route;
  const size_t top_k = shape.top_k;
  const Bounded x = MappedOf(logits, route, vectors);
  const auto id = [&](size_t s) { return static_cast<size_t>(ids[s]); };
  Bounded out(top_k);
  const bool of_selected = route.weight_of == WeightOf::kSoftmaxOfSelected;
  if (of_selected || route.score == Score::kSoftmax) {
    const Exponentials exps(x);
    double selected = 0;
    double range = 0;
    for (size_t s = 0; s < top_k; ++s) {
      selected += exps.value[id(s)];
      range = std::max(range, exps.max - x.value[id(s)]);
    }
    double divisor = exps.all;
    if (of_selected) {
      divisor = selected;
    } else if (route.renormalize) {
      const double least = route.divisor == Divisor::kMaxOfSumAndShare
                               ? static_cast<double>(route.clamp)
                           : route.divisor == Divisor::kMaxOfSumAndEps
                               ? static_cast<double>(route.eps)
                               : 0.0;
      divisor = std::max(selected, least * exps.all);
      if (route.divisor == Divisor::kSumPlusEps) {
        divisor += static_cast<double>(route.eps) * exps.all;
      }
    }
    const double relative = exps.RelativeError(range, top_k);
    for (size_t s = 0; s < top_k; ++s) {
      out.value[s] = exps.value[id(s)] / divisor;
      out.error[s] = out.value[s] * relative + kTiny;
    }
  } else {
    const Score score = route.weight_of == WeightOf::kSigmoidOfSelected
                            ? Score::kSigmoid
                            : route.score;
    double sum = route.divisor == Divisor::kSumPlusEps
                     ? static_cast<double>(route.eps)
                     : 0.0;
    double sum_error = 0;
    for (size_t s = 0; s < top_k; ++s) {
      ScoreOne(x.value[id(s)], x.error[id(s)], score, &out.value[s],
               &out.error[s]);
      sum += out.value[s];
      sum_error += out.error[s];
    }
    sum_error += SumError(top_k, sum);
    for (size_t s = 0; route.renormalize && s < top_k; ++s) {
      out.value[s] /= sum;
      out.error[s] =
          sum > sum_error
              ? (out.error[s] + out.value[s] * sum_error) / (sum - sum_error)
              : INFINITY;
      out.error[s] += kUnit * out.value[s] + kTiny;
    }
  }
  for (size_t s = 0; s < top_k; ++s) {
    double factor = static_cast<double>(route.routed_scaling_factor);
    if (vectors.expert_scale != nullptr) {
      factor *= static_cast<double>(vectors.expert_scale[id(s)]);
    }
    out.value[s] *= factor;
    out.error[s] =
        out.error[s] * std::fabs(factor) + 2 * kUnit * std::fabs(out.value[s]);
  }
  return out;
}

}  // namespace moe_layer
