// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What `swy compare` decides by. Expected p-values are those of SciPy 1.11's
// mannwhitneyu(alternative="two-sided").

#include <cmath>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "programs/statistics.h"

namespace program {
namespace {

TEST(Statistics, QuantilesLieBetweenValues) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_EQ(Quantile(values, 0.0), 1.0);
  EXPECT_EQ(Quantile(values, 0.25), 1.75);
  EXPECT_EQ(Median(values), 2.5);
  EXPECT_EQ(Quantile(values, 1.0), 4.0);
  EXPECT_EQ(Median({7}), 7.0);
  EXPECT_EQ(Median({3, 1, 2}), 2.0);
  EXPECT_TRUE(std::isnan(Median({})));
}

TEST(Statistics, SmallSamplesHaveTheExactP) {
  EXPECT_NEAR(MannWhitneyP({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}),
              0.007936507936507936, 1e-12);
  EXPECT_NEAR(MannWhitneyP({6, 7, 8, 9, 10}, {1, 2, 3, 4, 5}),
              0.007936507936507936, 1e-12);
  EXPECT_NEAR(MannWhitneyP({1.1, 2, 3, 4.5, 9, 11}, {2.5, 6, 7, 8, 10}),
              0.5367965367965368, 1e-12);
  EXPECT_EQ(MannWhitneyP({1, 4}, {2, 3}), 1.0);
}

TEST(Statistics, TiesAndLargeSamplesAreApproximated) {
  EXPECT_NEAR(MannWhitneyP({1, 2, 2, 3, 3}, {2, 3, 4, 4, 5, 6}),
              0.050290292752133155, 1e-12);
  std::vector<double> a(30), b;
  std::iota(a.begin(), a.end(), 0.0);
  for (const double value : a) b.push_back(value + 5.5);
  EXPECT_NEAR(MannWhitneyP(a, b), 0.027086318388295935, 1e-12);
}

TEST(Statistics, WhatIsEqualOrEmptyDoesNotDiffer) {
  EXPECT_EQ(MannWhitneyP({5, 5, 5, 5, 5}, {5, 5, 5, 5, 5}), 1.0);
  EXPECT_EQ(MannWhitneyP({1, 2}, {}), 1.0);
}

}  // namespace
}  // namespace program
