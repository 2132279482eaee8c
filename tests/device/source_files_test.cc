// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Which files newLibrary() reads of those that a shader's text names. tests/
// swy_metal_test.cc has the devices, in a process with little memory.

#include "src/device/metal/source_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "gtest/gtest.h"
#include "src/device/metal/compile.h"
#include "switchyard/device/device.h"
#include "switchyard/device/library.h"
#include "tests/device/needs_clang.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

using device::metal::Compile;
using device::metal::CompileRequest;
using device::metal::kMaxSourceBytes;
using device::metal::ReadSource;
using device::metal::SourceFile;

constexpr char kKernel[] = "kernel void k(device int* x) { *x = 1; }\n";

// A FIFO that nobody writes to, which whoever opens it waits for: for a minute,
// then the alarm ends the test.
class SourceFiles : public testing::Test {
 protected:
  SourceFiles() {
    alarm(60);
    EXPECT_EQ(mkfifo(fifo_.c_str(), 0600), 0);
  }
  ~SourceFiles() override { alarm(0); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.File(name)) << text;
    return folder_.File(name);
  }
  // Why the text is not compiled; empty if it is.
  std::string ErrorOf(const std::string& text, unsigned seconds = 60) const {
    CompileRequest request;
    request.source = text;
    request.cache = folder_.path();
    request.arguments = {"-I" + folder_.path()};
    request.preprocess_seconds = seconds;
    try {
      Compile(request);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return std::string();
  }

  const TempFolder folder_;
  const std::string fifo_ = folder_.File("fifo");
};

TEST_F(SourceFiles, AreReadIfRegularAndNotTooLarge) {
  const auto expect = [](const std::string& path, SourceFile::State state,
                         const std::string& wrong) {
    const SourceFile file = ReadSource(path);
    EXPECT_EQ(file.state, state) << path;
    EXPECT_EQ(file.wrong, wrong);
    EXPECT_EQ(file.text, "");
  };
  expect(fifo_, SourceFile::State::kNoFile, "is not a regular file");
  expect("/dev/null", SourceFile::State::kNoFile, "is not a regular file");
  expect(folder_.path(), SourceFile::State::kFolder, "is a folder");
  expect("/no/such/file", SourceFile::State::kAbsent,
         "No such file or directory");
  const std::string large = Write("large", "");
  std::filesystem::resize_file(large, kMaxSourceBytes + 1);
  expect(large, SourceFile::State::kTooLarge, "has more than 16 MiB");
  std::filesystem::resize_file(large, kMaxSourceBytes);
  EXPECT_EQ(ReadSource(large).text.size(), kMaxSourceBytes);
  EXPECT_EQ(ReadSource(Write("text", "abc")).text, "abc");
  // Which says that it has 0 bytes.
  EXPECT_NE(ReadSource("/proc/self/maps").text, "");
}

TEST_F(SourceFiles, OfATextAreThoseOfTheFolders) {
  SWITCHYARD_NEEDS_CLANG();
  EXPECT_EQ(
      ErrorOf(std::string("#include \"fifo\"\n") + kKernel),
      "program_source:1: includes " + fifo_ + ", which is not a regular file");
  Write("good.h", "#include \"good.h\"\n#define X 1\n");
  Write("once.h", "#pragma once\n#include \"./once.h\"\n");
  EXPECT_EQ(ErrorOf(std::string("#include <once.h>\n") + kKernel), "");
  EXPECT_EQ(ErrorOf(std::string("#line 7 \"") + fifo_ + "\"\n" + kKernel), "");
  EXPECT_EQ(ErrorOf(std::string(kMaxSourceBytes + 1, ' ')),
            "source: has more than 16 MiB");
  // No directive, and one that is not there.
  for (const char* const text :
       {"// #include \"fifo\"\n", "constant char s[] = \"#include <fifo>\";\n",
        "#if 0\n#include \"absent\"\n#endif\n"}) {
    EXPECT_EQ(ErrorOf(std::string(text) + kKernel), "") << text;
  }
}

// Only the preprocessor knows what a macro stands for: it waits for the FIFO,
// but not for ever.
TEST_F(SourceFiles, OfAMacroAreNotWaitedFor) {
  SWITCHYARD_NEEDS_CLANG();
  EXPECT_EQ(
      ErrorOf(std::string("#define NAME \"fifo\"\n#include NAME\n") + kKernel,
              1),
      "program_source: is not preprocessed within 1 s: does a macro's "
      "#include name a device or a FIFO?");
}

// Clang reads the text twice, and what the first time is no directive might be
// one the second time.
TEST_F(SourceFiles, AreNotNamedByWhatIsNoDirective) {
  SWITCHYARD_NEEDS_CLANG();
  EXPECT_EQ(ErrorOf(std::string("#define HASH #\nHASH include \"") + fifo_ +
                    "\"\n" + kKernel),
            "program_source:2:1: error: a directive can't be a macro's: "
            "#include");
  EXPECT_NE(ErrorOf(std::string("%:include \"") + fifo_ + "\"\n" + kKernel)
                .find("program_source:1:2: error: "),
            std::string::npos);
  // In two parts: no test of ours has any.
  const std::string word = "asm";
  EXPECT_NE(ErrorOf(word + "(\".incbin \\\"" + fifo_ + "\\\"\");\n" + kKernel)
                .find("program_source:1:1: error: "),
            std::string::npos);
}

}  // namespace
}  // namespace switchyard::testing_support
