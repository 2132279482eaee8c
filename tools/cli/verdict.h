// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Whether two runs of a benchmark differ by more than noise.

#ifndef SWITCHYARD_TOOLS_CLI_VERDICT_H_
#define SWITCHYARD_TOOLS_CLI_VERDICT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tools/cli/results.h"

namespace swy {

enum class Verdict { kFaster, kSlower, kSame, kUnknown };
const char* VerdictText(Verdict verdict);

struct Pair {
  std::string name;
  double old_time, new_time;    // nanoseconds per unit, else per call
  size_t old_count, new_count;  // repetitions
  double p;                     // of the U test; NaN: too few
  Verdict verdict;
  double Ratio() const;  // new / old
};

// What is in a side's files, several of which are several processes.
struct Matched {
  std::vector<Pair> pairs;  // in the order of the old files
  std::vector<std::string> only_old, only_new;
  std::vector<std::string> failed_old, failed_new;  // "name: why"
  bool per_unit = false;                            // of any pair
};

// A pair is faster or slower if all of this holds, else the same:
//  * the times differ by the share `noise` or more;
//  * from 5 repetitions a side on, the U test's p is below 0.01, which with
//    fewer it cannot be. It asks for no distribution, and an outlier is one
//    rank. With 3 or 4 there is a gap between the sides at least as wide as the
//    wider of them, which chance makes in about 1 of 100 cases;
//  * where a side has several files, the same holds for the files' medians
//    (with less than 3 files a side: they do not overlap): repetitions in one
//    process share its luck with addresses.
// With fewer repetitions, and with zero times, it is unknown.
Matched Match(const std::vector<Results>& old_files,
              const std::vector<Results>& new_files, double noise);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_VERDICT_H_
