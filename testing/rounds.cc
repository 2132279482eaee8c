// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "testing/rounds.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

namespace switchyard::testing_support {
namespace {

constexpr double kSampleSeconds = 20e-6;
constexpr size_t kMinRounds = 5;

double Sample(const Timed& contender, size_t repeat) {
  using Clock = std::chrono::steady_clock;
  if (contender.prepare) contender.prepare();
  const Clock::time_point start = Clock::now();
  contender.run(repeat);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::vector<double> MedianSeconds(const std::vector<Timed>& contenders,
                                  const Effort& effort) {
  std::vector<size_t> repeats;
  double round_seconds = 0.0;
  for (const Timed& contender : contenders) {
    Sample(contender, 1);  // page faults, caches, lazy set-up
    size_t repeat = 1;
    double seconds = Sample(contender, repeat);
    while (seconds < kSampleSeconds && !contender.alone) {
      repeat *= 2;
      seconds = Sample(contender, repeat);
    }
    repeats.push_back(repeat);
    round_seconds += seconds;
  }
  const size_t rounds = std::min(
      effort.rounds,
      std::max(kMinRounds,
               static_cast<size_t>(effort.seconds / (round_seconds + 1e-9))));

  std::vector<std::vector<double>> seconds(contenders.size());
  std::vector<size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(1);
  for (size_t round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) {
      seconds[i].push_back(Sample(contenders[i], repeats[i]) /
                           static_cast<double>(repeats[i]));
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

}  // namespace switchyard::testing_support
