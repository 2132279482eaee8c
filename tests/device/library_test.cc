// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// newLibrary() and what it gives, apart from what kernels compute: errors,
// function constants, the cache.

#include "switchyard/device/library.h"

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/device_test.h"
#include "tests/device/metal_text.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

constexpr char kTwoKernels[] = R"(#include <metal_stdlib>
using namespace metal;
constant int scale [[function_constant(0)]];
constant bool negate [[function_constant(1)]];
constant int factor = is_function_constant_defined(scale) ? scale : 7;
kernel void second(device int* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[i] *= negate ? -factor : factor;
}
kernel void first(device int* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[i] = int(i);
}
)";

// A device that has a cache of its own.
class LibraryTest : public testing::Test {
 protected:
  LibraryTest() { options_.metal_cache = folder_.path(); }

  std::shared_ptr<Library> Compile(const char* source,
                                   const CompileOptions& options = {}) {
    device_ = CreateDevice(options_);
    return device_->newLibrary(source, options, &error_);
  }
  // The kernel's results for {1, 2, 3, 4}, a thread for each.
  std::vector<int32_t> Run(const std::shared_ptr<Function>& function) {
    const auto pipeline = device_->newComputePipelineState(function, &error_);
    EXPECT_NE(pipeline, nullptr) << error_;
    const auto x = NewBuffer<int32_t>(*device_, {1, 2, 3, 4});
    const auto queue = device_->newCommandQueue();
    const auto buffer = queue->commandBuffer();
    const auto encoder = buffer->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline);
    encoder->setBuffer(x, 0, 0);
    encoder->dispatchThreads(Size(4, 1, 1), Size(4, 1, 1));
    encoder->endEncoding();
    buffer->commit();
    buffer->waitUntilCompleted();
    EXPECT_EQ(buffer->error(), "");
    return Contents<int32_t>(x);
  }
  std::vector<int32_t> Run(Library& library, const char* name,
                           const FunctionConstantValues& constants = {}) {
    const auto function = library.newFunction(name, constants, &error_);
    EXPECT_NE(function, nullptr) << error_;
    return function == nullptr ? std::vector<int32_t>() : Run(function);
  }
  void ExpectError(const std::string& part) const {
    EXPECT_NE(error_.find(part), std::string::npos) << error_;
  }

  const TempFolder folder_;
  DeviceOptions options_;
  std::shared_ptr<Device> device_;
  std::string error_;
};

using Values = std::vector<int32_t>;

TEST_F(LibraryTest, ListsItsKernelsInTheOrderOfTheFile) {
  SWITCHYARD_NEEDS_CLANG();
  const auto library = Compile(kTwoKernels);
  ASSERT_NE(library, nullptr) << error_;
  EXPECT_EQ(library->functionNames(),
            (std::vector<std::string>{"second", "first"}));
  EXPECT_TRUE(library->unsupported().empty());
  const auto function = library->newFunction("first");
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function->name(), "first");
  EXPECT_EQ(function->place(), "program_source:9");
  ASSERT_EQ(function->arguments().size(), 2u);
  const FunctionArgument& x = function->arguments()[0];
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(x.declared, "device int* x");
  EXPECT_TRUE(x.is_buffer);
  EXPECT_FALSE(x.is_threadgroup_memory);
  EXPECT_FALSE(x.only_reads);
  EXPECT_EQ(x.index, 0u);
  EXPECT_EQ(x.bytes, 4u);
  EXPECT_EQ(function->arguments()[1].declared, "uint i");
  EXPECT_FALSE(function->arguments()[1].is_buffer);
}

TEST_F(LibraryTest, EachFunctionHasItsOwnConstants) {
  SWITCHYARD_NEEDS_CLANG();
  for (const bool checked : {false, true}) {
    options_.check_kernels = checked;
    const auto library = Compile(kTwoKernels);
    ASSERT_NE(library, nullptr) << error_;
    FunctionConstantValues values;
    const int32_t three = 3, five = 5;
    const bool yes = true, no = false;
    values.setConstantValue(&three, DataTypeInt, size_t{0});
    values.setConstantValue(&yes, DataTypeBool, "negate");
    const auto negative = library->newFunction("second", values, &error_);
    ASSERT_NE(negative, nullptr) << error_;
    values.reset();
    values.setConstantValue(&no, DataTypeBool, "negate");
    const FunctionConstantValues no_scale = values;
    values.setConstantValue(&five, DataTypeInt, "scale");
    const auto positive = library->newFunction("second", values, &error_);
    ASSERT_NE(positive, nullptr) << error_;
    EXPECT_EQ(Run(negative), (Values{-3, -6, -9, -12}));
    EXPECT_EQ(Run(positive), (Values{5, 10, 15, 20}));
    EXPECT_EQ(Run(*library, "second", no_scale), (Values{7, 14, 21, 28}));
    // A constant that does not exist is ignored.
    values.setConstantValue(&yes, DataTypeBool, size_t{9});
    EXPECT_EQ(Run(*library, "second", values), (Values{5, 10, 15, 20}));
  }
}

TEST_F(LibraryTest, AConstantOfAnotherTypeIsAnError) {
  SWITCHYARD_NEEDS_CLANG();
  const auto library = Compile(kTwoKernels);
  ASSERT_NE(library, nullptr) << error_;
  FunctionConstantValues values;
  const float wrong = 3.0f;
  values.setConstantValue(&wrong, DataTypeFloat, size_t{0});
  EXPECT_EQ(library->newFunction("second", values, &error_), nullptr);
  EXPECT_EQ(error_,
            "newFunction: function constant scale (index 0) is int, the value "
            "given is float");
}

TEST_F(LibraryTest, ErrorsOfTheShaderAreClangsWithTheFilesLines) {
  SWITCHYARD_NEEDS_CLANG();
  EXPECT_EQ(Compile("#include <metal_stdlib>\n"
                    "kernel void k(device float* x [[buffer(0)]],\n"
                    "              uint i [[thread_position_in_grid]]) {\n"
                    "  threadgroup float a[4];\n"
                    "  x[i] = a[0] + unknown;\n"
                    "}\n"),
            nullptr);
  ExpectError(
      "program_source:5:17: error: use of undeclared identifier 'unknown'");
  EXPECT_EQ(Compile("#include \"nowhere.h\"\n"), nullptr);
  ExpectError("program_source:1:10: fatal error: 'nowhere.h' file not found");
  EXPECT_EQ(Compile("kernel void k(device int* x) {\n"), nullptr);
  ExpectError("program_source:");
  ExpectError("error: expected '}'");
}

TEST_F(LibraryTest, UnknownAndUnsupportedKernelsAreErrors) {
  SWITCHYARD_NEEDS_CLANG();
  const auto library = Compile(
      "#include <metal_stdlib>\n"
      "using namespace metal;\n"
      "kernel void image(texture2d<float, access::write> t [[texture(0)]],\n"
      "                  uint2 at [[thread_position_in_grid]]) {\n"
      "  t.write(float4(0), at);\n"
      "}\n"
      "kernel void plain(device int* x [[buffer(0)]]) { *x = 1; }\n");
  ASSERT_NE(library, nullptr) << error_;
  EXPECT_EQ(library->functionNames(), std::vector<std::string>{"plain"});
  ASSERT_EQ(library->unsupported().size(), 1u);
  const UnsupportedFeature& image = library->unsupported()[0];
  EXPECT_EQ(image.kernel, "image");
  EXPECT_EQ(image.line, 3u);
  EXPECT_EQ(image.file, "program_source");
  EXPECT_EQ(library->newFunction("image", &error_), nullptr);
  ExpectError("newFunction: image is not supported: program_source:3: ");
  EXPECT_EQ(library->newFunction("plane", &error_), nullptr);
  EXPECT_EQ(error_, "newFunction: no kernel is named plane");
  EXPECT_EQ(library->newFunction(nullptr, &error_), nullptr);
  EXPECT_EQ(error_, "newFunction: name is null");
}

// Threadgroup memory holds nothing before threads write it, whatever a shader
// says: that is listed, and reads of it are findings.
TEST_F(LibraryTest, InitializersOfThreadgroupVariablesAreListed) {
  SWITCHYARD_NEEDS_CLANG();
  options_.check_kernels = true;
  const auto library = Compile(
      "kernel void k(device int* x [[buffer(0)]]) {\n"
      "  threadgroup int sums[2] = {0, 0};\n"
      "  x[0] = sums[1];\n"
      "}\n");
  ASSERT_NE(library, nullptr) << error_;
  ASSERT_EQ(library->unsupported().size(), 1u);
  EXPECT_EQ(library->unsupported()[0].what,
            "the initializer of a threadgroup variable: it has no effect, "
            "threads have to write what they are to read");
  EXPECT_EQ(library->unsupported()[0].line, 2u);
  EXPECT_EQ(library->unsupported()[0].kernel, "");
  const auto queue = device_->newCommandQueue();
  const auto commands = Encoded(*queue, [&](Encoder& e) {
    e.setComputePipelineState(
        device_->newComputePipelineState(library->newFunction("k"), &error_));
    e.setBuffer(NewBuffer<int32_t>(*device_, {1}), 0, 0);
    DispatchOne(e);
  });
  commands->commit();
  commands->waitUntilCompleted();
  EXPECT_EQ(commands->error(),
            "k: threadgroup (0, 0, 0), thread 0: reads sums[1] at "
            "program_source:3:10, which no thread has written");
}

TEST_F(LibraryTest, TheSameIsCompiledOnce) {
  SWITCHYARD_NEEDS_CLANG();
  const auto first = Compile(kTwoKernels);
  ASSERT_NE(first, nullptr) << error_;
  EXPECT_FALSE(first->cached());
  const auto second = Compile(kTwoKernels);
  ASSERT_NE(second, nullptr) << error_;
  EXPECT_TRUE(second->cached());
  // Whatever it is made of tells it apart.
  const std::string changed = std::string(kTwoKernels) + "\n// more\nint x;";
  EXPECT_FALSE(Compile(changed.c_str())->cached());
  options_.check_kernels = true;
  EXPECT_FALSE(Compile(kTwoKernels)->cached());
  EXPECT_TRUE(Compile(kTwoKernels)->cached());
}

TEST_F(LibraryTest, SeveralThreadsCompileTheSame) {
  SWITCHYARD_NEEDS_CLANG();
  device_ = CreateDevice(options_);
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<Library>> libraries(4);
  for (auto& library : libraries) {
    threads.emplace_back([&] { library = device_->newLibrary(kTwoKernels); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& library : libraries) {
    ASSERT_NE(library, nullptr);
    EXPECT_EQ(Run(*library, "first"), (Values{0, 1, 2, 3}));
  }
}

TEST_F(LibraryTest, FilesIncludeFromTheirFolderAndMacrosAreDefined) {
  SWITCHYARD_NEEDS_CLANG();
  const TempFolder shaders, headers;
  std::ofstream(shaders.File("k.metal"))
      << "#include <metal_stdlib>\n#include \"near.h\"\n#include <far.h>\n"
         "kernel void k(device int* x [[buffer(0)]], uint i "
         "[[thread_position_in_grid]]) {\n  x[i] = NEAR + FAR + GIVEN;\n}\n";
  std::ofstream(shaders.File("near.h")) << "#define NEAR 100\n";
  std::ofstream(headers.File("far.h")) << "#define FAR 20\n";
  CompileOptions options;
  options.include_folders = {headers.path()};
  options.preprocessor_macros = {{"GIVEN", "3"}};
  device_ = CreateDevice(options_);
  const auto library = device_->newLibraryFromFile(
      shaders.File("k.metal").c_str(), options, &error_);
  ASSERT_NE(library, nullptr) << error_;
  EXPECT_EQ(Run(*library, "k"), (Values{123, 123, 123, 123}));
  EXPECT_EQ(library->newFunction("k")->place(), shaders.File("k.metal") + ":4");
}

TEST_F(LibraryTest, WhatIsMissingIsNamed) {
  device_ = CreateDevice(options_);
  EXPECT_EQ(device_->newLibrary(nullptr, {}, &error_), nullptr);
  EXPECT_EQ(error_, "newLibrary: source is null");
  EXPECT_EQ(device_->newLibraryFromFile(nullptr, {}, &error_), nullptr);
  EXPECT_EQ(error_, "newLibraryFromFile: path is null");
  EXPECT_EQ(
      device_->newComputePipelineState(std::shared_ptr<Function>(), &error_),
      nullptr);
  EXPECT_EQ(error_, "newComputePipelineState: function is null");

  options_.metal_compiler = "/nowhere/clang++";
  EXPECT_EQ(Compile(kTwoKernels), nullptr);
  EXPECT_EQ(error_, "metal_compiler: no such program: /nowhere/clang++");
  options_.metal_compiler = "no-such-clang";
  EXPECT_EQ(Compile(kTwoKernels), nullptr);
  EXPECT_EQ(error_, "metal_compiler: no such program: no-such-clang");

  const std::string path = std::getenv("PATH");
  setenv("PATH", folder_.path().c_str(), 1);
  options_.metal_compiler.clear();
  EXPECT_EQ(Compile(kTwoKernels), nullptr);
  ExpectError("no Clang in PATH, which compiles .metal files: install clang");
  setenv("PATH", path.c_str(), 1);
}

TEST_F(LibraryTest, FilesAndFoldersThatCannotBeUsedAreNamed) {
  SWITCHYARD_NEEDS_CLANG();
  device_ = CreateDevice(options_);
  const std::string missing = folder_.File("missing.metal");
  EXPECT_EQ(device_->newLibraryFromFile(missing.c_str(), {}, &error_), nullptr);
  EXPECT_EQ(error_, missing + ": No such file or directory");
  options_.metal_cache = folder_.File("file");
  std::ofstream(options_.metal_cache) << "no folder";
  EXPECT_EQ(Compile(kTwoKernels), nullptr);
  ExpectError("can't make a folder in " + options_.metal_cache);
}

TEST_F(LibraryTest, RawPointersAreTheCallers) {
  SWITCHYARD_NEEDS_CLANG();
  device_ = CreateDevice(options_);
  Library* const library = device_->newLibrary(kTwoKernels, {}, &error_);
  ASSERT_NE(library, nullptr) << error_;
  Function* const function = library->newFunction("first");
  ASSERT_NE(function, nullptr);
  const auto library_left = library->weak_from_this();
  const auto function_left = function->weak_from_this();
  library->release();
  EXPECT_TRUE(library_left.expired());
  EXPECT_EQ(function->retain()->retainCount(), 2u);
  function->release();
  ComputePipelineState* const pipeline =
      device_->newComputePipelineState(function);
  function->release();
  EXPECT_TRUE(function_left.expired());
  ASSERT_NE(pipeline, nullptr);
  EXPECT_EQ(pipeline->label(), "first");
  pipeline->release();
}

TEST_F(LibraryTest, Labels) {
  SWITCHYARD_NEEDS_CLANG();
  options_.check_kernels = true;
  const auto library = Compile(kTwoKernels);
  ASSERT_NE(library, nullptr) << error_;
  library->setLabel("attention");
  EXPECT_EQ(library->label(), "attention");
  EXPECT_EQ(library->newFunction("none", &error_), nullptr);
  EXPECT_EQ(error_,
            "newFunction: no kernel is named none in library \"attention\"");
  const auto function = library->newFunction("first");
  function->setLabel("ids");
  EXPECT_EQ(function->label(), "ids");

  const auto x = NewBuffer<int32_t>(*device_, {1, 2, 3, 4});
  x->setLabel("hidden");
  const auto queue = device_->newCommandQueue();
  queue->setLabel("main");
  const auto buffer = queue->commandBuffer();
  const auto encoder = buffer->computeCommandEncoder();
  encoder->setLabel("layer 1");
  encoder->setComputePipelineState(
      device_->newComputePipelineState(function, &error_));
  encoder->setBuffer(x, 0, 0);
  encoder->dispatchThreads(Size(5, 1, 1), Size(5, 1, 1));
  encoder->endEncoding();
  buffer->commit();
  buffer->waitUntilCompleted();
  const std::string text =
      "first: threadgroup (0, 0, 0), thread 4: writes x \"hidden\"[4] at "
      "program_source:10:8, which has 4 elements [encoder \"layer 1\"]";
  ASSERT_EQ(buffer->findings().size(), 1u);
  EXPECT_EQ(buffer->findings()[0].text, text);
  EXPECT_EQ(buffer->error(), text + " [queue \"main\"]");
}

}  // namespace
}  // namespace switchyard::testing_support
