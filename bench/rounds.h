// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_BENCH_ROUNDS_H_
#define SWITCHYARD_BENCH_ROUNDS_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace switchyard {
namespace bench {

// Median seconds of each of `contenders`, timed `rounds` times in one process,
// in a new random order each round: a fixed order biases by up to 1.4x, since
// neighbours evict each other's data, and medians leave out what else the
// machine does.
std::vector<double> MedianSeconds(
    const std::vector<std::function<void()>>& contenders, size_t rounds);

}  // namespace bench
}  // namespace switchyard

#endif  // SWITCHYARD_BENCH_ROUNDS_H_
