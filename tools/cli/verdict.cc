// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "programs/statistics.h"

namespace swy {
namespace {

constexpr double kMaxP = 0.01;
constexpr size_t kFew = 3, kEnough = 5;

// A benchmark in all files of a side.
struct Sample {
  std::vector<double> times;    // of all files
  std::vector<double> medians;  // of each file
  double units = 0.0;           // 0: not said, or not by all
  std::string failure;
};

struct Side {
  std::vector<std::string> names;  // in order
  std::map<std::string, Sample> samples;
};

Side Gather(const std::vector<Results>& files) {
  Side side;
  for (const Results& file : files) {
    for (const Benchmark& benchmark : file.benchmarks) {
      const auto [at, is_new] = side.samples.emplace(benchmark.name, Sample());
      Sample& sample = at->second;
      if (is_new) side.names.push_back(benchmark.name);
      if (!benchmark.failure.empty()) sample.failure = benchmark.failure;
      if (benchmark.times.empty()) continue;
      // Of another size than in the file before: not per unit, then.
      sample.units = sample.times.empty() || sample.units == benchmark.units
                         ? benchmark.units
                         : 0.0;
      sample.times.insert(sample.times.end(), benchmark.times.begin(),
                          benchmark.times.end());
      sample.medians.push_back(program::Median(benchmark.times));
    }
  }
  return side;
}

struct Range {
  double low, high;
};
Range RangeOf(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high};
}
// Negative if they overlap.
double Gap(const Range& a, const Range& b) {
  return std::max(a.low, b.low) - std::min(a.high, b.high);
}

// Whether two samples differ by more than chance makes them, as far as so few
// can tell.
bool Apart(const std::vector<double>& a, const std::vector<double>& b) {
  const size_t fewest = std::min(a.size(), b.size());
  if (fewest >= kEnough) return program::MannWhitneyP(a, b) < kMaxP;
  const Range range_a = RangeOf(a), range_b = RangeOf(b);
  const double gap = Gap(range_a, range_b);
  if (fewest < kFew) return gap > 0.0;
  return gap > 0.0 && gap >= std::max(range_a.high - range_a.low,
                                      range_b.high - range_b.low);
}

void Scale(Sample& sample) {
  for (double& time : sample.times) time /= sample.units;
  for (double& median : sample.medians) median /= sample.units;
}

Pair MakePair(const std::string& name, Sample a, Sample b, double noise) {
  if (a.units > 0.0 && b.units > 0.0) {
    Scale(a);
    Scale(b);
  }
  Pair pair = {name,
               program::Median(a.medians),
               program::Median(b.medians),
               a.times.size(),
               b.times.size(),
               std::nan(""),
               Verdict::kSame};
  const size_t fewest = std::min(pair.old_count, pair.new_count);
  if (fewest >= kEnough) pair.p = program::MannWhitneyP(a.times, b.times);
  if (fewest < kFew || pair.old_time <= 0.0 || pair.new_time <= 0.0) {
    pair.verdict = Verdict::kUnknown;
  } else if (std::fabs(pair.Ratio() - 1.0) >= noise &&
             Apart(a.times, b.times) && Apart(a.medians, b.medians)) {
    pair.verdict = pair.Ratio() < 1.0 ? Verdict::kFaster : Verdict::kSlower;
  }
  return pair;
}

}  // namespace

const char* VerdictText(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      return "faster";
    case Verdict::kSlower:
      return "slower";
    case Verdict::kSame:
      return "same";
    case Verdict::kUnknown:
      break;
  }
  return "?";
}

double Pair::Ratio() const {
  return old_time == new_time ? 1.0 : new_time / old_time;
}

Matched Match(const std::vector<Results>& old_files,
              const std::vector<Results>& new_files, double noise) {
  const Side old_side = Gather(old_files), new_side = Gather(new_files);
  Matched matched;
  for (const std::string& name : old_side.names) {
    const Sample& sample = old_side.samples.at(name);
    const auto other = new_side.samples.find(name);
    if (!sample.failure.empty()) {
      matched.failed_old.push_back(name + ": " + sample.failure);
    } else if (other == new_side.samples.end()) {
      matched.only_old.push_back(name);
    } else if (other->second.failure.empty()) {
      matched.pairs.push_back(MakePair(name, sample, other->second, noise));
      matched.per_unit |= sample.units > 0.0 && other->second.units > 0.0;
    }
  }
  for (const std::string& name : new_side.names) {
    const Sample& sample = new_side.samples.at(name);
    if (!sample.failure.empty()) {
      matched.failed_new.push_back(name + ": " + sample.failure);
    } else if (old_side.samples.count(name) == 0) {
      matched.only_new.push_back(name);
    }
  }
  return matched;
}

}  // namespace swy
