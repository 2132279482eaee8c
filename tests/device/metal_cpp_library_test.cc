// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// metal-cpp's host code for libraries as it stands: NS::String, NS::Error,
// options and constants by alloc(), raw pointers that release() takes back.

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/metal_text.h"
#include "tests/run_program.h"

namespace MTL = switchyard::device;
namespace NS = switchyard::device;

namespace switchyard::testing_support {
namespace {

constexpr char kScale[] = R"(#include <metal_stdlib>
using namespace metal;
constant uint factor [[function_constant(0)]];
constant uint summand [[function_constant(1)]];
kernel void scale(device uint* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[i] = x[i] * factor + summand + __METAL_VERSION__;
}
)";

class MetalCppLibraryTest : public testing::Test {
 protected:
  MetalCppLibraryTest() {
    DeviceOptions options;
    options.metal_cache = folder_.path();
    device_ = CreateDevice(options);
  }

  NS::String* Text(const char* text) {
    return NS::String::string(text, NS::UTF8StringEncoding);
  }
  // The result for {1}.
  uint32_t Run(MTL::Function* function) {
    NS::Error* error = nullptr;
    MTL::ComputePipelineState* pipeline =
        device_->newComputePipelineState(function, &error);
    EXPECT_NE(pipeline, nullptr);
    MTL::CommandQueue* queue = device_->newCommandQueue();
    const uint32_t one = 1;
    MTL::Buffer* buffer =
        device_->newBuffer(&one, sizeof(one), MTL::ResourceStorageModeShared);
    MTL::CommandBuffer* commands = queue->commandBuffer();
    MTL::ComputeCommandEncoder* encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline);
    encoder->setBuffer(buffer, 0, 0);
    encoder->dispatchThreads(MTL::Size::Make(1, 1, 1),
                             MTL::Size::Make(1, 1, 1));
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    const uint32_t result = *static_cast<uint32_t*>(buffer->contents());
    buffer->release();
    queue->release();
    pipeline->release();
    return result;
  }

  const TempFolder folder_;
  std::shared_ptr<Device> device_;
};

TEST_F(MetalCppLibraryTest, RawPointersThroughout) {
  SWITCHYARD_NEEDS_CLANG();
  NS::AutoreleasePool* pool = NS::AutoreleasePool::alloc()->init();
  NS::Error* error = nullptr;
  MTL::CompileOptions* options = MTL::CompileOptions::alloc()->init();
  options->setFastMathEnabled(false);
  options->setLanguageVersion(MTL::LanguageVersion2_4);
  MTL::Library* library = device_->newLibrary(Text(kScale), options, &error);
  ASSERT_NE(library, nullptr) << error->localizedDescription()->utf8String();
  EXPECT_EQ(error, nullptr);
  const std::weak_ptr<const Object> options_left = options->weak_from_this();
  options->release();
  EXPECT_TRUE(options_left.expired());

  MTL::FunctionConstantValues* constants =
      MTL::FunctionConstantValues::alloc()->init();
  const uint32_t factor = 1000, summand = 7, both[] = {2000, 8};
  constants->setConstantValue(&factor, MTL::DataTypeUInt, NS::UInteger(0));
  constants->setConstantValue(&summand, MTL::DataTypeUInt, Text("summand"));
  MTL::Function* function =
      library->newFunction(Text("scale"), constants, &error);
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(Run(function), 1247u);
  function->release();

  constants->reset();
  constants->setConstantValues(both, MTL::DataTypeUInt, NS::Range::Make(0, 2));
  function = library->newFunction(Text("scale"), constants, &error);
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(Run(function), 2248u);
  function->release();
  // The literal 0 is an index, and no null name.
  constants->setConstantValue(&factor, MTL::DataTypeUInt, 0);
  function = library->newFunction(Text("scale"), constants, &error);
  EXPECT_EQ(Run(function), 1248u);
  function->release();
  const std::weak_ptr<const Object> constants_left =
      constants->weak_from_this();
  constants->release();
  EXPECT_TRUE(constants_left.expired());
  EXPECT_EQ(error, nullptr);
  library->release();
  pool->release();
}

TEST_F(MetalCppLibraryTest, SharedPointersThroughout) {
  SWITCHYARD_NEEDS_CLANG();
  NS::Error* error = nullptr;
  auto options = NS::TransferPtr(MTL::CompileOptions::alloc()->init());
  auto library =
      NS::TransferPtr(device_->newLibrary(Text(kScale), options.get(), &error));
  ASSERT_TRUE(library);
  auto constants =
      NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const uint32_t both[] = {3000, 9};
  constants->setConstantValues(both, MTL::DataTypeUInt, NS::Range(0, 2));
  auto function = NS::TransferPtr(
      library->newFunction(Text("scale"), constants.get(), &error));
  ASSERT_TRUE(function);
  EXPECT_EQ(Run(function.get()), 3329u);
  // Options by value work too, and the defaults as null or {}.
  const MTL::CompileOptions copy = *options;
  EXPECT_TRUE(device_->newLibrary(kScale, copy)->cached());
  EXPECT_TRUE(device_->newLibrary(kScale, nullptr, &error)->cached());
  EXPECT_TRUE(device_->newLibrary(kScale, {}, nullptr)->cached());
  EXPECT_TRUE(device_->newLibrary(std::string(kScale))->cached());
  const MTL::FunctionConstantValues same = *constants;
  EXPECT_EQ(Run(library->newFunction("scale", same).get()), 3329u);
}

TEST_F(MetalCppLibraryTest, ErrorsAreObjectsOfThePool) {
  SWITCHYARD_NEEDS_CLANG();
  NS::AutoreleasePool* pool = NS::AutoreleasePool::alloc()->init();
  const auto text = [](const NS::Error* error) {
    return std::string(error->localizedDescription()->utf8String());
  };
  NS::Error* error = nullptr;
  MTL::Library* none = device_->newLibrary(Text("int x = y;"), nullptr, &error);
  EXPECT_EQ(none, nullptr);
  ASSERT_NE(error, nullptr);
  EXPECT_NE(text(error).find("program_source:1:9: error: use of undeclared"),
            std::string::npos)
      << text(error);
  EXPECT_EQ(error->description(), error->localizedDescription());
  EXPECT_EQ(error->code(), 1);
  const std::weak_ptr<const Object> left = error->weak_from_this();
  EXPECT_EQ(device_->newLibrary(Text("int x = y;"), nullptr, nullptr), nullptr);

  MTL::Library* library = device_->newLibrary(Text(kScale), nullptr, &error);
  ASSERT_NE(library, nullptr);
  const float wrong = 1.0f;
  MTL::FunctionConstantValues* constants =
      MTL::FunctionConstantValues::alloc()->init();
  constants->setConstantValue(&wrong, MTL::DataTypeFloat, NS::UInteger(1));
  EXPECT_EQ(library->newFunction(Text("scale"), constants, &error), nullptr);
  EXPECT_EQ(text(error),
            "newFunction: function constant summand (index 1) is uint, the "
            "value given is float");
  EXPECT_EQ(library->newFunction(Text("none")), nullptr);
  MTL::Function* const no_function = nullptr;
  EXPECT_EQ(device_->newComputePipelineState(no_function, &error), nullptr);
  EXPECT_EQ(text(error), "newComputePipelineState: function is null");
  EXPECT_EQ(device_->newComputePipelineState("nothing", &error), nullptr);
  EXPECT_EQ(text(error).find("newComputePipelineState: no built-in kernel is "
                             "named nothing"),
            0u);
  constants->release();
  library->release();
  EXPECT_FALSE(left.expired());
  pool->release();
  EXPECT_TRUE(left.expired());
}

TEST_F(MetalCppLibraryTest, Files) {
  SWITCHYARD_NEEDS_CLANG();
  const std::string path = folder_.File("k.metal");
  std::ofstream(path) << kScale;
  NS::Error* error = nullptr;
  auto library =
      NS::TransferPtr(device_->newLibrary(Text(path.c_str()), &error));
  ASSERT_TRUE(library);
  EXPECT_EQ(library->functionNames(), std::vector<std::string>{"scale"});
  // Apple's compiled ones are for Apple's GPUs.
  const std::string compiled = folder_.File("default.metallib");
  std::ofstream(compiled) << "MTLB and more";
  EXPECT_EQ(device_->newLibrary(Text(compiled.c_str()), &error), nullptr);
  EXPECT_EQ(std::string(error->localizedDescription()->utf8String()),
            compiled +
                ": is compiled for Apple's GPUs; give the .metal file "
                "that it was made of");
}

}  // namespace
}  // namespace switchyard::testing_support
