// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What `swy compare` says of two runs.

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

using SwyCompare = ResultsTest;

TEST_F(SwyCompare, TellsSlowerFromFasterFromTheSame) {
  const Times wide = {100, 140, 90, 120, 80, 130};
  const std::string a =
      Write("a.json", {Entries("k/a/X", kTight), Entries("k/b/X", kTight),
                       Entries("k/c/X", kTight), Entries("k/d/X", wide)});
  const std::string b = Write("b.json", {Entries("k/a/X", Scaled(kTight, 1.2)),
                                         Entries("k/b/X", kTight),
                                         Entries("k/c/X", Scaled(kTight, 0.8)),
                                         Entries("k/d/X", Scaled(wide, 1.1))});
  const std::string files = a + " " + b;
  EXPECT_EQ(RowOf(files, "k/a/X"),
            (std::vector<std::string>{"slower", "100.35", "120.42", "1.2000",
                                      "0.0022", "6", "6"}));
  EXPECT_EQ(VerdictOf(files, "k/b/X"), "same");
  EXPECT_EQ(VerdictOf(files, "k/c/X"), "faster");
  EXPECT_EQ(VerdictOf(files, "k/d/X"), "same");

  const Outcome outcome = SwyOk("compare " + files);
  EXPECT_TRUE(
      outcome.Printed("\nmedian ratio 1.050: 1 faster, 1 slower, 2 the same\n"))
      << outcome.out;
  EXPECT_TRUE(outcome.Printed("One process a side")) << outcome.out;
  const std::vector<std::string> lines = Lines(outcome.out);
  ASSERT_GE(lines.size(), 5u);
  EXPECT_EQ(lines[4],
            "k/a/X                                         100 ns    120 ns   "
            "1.200  slower");
  ExpectFitsATerminal(outcome.out);
}

TEST_F(SwyCompare, SmallDifferencesAreNoise) {
  const std::string files =
      Write("a.json", {Entries("x", kTight)}) + " " +
      Write("b.json", {Entries("x", Scaled(kTight, 1.049))});
  EXPECT_EQ(VerdictOf(files, "x"), "same");
  EXPECT_EQ(VerdictOf(files + " --noise 4", "x"), "slower");
  EXPECT_EQ(VerdictOf(files + " --noise 4.95", "x"), "same");
}

TEST_F(SwyCompare, FewRepetitionsHaveToLieFarApart) {
  const std::string a =
      Write("a.json", {Entries("apart", {100, 110, 105}),
                       Entries("close", {100, 110, 105}),
                       Entries("two", {100, 101}), Entries("one", {100})});
  const std::string b =
      Write("b.json", {Entries("apart", {120, 125, 126, 127}),
                       Entries("close", {112, 114, 116}),
                       Entries("two", {200, 201}), Entries("one", {200})});
  const std::string files = a + " " + b;
  EXPECT_EQ(VerdictOf(files, "apart"), "slower");
  EXPECT_EQ(RowOf(files, "apart")[4], "");  // no p
  EXPECT_EQ(VerdictOf(files, "close"), "same");
  EXPECT_EQ(VerdictOf(files, "two"), "?");
  EXPECT_EQ(VerdictOf(files, "one"), "?");
  const Outcome outcome = SwyOk("compare " + files);
  EXPECT_TRUE(outcome.Printed("0 faster, 1 slower, 1 the same\n2 unknown (?)"))
      << outcome.out;
  ExpectFitsATerminal(outcome.out);
}

// Each process tells the same of itself, all of them something else.
TEST_F(SwyCompare, ProcessesHaveToAgree) {
  std::string old_files = "--old", new_files = "--new";
  const double of_old[] = {1.0, 1.1, 1.2}, of_new[] = {1.15, 1.25, 1.3};
  for (size_t i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    old_files +=
        " " + Write("a" + number,
                    {Entries("luck", Scaled(kTight, of_old[i])),
                     Entries("truth", kTight), Entries("small", kTight)});
    new_files +=
        " " + Write("b" + number, {Entries("luck", Scaled(kTight, of_new[i])),
                                   Entries("truth", Scaled(kTight, 1.1)),
                                   Entries("small", Scaled(kTight, 1.021))});
  }
  const std::string files = old_files + " " + new_files;
  EXPECT_EQ(VerdictOf(files, "luck"), "same");
  EXPECT_EQ(VerdictOf(files, "truth"), "slower");
  EXPECT_EQ(VerdictOf(files, "small"), "slower");
  EXPECT_EQ(RowOf(files, "luck")[5], "18");
  const Outcome outcome = SwyOk("compare " + files);
  EXPECT_TRUE(outcome.Printed(" and 2 more")) << outcome.out;
  EXPECT_FALSE(outcome.Printed("One process")) << outcome.out;
}

TEST_F(SwyCompare, NamesInOneFileAreListed) {
  std::vector<json> many = {Entries("both", kTight)};
  for (int i = 0; i < 15; ++i) {
    many.push_back(Entries("new" + std::to_string(i), kTight));
  }
  const std::string files =
      Write("a.json", {Entries("both", kTight), Entries("gone", kTight)}) +
      " " + Write("b.json", many);
  const Outcome outcome = SwyOk("compare " + files);
  EXPECT_TRUE(outcome.Printed("\nonly in old: gone\nonly in new: new0\n"));
  EXPECT_TRUE(outcome.Printed("\nonly in new: 5 more\n")) << outcome.out;
  EXPECT_TRUE(outcome.Printed("\n1 only in old, 15 only in new\n"));
  EXPECT_EQ(VerdictOf(files, "gone"), "only in old");
  EXPECT_EQ(VerdictOf(files, "new14"), "only in new");
}

TEST_F(SwyCompare, ChangedLeavesOutTheSame) {
  const std::string files =
      Write("a.json", {Entries("x", kTight), Entries("y", kTight)}) + " " +
      Write("b.json", {Entries("x", Scaled(kTight, 2)), Entries("y", kTight)});
  const Outcome outcome = SwyOk("compare --changed " + files);
  EXPECT_TRUE(outcome.Printed("\nx ")) << outcome.out;
  EXPECT_FALSE(outcome.Printed("\ny ")) << outcome.out;
  EXPECT_TRUE(outcome.Printed("1 slower, 1 the same")) << outcome.out;
}

TEST_F(SwyCompare, FailAboveIsForPrograms) {
  const std::string files =
      Write("a.json", {Entries("x", kTight), Entries("y", kTight)}) + " " +
      Write("b.json", {Entries("x", Scaled(kTight, 1.1)),
                       Entries("y", Scaled(kTight, 1.2))});
  const Outcome failed = Swy("compare --fail-above 5 " + files);
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(failed.err,
            "swy: 2 more than 5 % slower; the most: y, ratio 1.200\n");
  EXPECT_TRUE(failed.Printed("2 slower")) << failed.out;
  EXPECT_EQ(Swy("compare --fail-above 15 " + files).err,
            "swy: 1 more than 15 % slower; the most: y, ratio 1.200\n");
  SwyOk("compare --fail-above 25 " + files);
  SwyOk("compare " + files);
}

// Slower, but in noise: no failure.
TEST_F(SwyCompare, FailAboveLeavesNoiseAlone) {
  const Times wide = {100, 140, 90, 120, 80, 130};
  SwyOk("compare --fail-above 1 " + Write("a.json", {Entries("x", wide)}) +
        " " + Write("b.json", {Entries("x", Scaled(wide, 1.1))}));
}

TEST_F(SwyCompare, AFailedBenchmarkIsSaid) {
  json failed = Entries("x", {0});
  failed[0]["error_occurred"] = true;
  failed[0]["error_message"] = "wrong result";
  const std::string a =
      Write("a.json", {Entries("x", kTight), Entries("y", kTight)});
  const std::string b = Write("b.json", {failed, Entries("y", kTight)});
  const Outcome outcome = SwyOk("compare " + a + " " + b);
  EXPECT_TRUE(outcome.Printed("\nfailed in new: x: wrong result\n"))
      << outcome.out;
  EXPECT_TRUE(outcome.Printed("\n1 failed in new\n")) << outcome.out;
  const Outcome strict = Swy("compare --fail-above 5 " + a + " " + b);
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_EQ(strict.err, "swy: failed: x: wrong result\n");
  // And nothing else is there.
  const std::string c = Write("c.json", {failed});
  const Outcome alone = Swy("compare " + a + " " + c);
  EXPECT_EQ(alone.out.find("nan"), std::string::npos) << alone.out;
}

// What Google Benchmark says of how it timed is no part of a name, unless two
// of a file differ in it.
TEST_F(SwyCompare, TimesHaveUnits) {
  json per_unit = Entries("x", Scaled(kTight, 16));
  for (json& entry : per_unit) entry["units"] = 16.0;
  const std::string a =
      Write("a.json", {per_unit, Entries("ms", kTight, "ms")});
  const std::string b =
      Write("b.json", {per_unit, Entries("ms", Scaled(kTight, 1e3), "us")});
  EXPECT_EQ(RowOf(a + " " + b, "x")[1], "100.35");
  EXPECT_EQ(VerdictOf(a + " " + b, "ms"), "same");
  const Outcome outcome = SwyOk("compare " + a + " " + b);
  EXPECT_TRUE(outcome.Printed("time of a unit")) << outcome.out;
  EXPECT_TRUE(outcome.Printed("100 ms")) << outcome.out;
  EXPECT_EQ(RowOf("--cpu-time " + a + " " + b, "x")[1], "200.7");
}

// Files with aggregates only: the median, of which nothing more is known.
TEST_F(SwyCompare, LongNamesAndOddOnesFitATerminal) {
  const std::string longish(50, 'n'), longer(200, 'm');
  const std::vector<json> entries = {
      Entries(longish, kTight), Entries(longer, kTight),
      Entries("caf\u00e9/\u03bc", kTight), Entries("a\tb\x1b[31m", kTight)};
  const json context = {{"date", std::string(100, '9')},
                        {"cpu_model", std::string(100, 'c')}};
  const std::string a = Write("a.json", entries, context);
  const Outcome outcome = SwyOk("compare " + a + " " + a);
  ExpectFitsATerminal(outcome.out);
  EXPECT_TRUE(outcome.Printed("\n" + longish + "\n   ")) << outcome.out;
  EXPECT_TRUE(outcome.Printed("mmm...mmm")) << outcome.out;
  EXPECT_TRUE(outcome.Printed("\na\\tb\\x1b[31m  ")) << outcome.out;
  EXPECT_TRUE(SwyOk("compare --format md " + a + " " + a)
                  .Printed("| " + longer + " | same |"));
}

TEST_F(SwyCompare, NamesAreQuotedInTables) {
  const std::string a = Write("a.json", {Entries("f<int, \"a\">|1", kTight)});
  EXPECT_TRUE(SwyOk("compare --format csv " + a + " " + a)
                  .Printed("\n\"f<int, \"\"a\"\">|1\",same,"));
  EXPECT_TRUE(SwyOk("compare --format md " + a + " " + a)
                  .Printed("\n| f\\<int, \"a\">\\|1 | same |"));
}

TEST_F(SwyCompare, DifferentMachinesAreSaid) {
  const std::string a =
      Write("a.json", {Entries("x", kTight)}, {{"cpu_model", "One"}});
  const std::string b =
      Write("b.json", {Entries("x", kTight)}, {{"cpu_model", "Two"}});
  EXPECT_TRUE(SwyOk("compare " + a + " " + b).Printed("different machines"));
  EXPECT_FALSE(SwyOk("compare " + a + " " + a).Printed("different machines"));
}

TEST_F(SwyCompare, ReadsWhatSwyBenchWrites) {
  const std::string path = folder_.File("own.json");
  SwyOk("bench --kernel bucket gather --seconds 0 --tokens 2 --json '" + path +
        "'");
  const Outcome outcome = SwyOk("compare '" + path + "' '" + path + "'");
  EXPECT_TRUE(outcome.Printed("median ratio 1.000: 0 faster, 0 slower, "));
  EXPECT_FALSE(outcome.Printed("  ?\n")) << outcome.out;
  ExpectFitsATerminal(outcome.out);
}

// JSON has no such numbers, but Python and Google Benchmark write them.

}  // namespace
}  // namespace switchyard::testing_support
