// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Which files `swy compare` reads and how, and which it refuses.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/run_program.h"
#include "tests/swy_program.h"
#include "tests/swy_results.h"

namespace switchyard::testing_support {
namespace {

using SwyFiles = ResultsTest;

TEST_F(SwyFiles, NamesLoseWhatSaysHowTheyWereTimed) {
  const std::string files =
      Write("a.json",
            {Entries("k/s/X/min_time:0.100/repeats:6/manual_time", kTight),
             Entries("twice", kTight), Entries("twice/real_time", kTight)}) +
      " " +
      Write("b.json",
            {Entries("k/s/X/iterations:9", kTight), Entries("twice", kTight),
             Entries("twice/real_time", Scaled(kTight, 3))});
  EXPECT_EQ(VerdictOf(files, "k/s/X"), "same");
  EXPECT_EQ(VerdictOf(files, "twice"), "same");
  EXPECT_EQ(VerdictOf(files, "twice/real_time"), "slower");
}

TEST_F(SwyFiles, AggregatesAloneAreTheirMedian) {
  const auto aggregates = [](double median) {
    json all = json::array();
    for (const char* which : {"mean", "median", "stddev", "cv"}) {
      json entry = Entries("x", {median})[0];
      entry["name"] = std::string("x_") + which;
      entry["run_type"] = "aggregate";
      entry["aggregate_name"] = which;
      if (entry["name"] != "x_median") entry["real_time"] = 7.0;
      all.push_back(entry);
    }
    return all;
  };
  const std::string files = Write("a.json", {aggregates(100)}) + " " +
                            Write("b.json", {aggregates(200)});
  EXPECT_EQ(RowOf(files, "x"), (std::vector<std::string>{
                                   "?", "100", "200", "2.0000", "", "1", "1"}));
  // With repetitions in the file, aggregates add nothing.
  const std::string both =
      Write("c.json", {Entries("x", kTight), aggregates(1)});
  EXPECT_EQ(RowOf(both + " " + both, "x")[1], "100.35");
}

TEST_F(SwyFiles, CountersMayBeNoNumbers) {
  std::string text = "{\"benchmarks\": [";
  for (const char* time : {"1", "2", "3"}) {
    text += std::string(time == std::string("1") ? "" : ",") +
            "{\"name\": \"NaN\", \"real_time\": " + time +
            ", \"time_unit\": \"ns\", \"c\": NaN, \"d\": -Infinity, "
            "\"e\": -NaN, \"f\": [Infinity]}";
  }
  const std::string a = WriteText("a.json", text + "]}");
  EXPECT_EQ(RowOf(a + " " + a, "NaN")[1], "2");
}

TEST_F(SwyFiles, WrongFilesAreNamed) {
  const std::string good = Write("good.json", {Entries("x", kTight)});
  const std::string entry = "{\"benchmarks\": [{\"name\": \"x\", ";
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"", ": malformed JSON: "},
      {"{\"benchmarks\": [}", ": malformed JSON: "},
      {"\xff", ": malformed JSON: "},
      {std::string(100000, '['),
       ": malformed JSON: nested more than 64 levels deep"},
      {"[]", ": no \"benchmarks\": not a file of Google Benchmark"},
      {"3", ": no \"benchmarks\": not a file of Google Benchmark"},
      {"{\"context\": {}}",
       ": no \"benchmarks\": not a file of Google Benchmark"},
      {"{\"benchmarks\": {}}",
       ": no \"benchmarks\": not a file of Google Benchmark"},
      {"{\"benchmarks\": []}", ": \"benchmarks\" has no times"},
      {"{\"benchmarks\": [7]}", ": benchmarks[0]: no name"},
      {"{\"benchmarks\": [{\"name\": 7}]}", ": benchmarks[0]: no name"},
      {entry + "\"time_unit\": \"ns\"}]}", ": benchmarks[0] (x): no real_time"},
      {entry + "\"real_time\": \"1\", \"time_unit\": \"ns\"}]}",
       ": benchmarks[0] (x): no real_time"},
      {entry + "\"real_time\": -1, \"time_unit\": \"ns\"}]}",
       ": benchmarks[0] (x): no real_time"},
      {entry + "\"real_time\": NaN, \"time_unit\": \"ns\"}]}",
       ": benchmarks[0] (x): no real_time"},
      {entry + "\"real_time\": 1e308, \"time_unit\": \"s\"}]}",
       ": benchmarks[0] (x): real_time above 1e18 ns"},
      {entry + "\"real_time\": 1}]}", ": benchmarks[0] (x): no time_unit"},
      {entry + "\"real_time\": 1, \"time_unit\": \"h\"}]}",
       ": benchmarks[0] (x): no time_unit"},
  };
  for (const auto& [text, why] : texts) {
    SCOPED_TRACE(text.substr(0, 80));
    const std::string bad = WriteText("bad.json", text);
    const std::string want = "swy: " + folder_.File("bad.json") + why;
    ExpectError(Swy("compare " + good + " " + bad), want);
    ExpectError(Swy("compare " + bad + " " + good), want);
  }
  const std::string other = Write("other.json", {Entries("y", kTight)});
  ExpectRefused(Swy("compare " + good + " " + other),
                "swy: " + folder_.File("good.json") + ", " +
                    folder_.File("other.json") + ": no benchmark is in both");
}

// On a terminal they would be obeyed: U+009B begins a command, as ESC [ does.
TEST_F(SwyFiles, RawBytesAreEscaped) {
  const std::string good = Write("good.json", {Entries("x", kTight)});
  const std::pair<std::string, std::string> texts[] = {
      {"\x9b"
       "31m",
       "last read: '\\x9b'"},
      {"{\"benchmarks\": [{\"name\": "
       "\"\\u001b[31m\\u009b\\u202e\u009b\\n\"}]}",
       "benchmarks[0] (\\x1b[31m\\u009b\\u202e\\u009b\\n): no real_time"}};
  for (const auto& [text, want] : texts) {
    const std::string bad = WriteText("bad.json", text);
    const Outcome outcome = Swy("compare " + good + " " + bad);
    ExpectError(outcome, want);
    for (const char c : outcome.err.substr(0, outcome.err.size() - 1)) {
      EXPECT_TRUE(c >= ' ' && c < 0x7F) << outcome.err;
    }
  }
  // Characters of other languages stay.
  const std::string name = "caf\u00e9/\u03bc \u4e2d \U0001F600";
  ExpectError(Swy("compare " + good + " " +
                  WriteText("bad.json", "{\"benchmarks\": [{\"name\": \"" +
                                            name + "\"}]}")),
              "(" + name + ")");
}

TEST_F(SwyFiles, OnlyRegularFilesAreRead) {
  const std::string good = Write("good.json", {Entries("x", kTight)});
  const std::string pipe = folder_.File("pipe"), huge = folder_.File("huge");
  ExpectRefused(
      Swy("compare " + good + " '" + pipe + "'", "mkfifo '" + pipe + "'; "),
      "swy: " + pipe + ": cannot open: not a regular file");
  ExpectRefused(Swy("compare /no/such/file " + good),
                "swy: /no/such/file: cannot open: No such file or directory");
  ExpectRefused(Swy("compare / " + good),
                "swy: /: cannot open: not a regular file");
  ExpectRefused(Swy("compare /dev/zero " + good),
                "swy: /dev/zero: cannot open: not a regular file");
  ExpectRefused(Swy("compare " + good + " '" + huge + "'",
                    "truncate -s 257M '" + huge + "'; "),
                "swy: " + huge + ": more than 256 MiB");
}

TEST_F(SwyFiles, WrongArgumentsAreErrors) {
  const std::string a = Write("a.json", {Entries("x", kTight)});
  const std::string usage =
      "compare: takes OLD NEW, or --old FILE ... --new FILE ...";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", usage},
      {a, usage},
      {a + " " + a + " " + a, usage},
      {"--old " + a, usage},
      {"--new " + a, usage},
      {a + " " + a + " --old " + a + " --new " + a, usage},
      {"--old --new " + a, "--old"},
      {"--old '' --new " + a, "--old: empty"},
      {"'' " + a, "files: empty"},
      {a + " " + a + " --noise -1", "--noise: Value -1 not in range 0 to 1000"},
      {a + " " + a + " --noise much", "--noise: Value much not in range"},
      {a + " " + a + " --fail-above -1", "--fail-above: Value -1 not in range"},
      {a + " " + a + " --fail-above", "--fail-above"},
      {a + " " + a + " --format json", "--format: json not in {text,md,csv}"},
      {a + " " + a + " --changed=maybe", "--changed"},
      {a + " " + a + " --changed=1", "--changed"},
      {a + " " + a + " --cpu-time=1", "--cpu-time"},
      {a + " " + a + " --isa AVX2", "--isa"},
  };
  for (const auto& [arguments, text] : cases) {
    SCOPED_TRACE(arguments);
    ExpectError(Swy("compare " + arguments), text);
  }
}

TEST_F(SwyFiles, LostOutputIsAnError) {
  const std::string a = Write("a.json", {Entries("x", kTight)});
  for (const char* const format : {"text", "md", "csv"}) {
    ExpectToldThatOutputIsLost(
        SWY_PROGRAM, "compare " + a + " " + a + " --format " + format);
  }
}

}  // namespace
}  // namespace switchyard::testing_support
