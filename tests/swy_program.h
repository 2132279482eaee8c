// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Helpers for the tests of swy.

#ifndef SWITCHYARD_TESTS_SWY_PROGRAM_H_
#define SWITCHYARD_TESTS_SWY_PROGRAM_H_

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {

inline Outcome Swy(const std::string& arguments,
                   const std::string& environment = "") {
  return RunProgram(SWY_PROGRAM, arguments, environment);
}

inline Outcome SwyOk(const std::string& arguments,
                     const std::string& environment = "") {
  const Outcome outcome = Swy(arguments, environment);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return outcome;
}

// Expects one line on stderr that contains `text`, exit code 2 and nothing on
// stdout.
inline void ExpectError(const Outcome& outcome, const std::string& text) {
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
}

inline std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Expects lines that are no wider than a terminal and have no trailing
// blanks. Counts UTF-8 characters, so it skips continuation bytes.
inline void ExpectFitsATerminal(const std::string& text) {
  for (const std::string& line : Lines(text)) {
    const auto width = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    });
    EXPECT_LE(width, 80) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
  }
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_SWY_PROGRAM_H_
