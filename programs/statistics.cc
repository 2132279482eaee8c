// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace program {
namespace {

constexpr size_t kMaxExact = 400;  // products of sizes: 20 and 20

// How often U of samples of sizes n and m is at most u, all orders being as
// likely.
double ExactCdf(size_t n, size_t m, size_t u) {
  // counts[k][s]: ways to choose k ranks of those so far with U = s.
  const size_t most = n * m;
  std::vector<std::vector<double>> counts(n + 1,
                                          std::vector<double>(most + 1, 0.0));
  counts[0][0] = 1.0;
  for (size_t rank = 0; rank < n + m; ++rank) {
    // The k-th smallest of the first sample, of rank r, adds r - (k - 1).
    for (size_t k = std::min(n, rank + 1); k-- > 0;) {
      if (rank < k) continue;
      const size_t adds = rank - k;
      for (size_t s = 0; s + adds <= most; ++s) {
        counts[k + 1][s + adds] += counts[k][s];
      }
    }
  }
  double below = 0.0, all = 0.0;
  for (size_t s = 0; s <= most; ++s) {
    all += counts[n][s];
    if (s <= u) below += counts[n][s];
  }
  return below / all;
}

}  // namespace

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  const double part = at - static_cast<double>(low);
  return values[low] + part * (values[high] - values[low]);
}

double Median(const std::vector<double>& values) {
  return Quantile(values, 0.5);
}

double MannWhitneyP(const std::vector<double>& a,
                    const std::vector<double>& b) {
  if (a.empty() || b.empty()) return 1.0;
  std::vector<std::pair<double, bool>> all;  // value, whether of a
  for (const double value : a) all.emplace_back(value, true);
  for (const double value : b) all.emplace_back(value, false);
  std::sort(all.begin(), all.end());

  // Ranks count from 1; values that tie share the mean of theirs.
  double ranks_of_a = 0.0, ties = 0.0;
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    while (end < all.size() && all[end].first == all[i].first) ++end;
    const auto count = static_cast<double>(end - i);
    ties += count * (count * count - 1.0);
    const double rank = 0.5 * static_cast<double>(i + 1 + end);
    for (; i < end; ++i) ranks_of_a += all[i].second ? rank : 0.0;
  }
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  const double u = ranks_of_a - n * (n + 1.0) / 2.0;
  const double smaller = std::min(u, n * m - u);
  if (ties == 0.0 && a.size() * b.size() <= kMaxExact) {
    const double cdf =
        ExactCdf(a.size(), b.size(), static_cast<size_t>(std::lround(smaller)));
    return std::min(1.0, 2.0 * cdf);
  }
  const double size = n + m;
  const double variance =
      n * m / 12.0 * (size + 1.0 - ties / (size * (size - 1.0)));
  if (!(variance > 0.0)) return 1.0;  // all are equal
  const double z = (n * m / 2.0 - smaller - 0.5) / std::sqrt(variance);
  return std::min(1.0, std::erfc(z / std::sqrt(2.0)));
}

}  // namespace program
