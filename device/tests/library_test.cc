// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests newLibrary() and its results: errors, function constants, and the
// cache. Other tests check the results of kernels.

#include "switchyard/device/library.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device/src/metal/cache.h"
#include "device/src/metal/compile.h"
#include "device/src/metal/source_files.h"
#include "device/tests/device_test.h"
#include "device/tests/metal_text.h"
#include "device/tests/needs_clang.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
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

// The fixture compiles for a device that has a new cache folder.
class LibraryTest : public testing::Test {
 protected:
  LibraryTest() { options_.metal_cache = folder_.path(); }

  std::shared_ptr<Library> Compile(const char* source,
                                   const CompileOptions& options = {}) {
    device_ = CreateDevice(options_);
    return device_->newLibrary(source, options, &error_);
  }
  // Runs the kernel on {1, 2, 3, 4} with one thread per element, and returns
  // the results.
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
    // A value for a constant that does not exist is ignored.
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

// The library ignores a shader's initializers of threadgroup memory, and
// lists them as unsupported. A read before a write is then a finding.
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
            "the initializer of a threadgroup variable: it has no effect; let "
            "a thread write the variable before others read it");
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
  // A cached module serves only the source text and the options from which it
  // was compiled.
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
  ExpectError("no clang++ in PATH to compile .metal files: install clang");
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

// The next tests are about files that a shader's text names, for example in
// an #include, and that newLibrary() therefore reads. swy_metal_test.cc tests
// endless files such as /dev/zero, in a process with limited memory.

using device::metal::Compile;
using device::metal::CompileRequest;
using device::metal::kMaxSourceBytes;
using device::metal::ReadSource;
using device::metal::SourceFile;

constexpr char kKernel[] = "kernel void k(device int* x) { *x = 1; }\n";

// The fixture has a FIFO without a writer, so a program that opens the FIFO
// blocks. The alarm ends a blocked test after a minute.
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
  // Compiles the text. Returns the error, or "" if it compiles.
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
  // The system gives this file a size of 0 bytes, but it has contents.
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
  // These texts contain no directive, or only a directive in an inactive
  // block.
  for (const char* const text :
       {"// #include \"fifo\"\n", "constant char s[] = \"#include <fifo>\";\n",
        "#if 0\n#include \"absent\"\n#endif\n"}) {
    EXPECT_EQ(ErrorOf(std::string(text) + kKernel), "") << text;
  }
}

// A macro names the FIFO. Only the preprocessor can expand a macro, so the
// preprocessor blocks at the FIFO, and a time limit ends it.
TEST_F(SourceFiles, OfAMacroAreNotWaitedFor) {
  SWITCHYARD_NEEDS_CLANG();
  EXPECT_EQ(
      ErrorOf(std::string("#define NAME \"fifo\"\n#include NAME\n") + kKernel,
              1),
      "program_source: is not preprocessed within 1 s: does a macro's "
      "#include name a device or a FIFO?");
}

// Clang reads the text twice. A text that is no directive in the first pass
// must not become a directive in the second.
TEST_F(SourceFiles, AreNotNamedByWhatIsNoDirective) {
  SWITCHYARD_NEEDS_CLANG();
  EXPECT_EQ(ErrorOf(std::string("#define HASH #\nHASH include \"") + fifo_ +
                    "\"\n" + kKernel),
            "program_source:2:1: error: a directive can't be a macro's: "
            "#include");
  EXPECT_NE(ErrorOf(std::string("%:include \"") + fifo_ + "\"\n" + kKernel)
                .find("program_source:1:2: error: "),
            std::string::npos);
  // The word is kept in a variable, because source_check forbids inline
  // assembly in tests.
  const std::string word = "asm";
  EXPECT_NE(ErrorOf(word + "(\".incbin \\\"" + fifo_ + "\\\"\");\n" + kKernel)
                .find("program_source:1:1: error: "),
            std::string::npos);
}

// The next tests are about the cache of compiled .metal files and
// DeviceOptions::metal_cache_bytes.

using device::metal::Cache;

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const all = opendir(folder.c_str());
  while (const dirent* const entry = readdir(all)) {
    const std::string name = entry->d_name;
    if (name != "." && name != ".." && name != "lock") names.push_back(name);
  }
  closedir(all);
  std::sort(names.begin(), names.end());
  return names;
}
void SetAge(const std::string& path, time_t seconds) {
  const timespec then = {std::time(nullptr) - seconds, 0};
  const timespec times[] = {then, then};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
}

// These tests use only the cache folder, without a compiler. A module is a
// file of 1000 bytes, and a key has 10 bytes.
class MetalCache : public testing::Test {
 protected:
  static std::string Key(char letter) { return std::string(10, letter); }
  std::shared_ptr<const device::metal::CachedModule> Add(const Cache& cache,
                                                         char letter) {
    const std::string module = cache.folder() + "/work-module";
    const std::string key = cache.folder() + "/work-key";
    std::ofstream(module) << std::string(1000, letter);
    std::ofstream(key) << Key(letter);
    return cache.Add(Key(letter), module, key);
  }
  // Sets the age of the module whose key repeats this letter.
  void SetAgeOf(char letter, time_t seconds) {
    const std::string name = device::metal::HashOf(Key(letter));
    SetAge(folder_.File((name + ".so").c_str()), seconds);
  }
  static bool Has(const Cache& cache, char letter) {
    return cache.Find(Key(letter)) != nullptr;
  }
  std::string ListModules(const Cache& cache) {
    std::string all;
    for (const char letter : {'a', 'b', 'c', 'd'}) {
      const std::string hash = device::metal::HashOf(Key(letter));
      struct stat status;
      if (stat((cache.folder() + "/" + hash + ".so").c_str(), &status) == 0) {
        all += letter;
      }
    }
    return all;
  }

  const TempFolder folder_;
};

TEST_F(MetalCache, WhatHasNotBeenUsedForLongestGoes) {
  const Cache cache(folder_.path(), 3030);
  Add(cache, 'a');
  Add(cache, 'b');
  Add(cache, 'c');
  EXPECT_EQ(ListModules(cache), "abc");
  SetAgeOf('a', 10);
  SetAgeOf('b', 20);
  SetAgeOf('c', 30);
  EXPECT_TRUE(Has(cache, 'c'));  // counts as a use, so `c` is younger than `b`
  Add(cache, 'd');
  EXPECT_EQ(ListModules(cache), "acd");
  EXPECT_FALSE(Has(cache, 'b'));
  EXPECT_EQ(NamesIn(folder_.path()).size(), 6u);
  // Two more Cache objects use the same folder: `small` has a smaller limit,
  // and `any` has no limit.
  const Cache small(folder_.path(), 1);
  Add(small, 'b');
  EXPECT_EQ(ListModules(cache), "b");
  const Cache any(folder_.path(), 0);
  for (const char letter : {'a', 'c', 'd'}) Add(any, letter);
  EXPECT_EQ(ListModules(cache), "abcd");
}

TEST_F(MetalCache, WhatIsInUseStays) {
  const Cache cache(folder_.path(), 1);
  const auto a = Add(cache, 'a');
  SetAgeOf('a', 1000);
  Add(cache, 'b');
  EXPECT_EQ(ListModules(cache), "ab");
  const auto again = cache.Find(Key('a'));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->path(), a->path());
  Add(cache, 'c');
  EXPECT_EQ(ListModules(cache), "ac");
  // This second Cache object plays the role of another process.
  const Cache same(folder_.path(), 1);
  auto d = Add(same, 'd');
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready) | pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto mine = cache.Find(Key('d'));
    char byte = mine != nullptr ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    close(done[1]);
    _exit(read(done[0], &byte, 1) == 0 ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  close(done[0]);
  d.reset();
  Add(cache, 'b');
  EXPECT_EQ(ListModules(cache), "abd");
  close(done[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  Add(cache, 'c');
  EXPECT_EQ(ListModules(cache), "ac");
  close(ready[0]);
  close(ready[1]);
}

TEST_F(MetalCache, AnotherKeyOfTheSameNameIsNone) {
  const Cache cache(folder_.path(), 0);
  Add(cache, 'a');
  const std::string hash = device::metal::HashOf(Key('a'));
  std::ofstream(folder_.File((hash + ".cc").c_str())) << "another";
  EXPECT_FALSE(Has(cache, 'a'));
  Add(cache, 'a');
  EXPECT_TRUE(Has(cache, 'a'));
  unlink(folder_.File((hash + ".so").c_str()).c_str());
  EXPECT_FALSE(Has(cache, 'a'));
}

// The cache removes files that killed processes and older versions have left
// in the folder.
TEST_F(MetalCache, OldWorkGoes) {
  const Cache cache(folder_.path(), 1 << 20);
  constexpr time_t kDay = 24 * 60 * 60;
  const std::string copy = "0123456789abcdef.so.AbCdEf";
  for (const char* const name : {"work-old", "work-new", "shim-0", "shim-1"}) {
    ASSERT_EQ(mkdir(folder_.File(name).c_str(), 0700), 0);
    std::ofstream(folder_.File(name) + "/file") << "text";
  }
  std::ofstream(folder_.File(copy.c_str())) << "text";
  std::ofstream(folder_.File("notes.txt")) << "text";
  SetAge(folder_.File("work-old"), 2 * kDay);
  SetAge(folder_.File("shim-0"), 31 * kDay);
  SetAge(folder_.File("shim-1"), 29 * kDay);
  SetAge(folder_.File(copy.c_str()), 2 * kDay);
  SetAge(folder_.File("notes.txt"), 1000 * kDay);
  Add(cache, 'a');
  std::vector<std::string> names = NamesIn(folder_.path());
  EXPECT_EQ(names.size(), 5u);
  for (const char* const name : {"work-new", "shim-1", "notes.txt"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
}

// A device's libraries stay valid after their module was removed from the
// cache.
TEST_F(MetalCache, LibrariesKeepTheirModules) {
  SWITCHYARD_NEEDS_CLANG();
  DeviceOptions options;
  options.metal_cache = folder_.path();
  options.metal_cache_bytes = 1;
  const auto device = CreateDevice(options);
  const auto text = [](int n) {
    return "constant int n [[function_constant(0)]];\n"
           "kernel void k(device int* x) { *x = n + " +
           std::to_string(n) + "; }\n";
  };
  std::string error;
  const auto modules = [&] {
    size_t count = 0;
    for (const std::string& name : NamesIn(folder_.path())) {
      if (name.size() == 19 && name.substr(16) == ".so") ++count;
    }
    return count;
  };
  auto first = device->newLibrary(text(1), {}, &error);
  ASSERT_NE(first, nullptr) << error;
  auto function = first->newFunction("k", &error);
  for (int n = 2; n < 4; ++n) ASSERT_NE(device->newLibrary(text(n)), nullptr);
  EXPECT_EQ(modules(), 2u);
  EXPECT_TRUE(device->newLibrary(text(1))->cached());
  ASSERT_NE(first->newFunction("k", &error), nullptr) << error;
  // A function keeps the module loaded, too.
  first.reset();
  ASSERT_NE(device->newLibrary(text(4)), nullptr);
  EXPECT_EQ(modules(), 2u);
  function.reset();
  ASSERT_NE(device->newLibrary(text(5)), nullptr);
  EXPECT_EQ(modules(), 1u);

  // Two threads compile at the same time, as two processes would.
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int n = 0; n < 2; ++n) {
        std::string why;
        const auto library =
            CreateDevice(options)->newLibrary(text((t + n) % 2), {}, &why);
        ASSERT_NE(library, nullptr) << why;
        EXPECT_NE(library->newFunction("k", &why), nullptr) << why;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace switchyard::testing_support
