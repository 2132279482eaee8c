// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/rounds.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

namespace switchyard {
namespace bench {

std::vector<double> MedianSeconds(
    const std::vector<std::function<void()>>& contenders, size_t rounds) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> seconds(contenders.size());
  std::vector<size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(1);
  for (size_t round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) {
      const Clock::time_point start = Clock::now();
      contenders[i]();
      seconds[i].push_back(
          std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& all : seconds) {
    const auto middle =
        all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    medians.push_back(*middle);
  }
  return medians;
}

}  // namespace bench
}  // namespace switchyard
