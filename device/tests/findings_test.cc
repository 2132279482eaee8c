// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the findings of a run. A run reports several findings, each of them
// once, and continues the kernel if it can.

#include "switchyard/device/findings.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/src/checked/suppressions.h"
#include "device/tests/checked_kernels.h"
#include "device/tests/finding_queue.h"
#include "gtest/gtest.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

// A kernel that makes three mistakes in every threadgroup. It reads scratch
// memory that nothing has written, races over two arrays, and accesses a
// buffer out of bounds.
const auto kBroken = [](auto& tg) {
  const auto out = buffer<float>(tg, 0);
  const auto a = threadgroup_array<float, 64>(tg);
  const auto b = threadgroup_array<float, 64>(tg);
  const auto c = threadgroup_array<float, 64>(tg);
  const size_t group = tg.threadgroup_position_in_grid.width;
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    a[i] = static_cast<float>(i);
    b[i] = 1.0f;
    if (i == 9) out[group] = c[i];
  });
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    const float x = a[i ^ 1], y = b[i ^ 1];
    if (i == 63) out[4 + group] = x + y;
  });
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup == 5 && group == 1) out[1000] = 1.0f;
  });
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup == 5) out[8 + group] = 2.0f;
  });
};

TEST(DeviceFindings, EachOnceAndInOrder) {
  FindingQueue q;
  const BufferPtr out = q.Floats(16, 0.0f);
  const std::vector<Finding> found = q.Find("broken", kBroken, {out}, 3, 64);
  ASSERT_EQ(Kinds(found), (Strings{"never-written", "missing-barrier",
                                   "missing-barrier", "bounds"}));
  EXPECT_EQ(found[0].text,
            "broken: threadgroup (0, 0, 0), thread 9: reads threadgroup array "
            "2[9], which no thread has written");
  EXPECT_EQ(found[1].text,
            "broken: threadgroup (0, 0, 0), thread 0: reads threadgroup array "
            "0[1], which thread 1 wrote in the same phase: a "
            "simdgroup_barrier is missing");
  EXPECT_EQ(found[1].help,
            "simdgroup_barrier(mem_flags::mem_threadgroup) between the two "
            "accesses");
  EXPECT_EQ(found[3].text,
            "broken: threadgroup (1, 0, 0), thread 5: writes buffer 0[1000], "
            "which has 16 elements");
  EXPECT_EQ(found[3].kernel, "broken");
  EXPECT_EQ(found[3].thread, 5u);
  EXPECT_EQ(found[3].threadgroup.width, 1u);
  EXPECT_FALSE(found[3].where.known());
  // Threadgroup 1 ended early; all others completed.
  EXPECT_EQ(q.last->status(), CommandBufferStatusError);
  const std::vector<float> values = Contents<float>(out);
  EXPECT_EQ(values[4], 63.0f);
  EXPECT_EQ(values[6], 63.0f);
  EXPECT_EQ(values[8], 2.0f);
  EXPECT_EQ(values[9], 0.0f);
  EXPECT_EQ(values[10], 2.0f);
  // The next command buffer starts without findings.
  EXPECT_EQ(Kinds(q.Find("broken", kBroken, {out}, 1, 64)),
            (Strings{"never-written", "missing-barrier", "missing-barrier"}));
}

// Two pairs of threads race. A weak barrier would be enough for threads 0 and
// 1, which race first. Threads 31 and 32 race later and need a stronger
// barrier, which the finding must name.
TEST(DeviceFindings, TheStrongestPairNamesTheBarrier) {
  for (const uint32_t threads : {64u, 32u}) {
    FindingQueue q;
    const auto kernel = [](auto& tg) {
      const auto a = threadgroup_array<float, 64>(tg);
      const auto out = buffer<float>(tg, 0);
      const size_t n = tg.threads_per_threadgroup.width;
      tg.for_each_thread(
          [&](auto t) { a[t.thread_index_in_threadgroup] = 1.0f; });
      tg.for_each_thread([&](auto t) {
        const size_t i = t.thread_index_in_threadgroup;
        out[i] = a[(i + 1) % n];
      });
    };
    const std::vector<Finding> found =
        q.Find("k", kernel, {q.Floats(64, 0.0f)}, 1, threads);
    ASSERT_EQ(found.size(), 1u);
    const std::string pair =
        threads == 64 ? "31: reads threadgroup array 0[32], which thread 32"
                      : "0: reads threadgroup array 0[1], which thread 1";
    const std::string barrier =
        threads == 64 ? "threadgroup_barrier" : "simdgroup_barrier";
    EXPECT_EQ(found[0].text, "k: threadgroup (0, 0, 0), thread " + pair +
                                 " wrote in the same phase: a " + barrier +
                                 " is missing");
    EXPECT_EQ(found[0].help, barrier +
                                 "(mem_flags::mem_threadgroup) between "
                                 "the two accesses");
    EXPECT_EQ(q.last->error(), found[0].text);
  }
}

TEST(DeviceFindings, TheFirstN) {
  CheckedOptions options;
  options.max_findings = 2;
  FindingQueue q(options);
  const BufferPtr out = q.Floats(16, 0.0f);
  EXPECT_EQ(Kinds(q.Find("broken", kBroken, {out}, 3, 64)),
            (Strings{"never-written", "missing-barrier"}));
  // The run ends before the second write.
  EXPECT_EQ(Contents<float>(out)[8], 0.0f);
  options.max_findings = 0;
  EXPECT_EQ(FindingQueue(options).Find("broken", kBroken, {out}, 3, 64).size(),
            4u);
}

TEST(DeviceFindings, OneStopsBeforeItHappens) {
  CheckedOptions options;
  options.max_findings = 1;
  FindingQueue q(options);
  const BufferPtr x = q.Floats(64, 0.0f);
  const auto races = [](auto& tg) {
    const auto out = buffer<float>(tg, 0);
    tg.for_each_thread([&](auto t) {
      out[0] = static_cast<float>(t.thread_index_in_threadgroup + 1);
    });
  };
  EXPECT_EQ(Kinds(q.Find("races", races, {x}, 1, 64)),
            (Strings{"missing-barrier"}));
  EXPECT_EQ(Contents<float>(x)[0], 1.0f);
  EXPECT_EQ(Kinds(FindingQueue().Find("races", races, {x}, 1, 64)),
            (Strings{"missing-barrier"}));
  EXPECT_EQ(Contents<float>(x)[0], 64.0f);
}

// If a threadgroup cannot continue after a mistake, later dispatches do not
// run.
TEST(DeviceFindings, OfSeveralDispatches) {
  FindingQueue q;
  const BufferPtr x = q.Floats(64, 0.0f), y = q.Floats(64, 0.0f);
  const auto run = [&](size_t threadgroups) {
    return q.Find(
        [&](Encoder& e) {
          q.Fill(x, threadgroups)(e);
          q.Copy(x, y)(e);  // without a memoryBarrier
          q.Dispatch(
              e, "same",
              [](auto& tg) {
                const auto out = buffer<uint32_t>(tg, 0);
                tg.for_each_thread([&](auto) { out[63] = 3; });
              },
              {y}, 2, 32);
        },
        DispatchTypeConcurrent);
  };
  const std::vector<Finding> found = run(2);
  ASSERT_EQ(Kinds(found), (Strings{"missing-memory-barrier", "same-value"}));
  EXPECT_EQ(found[0].text,
            "copy: threadgroup (0, 0, 0), thread 0: reads buffer 0[0], which "
            "dispatch 0 (fill) wrote: memoryBarrier is missing between it and "
            "dispatch 1");
  EXPECT_EQ(found[0].dispatch, 1u);
  EXPECT_EQ(found[0].help,
            "memoryBarrier(BarrierScopeBuffers) between it and dispatch 1");
  EXPECT_EQ(found[1].kernel, "same");
  EXPECT_EQ(found[1].dispatch, 2u);
  EXPECT_EQ(Contents<uint32_t>(y)[0], 3u);
  EXPECT_EQ(Kinds(run(3)), (Strings{"bounds"}));
}

// If both threads of a race write the same value, the finding's kind is
// same-value. This is tested for words, halves of words and larger elements.
TEST(DeviceFindings, SameValue) {
  FindingQueue q;
  const BufferPtr x = q.Floats(64);
  const auto write = [](auto of) {
    return [of](auto& tg) {
      using T = decltype(of(size_t{0}));
      const auto out = buffer<T>(tg, 0);
      tg.for_each_thread(
          [&](auto t) { out[1] = of(t.thread_index_in_threadgroup); });
    };
  };
  struct Four {
    float values[4];
  };
  const Strings same = {"same-value"}, other = {"missing-barrier"};
  EXPECT_EQ(Kinds(q.Find("k", write([](size_t) { return 5u; }), {x}, 1, 40)),
            same);
  EXPECT_EQ(Kinds(q.Find("k", write([](size_t i) { return i; }), {x}, 1, 40)),
            other);
  EXPECT_EQ(
      Kinds(q.Find("k", write([](size_t) { return uint16_t{5}; }), {x}, 1, 40)),
      same);
  EXPECT_EQ(
      Kinds(q.Find("k", write([](size_t i) { return static_cast<uint8_t>(i); }),
                   {x}, 1, 40)),
      other);
  EXPECT_EQ(Kinds(q.Find("k", write([](size_t) {
                           return Four{{1, 2, 3, 4}};
                         }),
                         {x}, 1, 40)),
            same);
  EXPECT_EQ(Kinds(q.Find("k", write([](size_t i) {
                           return Four{{1, 2, 3, static_cast<float>(i)}};
                         }),
                         {x}, 1, 40)),
            other);
  // All threads except the last one write the same value.
  EXPECT_EQ(Kinds(q.Find("k", write([](size_t i) { return i == 39 ? 6u : 5u; }),
                         {x}, 1, 40)),
            (Strings{"same-value", "missing-barrier"}));
  // This race is between threadgroups.
  EXPECT_EQ(Kinds(q.Find("k", write([](size_t) { return 5u; }), {x}, 2, 1)),
            same);
}

TEST(DeviceFindings, TwoThreadsAreNamed) {
  FindingQueue q;
  // All threads read, and then one thread writes. The finding must name a
  // reader that is not the writer itself.
  for (size_t writer = 0; writer < 64; writer += 21) {
    const auto kernel = [writer](auto& tg) {
      const auto scratch = threadgroup_array<float, 1>(tg);
      auto v = tg.per_thread(0.0f);
      tg.for_each_thread([&](auto t) {
        if (t.thread_index_in_threadgroup == 0) scratch[0] = 1.0f;
      });
      tg.threadgroup_barrier();
      tg.for_each_thread([&](auto t) { v[t] = scratch[0]; });
      tg.for_each_thread([&](auto t) {
        if (t.thread_index_in_threadgroup == writer) scratch[0] = 2.0f;
      });
    };
    const std::vector<Finding> found = q.Find("k", kernel, {}, 1, 64);
    ASSERT_EQ(found.size(), 1u);
    const std::string other = writer == 0 ? "32" : "0";
    EXPECT_EQ(found[0].text,
              "k: threadgroup (0, 0, 0), thread " + std::to_string(writer) +
                  ": writes threadgroup array 0[0], which thread " + other +
                  " read, and others, in the same phase: a "
                  "threadgroup_barrier is missing");
  }
}

// There is a barrier between the two accesses, but its flag is for the other
// kind of memory (device or threadgroup).
TEST(DeviceFindings, BarrierFlags) {
  FindingQueue q;
  const BufferPtr x = q.Floats(64);
  const auto kernel = [](mem_flags flags, bool simdgroup, size_t distance,
                         bool local) {
    return [=](auto& tg) {
      const auto device = buffer<float>(tg, 0);
      const auto scratch = threadgroup_array<float, 64>(tg);
      const auto memory = local ? scratch : device;
      tg.for_each_thread(
          [&](auto t) { memory[t.thread_index_in_threadgroup] = 1.0f; });
      if (simdgroup) {
        tg.simdgroup_barrier(flags);
      } else {
        tg.threadgroup_barrier(flags);
      }
      auto v = tg.per_thread(0.0f);
      tg.for_each_thread([&](auto t) {
        v[t] = memory[t.thread_index_in_threadgroup ^ distance];
      });
    };
  };
  const struct {
    mem_flags flags;
    bool simdgroup;
    size_t distance;
    bool local;
    const char *kind, *end, *help;
  } cases[] = {
      {mem_flags::mem_threadgroup, false, 32, false, "barrier-flags",
       "the threadgroup_barrier between them has mem_threadgroup, this is "
       "device memory: it needs mem_device",
       "threadgroup_barrier(mem_flags::mem_device | "
       "mem_flags::mem_threadgroup) between the two accesses"},
      {mem_flags::mem_device, false, 1, true, "barrier-flags",
       "the threadgroup_barrier between them has mem_device, this is "
       "threadgroup memory: it needs mem_threadgroup",
       "threadgroup_barrier(mem_flags::mem_threadgroup | "
       "mem_flags::mem_device) between the two accesses"},
      {mem_flags::mem_none, false, 32, true, "barrier-flags",
       "the threadgroup_barrier between them has mem_none, this is threadgroup "
       "memory: it needs mem_threadgroup",
       "threadgroup_barrier(mem_flags::mem_threadgroup) between the two "
       "accesses"},
      {mem_flags::mem_none, true, 1, true, "barrier-flags",
       "the simdgroup_barrier between them has mem_none, this is threadgroup "
       "memory: it needs mem_threadgroup",
       "simdgroup_barrier(mem_flags::mem_threadgroup) between the two "
       "accesses"},
      {mem_flags::mem_none, true, 32, true, "missing-barrier",
       "a threadgroup_barrier is missing",
       "threadgroup_barrier(mem_flags::mem_threadgroup) between the two "
       "accesses"},
  };
  for (const auto& c : cases) {
    const std::vector<Finding> found = q.Find(
        "k", kernel(c.flags, c.simdgroup, c.distance, c.local), {x}, 1, 64);
    ASSERT_EQ(Kinds(found), (Strings{c.kind})) << c.end;
    EXPECT_EQ(found[0].text.substr(found[0].text.rfind("phase: ") + 7), c.end);
    EXPECT_EQ(found[0].help, c.help);
  }
  // A barrier that comes before the write does not separate the two accesses.
  const auto before = [](auto& tg) {
    const auto scratch = threadgroup_array<float, 64>(tg);
    tg.threadgroup_barrier(mem_flags::mem_none);
    auto v = tg.per_thread(0.0f);
    tg.for_each_thread(
        [&](auto t) { scratch[t.thread_index_in_threadgroup] = 1.0f; });
    tg.for_each_thread(
        [&](auto t) { v[t] = scratch[t.thread_index_in_threadgroup ^ 1]; });
  };
  EXPECT_EQ(Kinds(q.Find("k", before, {}, 1, 64)),
            (Strings{"missing-barrier"}));
}

// The next tests write findings as text, JSON and SARIF.

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

// A Python program that checks a SARIF file against the requirements of code
// scanning.
constexpr char kCheck[] = R"(
import json, sys
log = json.load(open(sys.argv[1], encoding="utf-8"))
assert log["version"] == "2.1.0" and log["$schema"].endswith("2.1.0.json")
(run,) = log["runs"]
rules = run["tool"]["driver"]["rules"]
assert run["tool"]["driver"]["name"] == "Switchyard"
assert len({rule["id"] for rule in rules}) == len(rules) == 13
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
    GTEST_SKIP() << "no python3: apt-get install python3";
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

// The next tests are about DeviceOptions::suppressions: which findings they
// match, and which of them are invalid.

using device::kernel_internal::Suppressions;

Finding Race(const char* kernel = "softmax_f32") {
  Finding finding;
  finding.kind = FindingKind::kMissingBarrier;
  finding.kernel = kernel;
  finding.text = "softmax_f32: threadgroup (0, 0, 0), thread 0: writes x[3]";
  finding.where = {"/src/kernels/softmax.metal", 12, 5};
  finding.other = {"kernels/reduce.h", 40, 1};
  return finding;
}

bool Match(const std::string& line, const Finding& finding = Race()) {
  const Suppressions suppressions({line});
  EXPECT_EQ(suppressions.problem(), "") << line;
  return suppressions.Match(finding);
}

TEST(DeviceSuppressions, WhatTheyAreFor) {
  for (const char* const line :
       {"race:softmax_f32", "missing-barrier:softmax_f32", "race:*",
        "race:soft*", "race:*f32", "race:s*m*x*2", "race:**",
        "race:softmax_f32:softmax.metal", "race:softmax_f32:softmax.metal:12",
        "race:softmax_f32:kernels/softmax.metal:12",
        "race:softmax_f32:/src/kernels/softmax.metal:12", "race:*:*.metal:12",
        "race:softmax_f32:reduce.h:40", "text:writes x[3]"}) {
    EXPECT_TRUE(Match(line)) << line;
  }
  for (const char* const line :
       {"race:softmax", "race:softmax_f3", "race:max*", "barrier-flags:*",
        "never-written:*", "same-value:*", "race:softmax_f32:max.metal",
        "race:softmax_f32:softmax.metal:13", "race:softmax_f32:softmax.meta",
        "race:softmax_f32:reduce.h:12", "race:other:softmax.metal:12",
        "text:writes x[4]"}) {
    EXPECT_FALSE(Match(line)) << line;
  }
  Finding finding = Race();
  for (const FindingKind kind :
       {FindingKind::kRace, FindingKind::kMissingBarrier,
        FindingKind::kBarrierFlags, FindingKind::kMissingMemoryBarrier,
        FindingKind::kSameValue}) {
    finding.kind = kind;
    EXPECT_TRUE(Match("race:*", finding));
    EXPECT_TRUE(Match(std::string(NameOf(kind)) + ":*", finding) ||
                kind == FindingKind::kRace);
  }
  finding.kind = FindingKind::kNeverWritten;
  EXPECT_TRUE(Match("never-written:*", finding));
  EXPECT_FALSE(Match("race:*", finding));
  finding.where = finding.other = Place();
  EXPECT_FALSE(Match("never-written:*:*", finding));
  finding.kind = FindingKind::kBounds;
  EXPECT_FALSE(Match("text:writes", finding));
}

TEST(DeviceSuppressions, WhatIsWrong) {
  const struct {
    const char *line, *why;
  } cases[] = {
      {"", "there is no kind \"\""},
      {"races:k", "there is no kind \"races\""},
      {"*:k", "there is no kind \"*\""},
      {"race", "the kernel's name is missing"},
      {"race:", "the kernel's name is missing"},
      {"race::f.metal", "the kernel's name is missing"},
      {"race:k:", "the file's name is missing"},
      {"race:k::3", "the file's name is missing"},
      {"race:k:f.metal:", "\"\" is not a line number"},
      {"race:k:f.metal:x", "\"x\" is not a line number"},
      {"race:k:f.metal:0", "\"0\" is not a line number"},
      {"race:k:f.metal:-1", "\"-1\" is not a line number"},
      {"race:k:f.metal:99999999999", "\"99999999999\" is not a line number"},
      {"text:", "a text is missing"},
      {"bounds:k", "bounds ends a threadgroup and cannot be suppressed"},
      {"misuse:k", "misuse ends a threadgroup and cannot be suppressed"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Suppressions({"race:good", c.line, "text:"}).problem(),
              "suppressions: \"" + std::string(c.line) + "\": " + c.why);
  }
  DeviceOptions options;
  options.suppressions = {"rays:k"};
  EXPECT_EQ(CheckedQueue(CreateDevice(options)).Run([](Encoder&) {}), "");
  options.check_kernels = true;
  EXPECT_EQ(CheckedQueue(CreateDevice(options)).Run([](Encoder&) {}),
            "suppressions: \"rays:k\": there is no kind \"rays\"");
}

// Suppressed findings do not count, and the run still reports later findings.
TEST(DeviceSuppressions, TheRestIsFound) {
  const auto kernel = [](auto& tg) {
    const auto out = buffer<uint32_t>(tg, 0);
    const auto scratch = threadgroup_array<uint32_t, 4>(tg);
    tg.for_each_thread([&](auto) { scratch[0] = 1; });
    tg.for_each_thread([&](auto t) {
      out[0] = static_cast<uint32_t>(t.thread_index_in_threadgroup);
    });
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_threadgroup == 0) out[1] = scratch[2];
    });
  };
  const auto find = [&](std::vector<std::string> suppressions, size_t most) {
    DeviceOptions options;
    options.check_kernels = true;
    options.max_findings = most;
    options.suppressions = std::move(suppressions);
    CheckedQueue q(CreateDevice(options));
    return q.Run("k", kernel, {q.Floats(64)}, 1, 32);
  };
  const std::string begin = "k: threadgroup (0, 0, 0), thread ";
  const std::string same =
      begin +
      "1: writes threadgroup array 0[0], which thread 0 wrote in the same "
      "phase: a simdgroup_barrier is missing";
  const std::string race =
      begin +
      "1: writes buffer 0[0], which thread 0 wrote in the same phase: a "
      "simdgroup_barrier with mem_device is missing";
  const std::string fresh =
      begin + "0: reads threadgroup array 0[2], which no thread has written";
  for (const size_t most : {1u, 2u, 20u}) {
    EXPECT_EQ(find({}, most), same);
    EXPECT_EQ(find({"same-value:*"}, most), race);
    EXPECT_EQ(find({"race:k"}, most), fresh);
    EXPECT_EQ(find({"race:j"}, most), same);
    EXPECT_EQ(find({"race:k", "never-written:k"}, most), "");
    EXPECT_EQ(find({"text:array 0[0]", "text:buffer 0[0]"}, most), fresh);
  }
}

}  // namespace
}  // namespace switchyard::testing_support
