// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests Clang's messages as users see them: they show the shader's own lines
// and Metal's types. Only the last test needs Clang.

#include <memory>
#include <string>

#include "device/src/metal/messages.h"
#include "device/tests/metal_text.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"

namespace switchyard::testing_support {
namespace {

// Rewrites Clang's messages about the file k.metal, as the library does. The
// shim is in the folder /shim.
std::string Readable(const std::string& messages, const std::string& text) {
  return device::metal::MakeReadable(
      messages, "/shim", [&](const std::string& f) {
        return f == "k.metal" ? text : std::string();
      });
}

TEST(MetalMessages, StayWhereNothingIsToBeSaidBetter) {
  const std::string text =
      "In file included from k.metal:1:\n"
      "k.metal:2:5: error: use of undeclared identifier 'b'\n"
      "a = b + c;\n"
      "    ^ ~~~\n"
      "k.metal:2:5: note: what about it\n"
      "unknown.h:7:1: warning: 1:2: error: no place\n"
      "   code\n"
      "   ^\n"
      "/shim/vec.h:5:3: error: static_assert failed\n"
      "  text\n"
      "1 error generated.\n";
  EXPECT_EQ(Readable(text, "\na = b + c;\n"), text);
  EXPECT_EQ(Readable("", ""), "");
  EXPECT_EQ(Readable("clang: error: no such file\n", ""),
            "clang: error: no such file\n");
}

TEST(MetalMessages, OfTheShimAreAtThePlaceThatUsesIt) {
  for (const char* const wrong :
       {"static_assert failed due to requirement 'kPoints<float>' \"is no "
        "pointer\"",
        "static assertion failed due to requirement 'kPoints<float>': is no "
        "pointer"}) {
    EXPECT_EQ(Readable("In file included from k.metal:1:\n"
                       "In file included from <built-in>:1:\n"
                       "/shim/module.h:5:3: error: " +
                           std::string(wrong) +
                           "\n  text\n"
                           "/shim/module.h:9:3: note: in instantiation of A\n"
                           "k.metal:1:1: note: in instantiation of B\n"
                           "kernel void k(float y);\n^\n"
                           "k.metal:1:1: note: in instantiation of C\n"
                           "kernel void k(float y);\n^\n"
                           "1 error generated.\n",
                       "kernel void k(float y);\n"),
              "k.metal:1:1: error: is no pointer\n"
              "kernel void k(float y);\n^\n"
              "k.metal:1:1: note: in instantiation of C\n"
              "kernel void k(float y);\n^\n"
              "1 error generated.\n");
  }
}

TEST(MetalMessages, OfTheLinkerNameTheLine) {
  using device::metal::ReadableOfLinker;
  EXPECT_EQ(
      ReadableOfLinker("/usr/bin/ld: k.o: in function `k':\n"
                       "/a b/k.metal:4: undefined reference to `f(int)'\n"
                       "/usr/bin/ld: k.metal:5: undefined reference to "
                       "`g()'\n"
                       "/usr/bin/ld: k.metal:5: undefined reference to "
                       "`g()'\n"
                       "clang: error: linker command failed\n"),
      "/a b/k.metal:4: error: 'f(int)' is declared and used, but not defined\n"
      "k.metal:5: error: 'g()' is declared and used, but not defined\n");
  EXPECT_EQ(ReadableOfLinker("ld: no space\n"), "ld: no space\n");
}

TEST(MetalMessages, ShowLinesAsTheyAreInTheFile) {
  EXPECT_EQ(Readable("k.metal:1:19: error: no 'x'\n"
                     "       int* p = q.x;\n"
                     "                ~ ^\n",
                     "device int* p  = q.x; // why\n"),
            "k.metal:1:20: error: no 'x'\n"
            "device int* p  = q.x; // why\n"
            "                   ^\n");
  EXPECT_EQ(Readable("k.metal:1:36: error: types\n"
                     "  a = switchyard_metal::Either(i>2 ? (p, "
                     "switchyard_metal::Arm()) : (h, switchyard_metal::Arm()));"
                     "\n                                    ^ ~\n",
                     "  a = i>2 ? p : h;\n"),
            "k.metal:1:11: error: types\n"
            "  a = i>2 ? p : h;\n"
            "          ^\n");
  // A place in a macro's expansion becomes the place of the macro's name.
  EXPECT_EQ(Readable("k.metal:1:6: error: types\n"
                     "a = (1+q);\n"
                     "     ^\n",
                     "a = F(q);\n"),
            "k.metal:1:5: error: types\n"
            "a = F(q);\n"
            "    ^\n");
  // This message names a line and a column that do not exist.
  const std::string beyond = "k.metal:9:99: error: e\n shown\n ^\n";
  EXPECT_EQ(Readable(beyond, "a\n"), beyond);
}

TEST(MetalMessages, NameMetalsTypes) {
  const auto type = [](const std::string& name) {
    const std::string before = "k.metal:1:1: error: of ";
    const std::string text = Readable(before + name + "\n", "");
    return text.substr(before.size(), text.size() - before.size() - 1);
  };
  EXPECT_EQ(type("'switchyard_metal::Swizzle<metal::vec<float, 3>, 4, 0, 1, 2, "
                 "-1>' and 'SmallArm<switchyard_metal::HalfFormat>'"),
            "'metal::vec<float, 3>' and 'half'");
  EXPECT_EQ(type("'const Swizzle<vec<half, 2>, kStored, 0, 1>'"),
            "'const vec<half, 2>'");
  EXPECT_EQ(type("'bfloat' (aka 'SmallFloat<switchyard_metal::BfloatFormat>')"),
            "'bfloat'");
  EXPECT_EQ(type("'Swizzle<vec<"), "'Swizzle<vec<");
}

TEST(MetalMessages, LeaveTheShimsNotesOut) {
  EXPECT_EQ(Readable("k.metal:1:1: error: no match\n"
                     "f(x);\n"
                     "^\n"
                     "/shim/metal_math:5:3: note: candidate\n"
                     "  vec(const vec&);\n"
                     "  ^\n"
                     "k.metal:3:1: note: candidate\n"
                     "void f();\n"
                     "^\n"
                     "/shim/metal_math:5:3: note: candidate\n"
                     "1 error generated.\n",
                     "f(x);\n\nvoid f();\n"),
            "k.metal:1:1: error: no match\n"
            "f(x);\n"
            "^\n"
            "k.metal:3:1: note: candidate\n"
            "void f();\n"
            "^\n"
            "1 error generated.\n");
}

TEST(MetalMessages, OfAShader) {
  SWITCHYARD_NEEDS_CLANG();
  std::string error;
  EXPECT_EQ(CreateSystemDefaultDevice()->newLibrary(
                "kernel void k(device half3* x, constant float4& v) {\n"
                "  threadgroup half part[4]; // of each\n"
                "  auto y = v.x > 2 ? x[0].xy : part[1];\n"
                "  x[1] = metal::simd_sum(part);\n"
                "}\n",
                {}, &error),
            nullptr);
  EXPECT_EQ(error,
            "program_source:3:20: error: incompatible operand types "
            "('metal::vec<half, 2>' and 'half')\n"
            "  auto y = v.x > 2 ? x[0].xy : part[1];\n"
            "                   ^\n"
            "program_source:4:10: error: no matching function for call to "
            "'simd_sum'\n"
            "  x[1] = metal::simd_sum(part);\n"
            "         ^~~~~~~~~~~~~~~\n"
            "2 errors generated.\n");
}

}  // namespace
}  // namespace switchyard::testing_support
