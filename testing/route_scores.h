// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Parts of the reference for RouteTopK(): the order of keys, the sums, the
// library's scores, and formulas with which tests compare these scores.

#ifndef SWITCHYARD_TESTING_ROUTE_SCORES_H_
#define SWITCHYARD_TESTING_ROUTE_SCORES_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "src/calls/names.h"
#include "src/simd/route.h"
#include "switchyard/route.h"
#include "testing/floats.h"
#include "testing/inputs.h"

namespace switchyard::testing_support {

template <class T>
std::vector<T> RowOf(const std::vector<T>& all, size_t row, size_t cols) {
  if (all.empty()) return {};
  const auto begin = all.begin() + static_cast<ptrdiff_t>(row * cols);
  return {begin, begin + static_cast<ptrdiff_t>(cols)};
}

// True if a comes before b in descending order; NaN comes last.
inline bool Before(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  return a > b;
}
inline std::vector<size_t> Order(const std::vector<float>& keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return Before(keys[a], keys[b]);
  });
  return order;
}

// Adds element i to lane i mod 32, but skips NaNs. Then adds the upper half
// of the lanes to the lower half until one lane is left (16, 8, 4, 2, 1).
inline float SumOfLanes(const std::vector<float>& values) {
  float lanes[32] = {};
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i])) lanes[i % 32] += values[i];
  }
  for (size_t half = 16; half != 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  return lanes[0];
}

// Returns the library's score of each element of `x`. Calls RouteTopK() with
// all experts as given ids and without renormalize, so that the weights are
// the scores. Replaces NaNs first, because a single NaN would make all
// weights NaN.
inline std::vector<float> Scores(std::vector<float> x, Score score, Type round,
                                 const RouteOptions& map = {}) {
  const size_t n = x.size();
  for (float& f : x) {
    if (std::isnan(f)) f = score == Score::kSoftmax ? -kInf : 0.0f;
  }
  RouteOptions o = map;
  o.renormalize = false;
  o.score = score;
  o.round_to = round;
  std::vector<int32_t> all(n), ids(n);
  std::iota(all.begin(), all.end(), 0);
  std::vector<float> values(n);
  RouteInputs in = {{x.data(), 1, n}};
  in.given_ids = all;
  const Status status =
      RouteTopK(in, {{ids.data(), 1, n}, {values.data(), 1, n}}, o);
  if (!status.ok()) values.assign(n, kNaN);
  return values;
}

// All values of the enums in RouteOptions. Tests, benchmarks, fuzzers and the
// corpus loop over these arrays, so that they also cover values that are
// added later.
inline constexpr auto& kScores = calls::kEnumerators<Score>;
inline constexpr auto& kWeightsOf = calls::kEnumerators<WeightOf>;
inline constexpr auto& kDivisors = calls::kEnumerators<Divisor>;
inline constexpr auto& kBiasPlaces = calls::kEnumerators<BiasPlace>;
using calls::NameOf;

// Computes a score that depends on one logit only, by its formula in the
// arithmetic of T. `exp` is the exponential function.
template <class T, class Exp>
T ScoreOfLogit(Score score, T x, const Exp& exp) {
  switch (score) {
    case Score::kSigmoid:
      return T{1} / (T{1} + exp(-x));
    case Score::kSqrtSoftplus:
      return std::sqrt(std::max(x, T{0}) + std::log1p(exp(-std::fabs(x))));
    case Score::kSoftmax:  // of all logits: ExactScore()
    case Score::kRaw:
    case Score::kSparsemixer:
      return x;
  }
  return x;
}

// The largest error that a score may have.
struct ScoreAccuracy {
  // The limit in route.h. It is 0 if the score is exact, and also if it
  // depends on several logits, because tests of one logit skip such a score.
  double ulps;
  double tiny, tiny_f16;  // absolute errors, in f32 and rounded to f16
};
inline ScoreAccuracy AccuracyOf(Score score) {
  switch (score) {
    case Score::kSigmoid:
      return {2.5, 0x1p-125, 0x1p-125};
    case Score::kSqrtSoftplus:  // the root of a softplus that may be 0
      return {2.0, 0x1p-62, 0x1p-12};
    case Score::kSoftmax:
    case Score::kRaw:
    case Score::kSparsemixer:
      return {0.0, 0x1p-125, 0x1p-125};
  }
  return {};
}

inline double ExactScore(Score score, double x, double max, double sum) {
  const auto exp = [](double y) { return std::exp(y); };
  if (score != Score::kSoftmax) return ScoreOfLogit(score, x, exp);
  return (std::isinf(max) ? (x == max ? 1.0 : 0.0) : exp(x - max)) / sum;
}

// Returns the weights of the two experts that kSparsemixer selected.
inline std::vector<double> SparsemixerWeights(const std::vector<float>& x,
                                              const RouteOptions& o,
                                              const std::vector<int32_t>& ids) {
  const auto round = [&](float f) { return Rounded(o.round_to, f); };
  const float most = round(2.0f * o.jitter_eps);
  std::vector<double> weights;
  for (size_t i = 0; i < 2; ++i) {
    const float top = x[static_cast<size_t>(ids[i])];
    double sum = 0.0;
    for (size_t e = 0; e < x.size(); ++e) {
      if (i == 1 && static_cast<int32_t>(e) == ids[0]) continue;
      const float size = std::fabs(x[e]);
      const float factor = size < top ? top : size;
      if (round(round(top - x[e]) / factor) > most) continue;
      sum += ExactScore(Score::kSoftmax, static_cast<double>(x[e]),
                        static_cast<double>(top), 1.0);
    }
    weights.push_back(top == -kInf ? 0.0 : 1.0 / sum);
  }
  return weights;
}

// True if `value` differs from `exact` by no more than the given errors and
// the rounding to `round`.
inline bool IsNear(float value, double exact, double relative, double absolute,
                   Type round) {
  if (std::isnan(exact)) return std::isnan(value);
  if (std::isinf(exact)) return static_cast<double>(value) == exact;
  if (round == Type::kF16) {
    absolute += 0x1p-24;
    if (std::fabs(exact) > 65000.0) return std::fabs(value) > 64000.0f;
  }
  relative += round == Type::kBF16 ? 0x1p-8 : round == Type::kF16 ? 0x1p-10 : 0;
  return std::fabs(static_cast<double>(value) - exact) <=
         std::fabs(exact) * relative + absolute;
}

inline std::string Wrong(const char* what, size_t i, double is,
                         double expected) {
  return std::string(what) + " " + std::to_string(i) + " is " +
         std::to_string(is) + ", expected " + std::to_string(expected);
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_ROUTE_SCORES_H_
