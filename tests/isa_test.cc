// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/isa.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ios>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/simd/saved_state.h"
#include "switchyard/activate.h"
#include "switchyard/expert_weights.h"
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
  // The fallback runs on every machine, and comes last.
  EXPECT_EQ(runnable.back(), compiled.back());
}

TEST(Isa, CompiledForMoreThanTheFallback) {
  // A single ISA would mean that run-time dispatch is lost, for example
  // because of flags that select a CPU.
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
  // tests/hidden_state reads this line.
  std::printf("The best ISA is %s.\n", RunnableIsas().data[0].name);
}

TEST(Isa, RunsWhereTheSystemSavesTheRegisters) {
  struct Case {
    bool has_osxsave;
    uint64_t xcr0;
    bool avx, avx512;
  };
  // Bits of XCR0: 0x1 is x87, 0x2 XMM, 0x4 YMM, 0x20 opmasks, 0x40 and 0x80
  // ZMM. Kernels use neither 0x200, PKRU, nor 0x60000, AMX.
  const Case cases[] = {
      {false, 0, false, false},         {false, 0xE7, false, false},
      {true, 0x1, false, false},        {true, 0x3, false, false},
      {true, 0x5, false, false},        {true, 0x7, true, false},
      {true, 0x207, true, false},       {true, 0x27, true, false},
      {true, 0x67, true, false},        {true, 0xA7, true, false},
      {true, 0xC7, true, false},        {true, 0xE3, false, false},
      {true, 0xE7, true, true},         {true, 0x2E7, true, true},
      {true, 0x602E7, true, true},      {true, 0x60007, true, false},
      {true, ~uint64_t{0}, true, true},
  };
  for (const Case& c : cases) {
    const simd::SavedState state = simd::SavedStateOf(c.has_osxsave, c.xcr0);
    EXPECT_EQ(state.avx, c.avx) << c.has_osxsave << " " << std::hex << c.xcr0;
    EXPECT_EQ(state.avx512, c.avx512)
        << c.has_osxsave << " " << std::hex << c.xcr0;
  }
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
  // Common names for AVX-512 and for other ISAs. Some of these names differ
  // from AVX2 in only two or three letters.
  const std::vector<std::string> runnable = RunnableIsaNames();
  for (const std::string& isa : IsaNames(CompiledIsas())) {
    const bool runs =
        std::find(runnable.begin(), runnable.end(), isa) != runnable.end();
    const std::string meant = unknown + "; did you mean " + isa +
                              (runs ? "" : ", which this CPU cannot run");
    std::vector<std::string> others;
    if (isa == "AVX3") {
      others = {"avx512",         "AVX512",   "avx-512",  "avx512f",
                "avx_512",        "AVX512BW", "avx512vl", "avx512_core",
                "skylake-avx512", "x86-64-v4"};
    } else if (isa == "AVX3_DL") {
      others = {"avx512_vnni", "avx512vbmi2",    "AVX512-BF16",
                "avx10.1",     "icelake-server", "avx3dl"};
    } else if (isa == "AVX2") {
      others = {"haswell", "x86-64-v3", "fma3", "avx-2"};
    } else if (isa == "SSE4") {
      others = {"sse4.1", "sse4_2", "x86-64-v2"};
    } else if (isa == "NEON") {
      others = {"asimd"};
    } else if (isa == IsaNames(CompiledIsas()).back()) {
      others = {"none"};
    }
    if (!runs) {
      std::string lower = isa;
      for (char& c : lower) c = static_cast<char>(std::tolower(c));
      others.push_back(lower);
    }
    for (const std::string& other : others) names.emplace_back(other, meant);
  }
  for (const auto& [name, message] : names) {
    const Status status = CapIsa(name.c_str());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(status.message(), message) << name;
    EXPECT_EQ(ActiveIsa().name, last);
  }
  ASSERT_OK(CapIsa(nullptr));
}

// The test needs its own process, because the library reads SWITCHYARD_ISA
// only once.
TEST(IsaDeathTest, TheEnvironmentIsToldTheNearestOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::vector<std::string> compiled = IsaNames(CompiledIsas());
  const std::vector<std::string> runnable = RunnableIsaNames();
  const auto has = [](const std::vector<std::string>& in, const char* isa) {
    return std::find(in.begin(), in.end(), isa) != in.end();
  };
  const auto tell = [](const char* name) {
    setenv("SWITCHYARD_ISA", name, 1);
    std::fprintf(stderr, "told: %s.\n", EnvironmentIsa().message());
    std::exit(EnvironmentIsa().ok() ? 1 : 0);
  };
  if (!has(compiled, "AVX3")) GTEST_SKIP() << "not compiled for AVX3";
  // MultiplyTile() has its own checks.
  const auto multiply = [] {
    setenv("SWITCHYARD_ISA", "avx99", 1);
    const Status status = MultiplyTile(ExpertWeights(), ExpertTile());
    std::fprintf(stderr, "told: %s.\n", status.message());
    std::exit(status.ok() ? 1 : 0);
  };
  EXPECT_EXIT(multiply(), testing::ExitedWithCode(0), "told: SWITCHYARD_ISA: ");
  EXPECT_EXIT(tell("avx512"), testing::ExitedWithCode(0),
              has(runnable, "AVX3") ? "did you mean AVX3\\."
                                    : "did you mean AVX3, which this CPU "
                                      "cannot run\\.");
  if (has(runnable, "AVX3")) return;
  EXPECT_EXIT(tell("AVX3"), testing::ExitedWithCode(0),
              "told: SWITCHYARD_ISA: this CPU cannot run that ISA\\.");
}

}  // namespace
}  // namespace switchyard::testing_support
