// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_ROUNDS_H_
#define SWITCHYARD_TOOLS_CLI_ROUNDS_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace swy {

struct Timed {
  std::function<void(size_t repeat)> run;  // `repeat` calls: what is timed
  std::function<void()> prepare = {};      // before each sample, not timed
};

// As Timed::run: the loop is inside, so that a call costs no indirection.
template <class Call>
std::function<void(size_t)> Repeat(Call call) {
  return [call](size_t repeat) mutable {
    for (; repeat != 0; --repeat) call();
  };
}

// What a contender took for a call, in each round.
struct Rounds {
  size_t repeat;  // calls in a sample
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;  // of all threads
};

// Times `contenders` in one process, for so many seconds but at least five
// rounds, in a new random order each round: a fixed order biases by up to 1.4x,
// since neighbours evict each other's data. For the same reason each sample
// follows untimed calls, an eighth of it but at least one. Short calls are
// repeated to samples of 20 us, so that the clock does not count.
std::vector<Rounds> TimeRounds(const std::vector<Timed>& contenders,
                               double seconds);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_ROUNDS_H_
