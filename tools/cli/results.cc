// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/results.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

#include "programs/json.h"
#include "programs/program.h"

namespace swy {
namespace {

using nlohmann::json;
using program::InputError;

// What Google Benchmark appends to a name to say how it was timed.
std::string WithoutEffort(std::string name) {
  static constexpr const char* kPrefixes[] = {
      "iterations:", "repeats:", "min_time:", "min_warmup_time:"};
  static constexpr const char* kWords[] = {"manual_time", "real_time",
                                           "process_time"};
  for (;;) {
    const size_t slash = name.rfind('/');
    if (slash == std::string::npos || slash == 0) return name;
    const std::string last = name.substr(slash + 1);
    const bool effort =
        std::any_of(std::begin(kWords), std::end(kWords),
                    [&](const char* word) { return last == word; }) ||
        std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                    [&](const char* p) { return last.rfind(p, 0) == 0; });
    if (!effort) return name;
    name.resize(slash);
  }
}

std::string TextOf(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

bool IsTrue(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

class Reader {
 public:
  Reader(const std::string& path, Clock clock)
      : key_(clock == Clock::kCpu ? "cpu_time" : "real_time") {
    results_.path = path;
  }

  Results Read() {
    const json file = program::ReadJsonFile(results_.path);
    const json* const benchmarks = Member(file, "benchmarks");
    if (benchmarks == nullptr || !benchmarks->is_array()) {
      Fail("no \"benchmarks\": not a file of Google Benchmark");
    }
    if (const json* const context = Member(file, "context")) {
      results_.date = TextOf(*context, "date");
      results_.cpu = TextOf(*context, "cpu_model");
    }
    for (size_t i = 0; i < benchmarks->size(); ++i) {
      Add((*benchmarks)[i], "benchmarks[" + std::to_string(i) + "]");
    }
    if (results_.benchmarks.empty()) Fail("\"benchmarks\" has no times");
    return std::move(results_);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw InputError(results_.path + ": " + what);
  }

  static const json* Member(const json& value, const char* key) {
    if (!value.is_object()) return nullptr;
    const auto found = value.find(key);
    return found == value.end() ? nullptr : &*found;
  }

  double TimeOf(const json& entry, const std::string& where) const {
    static const std::map<std::string, double> kNanoseconds = {
        {"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const json* const time = Member(entry, key_);
    if (time == nullptr || !time->is_number() || time->get<double>() < 0.0) {
      Fail(where + ": no " + key_);
    }
    const auto unit = kNanoseconds.find(TextOf(entry, "time_unit"));
    if (unit == kNanoseconds.end()) Fail(where + ": no time_unit");
    const double ns = time->get<double>() * unit->second;
    if (!(ns <= 1e18)) Fail(where + ": " + key_ + " above 1e18 ns");
    return ns;
  }

  Benchmark& Find(const std::string& full_name) {
    // Two that differ only in how they were timed stay two.
    std::string name = WithoutEffort(full_name);
    const auto taken = full_name_of_.emplace(name, full_name).first;
    if (taken->second != full_name) name = full_name;
    const auto [at, is_new] = index_.emplace(name, results_.benchmarks.size());
    if (is_new) {
      results_.benchmarks.emplace_back();
      results_.benchmarks.back().name = name;
    }
    return results_.benchmarks[at->second];
  }

  void Add(const json& entry, const std::string& index) {
    const std::string name = TextOf(entry, "name");
    if (name.empty()) Fail(index + ": no name");
    const std::string where = index + " (" + name + ")";
    const std::string run_name = TextOf(entry, "run_name");
    if (TextOf(entry, "run_type") == "aggregate") {
      if (TextOf(entry, "aggregate_name") != "median") return;
      Benchmark& benchmark = Find(run_name.empty() ? name : run_name);
      // Repetitions say more, and are written first.
      if (!benchmark.times.empty() || !benchmark.failure.empty()) return;
      benchmark.times = {TimeOf(entry, where)};
      benchmark.units = UnitsOf(entry);
      return;
    }
    Benchmark& benchmark = Find(name);
    if (IsTrue(entry, "error_occurred") || IsTrue(entry, "skipped")) {
      benchmark.failure =
          TextOf(entry, "error_message") + TextOf(entry, "skip_message");
      if (benchmark.failure.empty()) benchmark.failure = "no reason given";
      return;
    }
    benchmark.times.push_back(TimeOf(entry, where));
    benchmark.units = UnitsOf(entry);
  }

  static double UnitsOf(const json& entry) {
    const json* const units = Member(entry, "units");
    return units != nullptr && units->is_number() && units->get<double>() > 0.0
               ? units->get<double>()
               : 0.0;
  }

  const char* key_;
  Results results_;
  std::map<std::string, size_t> index_;
  std::map<std::string, std::string> full_name_of_;
};

}  // namespace

Results ReadResults(const std::string& path, Clock clock) {
  return Reader(path, clock).Read();
}

}  // namespace swy
