// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// DeviceOptions::suppressions: which findings they are for, and which of them
// are wrong.

#include "src/device/checked/suppressions.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/checked_kernels.h"

namespace switchyard::testing_support {
namespace {

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
      {"race:k:f.metal:", "\"\" is no line"},
      {"race:k:f.metal:x", "\"x\" is no line"},
      {"race:k:f.metal:0", "\"0\" is no line"},
      {"race:k:f.metal:-1", "\"-1\" is no line"},
      {"race:k:f.metal:99999999999", "\"99999999999\" is no line"},
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

// Suppressed findings are not counted, and those behind them are found.
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
      "phase: a threadgroup_barrier is missing";
  const std::string race =
      begin +
      "1: writes buffer 0[0], which thread 0 wrote in the same phase: a "
      "threadgroup_barrier with mem_device is missing";
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
