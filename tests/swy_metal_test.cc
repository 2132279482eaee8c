// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// `swy metal`, run as a shell would.

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/device/needs_clang.h"
#include "tests/run_program.h"
#include "tests/swy_program.h"

namespace swy {
namespace {

using switchyard::testing_support::ExpectRefused;
using switchyard::testing_support::Outcome;
using switchyard::testing_support::ReadFile;
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
  const Outcome constant =
      Metal(folder, "constant uint kN [[function_constant(3)]];\n");
  EXPECT_EQ(constant.out, "constant 3  uint kN\n0 kernels, 0 not supported\n");
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
  ExpectRefused(Swy("metal"), "swy: file is required");
  ExpectRefused(Swy("metal --nope"),
                "swy: The following argument was not expected: --nope");
  ExpectRefused(Metal(folder, kScale, "-D 2X"),
                "swy: -D: '2X' is no name of a macro");
  ExpectRefused(Metal(folder, kScale, "-D 'A B=1'"),
                "swy: -D: 'A B' is no name of a macro");
  ExpectRefused(Metal(folder, kScale, "-D \"A=$(printf '1\\n2')\""),
                "swy: -D A: more than one line");
  ExpectRefused(Metal(folder, kScale, "-I /nowhere"),
                "swy: -I /nowhere: No such file or directory");
  ExpectRefused(Metal(folder, kScale, "-I " + folder.File("k.metal")),
                "swy: -I " + folder.File("k.metal") + ": not a folder");
  ExpectRefused(Metal(folder, kScale, "--compiler /bin/true"),
                "swy: metal_compiler: /bin/true is no Clang");
  ExpectRefused(Metal(folder, kScale, "--compiler /bin/ls"),
                "swy: metal_compiler: /bin/ls: ended with status 2: is it a "
                "Clang?");
  ExpectRefused(Metal(folder, kScale, "--checked=1"),
                "swy: --checked: takes no value");
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

// A command that never ends, or takes memory until the machine has none, fails.
// ASan takes terabytes of addresses.
Outcome MetalWithin(const std::string& arguments) {
#ifdef SWITCHYARD_SANITIZED
  const std::string limits;
#else
  const std::string limits = "ulimit -v 8000000; ";
#endif
  return switchyard::testing_support::RunProgram(
      "/usr/bin/timeout", "-k 1 50 '" SWY_PROGRAM "' metal " + arguments,
      limits);
}

// Files that have no end: those of a folder, and devices.
class EndlessFiles {
 public:
  EndlessFiles() {
    const std::string command = "cd '" + folder_.path() +
                                "' && mkfifo fifo && mkdir folder && "
                                "truncate -s 1T huge && ln -s /dev/zero link";
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  std::string File(const std::string& name) const { return folder_.File(name); }
  std::string Metal(const std::string& text) const {
    std::ofstream(File("k.metal")) << text << kScale;
    return File("k.metal");
  }

 private:
  const TempFolder folder_;
};

TEST(SwyMetalFiles, OnlyRegularOnesOf16MiBAreCompiled) {
  SWITCHYARD_NEEDS_CLANG();
  const EndlessFiles files;
  for (const std::string& path :
       {std::string("/dev/zero"), files.File("fifo"), files.File("link")}) {
    ExpectRefused(MetalWithin(path),
                  "swy: " + path + ": is not a regular file");
  }
  ExpectRefused(MetalWithin(files.File("huge")),
                "swy: " + files.File("huge") + ": has more than 16 MiB");
}

TEST(SwyMetalFiles, OnlyRegularOnesAreIncluded) {
  SWITCHYARD_NEEDS_CLANG();
  const EndlessFiles files;
  const std::string file = files.File("k.metal");
  const std::string no_file = ", which is not a regular file";
  const std::pair<std::string, std::string> cases[] = {
      {"#include \"/dev/zero\"\n", "1: includes /dev/zero" + no_file},
      {"#include </dev/zero>\n", "1: includes /dev/zero" + no_file},
      {"\n # /* */ import /* */ \\\n\"fifo\"\n",
       "2: includes " + files.File("fifo") + no_file},
      {"#if __has_include(\"link\")\n#endif\n",
       "1: includes " + files.File("link") + no_file},
      {"#pragma GCC dependency \"fifo\"\n",
       "1: includes " + files.File("fifo") + no_file},
      {"#include_next \"huge\"\n",
       "1: includes " + files.File("huge") + ", which has more than 16 MiB"}};
  for (const auto& [text, why] : cases) {
    ExpectRefused(MetalWithin(files.Metal(text)), "swy: " + file + ":" + why);
  }
  // The text includes a header that -I leads to, which includes itself as well.
  std::ofstream(files.File("folder/a.h"))
      << "#pragma once\n#include \"./a.h\"\n#include <fifo>\n";
  ExpectRefused(
      MetalWithin("-I " + files.File("folder") + " -I " + files.File(".") +
                  " " + files.Metal("#include <a.h>\n")),
      "swy: " + files.File("folder/a.h") + ":3: includes " +
          files.File("./fifo") + no_file);
  // Clang does not take a folder for a file, and looks further.
  const Outcome folder = MetalWithin(files.Metal("#include \"folder\"\n"));
  EXPECT_EQ(folder.exit_code, 1);
  EXPECT_NE(folder.err.find("'folder' file not found"), std::string::npos);
  // Memory is what is left to bound of a name that only a macro makes.
  const Outcome made =
      MetalWithin(files.Metal("#define NAME \"huge\"\n#include NAME\n"));
  EXPECT_EQ(made.exit_code, 2);
  EXPECT_EQ(made.err.find("swy: " + file + ": is not preprocessed with 2 GiB"),
            0u)
      << made.err;
}

// A #line names a file for messages and allow() comments, which need it not.
TEST(SwyMetalFiles, OnlyRegularOnesAreLookedAtForALine) {
  SWITCHYARD_NEEDS_CLANG();
  const EndlessFiles files;
  for (const std::string& path :
       {std::string("/dev/zero"), std::string("/dev/stdin"), files.File("fifo"),
        files.File("folder"), files.File("huge"), files.File("link")}) {
    const std::string line = "#line 1 \"" + path + "\"\n";
    const Outcome good = MetalWithin(files.Metal(line));
    EXPECT_EQ(good.exit_code, 0) << path << good.err;
    const Outcome wrong = MetalWithin(files.Metal(line + "int a = b;\n"));
    EXPECT_EQ(wrong.exit_code, 1) << path;
    EXPECT_EQ(wrong.err.find(path + ":1:9: error: "), 0u) << wrong.err;
  }
}

TEST(SwyMetal, EscapesWhatATerminalWouldObey) {
  SWITCHYARD_NEEDS_CLANG();
  const TempFolder folder;
  const Outcome outcome =
      Metal(folder, "int a = b; // \x1b[31m \x9b\n#line 7 \"\x1b[32m\"\n" +
                        std::string(kScale) + "int c = d;\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("\nint a = b; // \\x1b[31m \\x9b\n"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("\n\\x1b[32m:18:9: error: "), std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.err.find_first_of("\x1b\x9b"), std::string::npos);
}

TEST(SwyMetalFolder, IsALineForEachFileBelow) {
  SWITCHYARD_NEEDS_CLANG();
  const EndlessFiles files;
  const std::string folder = files.File("folder");
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
  };
  const std::string command =
      "cd '" + folder + "' && mkdir -p b a/c.metal && ln -s .. a/up";
  ASSERT_EQ(std::system(command.c_str()), 0);
  write("b/good.metal", kScale);
  write("a/c.metal/both.metal", std::string("#define TWICE\n") + kScale);
  write("not.h", "no shader");
  const Outcome good = MetalWithin(folder);
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.err, "");
  EXPECT_EQ(good.out, folder + "/a/c.metal/both.metal: 2 kernels\n" + folder +
                          "/b/good.metal: 1 kernel\n"
                          "2 files: 2 compiled, 0 in part, 0 not; 3 kernels\n");

  write("b/part.metal",
        std::string(kScale) +
            "kernel void image(texture2d<float> t [[texture(0)]]) {}\n");
  write("b/wrong.metal",
        "\n\nkernel void k() {\n  unknown();\n}\nint a = b;\n");
  write("b/zero.metal", "#include \"/dev/zero\"\n");
  write("b/\x1b[31m.metal", kScale);
  ASSERT_EQ(mkfifo((folder + "/b/fifo.metal").c_str(), 0600), 0);
  const std::string json = folder + "/out.json";
  const Outcome mixed =
      MetalWithin("--checked --json " + json + " " + folder + "/b");
  EXPECT_EQ(mixed.exit_code, 1);
  EXPECT_EQ(mixed.err, "");
  EXPECT_EQ(
      mixed.out,
      folder + "/b/\\x1b[31m.metal: 1 kernel\n" + folder +
          "/b/fifo.metal: is not a regular file\n" + folder +
          "/b/good.metal: 1 kernel\n" + folder +
          "/b/part.metal: 1 kernel, 1 not supported\n" + folder +
          "/b/wrong.metal:4:3: error: use of undeclared identifier "
          "'unknown'\n" +
          folder +
          "/b/zero.metal:1: includes /dev/zero, which is not a regular file\n"
          "6 files: 2 compiled, 1 in part, 3 not; 3 kernels\n");
  const auto survey = nlohmann::json::parse(ReadFile(json));
  EXPECT_EQ(survey["compiled"], 2);
  EXPECT_EQ(survey["in_part"], 1);
  EXPECT_EQ(survey["failed"], 3);
  EXPECT_EQ(survey["kernels"], 3);
  const nlohmann::json& described = survey["files"];
  ASSERT_EQ(described.size(), 6u);
  EXPECT_EQ(described[2],
            (nlohmann::json{{"file", folder + "/b/good.metal"},
                            {"kernels", {"scale"}},
                            {"unsupported", nlohmann::json::array()}}));
  EXPECT_EQ(described[3]["unsupported"][0]["kernel"], "image");
  EXPECT_EQ(described[3]["unsupported"][0]["line"], 12);
  // All of Clang's errors, not the first alone.
  const std::string wrong = described[4]["error"];
  EXPECT_NE(wrong.find("'unknown'"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("identifier 'b'"), std::string::npos) << wrong;

  const Outcome one =
      Swy("metal --json " + json + " " + folder + "/b/good.metal");
  EXPECT_EQ(one.out, folder +
                         "/b/good.metal: 1 kernel\n"
                         "1 file: 1 compiled, 0 in part, 0 not; 1 kernel\n");
  EXPECT_EQ(nlohmann::json::parse(ReadFile(json))["files"][0], described[2]);
}

TEST(SwyMetalFolder, WrongInputIsOneLine) {
  const TempFolder folder;
  ExpectRefused(Swy("metal " + folder.path()),
                "swy: " + folder.path() + ": no .metal file in it");
  // Once, not for each file.
  std::ofstream(folder.File("a.metal")) << kScale;
  std::ofstream(folder.File("b.metal")) << kScale;
  ExpectRefused(Swy("metal --compiler /nowhere/clang " + folder.path()),
                "swy: metal_compiler: no such program: /nowhere/clang");
}

}  // namespace
}  // namespace swy
