// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// `swy metal`, run as a shell would.

#include <cstdio>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/device/needs_clang.h"
#include "tests/run_program.h"
#include "tests/swy_program.h"

namespace swy {
namespace {

using switchyard::testing_support::ExpectRefused;
using switchyard::testing_support::Outcome;
using switchyard::testing_support::Swy;
using switchyard::testing_support::TempFolder;

// Swy metal of a file with that text, which is in folder.path().
Outcome Metal(const TempFolder& folder, const std::string& text,
              const std::string& arguments = "") {
  std::ofstream(folder.File("k.metal")) << text;
  return Swy("metal " + arguments + " " + folder.File("k.metal"));
}

constexpr char kScale[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "#ifdef TWICE\n"
    "kernel void twice(device float* x [[buffer(0)]]) { *x *= 2; }\n"
    "#endif\n"
    "kernel void scale(device const float* x [[buffer(0)]],\n"
    "                  device float* out [[buffer(2)]],\n"
    "                  threadgroup float* t [[threadgroup(1)]],\n"
    "                  uint i [[thread_position_in_grid]]) {\n"
    "  out[i] = x[i] + t[0];\n"
    "}\n";

TEST(SwyMetal, ListsKernelsAndTheirArguments) {
  SWITCHYARD_NEEDS_CLANG();
  const TempFolder folder;
  const Outcome plain = Metal(folder, kScale);
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(plain.err, "");
  EXPECT_EQ(plain.out, "scale  " + folder.File("k.metal") +
                           ":6\n"
                           "  buffer 0       device const float* x\n"
                           "  buffer 2       device float* out\n"
                           "  threadgroup 1  threadgroup float* t\n"
                           "  input          uint i\n"
                           "1 kernel, 0 not supported\n");
  const Outcome both = Metal(folder, kScale, "-D TWICE --checked");
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_TRUE(both.Printed("twice  " + folder.File("k.metal") + ":4\n"));
  EXPECT_TRUE(both.Printed("2 kernels, 0 not supported\n"));
}

TEST(SwyMetal, SaysWhatIsNotSupportedAndWhere) {
  SWITCHYARD_NEEDS_CLANG();
  const TempFolder folder;
  const Outcome outcome =
      Metal(folder, std::string(kScale) +
                        "kernel void image(texture2d<float> t [[texture(0)]])"
                        " {}\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.Printed(folder.File("k.metal") + ":12:"));
  EXPECT_TRUE(outcome.Printed(", in image\n"));
  EXPECT_TRUE(outcome.Printed("1 kernel, 1 not supported\n"));
}

TEST(SwyMetal, TellsClangsErrors) {
  SWITCHYARD_NEEDS_CLANG();
  const TempFolder folder;
  const Outcome outcome = Metal(folder, "kernel void k() {\n  unknown();\n}\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find(folder.File("k.metal") + ":2:3: error: "),
            std::string::npos)
      << outcome.err;
}

TEST(SwyMetal, WrongInputIsOneLine) {
  const TempFolder folder;
  const std::string file = folder.File("k.metal");
  ExpectRefused(Swy("metal"), "swy: file is required");
  ExpectRefused(Metal(folder, kScale, "-D =1"), "swy: -D: no name in '=1'");
  ExpectRefused(Metal(folder, kScale, "--compiler /nowhere/clang"),
                "swy: metal_compiler: no such program: /nowhere/clang");
  ExpectRefused(Metal(folder, kScale, "--nothing"),
                "swy: The following argument was not expected: --nothing");
  SWITCHYARD_NEEDS_CLANG();
  ExpectRefused(
      Swy("metal " + folder.File("missing.metal")),
      "swy: " + folder.File("missing.metal") + ": No such file or directory");
}

}  // namespace
}  // namespace swy
