// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "testing/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "testing/inputs.h"

namespace switchyard::reference {

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
  // exp(l - max). If the maximum is infinite, experts at the maximum count as
  // 1 and all others as 0.
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

namespace {

// A bound for the relative error of weight j, in units of 2^-24. x is the
// logit of j minus the largest logit. The bound adds up:
// * |x|, for the rounding of this subtraction.
// * 2 * exp: exp is within 1.5 ulp, which is 3 units (6 without FMA), in the
//   weight and in the divisor.
// * log(terms), for the rounding of the subtraction in each term of the
//   divisor. This error is the mean of |x| over the terms, weighted with the
//   terms. The mean is at most log(terms).
// * the additions of the divisor, the product of the clamp, and the division.
double WeightBound(double x, size_t experts, size_t top_k, bool all, bool fma) {
  const double exp = fma ? 3.0 : 6.0;
  const size_t terms = all ? experts : top_k;
  const size_t adds = all ? std::max(top_k, experts / 32 + 6) : top_k;
  return std::fabs(x) + 2.0 * exp + std::log(static_cast<double>(terms)) +
         static_cast<double>(adds) + 2.0;
}

}  // namespace

std::string WrongRoute(const std::vector<float>& logits,
                       const RouteOptions& options,
                       const std::vector<int32_t>& ids,
                       const std::vector<float>& weights, bool fma) {
  using testing_support::Bits;
  const double clamp = static_cast<double>(options.clamp);
  const size_t top_k = ids.size();
  const Route exact = RouteRow(logits, top_k, options.renormalize, clamp);
  const bool all =
      !options.renormalize ||
      clamp * static_cast<double>(logits.size()) > static_cast<double>(top_k);
  const auto logit = [&](size_t slot) {
    return static_cast<double>(logits[static_cast<size_t>(exact.ids[slot])]);
  };
  for (size_t j = 0; j < top_k; ++j) {
    const auto slot = [j] { return "slot " + std::to_string(j) + ": "; };
    if (ids[j] != exact.ids[j]) {
      return slot() + "expert " + std::to_string(ids[j]) + ", expected " +
             std::to_string(exact.ids[j]);
    }
    const auto is = [&](uint32_t bits) {
      return Bits(weights[j]) == bits
                 ? std::string()
                 : slot() + "bits " + std::to_string(Bits(weights[j])) +
                       ", expected " + std::to_string(bits);
    };
    std::string wrong;
    const double x = std::isinf(logit(0)) ? 0.0 : logit(j) - logit(0);
    if (std::isnan(exact.weights[j])) {
      wrong = is(0x7FC00000u);
    } else if (logit(j) == logit(0) && j != 0) {
      wrong = is(Bits(weights[0]));
    } else if ((std::isinf(logit(j)) && logit(j) < 0.0) || x <= -87.4) {
      wrong = is(0);  // exp(x) is exactly zero, not denormal
    } else {
      const double bound =
          0x1p-24 * WeightBound(x, logits.size(), top_k, all, fma);
      // exp may have been flushed to zero, and the quotient may be denormal.
      const double flush = x < -87.3 ? 0x1p-126 : 0x1p-149;
      const double weight = static_cast<double>(weights[j]);
      if (!(std::fabs(weight - exact.weights[j]) <=
            exact.weights[j] * bound + flush)) {
        wrong = slot() + "weight " + std::to_string(weight) + ", expected " +
                std::to_string(exact.weights[j]);
      }
    }
    if (!wrong.empty()) return wrong;
  }
  return "";
}

Buckets Bucket(const std::vector<int32_t>& topk_ids, size_t num_experts) {
  Buckets buckets;
  std::vector<std::vector<int32_t>> per_expert(num_experts);
  for (size_t p = 0; p < topk_ids.size(); ++p) {
    const int32_t e = topk_ids[p];
    if (e < 0 || static_cast<size_t>(e) >= num_experts) {
      ++buckets.dropped;
    } else {
      per_expert[static_cast<size_t>(e)].push_back(static_cast<int32_t>(p));
    }
  }
  buckets.row_index.assign(topk_ids.size(), -1);
  buckets.offsets.push_back(0);
  for (const std::vector<int32_t>& pairs : per_expert) {
    for (const int32_t p : pairs) {
      buckets.row_index[static_cast<size_t>(p)] =
          static_cast<int32_t>(buckets.pairs.size());
      buckets.pairs.push_back(p);
    }
    const int32_t count = static_cast<int32_t>(pairs.size());
    buckets.tokens_per_expert.push_back(count);
    buckets.offsets.push_back(buckets.offsets.back() + count);
    buckets.max_rows = std::max(buckets.max_rows, pairs.size());
  }
  return buckets;
}

}  // namespace switchyard::reference
