// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace switchyard {
namespace reference {

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double Silu(double x) {
  if (x <= static_cast<double>(-87.33655f)) return -0.0;
  if (std::isinf(x)) return x;
  return x / (1.0 + std::exp(-x));
}

Route RouteRow(const std::vector<float>& logits, size_t top_k, bool renormalize,
               double clamp) {
  Route route;
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)];
    const float y = logits[static_cast<size_t>(b)];
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
    return x > y;
  });
  route.ids.assign(order.begin(),
                   order.begin() + static_cast<ptrdiff_t>(top_k));
  const auto logit = [&](int32_t id) {
    return static_cast<double>(logits[static_cast<size_t>(id)]);
  };
  const double max = logit(order[0]);
  const bool any_nan = std::isnan(logit(order.back()));
  if (any_nan || max == -std::numeric_limits<double>::infinity()) {
    route.weights.assign(
        top_k, any_nan ? std::numeric_limits<double>::quiet_NaN() : 0.0);
    return route;
  }
  // exp(l - max), with +inf experts at 1 each and everyone else at 0.
  const auto unnormalised = [&](int32_t id) {
    if (std::isinf(max)) return logit(id) == max ? 1.0 : 0.0;
    return std::exp(logit(id) - max);
  };
  double all = 0.0;
  for (const int32_t id : order) all += unnormalised(id);
  double selected = 0.0;
  for (const int32_t id : route.ids) selected += unnormalised(id);
  const double divisor = renormalize ? std::max(selected, clamp * all) : all;
  for (const int32_t id : route.ids) {
    route.weights.push_back(unnormalised(id) / divisor);
  }
  return route;
}

Buckets Bucket(const std::vector<int32_t>& selected, size_t num_experts) {
  Buckets buckets;
  std::vector<std::vector<int32_t>> per_expert(num_experts);
  for (size_t p = 0; p < selected.size(); ++p) {
    const int32_t e = selected[p];
    if (e < 0 || static_cast<size_t>(e) >= num_experts) {
      ++buckets.dropped;
    } else {
      per_expert[static_cast<size_t>(e)].push_back(static_cast<int32_t>(p));
    }
  }
  buckets.row_index.assign(selected.size(), -1);
  buckets.offsets.push_back(0);
  for (const std::vector<int32_t>& pairs : per_expert) {
    for (const int32_t p : pairs) {
      buckets.row_index[static_cast<size_t>(p)] =
          static_cast<int32_t>(buckets.pairs.size());
      buckets.pairs.push_back(p);
    }
    const int32_t count = static_cast<int32_t>(pairs.size());
    buckets.tpe.push_back(count);
    buckets.offsets.push_back(buckets.offsets.back() + count);
    buckets.max_tpe = std::max(buckets.max_tpe, count);
  }
  return buckets;
}

void Sum::Add(double term) {
  value += term;
  magnitude += std::fabs(term);
  ++terms;
}

}  // namespace reference
}  // namespace switchyard
