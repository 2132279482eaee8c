// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_BENCH_REPORT_H_
#define SWITCHYARD_BENCH_REPORT_H_

#include <string>
#include <vector>

#include "bench/asks.h"
#include "bench/contest.h"

namespace switchyard {
namespace bench {

// Where and with what the figures were taken.
struct Machine {
  std::string date;  // UTC
  std::string cpu;
  unsigned cores = 0;
  std::string caches;
  std::string isas;
  std::string compiler;
  std::string highway, tbb, onednn;
  std::string load;  // averages over 1, 5 and 15 minutes, before the run
};
Machine DescribeMachine();

std::string Json(const Machine& machine, const std::vector<Result>& results,
                 const std::vector<Ask>& asks);
std::string Markdown(const Machine& machine, const std::vector<Result>& results,
                     const std::vector<Ask>& asks);

}  // namespace bench
}  // namespace switchyard

#endif  // SWITCHYARD_BENCH_REPORT_H_
