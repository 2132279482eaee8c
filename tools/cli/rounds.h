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
  bool alone = false;                      // never repeated
};

// As Timed::run: the loop is inside, so that a call costs no indirection.
template <class Call>
std::function<void(size_t)> Repeat(Call call) {
  return [call](size_t repeat) mutable {
    for (; repeat != 0; --repeat) call();
  };
}

struct Effort {
  size_t rounds = 301;   // at most
  double seconds = 3.0;  // for all of them, but at least five rounds
  // Untimed calls before each sample, an eighth of it but at least one, so that
  // none is measured in what its neighbour left in the caches.
  bool warm_up = false;
};

// What a contender took for a call, in each round.
struct Rounds {
  size_t repeat;  // calls in a sample
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;  // of all threads
};

// Times `contenders` in one process, in a new random order each round: a fixed
// order biases by up to 1.4x, since neighbours evict each other's data. Short
// calls are repeated to samples of 20 us, so that the clock does not count.
std::vector<Rounds> TimeRounds(const std::vector<Timed>& contenders,
                               const Effort& effort);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_ROUNDS_H_
