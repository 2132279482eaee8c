// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Findings as text, JSON and SARIF.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/findings.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

using device::Finding;
using device::FindingKind;
using device::FindingsToJson;
using device::FindingsToSarif;
using device::FindingsToText;
using device::Size;

std::vector<Finding> Examples() {
  Finding race;
  race.kind = FindingKind::kMissingBarrier;
  race.kernel = "soft\"max\\";
  race.dispatch = 3;
  race.threadgroup = Size(1, 2, 3);
  race.thread = 7;
  race.text = "soft\"max\\: writes \t\x01 \xC3\xA9 \xFF\xC0\xAF\xED\xA0\x80";
  race.where = {"/src/a b/soft%max.metal", 12, 5};
  race.other = {"reduce.h", 40, 0};
  race.help = "a barrier";
  Finding same;
  same.kind = FindingKind::kSameValue;
  same.kernel = "k";
  same.text = "k: x";
  return {race, same};
}

TEST(DeviceFindingsReport, Text) {
  EXPECT_EQ(FindingsToText({}), "");
  EXPECT_EQ(FindingsToText(Examples()),
            Examples()[0].text + "\n    help: a barrier\nk: x\n");
}

TEST(DeviceFindingsReport, Json) {
  EXPECT_EQ(FindingsToJson({}), "{\"findings\": []}\n");
  EXPECT_EQ(
      FindingsToJson(Examples()),
      "{\"findings\": [\n"
      "  {\"kind\": \"missing-barrier\", \"kernel\": \"soft\\\"max\\\\\", "
      "\"dispatch\": 3, \"threadgroup\": [1, 2, 3], \"thread\": 7, \"text\": "
      "\"soft\\\"max\\\\: writes \\u0009\\u0001 \xC3\xA9 "
      "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\", \"where\": {\"file\": "
      "\"/src/a b/soft%max.metal\", \"line\": 12, \"column\": 5}, \"other\": "
      "{\"file\": \"reduce.h\", \"line\": 40, \"column\": 0}, \"help\": \"a "
      "barrier\"},\n"
      "  {\"kind\": \"same-value\", \"kernel\": \"k\", \"dispatch\": 0, "
      "\"threadgroup\": [0, 0, 0], \"thread\": null, \"text\": \"k: x\", "
      "\"where\": null, \"other\": null, \"help\": \"\"}\n"
      "]}\n");
}

// The demands of code scanning on a SARIF file, read by Python.
constexpr char kCheck[] = R"(
import json, sys
log = json.load(open(sys.argv[1], encoding="utf-8"))
assert log["version"] == "2.1.0" and log["$schema"].endswith("2.1.0.json")
(run,) = log["runs"]
rules = run["tool"]["driver"]["rules"]
assert run["tool"]["driver"]["name"] == "Switchyard"
assert len({rule["id"] for rule in rules}) == len(rules) == 12
for rule in rules:
    assert rule["shortDescription"]["text"]
for result in run["results"]:
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    (location,) = result["locations"]
    place = location.get("physicalLocation", {})
    print(result["ruleId"], result["level"], result["message"]["text"],
          place.get("artifactLocation", {}).get("uri"), place.get("region"),
          location["logicalLocations"][0]["name"],
          [r["physicalLocation"]["artifactLocation"]["uri"] + str(
              r["physicalLocation"]["region"]) + r["message"]["text"]
           for r in result.get("relatedLocations", [])], sep="|")
)";

std::string ReadByPython(const std::string& sarif) {
  const TempFolder folder;
  std::ofstream(folder.File("check.py")) << kCheck;
  std::ofstream(folder.File("log.sarif")) << sarif;
  const Outcome outcome =
      RunProgram("/usr/bin/env", "PYTHONIOENCODING=utf-8 python3 '" +
                                     folder.File("check.py") + "' '" +
                                     folder.File("log.sarif") + "'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << sarif;
  return outcome.out;
}

TEST(DeviceFindingsReport, Sarif) {
  if (std::system("command -v python3 >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "no python3";
  }
  EXPECT_EQ(ReadByPython(FindingsToSarif({})), "");
  const std::string text =
      "soft\"max\\: writes \t\x01 \xC3\xA9 "
      "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF"
      "\xBD. Help: a barrier|";
  const std::string rest =
      "|{'startLine': 12, 'startColumn': 5}|soft\"max\\|[\"reduce.h{'startLine"
      "': 40}the access before\"]\nsame-value|warning|k: x|None|None|k|[]\n";
  const struct {
    const char *root, *uri;
  } cases[] = {
      {"", "file:///src/a%20b/soft%25max.metal"},
      {"/src", "a%20b/soft%25max.metal"},
      {"/src/", "a%20b/soft%25max.metal"},
      {"/sr", "file:///src/a%20b/soft%25max.metal"},
      {"/src/a b/soft%max.metal", "file:///src/a%20b/soft%25max.metal"}};
  for (const auto& c : cases) {
    EXPECT_EQ(ReadByPython(FindingsToSarif(Examples(), c.root)),
              "missing-barrier|error|" + text + c.uri + rest)
        << c.root;
  }
}

}  // namespace
}  // namespace switchyard::testing_support
