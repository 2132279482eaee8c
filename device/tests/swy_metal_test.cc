// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs `swy metal` as a shell would.

#include <sched.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "device/tests/needs_clang.h"
#include "gtest/gtest.h"
#include "tests/run_program.h"
#include "tests/swy_program.h"

namespace swy {
namespace {

using switchyard::testing_support::ExpectRefused;
using switchyard::testing_support::Outcome;
using switchyard::testing_support::ReadFile;
using switchyard::testing_support::Swy;
using switchyard::testing_support::TempFolder;

// Writes the text to a file in the folder, and runs `swy metal` on it.
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
                "swy: -D: '2X' is not a macro's name");
  ExpectRefused(Metal(folder, kScale, "-D 'A B=1'"),
                "swy: -D: 'A B' is not a macro's name");
  ExpectRefused(Metal(folder, kScale, "-D \"A=$(printf '1\\n2')\""),
                "swy: -D A: more than one line");
  ExpectRefused(Metal(folder, kScale, "-I /nowhere"),
                "swy: -I /nowhere: No such file or directory");
  ExpectRefused(Metal(folder, kScale, "-I " + folder.File("k.metal")),
                "swy: -I " + folder.File("k.metal") + ": not a folder");
  ExpectRefused(Metal(folder, kScale, "--compiler /bin/true"),
                "swy: --compiler: /bin/true is not Clang");
  ExpectRefused(Metal(folder, kScale, "--compiler /bin/ls"),
                "swy: --compiler: /bin/ls: ended with status 2: is it a "
                "Clang?");
  ExpectRefused(Metal(folder, kScale, "--checked=1"),
                "swy: --checked: takes no value");
  ExpectRefused(Metal(folder, kScale, "-D =1"), "swy: -D: no name in '=1'");
  ExpectRefused(Metal(folder, kScale, "--compiler /nowhere/clang"),
                "swy: --compiler: no such program: /nowhere/clang");
  ExpectRefused(Metal(folder, kScale, "--nothing"),
                "swy: The following argument was not expected: --nothing");
  SWITCHYARD_NEEDS_CLANG();
  ExpectRefused(
      Swy("metal " + folder.File("missing.metal")),
      "swy: " + folder.File("missing.metal") + ": No such file or directory");
}

// Runs `swy metal` with limits of 50 seconds and of 8 GB of memory. Under
// ASan the memory is not limited, because ASan reserves terabytes of
// addresses.
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

// Makes files that are endless or too large: a FIFO, 1 TiB of zeros, a
// device.
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
  // The text includes a header that -I finds, and the header includes itself.
  std::ofstream(files.File("folder/a.h"))
      << "#pragma once\n#include \"./a.h\"\n#include <fifo>\n";
  ExpectRefused(
      MetalWithin("-I " + files.File("folder") + " -I " + files.File(".") +
                  " " + files.Metal("#include <a.h>\n")),
      "swy: " + files.File("folder/a.h") + ":3: includes " +
          files.File("./fifo") + no_file);
  // If an #include names a folder, Clang does not accept it as a file and
  // searches further.
  const Outcome folder = MetalWithin(files.Metal("#include \"folder\"\n"));
  EXPECT_EQ(folder.exit_code, 1);
  EXPECT_NE(folder.err.find("'folder' file not found"), std::string::npos);
  // A macro expands to the file's name, so only the limit of memory ends this
  // compilation.
  const Outcome made =
      MetalWithin(files.Metal("#define NAME \"huge\"\n#include NAME\n"));
  EXPECT_EQ(made.exit_code, 2);
  EXPECT_EQ(made.err.find("swy: " + file + ": is not preprocessed with 2 GiB"),
            0u)
      << made.err;
}

// A #line directive names a file for messages and allow() comments. That file
// need not exist.
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
  // The file's entry has all of Clang's errors, not only the first error.
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
  // Swy prints one message in all, and not one for each file.
  std::ofstream(folder.File("a.metal")) << kScale;
  std::ofstream(folder.File("b.metal")) << kScale;
  ExpectRefused(Swy("metal --compiler /nowhere/clang " + folder.path()),
                "swy: --compiler: no such program: /nowhere/clang");
}

// Runs `swy metal run` as a shell would.

using switchyard::testing_support::ExpectFitsATerminal;
using switchyard::testing_support::ReadFile;
using switchyard::testing_support::SwyOk;

constexpr char kShader[] = R"(#include <metal_stdlib>
using namespace metal;
constant uint kTimes [[function_constant(3)]];
constant half4 kWide [[function_constant(4)]];
kernel void nothing(device const uchar* a [[buffer(0)]]) {}
kernel void row_max(device const float* x [[buffer(0)]],
                    device float* out [[buffer(1)]],
                    threadgroup float* part [[threadgroup(0)]],
                    uint i [[thread_position_in_threadgroup]],
                    uint n [[threads_per_threadgroup]]) {
  part[i] = x[i];
#ifndef FLAGS
#define FLAGS mem_threadgroup
#endif
  threadgroup_barrier(mem_flags::FLAGS);
  float row = part[0];
  for (uint s = 1; s < n; ++s) row = max(row, part[s]);
  out[i] = x[i] - row;
}
kernel void times(device const float* x [[buffer(0)]],
                  device float* out [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  out[i] = x[i] * float(kTimes);
}
kernel void where_am_i(device uint* out [[buffer(0)]],
                       uint2 at [[thread_position_in_grid]],
                       uint2 groups [[threadgroups_per_grid]]) {
  out[at.y * 4 + at.x] = groups.x * 10 + groups.y;
}
kernel void image(texture2d<float> t [[texture(0)]]) {}
)";

class SwyMetalRun : public ::testing::Test {
 protected:
  SwyMetalRun() {
    std::ofstream(File("k.metal")) << kShader;
    std::ofstream(File("wrong.metal")) << "\nkernel void k() {\n  no();\n}\n";
  }
  std::string File(const std::string& name) const { return folder_.File(name); }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(File(name), std::ios::binary) << bytes;
  }
  // Replaces each `%` in the text with the path of the folder.
  std::string Named(std::string text) const {
    for (size_t at = 0; (at = text.find('%', at)) != std::string::npos;) {
      text.replace(at, 1, folder_.path());
    }
    return text;
  }
  Outcome Run(const std::string& arguments) const {
    return Swy(Named("metal run %/k.metal " + arguments));
  }
  // Writes an array as numpy.save() does.
  void WriteNumpy(const std::string& name, const std::string& descr,
                  const std::string& shape, const std::string& values,
                  int version = 1, const char* fortran = "False") const {
    std::string header = "{'descr': '" + descr +
                         "', 'fortran_order': " + fortran + ", 'shape': (" +
                         shape + "), }";
    header.resize(117, ' ');
    header += '\n';
    std::string file = "\x93NUMPY";
    file += {static_cast<char>(version), 0, 118, 0};
    if (version > 1) file += {0, 0};
    Write(name, file + header + values);
  }
  template <class T>
  static std::string BytesOf(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()),
            values.size() * sizeof(T)};
  }

  const TempFolder folder_;
};

const char kRowMax[] =
    "--kernel row_max --grid 64 --threadgroup 64 -t 0=256 "
    "-b 0=f32:random:64 -b 1=f32:empty:64 ";

TEST_F(SwyMetalRun, FindsAMissingBarrier) {
  SWITCHYARD_NEEDS_CLANG();
  const Outcome broken =
      Run(std::string(kRowMax) +
          "-D FLAGS=mem_none --checked --seeds 6 --sarif %/s --json %/j");
  EXPECT_EQ(broken.exit_code, 1) << broken.err;
  EXPECT_EQ(broken.err, "");
  EXPECT_TRUE(
      broken.Printed("row_max: threadgroup (0, 0, 0), thread 0: reads "
                     "part[1] at " +
                     File("k.metal") + ":17:"));
  EXPECT_TRUE(broken.Printed("which thread "));
  // Each of the two reads races with the write. Each race is reported once in
  // all, not once in each of the six schedules.
  EXPECT_TRUE(broken.Printed("\n2 findings in 6 schedules\n")) << broken.out;
  for (const char* const file : {"s", "j"}) {
    EXPECT_NE(ReadFile(File(file)).find("\"barrier-flags\""),
              std::string::npos);
  }
  const Outcome clean =
      Run(std::string(kRowMax) + "--checked --seeds 6 --sarif %/s");
  EXPECT_EQ(clean.exit_code, 0) << clean.err;
  EXPECT_EQ(clean.out, "0 findings in 6 schedules\n");
  EXPECT_NE(ReadFile(File("s")).find("\"results\": []"), std::string::npos);
  const Outcome meant =
      Run(std::string(kRowMax) +
          "-D FLAGS=mem_none --checked --suppress race:row_max");
  EXPECT_EQ(meant.exit_code, 0) << meant.out << meant.err;
  EXPECT_EQ(meant.out, "0 findings in 1 schedule\n");
  // A read of memory that was never written is a finding.
  const Outcome unwritten =
      Run("--kernel row_max --grid 64 --threadgroup 64 -t 0=256 "
          "-b 0=f32:empty:64 -b 1=f32:zeros:64 --checked");
  EXPECT_EQ(unwritten.exit_code, 1);
  EXPECT_TRUE(unwritten.Printed("reads x[0] at ")) << unwritten.out;
  EXPECT_TRUE(unwritten.Printed("nothing has written")) << unwritten.out;
}

TEST_F(SwyMetalRun, BuffersHaveTheValuesThatAreDescribed) {
  SWITCHYARD_NEEDS_CLANG();
  WriteNumpy("a.npy", "<f4", "2, 2", BytesOf<float>({1, -2.5, 3, 4}));
  WriteNumpy("b.npy", "|b1", "3,", std::string("\1\0\1", 3), 2);
  WriteNumpy("c.npy", "<i8", "", BytesOf<int64_t>({-9007199254740993}), 1,
             "True");
  Write("raw", BytesOf<uint16_t>({1, 65535}));
  const std::pair<const char*, const char*> cases[] = {
      {"%/a.npy", "1 -2.5 3 4"},
      {"%/b.npy", "1 0 1"},
      {"%/c.npy", "-9007199254740993"},
      {"u16:file:%/raw", "1 65535"},
      {"i16:file:%/raw", "1 -1"},
      {"f32:zeros:3", "0 0 0"},
      {"f32:fill:2:-1e+3", "-1000 -1000"},
      {"u8:range:3", "0 1 2"},
      {"i8:range:3:5:-4", "5 1 -3"},
      {"f32:range:3:.5", "0.5 1.5 2.5"},
      {"u32:4294967295", "4294967295"},
      {"u64:18446744073709551615,7", "18446744073709551615 7"},
      {"i64:-9223372036854775808", "-9223372036854775808"},
      {"bool:true,false,1", "1 0 1"},
      {"f16:0.333", "0.33301"},
      {"bf16:0.333", "0.332"},
      {"f32:inf,nan,0.1", "inf nan 0.100000001"},
      {"u32:7+f32:1e+2,2+u8:1", "7 100 2 1"},
      {"i32:random:4:5:5", "5 5 5 5"},
      {"f32:range:9", "0 1 2 3 4 5 6 7\n0[8] 8"},
  };
  for (const auto& [spec, values] : cases) {
    const Outcome outcome =
        Run("--kernel nothing --grid 1 --threadgroup 1 --print 0 -b 0=" +
            std::string(spec));
    EXPECT_EQ(outcome.exit_code, 0) << spec << outcome.err;
    EXPECT_EQ(outcome.out, "0[0] " + std::string(values) + "\n") << spec;
  }
}

TEST_F(SwyMetalRun, WritesBuffersOfTheFirstScheduleWhateverWasFound) {
  SWITCHYARD_NEEDS_CLANG();
  Write("k.metal",
        "kernel void k(device uint* x [[buffer(0)]],\n"
        "              uint i [[thread_position_in_grid]]) {\n"
        "  x[0] = i;\n}\n");
  const std::string run =
      "--kernel k --grid 32 --threadgroup 32 -b 0=u32:7,8 --write 0=%/out ";
  EXPECT_EQ(Run(run + "--checked --seeds 4").exit_code, 1);
  EXPECT_EQ(ReadFile(File("out")), BytesOf<uint32_t>({31, 8}));
  ExpectRefused(Run(run + "--write 1=%/out"), "swy: --write 1: no such buffer");
  ExpectRefused(Run(run + "--write 0=/none/out"),
                "swy: --write /none/out: No such file or directory");
}

TEST_F(SwyMetalRun, RandomValuesAreThoseOfTheirSeed) {
  SWITCHYARD_NEEDS_CLANG();
  const auto print = [&](const std::string& spec) {
    return Run("--kernel nothing --grid 1 --threadgroup 1 --print 0 -b 0=" +
               spec)
        .out;
  };
  EXPECT_EQ(print("f32:random:16"), print("f32:random:16"));
  EXPECT_EQ(print("f32:random:16:-1:1:9"), print("f32:random:16:-1:1:9"));
  EXPECT_NE(print("f32:random:16:-1:1:9"), print("f32:random:16:-1:1:8"));
  // Random integers from -1 to 1 must include each of these three values, and
  // no other value.
  const std::string few = print("i32:random:64:-1:1");
  for (const char* const value : {" -1", " 0", " 1"}) {
    EXPECT_NE(few.find(value), std::string::npos) << few;
  }
  for (const char* const value : {" -2", " 2"}) {
    EXPECT_EQ(few.find(value), std::string::npos) << few;
  }
  // Two of the buffers differ from the expected values.
  const Outcome two = Run(
      "--kernel times --grid 4 --threadgroup 4 -b 0=f32:random:4 -b "
      "1=f32:random:4 -c kTimes=1 --print 0 --expect 0=f32:0,0,0,0 --atol 1");
  EXPECT_EQ(two.exit_code, 0) << two.out << two.err;
  const Outcome same =
      Run("--kernel nothing --grid 1 --threadgroup 1 -b 0=f32:random:4 "
          "--expect 0=f32:random:4:-1:1:1");
  EXPECT_EQ(same.exit_code, 1) << same.out << same.err;
}

TEST_F(SwyMetalRun, ComparesWithWhatIsExpected) {
  SWITCHYARD_NEEDS_CLANG();
  WriteNumpy("want.npy", "<f8", "4,", BytesOf<double>({0, 3, 6, 9.000001}));
  const std::string times =
      "--kernel times --grid 4 --threadgroup 2 -b 0=f32:range:4 "
      "-b 1=f32:empty:4 ";
  const struct {
    const char* arguments;
    int exit_code;
    const char* out;
  } cases[] = {
      {"-c kTimes=3 --expect 1=%/want.npy", 0, ""},
      {"-c 3=3 --expect 1=%/want.npy", 0, ""},
      {"-c kTimes=3 --expect 1=%/want.npy --rtol 0 --atol 0", 1,
       "buffer 1: 1 of 4 values differ, the first is [3]: 9, expected "
       "9.000001\n"},
      {"-c kTimes=2 --expect 1=f32:range:4:0:3", 1,
       "buffer 1: 3 of 4 values differ, the first is [1]: 2, expected 3\n"},
      {"-c kTimes=2 --expect 1=f32:range:4:0:3 --rtol 0.34", 0, ""},
      {"-c kTimes=2 --expect 1=f32:range:4:0:3 --atol 3", 0, ""},
      {"-c kTimes=2 --expect 1=f32:range:4:0:3 --atol 2.9", 1,
       "buffer 1: 1 of 4 values differ, the first is [3]: 6, expected 9\n"},
      {"-c kTimes=1 --expect 0=i32:0,1,2,3 --expect 1=f32:0,1,2,inf", 1,
       "buffer 1: 1 of 4 values differ, the first is [3]: 3, expected inf\n"},
  };
  for (const auto& c : cases) {
    const Outcome outcome = Run(times + c.arguments);
    EXPECT_EQ(outcome.exit_code, c.exit_code) << c.arguments << outcome.err;
    EXPECT_EQ(outcome.out, c.out) << c.arguments;
  }
  const Outcome nan =
      Run("--kernel nothing --grid 1 --threadgroup 1 -b 0=f32:nan,1 --expect "
          "0=f32:nan,nan");
  EXPECT_EQ(nan.out,
            "buffer 0: 1 of 2 values differ, the first is [1]: 1, expected "
            "nan\n");
  // Integers must be equal to the expected values.
  const Outcome integers =
      Run("--kernel nothing --grid 1 --threadgroup 1 -b 0=u32:1000000 --expect "
          "0=u32:1000001");
  EXPECT_EQ(integers.exit_code, 1);
}

TEST_F(SwyMetalRun, GridsAreOfThreadsOrOfThreadgroups) {
  SWITCHYARD_NEEDS_CLANG();
  const std::string run =
      "--kernel where_am_i --threadgroup 2,1 -b 0=u32:fill:8:0 --print 0 ";
  EXPECT_EQ(Run(run + "--grid 3,2").out, "0[0] 22 22 22 0 22 22 22 0\n");
  EXPECT_EQ(Run(run + "--groups 1,2,1").out, "0[0] 12 12 0 0 12 12 0 0\n");
}

// Returns the text of two dispatches. The second dispatch reads the results
// of the first.
std::string TwoDispatches(const std::string& between,
                          const std::string& more = "") {
  return R"({"buffers": {"x": "f32:range:68", "mid": "f32:empty:64",
  "out": "f32:empty:64"}, )" +
         more + R"("dispatches": [
    {"kernel": "times", "grid": 64, "threadgroup": [32, 1],
     "bind": {"0": {"buffer": "x", "offset": 16}, "1": "mid"},
     "constants": {"kTimes": 2}}, )" +
         between + R"(
    {"kernel": "row_max", "groups": [1], "threadgroup": 64,
     "bind": {"0": "mid", "1": "out"}, "memory": {"0": 256}}]})";
}

TEST_F(SwyMetalRun, RunsTheDispatchesOfAFile) {
  SWITCHYARD_NEEDS_CLANG();
  Write("with.json", TwoDispatches("\"barrier\","));
  Write("without.json", TwoDispatches(""));
  Write("serial.json", TwoDispatches("", "\"concurrent\": false, "));
  const std::string expect = " --checked --expect out=f32:range:64:-126:2";
  const Outcome with = Run("--dispatches %/with.json" + expect);
  EXPECT_EQ(with.exit_code, 0) << with.out << with.err;
  const Outcome serial = Run("--dispatches %/serial.json" + expect);
  EXPECT_EQ(serial.exit_code, 0) << serial.out << serial.err;
  const Outcome without = Run("--dispatches %/without.json --seeds 3" + expect);
  EXPECT_EQ(without.exit_code, 1) << without.err;
  EXPECT_TRUE(
      without.Printed("memoryBarrier is missing between it and dispatch 1\n"))
      << without.out;
  EXPECT_TRUE(without.Printed("\n2 findings in 3 schedules\n")) << without.out;
  // Values in the command line replace the values in the file.
  const Outcome given = Run(
      "--dispatches %/with.json -b x=f32:fill:68:1 --expect mid=f32:fill:64:2");
  EXPECT_EQ(given.exit_code, 0) << given.out << given.err;
  Write("inline.json",
        "{\"dispatches\": [{\"kernel\": \"nothing\", \"grid\": 1, "
        "\"threadgroup\": 1, \"bind\": {\"0\": \"u32:7\"}}]}");
  EXPECT_EQ(Run("--dispatches %/inline.json --print u32:7").out,
            "u32:7[0] 7\n");
}

TEST_F(SwyMetalRun, FindingsInMacrosNameThem) {
  SWITCHYARD_NEEDS_CLANG();
  Write("at.h", "//\n# define AT(i) ((i) + SHIFT)\n");
  Write("shift.h", "#define SHIFT 4\n#define LATER\n");
  Write("k.metal",
        "#include \"at.h\"\n"
        "kernel void k(device int* x [[buffer(0)]],\n"
        "              uint i [[thread_position_in_grid]]) {\n"
        "  x[AT(i)] = 1; LATER\n"
        "  x[i + 9] = 1;\n}\n");
  const std::string run =
      "--kernel k --grid 1 --threadgroup 1 --checked --prepend %/shift.h -b "
      "0=i32:zeros:";
  const Outcome in_macro = Run(run + "4");
  EXPECT_TRUE(
      in_macro.Printed(Named("or bind more; AT is a macro, %/at.h:2:10\n")))
      << in_macro.out << in_macro.err;
  const Outcome outside = Run(run + "5");
  EXPECT_TRUE(outside.Printed(":5:12, which has 5 elements\n")) << outside.out;
  EXPECT_TRUE(outside.Printed("or bind more\n")) << outside.out;
}

TEST_F(SwyMetalRun, AReadInFrontOfAnOffsetMayBeMeant) {
  SWITCHYARD_NEEDS_CLANG();
  Write("k.metal",
        "kernel void reads(device const int* x [[buffer(0)]],\n"
        "                  device int* out [[buffer(1)]]) {\n"
        "  out[0] = x[BACK];\n}\n"
        "kernel void writes(device int* x [[buffer(0)]]) {\n"
        "  x[BACK] = 1;\n}\n");
  const auto write = [&](const std::string& name, const std::string& more) {
    Write(name,
          "{\"buffers\": {\"x\": \"i32:range:8\", \"y\": \"i32:9\"}, "
          "\"dispatches\": [{\"grid\": 1, \"threadgroup\": 1, "
          "\"kernel\": " +
              more + "}]}");
  };
  write("r.json",
        "\"reads\", \"bind\": {\"0\": {\"buffer\": \"x\", \"offset\": 16}, "
        "\"1\": \"y\"}");
  write("w.json",
        "\"writes\", \"bind\": {\"0\": {\"buffer\": \"x\", \"offset\": 16}}");
  const std::string reads = "--checked --dispatches %/r.json -D BACK=";
  const Outcome inside = Run(reads + "-4 --sarif %/s");
  EXPECT_EQ(inside.exit_code, 1) << inside.err;
  EXPECT_TRUE(
      inside.Printed(Named("reads x[-4] at %/k.metal:3:12, which is in "
                           "the buffer, but before the bound offset")))
      << inside.out;
  EXPECT_NE(ReadFile(File("s")).find("\"level\": \"note\""), std::string::npos);
  const Outcome meant =
      Run(reads + "-4 --suppress before-offset:reads --expect y=i32:0");
  EXPECT_EQ(meant.exit_code, 0) << meant.out << meant.err;
  for (const std::string& wrong :
       {reads + "-5", reads + "4",
        std::string("--checked --dispatches %/w.json -D BACK=-4")}) {
    const Outcome outcome = Run(wrong + " --json %/j");
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_NE(ReadFile(File("j")).find("\"bounds\""), std::string::npos)
        << wrong << outcome.out;
  }
}

// The shader uses names that MSL shares with host code: types of simd.h,
// assert(), the limit __FLT16_MAX__ of half, and a vector of half that an
// attribute declares.
TEST_F(SwyMetalRun, TakesWhatShadersShareWithTheirHosts) {
  SWITCHYARD_NEEDS_CLANG();
  Write("k.metal",
        "#include <metal_stdlib>\n#include <simd/simd.h>\n"
        "using namespace metal;\nusing namespace simd;\n"
        "typedef half half8 __attribute__((ext_vector_type(8)));\n"
        "constant half kMost = __FLT16_MAX__;\n"
        "struct Shared {\n  simd_float4x4 m;\n  simd::float4 v;\n"
        "  vector_float2 two;\n  matrix_float2x2 n;\n  simd_uint3 u;\n"
        "  packed_float3 p;\n  simd_bool b;\n};\n"
        "kernel void k(device float* out [[buffer(0)]]) {\n"
        "  assert(out != nullptr && sizeof(Shared) == 144);\n"
        "  Shared s;\n  s.m = simd_float4x4(2.0f);\n"
        "  s.v = s.m * simd::float4(1, 2, 3, 4);\n"
        "  half8 h = half8(half(s.v.w));\n  h[7] = 3;\n"
        "  out[0] = float(sizeof(Shared));\n  out[1] = s.v.w;\n"
        "  out[2] = float(h[6] * h[7]);\n  out[3] = float(kMost);\n}\n");
  const Outcome outcome = Run(
      "--kernel k --grid 1 --threadgroup 1 -b 0=f32:empty:4 --checked --expect "
      "0=f32:144,8,24,65504");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "0 findings in 1 schedule\n");
}

// The host concatenates fragments. Lines must keep the numbers that they have
// in their files.
TEST_F(SwyMetalRun, PrependsFragments) {
  SWITCHYARD_NEEDS_CLANG();
  Write("a.h", "#define N 3\n");
  Write("b.h", "inline uint two() { return 2; }\n");
  Write("k.metal",
        "kernel void k(device uint* x [[buffer(0)]]) {\n  x[0] = two() * "
        "N;\n}\n");
  const std::string run =
      "--kernel k --grid 1 --threadgroup 1 -b 0=u32:0 --expect 0=u32:6 ";
  const Outcome outcome = Run(run + "--prepend %/a.h --prepend %/b.h");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  ExpectRefused(Run(run + "--prepend %/a.h"),
                Named("swy: %/k.metal:2:10: error: use of undeclared "
                      "identifier 'two'"));
  ExpectRefused(Run(run + "--prepend %/none"),
                Named("swy: %/none: No such file or directory"));
  ExpectRefused(Run(run + "--prepend /dev/zero"),
                "swy: /dev/zero: is not a regular file");
}

// The file has other instantiations of the template, which would not compile.
TEST_F(SwyMetalRun, InstantiatesWhatItRuns) {
  SWITCHYARD_NEEDS_CLANG();
  Write(
      "k.metal",
      "template <class T> kernel void k(device T* x [[buffer(0)]]) {\n"
      "  x[0] = T(1) << 1;\n}\n"
      "template [[host_name(\"ki\")]] kernel void k<int>(device int*);\n"
      "template [[host_name(\"kf\")]] kernel void k<float>(device float*);\n");
  const std::string run = " --grid 1 --threadgroup 1 -b 0=i32:0 --print 0";
  EXPECT_EQ(Run("--kernel ki" + run).out, "0[0] 2\n");
  EXPECT_EQ(Run("--kernel kf" + run).exit_code, 2);
  ExpectRefused(Run("--kernel none" + run),
                "swy: --kernel none: is not in the file; the file has ki, kf");
}

// Two of the findings occur only if threadgroups run out of order. Each must
// name the threadgroups of the first schedule in which it occurs.
TEST_F(SwyMetalRun, SchedulesOnAllCoresAreToldAsOnOne) {
  SWITCHYARD_NEEDS_CLANG();
  Write("k.metal",
        "kernel void k(device uint* out [[buffer(0)]],\n"
        "              device uint* last [[buffer(1)]],\n"
        "              uint g [[threadgroup_position_in_grid]]) {\n"
        "  if (*last != g) out[0] += g;\n"
        "  *last = g + 1;\n}\n");
  const std::string run =
      "--kernel k --groups 16 --threadgroup 1 -b 0=u32:zeros:1 "
      "-b 1=u32:zeros:1 --checked --seeds 24";
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  CPU_ZERO(&one);
  for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const Outcome on_one = Run(run);
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
  EXPECT_EQ(on_one.exit_code, 1) << on_one.err;
  EXPECT_TRUE(on_one.Printed("schedule_seed")) << on_one.out;
  EXPECT_EQ(Run(run).out, on_one.out);
}

// The kernel is a scan with decoupled look-back over 64 values per
// threadgroup. The upper two bits of a state are 1 if the state has the
// threadgroup's own sum, and 2 if it has the sum of all threadgroups so far.
TEST_F(SwyMetalRun, ThreadgroupsThatWaitLetOthersRun) {
  SWITCHYARD_NEEDS_CLANG();
  Write("k.metal", R"(
    #include <metal_stdlib>
    using namespace metal;
    kernel void scan(device const uint* x [[buffer(0)]],
                     device uint* sums [[buffer(1)]],
                     device atomic_uint* state [[buffer(2)]],
                     uint i [[thread_position_in_grid]],
                     uint g [[threadgroup_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint sg [[simdgroup_index_in_threadgroup]]) {
      threadgroup uint part[2];
      const uint own = simd_prefix_inclusive_sum(x[i]);
      if (lane == 31) part[sg] = own;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const uint all = part[0] + part[1];
      uint before = 0;
      if (lane == 0) {
        if (sg == 0) atomic_store_explicit(&state[g], (g == 0 ? 2u : 1u) << 30 | all, memory_order_relaxed);
        for (uint look = g; look > 0;) {
          const uint found = atomic_load_explicit(&state[look - 1], memory_order_relaxed);
          if (found == 0) continue;
          before += found & 0x3fffffff;
          if (found >> 30 == 2) break;
          --look;
        }
        if (sg == 0 && g > 0) atomic_store_explicit(&state[g], 2u << 30 | (before + all), memory_order_relaxed);
      }
      before = simd_broadcast_first(before);
      sums[i] = before + own + (sg == 0 ? 0 : part[0]);
    }
    // One simdgroup waits for the other.
    kernel void halves(device uint* seen [[buffer(0)]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint sg [[simdgroup_index_in_threadgroup]]) {
      threadgroup atomic_uint ready;
      if (lane == 0 && sg == 0) atomic_store_explicit(&ready, 0, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (sg == 0) {
        while (atomic_fetch_or_explicit(&ready, 0, memory_order_relaxed) != 32) {
        }
      } else {
        atomic_fetch_add_explicit(&ready, 1, memory_order_relaxed);
      }
      seen[sg * 32 + lane] = simd_sum(1);
    })");
  for (const char* const groups : {"4", "100"}) {
    const std::string n = std::to_string(64 * std::stoi(groups));
    const Outcome scan = Run(
        "--kernel scan --threadgroup 64 --checked --seeds 9 --groups " +
        std::string(groups) + " -b 0=u32:fill:" + n + ":1 -b 1=u32:empty:" + n +
        " -b 2=u32:zeros:100 --expect 1=u32:range:" + n + ":1");
    EXPECT_EQ(scan.out, "0 findings in 9 schedules\n") << scan.err;
  }
  EXPECT_EQ(
      Run("--kernel halves --threadgroup 64 --grid 64 --checked --seeds 9 "
          "-b 0=u32:empty:64 --expect 0=u32:fill:64:32")
          .out,
      "0 findings in 9 schedules\n");
}

TEST_F(SwyMetalRun, AWaitThatNeverEndsIsAMessage) {
  SWITCHYARD_NEEDS_CLANG();
  Write("k.metal",
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "kernel void later(device atomic_uint* done [[buffer(0)]],\n"
        "                  uint g [[threadgroup_position_in_grid]]) {\n"
        "  while (g < 98 && atomic_load_explicit(\n"
        "                       &done[g + 1], memory_order_relaxed) == 0) {\n"
        "  }\n"
        "  atomic_store_explicit(&done[g], 1, memory_order_relaxed);\n}\n"
        "kernel void never(device atomic_uint* done [[buffer(0)]],\n"
        "                  uint g [[threadgroup_position_in_grid]]) {\n"
        "  if (g > 0 && atomic_load_explicit(&done[g - 1],\n"
        "                                    memory_order_relaxed) == 0) {\n"
        "    while (atomic_load_explicit(&done[99],\n"
        "                                memory_order_relaxed) == 0) {\n"
        "    }\n"
        "  }\n"
        "  atomic_store_explicit(&done[g], 1, memory_order_relaxed);\n}\n"
        "kernel void plain(volatile device uint* done [[buffer(0)]],\n"
        "                  uint g [[threadgroup_position_in_grid]]) {\n"
        "  while (g > 0 && done[g - 1] == 0) {\n"
        "  }\n"
        "  done[g] = 1;\n}\n");
  const std::string run =
      " --groups 99 --threadgroup 1 -b 0=u32:zeros:100 --checked ";
  const Outcome later = Run("--kernel later" + run);
  EXPECT_EQ(later.exit_code, 2);
  EXPECT_EQ(later.err.find(Named("swy: later: thread 0 waits at %/k.metal:5:")),
            0u)
      << later.err;
  EXPECT_EQ(Run("--kernel never" + run).out, "0 findings in 1 schedule\n");
  const Outcome never = Run("--kernel never" + run + "--seeds 9");
  EXPECT_EQ(never.exit_code, 2);
  EXPECT_EQ(
      never.err.find(Named("swy: never: thread 0 waits at %/k.metal:14:")), 0u)
      << never.err;
  // This kernel waits without atomics. Its wait ends, and is reported as a
  // race.
  const Outcome plain = Run("--kernel plain" + run + "--seeds 9");
  EXPECT_EQ(plain.exit_code, 1);
  EXPECT_TRUE(plain.Printed(" wrote at ")) << plain.out << plain.err;
}

// Clang names files below the working folder by relative paths.
TEST_F(SwyMetalRun, AllowCommentsHoldInWhateverFolderItRuns) {
  SWITCHYARD_NEEDS_CLANG();
  Write("k.metal",
        "kernel void k(device uint* x [[buffer(0)]],\n"
        "              uint i [[thread_position_in_grid]]) {\n"
        "  x[0] = i;  // switchyard: allow(race)\n"
        "  x[1] = i;\n}\n");
  const Outcome outcome =
      Swy(Named("metal run %/k.metal --kernel k --grid 64 --threadgroup 64 "
                "-b 0=u32:zeros:2 --checked"),
          Named("cd %;"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.Printed(Named("writes x[1] at %/k.metal:4:8")))
      << outcome.out;
  EXPECT_FALSE(outcome.Printed("x[0]")) << outcome.out;
}

// To detect a loop that waits, checked mode compares the values of atomic
// reads. Here it must not read the value, because the address may not be
// mapped.
TEST_F(SwyMetalRun, AnAtomicAccessBesideABufferIsAFinding) {
  SWITCHYARD_NEEDS_CLANG();
  Write("k.metal",
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "kernel void k(device atomic_uint* x [[buffer(0)]],\n"
        "              device uint* out [[buffer(1)]]) {\n"
        "  out[0] = atomic_load_explicit(&x[1000000],\n"
        "                                memory_order_relaxed);\n}\n");
  const Outcome outcome =
      Run("--kernel k --grid 1 --threadgroup 1 -b 0=u32:zeros:4 "
          "-b 1=u32:zeros:1 --checked");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.Printed("atomically reads x[1000000]")) << outcome.out;
}

TEST_F(SwyMetalRun, FindingsSayHowWideAnAccessIsAndNameNoOtherBuffer) {
  SWITCHYARD_NEEDS_CLANG();
  Write("k.metal",
        "kernel void wide(device float* x [[buffer(0)]]) {\n"
        "  ((device float4*)x)[4] = float4(1);\n}\n"
        "kernel void wild(device ulong* x [[buffer(0)]]) {\n"
        "  x[0] = *(device ulong*)x[0];\n}\n");
  const std::string end = " --grid 1 --threadgroup 1 --checked -b 0=";
  const Outcome wide = Run("--kernel wide" + end + "f32:zeros:8");
  EXPECT_TRUE(wide.Printed("writes x[16] (16 bytes) at ")) << wide.out;
  EXPECT_TRUE(wide.Printed(", which has 8 elements\n")) << wide.out;
  const Outcome wild = Run("--kernel wild" + end + "u64:64");
  EXPECT_EQ(wild.exit_code, 1);
  EXPECT_TRUE(
      wild.Printed(Named("reads 8 bytes at %/k.metal:5:10 that are in "
                         "no buffer and no threadgroup memory\n")))
      << wild.out;
}

TEST_F(SwyMetalRun, WrongArgumentsAreOneLineThatNamesThem) {
  const std::string good = "--kernel nothing --grid 1 --threadgroup 1 ";
  const std::string b = good + "-b 0=";
  Write("not.npy", "no array of NumPy's");
  WriteNumpy("short.npy", "<f4", "3,", "1234");
  WriteNumpy("double.npy", "<f8", "1,", "12345678");
  WriteNumpy("complex.npy", "<c8", "1,", "12345678");
  WriteNumpy("big.npy", ">f4", "1,", "1234");
  WriteNumpy("fortran.npy", "<f4", "2, 1", "12345678", 1, "True");
  Write("end.npy", std::string("\x93NUMPY\1\0\xff\xff", 10) + "{}");
  Write("three", "abc");
  const std::string types =
      "f32, f16, bf16, i8, u8, i16, u16, i32, u32, i64, u64, bool";
  const std::pair<std::string, std::string> cases[] = {
      {"--grid 1 --threadgroup 1", "--kernel: is missing"},
      {"--kernel nothing --threadgroup 1",
       "--grid: is missing; give the grid in threads, or in threadgroups by "
       "--groups"},
      {good + "--groups 1", "--groups: not with --grid"},
      {"--kernel nothing --grid 1", "--threadgroup: is missing"},
      {"--kernel nothing --grid 1,2,x --threadgroup 1",
       "--grid: 'x' is no u64"},
      {"--kernel nothing --grid 1,2,3,4 --threadgroup 1",
       "--grid: more than three sizes"},
      {"--kernel nothing --groups 0 --threadgroup 1", "--groups: a size of 0"},
      {"--kernel nothing --groups 4294967296 --threadgroup 1",
       "--groups: 4294967296 is above 4294967295"},
      {"--kernel nothing --grid 1 --threadgroup 32,33",
       "--threadgroup 32,33: has more than 1024 threads"},
      {good + "-b 0", "-b 0: takes INDEX=VALUES"},
      {good + "-b =u32:1", "-b =u32:1: takes INDEX=VALUES"},
      {good + "-b x=u32:1", "-b x: 'x' is no u64"},
      {good + "-b 31=u32:1", "-b 31: 31 is above 30"},
      {b + "u32:1 -b 0=u32:1", "-b 0: given twice"},
      {b + "f33:1", "-b 0: 'f33' is not a type; the types are " + types},
      {b + "u32:1x", "-b 0: '1x' is no u32"},
      {b + "u32:-1", "-b 0: '-1' is no u32"},
      {b + "u32:0.5", "-b 0: '0.5' is no u32"},
      {b + "u8:256", "-b 0: '256' is no u8"},
      {b + "u8:1,,2", "-b 0: '' is no u8"},
      {b + "u8:nan", "-b 0: 'nan' is no u8"},
      {b + "f32:zeros", "-b 0: zeros takes COUNT"},
      {b + "f32:zeros:0", "-b 0: a count of 0"},
      {b + "f32:zeros:4294967296",
       "-b 0: 4294967296 values have more than 4 GiB"},
      {b + "f32:fill:2", "-b 0: fill takes COUNT:VALUE"},
      {b + "u8:range:257", "-b 0: the range leaves u8"},
      {b + "u8:range:3:1:-1", "-b 0: '-1' is no u8"},
      {b + "f32:range:1:2:3:4", "-b 0: range takes COUNT[:FIRST[:STEP]]"},
      {b + "f32:random:1:2", "-b 0: random takes COUNT[:LOW:HIGH[:SEED]]"},
      {b + "f32:random:1:2:1", "-b 0: LOW is above HIGH"},
      {b + "f32:random:1:0:1:-1", "-b 0: '-1' is no u32"},
      {b + "f64:1", "-b 0: has f64 values, which Metal does not have"},
      {b + "u8:1+f32:empty:2", "-b 0: empty cannot be a part of a struct"},
      {b + "u16:file:%/three",
       "-b 0: %/three has 3 bytes, not a whole number of u16"},
      {b + "u16:file:%", "-b 0: %: not a regular file"},
      {b + "u16:file:%/none", "-b 0: %/none: No such file or directory"},
      {b + "%/none.npy", "-b 0: %/none.npy: No such file or directory"},
      {b + "%/not.npy", "-b 0: %/not.npy: is not a .npy file"},
      {b + "%/end.npy", "-b 0: %/end.npy: ends in its header"},
      {b + "%/short.npy",
       "-b 0: %/short.npy: has 4 bytes of values, its shape (3,) asks for 3 "
       "of 4"},
      {b + "%/double.npy", "-b 0: has f64 values, which Metal does not have"},
      {b + "%/complex.npy",
       "-b 0: %/complex.npy: has values of type '<c8', which Metal does not "
       "have: save it as one of " +
           types},
      {b + "%/big.npy",
       "-b 0: %/big.npy: has values of type '>f4', which Metal does not have: "
       "save it as one of " +
           types},
      {b + "%/fortran.npy",
       "-b 0: %/fortran.npy: is in Fortran order: save "
       "numpy.ascontiguousarray(array)"},
      {good + "-t 0", "-t 0: takes INDEX=BYTES"},
      {good + "-t 31=4", "-t 31: 31 is above 30"},
      {good + "-t 0=40000", "-t 0: 40000 is above 32768"},
      {good + "-c kTimes", "-c kTimes: takes NAME=VALUE"},
      {good + "--expect 0", "--expect 0: takes INDEX=VALUES"},
      {good + "--expect 0=u32:1", "--expect 0: no such buffer"},
      {b + "u32:1 --expect 0=u32:x", "--expect 0: 'x' is no u32"},
      {b + "u32:1 --expect 0=u32:1,2",
       "--expect 0: has 2 values, the buffer has 1"},
      {good + "--print 2", "--print 2: no such buffer"},
      {good + "--rtol -1", "--rtol: Value -1 not in range 0 to 1000000"},
      {good + "--atol x", "--atol: Value x not in range 0 to 1000000"},
      {good + "--rtol 0.1", "--rtol: needs --expect"},
      {good + "--atol 0.1", "--atol: needs --expect"},
      {good + "--checked --seeds 0",
       "--seeds: Value 0 not in range 1 to 10000"},
      {good + "--seeds 2", "--seeds: needs --checked"},
      {good + "--suppress race:k", "--suppress: needs --checked"},
      {good + "--json %/j", "--json: needs --checked"},
      {good + "--sarif %/s", "--sarif: needs --checked"},
      {good + "--checked --sarif %/no/s",
       "--sarif %/no/s: No such file or directory"},
      {good + "--checked --json %/no/s",
       "--json %/no/s: No such file or directory"},
      {good + "--checked --json %/s --sarif %/s",
       "--sarif %/s: is --json's file"},
      {"--dispatches %/d --kernel k",
       "--kernel: not with --dispatches, which has its own"},
      {"--dispatches %/d --grid 1",
       "--grid: not with --dispatches, which has its own"},
      {"--dispatches %/d --groups 1",
       "--groups: not with --dispatches, which has its own"},
      {"--dispatches %/d --threadgroup 1",
       "--threadgroup: not with --dispatches, which has its own"},
      {"--dispatches %/d -t 0=1",
       "-t: not with --dispatches, which has its own"},
      {"--dispatches %/d -c a=1",
       "-c: not with --dispatches, which has its own"},
      {"--dispatches %/d", "--dispatches: %/d: No such file or directory"},
      {"--print ''", "--print: empty"},
      {"--checked=1", "--checked: takes no value"},
      {"more", "The following argument was not expected: more"},
  };
  for (const auto& [arguments, line] : cases) {
    ExpectRefused(Run(arguments), Named("swy: " + line));
  }
  ExpectRefused(Swy("metal run"), "swy: file is required");
  SWITCHYARD_NEEDS_CLANG();
  const std::pair<std::string, std::string> compiled[] = {
      {"--kernel none --grid 1 --threadgroup 1",
       "--kernel none: is not in the file; the file has nothing, row_max, "
       "times, "
       "where_am_i"},
      {"--kernel image --grid 1 --threadgroup 1",
       "--kernel image: %/k.metal:30: not supported: textures"},
      {b + "u8:1 -b 1=u8:1", "-b 1: 'nothing' has no buffer 1; it has 0 (a)"},
      {b + "u8:1 -t 0=4", "-t 0: 'nothing' has no threadgroup memory 0"},
      {b + "u8:1 -c kNone=1",
       "-c kNone: the file has no such function constant; it has kTimes, "
       "kWide"},
      {b + "u8:1 -c kTimes=x", "-c kTimes: 'x' is no u32"},
      {b + "u8:1 -c 4=1", "-c 4: is a half4, not a scalar"},
      {"--kernel times --grid 1 --threadgroup 1 -c kTimes=1 -b 1=f32:zeros:1",
       "times: buffer 0 (x) is not bound"},
      {b + "u8:1 --checked --suppress nonsense",
       "--suppress: \"nonsense\": there is no kind \"nonsense\""},
      {b + "u8:1 -D 2X", "-D: '2X' is not a macro's name"},
      {b + "u8:1 -I %/none", "-I %/none: No such file or directory"},
      {b + "u8:1 --compiler /bin/true", "--compiler: /bin/true is not Clang"},
  };
  for (const auto& [arguments, line] : compiled) {
    ExpectRefused(Run(arguments), Named("swy: " + line));
  }
  ExpectRefused(Swy(Named("metal run %/wrong.metal " + good)),
                Named("swy: %/wrong.metal:3:3: error: use of undeclared "
                      "identifier 'no'"));
  // Errors in the library's headers and errors of the linker must name a
  // place in the shader, too.
  Write("wrong.metal", "void f(int);\nkernel void k(int y [[buffer(0)]]) {}\n");
  const std::string one = "--kernel k --grid 1 --threadgroup 1";
  ExpectRefused(Swy(Named("metal run %/wrong.metal " + one)),
                Named("swy: %/wrong.metal:2:4: error: [[buffer(n)]] and "
                      "[[threadgroup(n)]] are arguments that are pointers or "
                      "references"));
  Write("wrong.metal", "void f(int);\nkernel void k() {\n  f(1);\n}\n");
  ExpectRefused(Swy(Named("metal run %/wrong.metal " + one)),
                Named("swy: %/wrong.metal:3: error: 'f(int)' is declared and "
                      "used, but not defined"));
}

TEST_F(SwyMetalRun, WrongDispatchesAreOneLineThatNamesThem) {
  const std::string d = "%/d.json: dispatch 0: ";
  const auto dispatch = [](const std::string& members) {
    return "{\"buffers\": {\"x\": \"u32:1\"}, \"dispatches\": "
           "[{\"kernel\": \"nothing\", \"grid\": 1, \"threadgroup\": 1" +
           members + "}]}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {"[]", "%/d.json: is not a JSON object"},
      {"{\"more\": 1}",
       "%/d.json: 'more' is not a member; the members are buffers, concurrent, "
       "dispatches"},
      {"{}", "%/d.json: dispatches: is not a list"},
      {"{\"dispatches\": []}", "%/d.json: dispatches: is not a list"},
      {"{\"buffers\": 1}", "%/d.json: buffers: is not a JSON object"},
      {"{\"buffers\": {\"x\": \"u8:x\"}}", "%/d.json: buffer x: 'x' is no u8"},
      {"{\"dispatches\": [1]}", "%/d.json: dispatch 0: is not a JSON object"},
      {"{\"dispatches\": [{}]}", d + "kernel: is missing"},
      {dispatch(", \"gird\": 1"),
       "%/d.json: dispatch 0: 'gird' is not a member; the members are kernel, "
       "grid, "
       "groups, threadgroup, bind, memory, constants"},
      {dispatch(", \"grid\": [0]"), d + "--grid: a size of 0"},
      {dispatch(", \"bind\": {\"0\": \"y\"}"),
       d + "bind 0: no buffer is named 'y'"},
      {dispatch(", \"bind\": {\"0\": \"u8:x\"}"), d + "bind 0: 'x' is no u8"},
      {dispatch(", \"bind\": {\"0\": {\"buffer\": \"x\", \"offset\": 4}}"),
       d + "bind 0: offset 4 is past the end of its 4 bytes"},
      {dispatch(", \"bind\": {\"0\": {\"buffer\": \"x\", \"more\": 4}}"),
       d + "bind 0: 'more' is not a member; the members are buffer, offset"},
      {dispatch(", \"bind\": {\"40\": \"x\"}"), d + "bind 40: 40 is above 30"},
      {dispatch(", \"memory\": {\"0\": \"x\"}"), d + "memory 0: 'x' is no u64"},
      {dispatch(", \"memory\": 1"), d + "memory: is not a JSON object"},
  };
  for (const auto& [text, line] : cases) {
    Write("d.json", text);
    ExpectRefused(Run("--dispatches %/d.json"), Named("swy: " + line));
  }
  Write("d.json", "{");
  const Outcome no_json = Run("--dispatches %/d.json");
  EXPECT_EQ(no_json.exit_code, 2);
  EXPECT_EQ(no_json.err.find(Named("swy: %/d.json: ")), 0u) << no_json.err;
}

TEST_F(SwyMetalRun, HelpHasThreeExamples) {
  const std::string help = SwyOk("metal run --help").out;
  ExpectFitsATerminal(help);
  size_t examples = 0;
  for (size_t at = 0;
       (at = help.find("\n  swy metal run ", at)) != std::string::npos; ++at) {
    ++examples;
  }
  EXPECT_EQ(examples, 3u) << help;
}

}  // namespace
}  // namespace swy
