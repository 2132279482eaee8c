// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/isa.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/activate.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

void RunAKernel() {
  float x = 1.0f;
  ASSERT_OK(Activate({{&x, 1, 1}, {&x, 1, 1}}, {{&x, 1, 1}}));
}

TEST(Isa, RunnableIsASubsetOfCompiledInTheSameOrder) {
  const std::vector<std::string> compiled = IsaNames(CompiledIsas());
  const std::vector<std::string> runnable = RunnableIsaNames();
  ASSERT_FALSE(runnable.empty());
  EXPECT_EQ(std::set<std::string>(compiled.begin(), compiled.end()).size(),
            compiled.size());
  size_t next = 0;
  for (const std::string& name : compiled) {
    if (next < runnable.size() && runnable[next] == name) ++next;
  }
  EXPECT_EQ(next, runnable.size());
  // The fallback runs everywhere, and is the last resort.
  EXPECT_EQ(runnable.back(), compiled.back());
}

TEST(Isa, CompiledForMoreThanTheFallback) {
  // One ISA only means that run-time dispatch was lost on the way, say by flags
  // that choose a CPU.
  EXPECT_GE(CompiledIsas().size, 2u);
}

TEST(Isa, FmaIsWhatTheNameSays) {
  for (const Isa& isa : CompiledIsas()) {
    const std::string name = isa.name;
    const auto starts = [&](const std::string& with) {
      return name.compare(0, with.size(), with) == 0;
    };
    if (starts("AVX") || starts("SVE") || starts("NEON")) {
      EXPECT_TRUE(isa.fma) << name;
    }
    if (starts("SSE") || name == "SSSE3") {
      EXPECT_FALSE(isa.fma) << name;
    }
  }
}

TEST(Isa, TheBestRunnableOneIsActiveByDefault) {
  EXPECT_STREQ(ActiveIsa().name, RunnableIsas().data[0].name);
  RunAKernel();
  EXPECT_STREQ(LastIsa()->name, RunnableIsas().data[0].name);
}

TEST(Isa, ACapSelectsEachRunnableOneAndIsLifted) {
  for (const std::string& name : RunnableIsaNames()) {
    ASSERT_OK(CapIsa(name.c_str()));
    EXPECT_EQ(ActiveIsa().name, name);
    RunAKernel();
    EXPECT_EQ(LastIsa()->name, name);
  }
  ASSERT_OK(CapIsa(nullptr));
  RunAKernel();
  EXPECT_STREQ(LastIsa()->name, RunnableIsas().data[0].name);
}

TEST(Isa, AnUnknownCapIsAnErrorAndChangesNothing) {
  const std::string last = RunnableIsaNames().back();
  ASSERT_OK(CapIsa(last.c_str()));
  const std::string unknown =
      "CapIsa: name: the library is not compiled for that ISA";
  std::vector<std::pair<std::string, std::string>> names = {
      {"", unknown}, {"MMX", unknown}, {"no such thing", unknown}};
  for (const std::string& isa : RunnableIsaNames()) {
    std::string lower = isa;
    for (char& c : lower) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    const std::string nearest = unknown + "; did you mean " + isa;
    names.emplace_back(lower, nearest);
    if (isa.size() > 4) names.emplace_back(isa + "x", nearest);
  }
  for (const auto& [name, message] : names) {
    const Status status = CapIsa(name.c_str());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(status.message(), message) << name;
    EXPECT_EQ(ActiveIsa().name, last);
  }
  ASSERT_OK(CapIsa(nullptr));
}

}  // namespace
}  // namespace switchyard::testing_support
