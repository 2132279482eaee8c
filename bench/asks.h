// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What is asked of the kernels' speed, against what was measured.

#ifndef SWITCHYARD_BENCH_ASKS_H_
#define SWITCHYARD_BENCH_ASKS_H_

#include <string>
#include <vector>

#include "bench/contest.h"

namespace switchyard {
namespace bench {

struct Ask {
  std::string what;
  double bound;
  bool at_most;   // or at least
  double figure;  // NaN: not measured in this run
  bool Measured() const { return figure == figure; }
  bool Met() const { return at_most ? figure <= bound : figure >= bound; }
};

std::vector<Ask> Asks(const std::vector<Result>& results);

}  // namespace bench
}  // namespace switchyard

#endif  // SWITCHYARD_BENCH_ASKS_H_
