// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// For the tests of swy compare: files of Google Benchmark, written by hand.

#ifndef SWITCHYARD_TESTS_SWY_RESULTS_H_
#define SWITCHYARD_TESTS_SWY_RESULTS_H_

#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/run_program.h"
#include "tests/swy_program.h"

namespace switchyard::testing_support {

using nlohmann::json;

using Times = std::vector<double>;
const Times kTight = {100, 101, 100.5, 99.8, 100.2, 100.9};  // median 100.35

inline Times Scaled(Times times, double by) {
  for (double& time : times) time *= by;
  return times;
}

// An entry per time, as Google Benchmark writes repetitions.
inline json Entries(const std::string& name, const Times& times,
                    const std::string& unit = "ns") {
  json entries = json::array();
  for (size_t i = 0; i < times.size(); ++i) {
    entries.push_back({{"name", name},
                       {"run_name", name},
                       {"run_type", "iteration"},
                       {"repetitions", times.size()},
                       {"repetition_index", i},
                       {"threads", 1},
                       {"iterations", 1000},
                       {"real_time", times[i]},
                       {"cpu_time", 2 * times[i]},
                       {"time_unit", unit}});
  }
  return entries;
}

class ResultsTest : public testing::Test {
 protected:
  // The quoted path of a file with these entries.
  std::string Write(const std::string& name, const std::vector<json>& parts,
                    const json& context = json::object()) {
    json entries = json::array();
    for (const json& part : parts) {
      entries.insert(entries.end(), part.begin(), part.end());
    }
    return WriteText(
        name, json{{"context", context}, {"benchmarks", entries}}.dump());
  }
  std::string WriteText(const std::string& name, const std::string& text) {
    std::ofstream(folder_.File(name)) << text;
    return "'" + folder_.File(name) + "'";
  }
  // What is said of a benchmark: verdict, old, new, ratio, p, counts.
  static std::vector<std::string> RowOf(const std::string& arguments,
                                        const std::string& name) {
    const Outcome outcome = SwyOk("compare --format csv " + arguments);
    for (const std::string& line : Lines(outcome.out)) {
      if (line.rfind(name + ",", 0) != 0) continue;
      std::vector<std::string> cells;
      std::stringstream stream(line.substr(name.size() + 1));
      for (std::string cell; std::getline(stream, cell, ',');) {
        cells.push_back(cell);
      }
      return cells;
    }
    ADD_FAILURE() << name << " is not in\n" << outcome.out;
    return std::vector<std::string>(7);
  }
  static std::string VerdictOf(const std::string& arguments,
                               const std::string& name) {
    return RowOf(arguments, name)[0];
  }

  TempFolder folder_;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_SWY_RESULTS_H_
