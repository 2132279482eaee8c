// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests comments such as `// switchyard: allow(race)` in a shader: to which
// line each applies, which comments are wrong, and which findings they
// suppress in a checked run. The first tests need no Clang.

#include "device/src/metal/allow_comments.h"

#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/tests/device_test.h"
#include "device/tests/metal_text.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

using device::metal::AllowComments;

// Returns "LINE:COLUMN KINDS for LINE OF CODE" for each comment in the text.
std::vector<std::string> CommentsOf(const std::string& text) {
  AllowComments comments;
  comments.Read(text, "k.metal");
  std::vector<std::string> all;
  for (const auto& c : comments.list()) {
    all.push_back((c.file == "k.metal" ? "" : c.file + ":") +
                  std::to_string(c.line) + ":" + std::to_string(c.column) +
                  " " + c.kinds + " for " + std::to_string(c.code_line));
  }
  return all;
}
std::string ErrorOf(const std::string& text) {
  try {
    CommentsOf(text);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

using Texts = std::vector<std::string>;

TEST(AllowComments, AreAboutTheLineThatTheyEndOrTheNextWithCode) {
  EXPECT_EQ(CommentsOf("a = 1;  // switchyard: allow(race)\nb = 2;\n"),
            Texts{"1:12 race for 1"});
  EXPECT_EQ(CommentsOf("a = 1;\n  // switchyard: allow(race)\nb = 2;\n"),
            Texts{"2:6 race for 3"});
  EXPECT_EQ(CommentsOf("// switchyard: allow(race)\n// All write 1.\n\n"
                       "#pragma unroll\na = 1;"),
            Texts{"1:4 race for 5"});
  EXPECT_EQ(CommentsOf("/* switchyard: allow(race) */ a = 1;\n"),
            Texts{"1:4 race for 1"});
  EXPECT_EQ(CommentsOf("/*\n * switchyard: allow(race)\n */\na = 1;\n"),
            Texts{"2:4 race for 4"});
  EXPECT_EQ(
      CommentsOf("a = 1; // benign, switchyard:allow ( race,never-written )!"),
      Texts{"1:19 race,never-written for 1"});
  EXPECT_EQ(CommentsOf("a; // switchyard: allow(same-value) and switchyard: "
                       "allow(barrier-flags)"),
            (Texts{"1:7 same-value for 1", "1:41 barrier-flags for 1"}));
  EXPECT_EQ(CommentsOf("a; // the switchyard: allow for delays, switchyard:"),
            Texts{});
  EXPECT_EQ(CommentsOf("s = \"// switchyard: allow(x)\"; c = '\"'; a; // no"),
            Texts{});
  EXPECT_EQ(
      CommentsOf("#line 40 \"made.metal\"\na; // switchyard: allow(race)"),
      Texts{"made.metal:40:7 race for 40"});
}

TEST(AllowComments, WhatIsWrongIsAnErrorAtItsPlace) {
  const std::string kinds =
      ": race, missing-barrier, barrier-flags, missing-memory-barrier, "
      "same-value or never-written";
  const struct {
    const char* text;
    std::string error;
  } cases[] = {
      {"a;\nb; // switchyard: allow(rays)",
       "2:7: error: switchyard: there is no kind \"rays\"" + kinds},
      {"a; // switchyard: allow()",
       "1:7: error: switchyard: there is no kind \"\"" + kinds},
      {"a; // switchyard: allow(race,)",
       "1:7: error: switchyard: there is no kind \"\"" + kinds},
      {"a; // switchyard: allow(race, Race)",
       "1:7: error: switchyard: there is no kind \"Race\"" + kinds},
      {"a; // switchyard: allow(bounds)",
       "1:7: error: switchyard: bounds ends a threadgroup and cannot be "
       "suppressed"},
      {"a; // switchyard: allow race",
       "1:7: error: switchyard: expected allow(KIND, ...)"},
      {"a; // switchyard: alow(race)",
       "1:7: error: switchyard: expected allow(KIND, ...)"},
      {"/** switchyard:\n */ a;",
       "1:5: error: switchyard: expected allow(KIND, ...)"},
      {"a; // switchyard: allow(race",
       "1:7: error: switchyard: allow(...) has no closing parenthesis"},
      {"a;\n// switchyard: allow(race)\n",
       "2:4: error: switchyard: no code follows it"},
      {"#define PUT(x) \\\n  x = 1  // switchyard: allow(race)\na;",
       "2:13: error: switchyard: a directive makes no accesses: put the "
       "comment where the macro is used"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ErrorOf(c.text), "k.metal:" + c.error) << c.text;
  }
}

// This kernel has races in several lines, in which all threads write the same
// element. In the line of x[1] all threads write the same value. In the other
// lines each thread writes a different value.
constexpr char kRaces[] = R"(#include <metal_stdlib>
using namespace metal;
#define PUT(p, v) \
  *(p) = (v)
kernel void k(device uint* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[0] = i;
  x[1] = 7;
  PUT(x + 2, i);
  x[3] = x[4] + i;
  x[4] = i;
}
)";

class AllowCommentsRunTest : public testing::Test {
 protected:
  AllowCommentsRunTest() {
    options_.metal_cache = folder_.path();
    options_.check_kernels = true;
    options_.zeroed_buffers = true;
  }

  // Returns kRaces with `comment` at the end of line `line`.
  static std::string AppendToLine(size_t line, const std::string& comment,
                                  std::string text = kRaces) {
    size_t at = 0;
    while (line-- != 0) at = text.find('\n', at) + 1;
    return text.insert(at - 1, comment);
  }
  // Runs k with two threads. Returns "KIND LINE LINE" for each finding, with
  // the lines of its access and of the earlier access.
  Texts Findings(Library& library) {
    const auto queue = device_->newCommandQueue();
    const auto commands = queue->commandBuffer();
    const auto encoder = commands->computeCommandEncoder();
    const auto function = library.newFunction("k", &error_);
    EXPECT_NE(function, nullptr) << error_;
    encoder->setComputePipelineState(
        device_->newComputePipelineState(function, &error_));
    encoder->setBuffer(device_->newBuffer(64), 0, 0);
    encoder->dispatchThreads(Size(2, 1, 1), Size(2, 1, 1));
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    Texts all;
    for (const Finding& f : commands->findings()) {
      all.push_back(NameOf(f.kind) + (" " + std::to_string(f.where.line)) +
                    " " + std::to_string(f.other.line));
    }
    return all;
  }
  Texts Findings(const std::string& source) {
    device_ = CreateDevice(options_);
    library_ = device_->newLibrary(source.c_str(), {}, &error_);
    EXPECT_NE(library_, nullptr) << error_;
    return library_ == nullptr ? Texts() : Findings(*library_);
  }

  const TempFolder folder_;
  DeviceOptions options_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<Library> library_;
  std::string error_;
};

TEST_F(AllowCommentsRunTest, AllowsItsLineAndNoOther) {
  SWITCHYARD_NEEDS_CLANG();
  const Texts all = {"missing-barrier 6 6", "same-value 7 7",
                     "missing-barrier 8 8", "missing-barrier 9 10",
                     "missing-barrier 9 9", "missing-barrier 10 10"};
  EXPECT_EQ(Findings(kRaces), all);
  const auto without = [&](const std::vector<size_t>& gone) {
    Texts left = all;
    for (size_t i = gone.size(); i-- > 0;) {
      left.erase(left.begin() + static_cast<ptrdiff_t>(gone[i]));
    }
    return left;
  };
  const std::string race = "  // switchyard: allow(race)";
  EXPECT_EQ(Findings(AppendToLine(6, race)), without({0}));
  ASSERT_EQ(library_->allowComments().size(), 1u);
  const AllowComment comment = library_->allowComments()[0];
  EXPECT_EQ(comment.kinds, "race");
  EXPECT_EQ(comment.where.text(), "program_source:6:17");
  EXPECT_EQ(comment.suppressed, 1u);
  EXPECT_EQ(Findings(AppendToLine(7, race)), without({1}));
  EXPECT_EQ(Findings(AppendToLine(7, " // switchyard: allow(same-value)")),
            without({1}));
  EXPECT_EQ(Findings(AppendToLine(8, race)), without({2}));
  // An allow() comment at either of the two places of a race suppresses the
  // finding.
  EXPECT_EQ(Findings(AppendToLine(10, race)), without({3, 5}));
  EXPECT_EQ(library_->allowComments()[0].suppressed, 2u);
  EXPECT_EQ(Findings(AppendToLine(9, race)), without({3, 4}));
  // This comment has no effect, because it names another kind.
  EXPECT_EQ(Findings(AppendToLine(6, " // switchyard: allow(same-value)")),
            all);
  EXPECT_EQ(library_->allowComments()[0].suppressed, 0u);
  EXPECT_EQ(Findings(AppendToLine(6, " // switchyard: allow(never-written)")),
            all);
  EXPECT_EQ(Findings(AppendToLine(6, " // switchyard: allow(missing-barrier)")),
            without({0}));
  // A comment on a separate line moves all later lines down by one.
  EXPECT_EQ(Findings(AppendToLine(6, "\n  // switchyard: allow(race)")),
            (Texts{"missing-barrier 6 6", "missing-barrier 9 9",
                   "missing-barrier 10 11", "missing-barrier 10 10",
                   "missing-barrier 11 11"}));
}

// With max_findings = 1, a run stops at the first finding, before it makes
// the access. If a comment allows same-value, the run must make the access
// first, because the kind of the finding depends on the written value.
TEST_F(AllowCommentsRunTest, SameValueAloneWithOneFinding) {
  SWITCHYARD_NEEDS_CLANG();
  options_.max_findings = 1;
  const std::string quiet = AppendToLine(6, " // switchyard: allow(race)");
  EXPECT_EQ(Findings(quiet), Texts{"missing-barrier 7 7"});
  EXPECT_EQ(
      Findings(AppendToLine(7, " // switchyard: allow(same-value)", quiet)),
      Texts{"missing-barrier 8 8"});
}

// Line 7 races with the writes in lines 4 and 5. The comment allows only the
// races of line 4, so the race with line 5 is found.
TEST_F(AllowCommentsRunTest, WhatElseThatLineRacesWithIsFound) {
  SWITCHYARD_NEEDS_CLANG();
  const std::string text =
      "#include <metal_stdlib>\n"
      "kernel void k(device uint* x [[buffer(0)]], uint i "
      "[[thread_position_in_grid]]) {\n"
      "  if (i == 0) {\n"
      "    x[0] = 1; // switchyard: allow(race)\n"
      "    x[1] = 1;\n"
      "  } else {\n"
      "    for (uint j = 0; j < 2; ++j) x[2 + j] = x[j];\n"
      "  }\n"
      "}\n";
  EXPECT_EQ(Findings(text), Texts{"missing-barrier 7 5"});
}

TEST_F(AllowCommentsRunTest, InIncludedFilesAndFunctionConstants) {
  SWITCHYARD_NEEDS_CLANG();
  const std::string path = folder_.File("k.metal");
  std::ofstream(folder_.File("put.h"))
      << "#include <metal_stdlib>\ninline void put(device uint* x, uint i) {\n"
         "  *x = i;  // switchyard: allow(race)\n}\n";
  std::ofstream(path) << "#include \"put.h\"\n"
                         "constant uint n [[function_constant(0)]];\n"
                         "kernel void k(device uint* x [[buffer(0)]],\n"
                         "    uint i [[thread_position_in_grid]]) {\n"
                         "  put(x, i + n);\n  x[1] = i;\n}\n";
  device_ = CreateDevice(options_);
  const auto library = device_->newLibraryFromFile(path.c_str(), {}, &error_);
  ASSERT_NE(library, nullptr) << error_;
  // The constant n is not set.
  const Texts found = {"never-written 5 0", "missing-barrier 6 6"};
  EXPECT_EQ(Findings(*library), found);
  ASSERT_EQ(library->allowComments().size(), 1u);
  EXPECT_EQ(library->allowComments()[0].where.file, folder_.File("put.h"));
  EXPECT_EQ(library->allowComments()[0].suppressed, 1u);
}

// Two sources that differ only in comments share one compiled module.
TEST_F(AllowCommentsRunTest, ComeFromTheSourceAndNotFromTheCache) {
  SWITCHYARD_NEEDS_CLANG();
  const size_t all = Findings(kRaces).size();
  const auto first = library_;
  EXPECT_EQ(Findings(AppendToLine(6, "  // switchyard: allow(race)")).size(),
            all - 1);
  EXPECT_TRUE(library_->cached());
  device_ = CreateDevice(options_);
  EXPECT_EQ(Findings(*first).size(), all);
}

TEST_F(AllowCommentsRunTest, WhatIsWrongIsAnErrorOfTheShader) {
  SWITCHYARD_NEEDS_CLANG();
  for (const bool checked : {false, true}) {
    options_.check_kernels = checked;
    device_ = CreateDevice(options_);
    EXPECT_EQ(device_->newLibrary(
                  AppendToLine(6, " // switchyard: allow(rays)").c_str(), {},
                  &error_),
              nullptr);
    EXPECT_EQ(error_.find("program_source:6:16: error: switchyard: there is no "
                          "kind \"rays\""),
              0u)
        << error_;
  }
}

}  // namespace
}  // namespace switchyard::testing_support
