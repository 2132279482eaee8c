// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Of repeated measurements.

#ifndef SWITCHYARD_PROGRAMS_STATISTICS_H_
#define SWITCHYARD_PROGRAMS_STATISTICS_H_

#include <vector>

namespace program {

// Between the two values around q * (n - 1), as numpy does; q in [0, 1]. NaN of
// no values.
double Quantile(std::vector<double> values, double q);
double Median(const std::vector<double>& values);

// The two-sided p-value of the Mann-Whitney U test: how often two samples of
// one distribution differ in rank at least as much. Exact for small samples
// without ties, else by the normal approximation, corrected for ties and for
// continuity. 1 if one is empty.
double MannWhitneyP(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_STATISTICS_H_
