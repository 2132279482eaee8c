// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/rounds.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <numeric>
#include <random>

namespace swy {
namespace {

constexpr double kSampleSeconds = 20e-6;
constexpr size_t kMinRounds = 5;

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

struct Sample {
  double seconds;
  double cpu_seconds;
};

Sample Take(const Timed& contender, size_t repeat) {
  using Clock = std::chrono::steady_clock;
  if (contender.prepare) contender.prepare();
  contender.run(repeat / 8 + 1);
  const double cpu_start = CpuSeconds();
  const Clock::time_point start = Clock::now();
  contender.run(repeat);
  const Clock::time_point end = Clock::now();
  return {std::chrono::duration<double>(end - start).count(),
          CpuSeconds() - cpu_start};
}

}  // namespace

std::vector<Rounds> TimeRounds(const std::vector<Timed>& contenders,
                               double seconds) {
  std::vector<Rounds> all;
  double round_seconds = 0.0;
  for (const Timed& contender : contenders) {
    size_t repeat = 1;
    double sample = Take(contender, repeat).seconds;
    while (sample < kSampleSeconds) {
      repeat *= 2;
      sample = Take(contender, repeat).seconds;
    }
    all.push_back({repeat, {}, {}});
    round_seconds += sample * (repeat == 1 ? 2.0 : 1.125);
  }
  const size_t rounds = std::max(
      kMinRounds, static_cast<size_t>(seconds / (round_seconds + 1e-9)));

  std::vector<size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(1);
  for (size_t round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) {
      const Sample sample = Take(contenders[i], all[i].repeat);
      const auto calls = static_cast<double>(all[i].repeat);
      all[i].seconds.push_back(sample.seconds / calls);
      all[i].cpu_seconds.push_back(sample.cpu_seconds / calls);
    }
  }
  return all;
}

}  // namespace swy
