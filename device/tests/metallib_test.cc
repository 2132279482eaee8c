// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests a shader that switchyard_add_shaders() has compiled at build time.
// Devices without Clang must run it, and checked mode must work as it does
// for a shader's text.

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "device/tests/device_test.h"
#include "device/tests/needs_clang.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/library.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

#ifdef SWITCHYARD_SHADERS

constexpr char kGuide[] = SWITCHYARD_SHADERS "/guide.metallib";

class Metallib : public testing::TestWithParam<bool> {
 protected:
  Metallib() {
    DeviceOptions options;
    options.metal_compiler = "/nowhere/clang++";
    options.metal_cache = folder_.File("cache");
    options.check_kernels = GetParam();
    device_ = CreateDevice(options);
  }
  // Loads the bytes as a .metallib. Returns the error, or "" if they are a
  // library.
  std::string ErrorOf(const std::string& bytes) {
    const std::string path = folder_.File("k.metallib");
    std::ofstream(path, std::ios::binary) << bytes;
    std::string error;
    const auto library = device_->newLibraryFromFile(path, {}, &error);
    EXPECT_EQ(library == nullptr, !error.empty());
    return error.substr(error.empty() ? 0 : path.size());
  }
  const TempFolder folder_;
  std::shared_ptr<Device> device_;
};

TEST_P(Metallib, RunsWithoutAClang) {
  std::string error;
  ASSERT_EQ(device_->newLibrary("", {}, &error), nullptr);
  EXPECT_EQ(error, "metal_compiler: no such program: /nowhere/clang++");
  // In the first round the library comes from the file, and in the second
  // round from the cache.
  for (int times = 0; times < 2; ++times) {
    const auto library = device_->newLibraryFromFile(kGuide, {}, &error);
    ASSERT_NE(library, nullptr) << error;
    EXPECT_EQ(library->functionNames(), std::vector<std::string>{"row_max"});
    const auto function = library->newFunction("row_max", &error);
    ASSERT_NE(function, nullptr) << error;
    EXPECT_EQ(function->arguments().size(), 6u);
    const auto commands = Encoded(
        *device_->newCommandQueue(),
        [&](Encoder& e) {
          e.setComputePipelineState(device_->newComputePipelineState(function));
          e.setBuffer(NewBuffer(*device_, std::vector<float>(64, 3.0f)), 0, 0);
          e.setBuffer(NewBuffer(*device_, std::vector<float>(64)), 0, 1);
          e.dispatchThreadgroups(Size(1, 1, 1), Size(64, 1, 1));
        },
        DispatchTypeSerial);
    commands->commit();
    commands->waitUntilCompleted();
    // Checked mode must find the guide's defect on its line.
    const std::string found = commands->error();
    EXPECT_EQ(GetParam(), found.find("guide.metal:15:43") != found.npos)
        << found;
  }
}

TEST_P(Metallib, DamageIsAnError) {
  const std::string bytes = ReadFile(kGuide);
  EXPECT_EQ(ErrorOf(bytes), "");
  for (const size_t size :
       {size_t{8}, size_t{20}, bytes.size() / 2, bytes.size() - 1}) {
    EXPECT_EQ(ErrorOf(bytes.substr(0, size)), ": is cut off") << size;
  }
  EXPECT_EQ(ErrorOf(bytes + "x"), ": has bytes after its end");
  std::string other = bytes;
  other[16] = other[16] == 'a' ? 'b' : 'a';  // changes the version in the file
  EXPECT_EQ(ErrorOf(other), ": was compiled by another version of Switchyard");
}

INSTANTIATE_TEST_SUITE_P(, Metallib, testing::Bool(),
                         testing::PrintToStringParamName());

#else

TEST(Metallib, RunsWithoutAClang) {
  if (std::getenv("SWITCHYARD_NEED_CLANG") != nullptr) FAIL() << "no Clang";
  GTEST_SKIP() << "no Clang where this was built: apt-get install clang";
}

#endif

TEST(MetalCompiler, NamesItsOwnOptionInErrors) {
  const TempFolder folder;
  const std::string shader = folder.File("k.metal");
  std::ofstream(shader) << "#include <metal_stdlib>\n";
  ExpectRefused(RunProgram(SWITCHYARD_METAL_COMPILER,
                           "-o " + folder.File("k.metallib") +
                               " --compiler /nowhere/clang++ " + shader),
                "switchyard-metal: --compiler: no such program: "
                "/nowhere/clang++");
  ExpectRefused(RunProgram(SWITCHYARD_METAL_COMPILER, "--compiler"),
                "switchyard-metal: --compiler: no value");
}

}  // namespace
}  // namespace switchyard::testing_support
