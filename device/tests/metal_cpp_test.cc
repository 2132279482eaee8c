// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests that host code for metal-cpp works without changes. Such code uses
// raw pointers. It calls release() on the results of newBuffer() and similar
// functions, and autorelease pools release all other results. The tests pass
// raw pointers, arrays of them, and smart pointers.

#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "device/tests/device_test.h"
#include "device/tests/metal_text.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/run_program.h"

namespace MTL = switchyard::device;
namespace NS = switchyard::device;

namespace switchyard::testing_support {
namespace {

// A class as in host code for metal-cpp. It uses raw pointers, and no
// shared_ptr.
class Doubler {
 public:
  Doubler(MTL::Device* device, const MTL::KernelFunction& kernel)
      : device_(device->retain()) {
    queue_ = device_->newCommandQueue();
    std::string error;
    pipeline_ = device_->newComputePipelineState(kernel, &error);
    buffer_ =
        device_->newBuffer(64, MTL::ResourceStorageModeShared |
                                   MTL::ResourceHazardTrackingModeUntracked);
    buffer_->setLabel(NS::String::string("values", NS::UTF8StringEncoding));
  }
  ~Doubler() {
    buffer_->release();
    pipeline_->release();
    queue_->release();
    device_->release();
  }

  float Run(float value) {
    NS::AutoreleasePool* pool = NS::AutoreleasePool::alloc()->init();
    float* values = static_cast<float*>(buffer_->contents());
    values[0] = value;
    buffer_->didModifyRange(NS::Range::Make(0, sizeof(float)));

    MTL::CommandBuffer* commands =
        queue_->commandBufferWithUnretainedReferences();
    MTL::ComputeCommandEncoder* encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline_);
    encoder->setBuffer(buffer_, 0, 0);
    const MTL::Buffer* const buffers[] = {buffer_};
    const NS::UInteger offsets[] = {0};
    encoder->setBuffers(buffers, offsets, NS::Range::Make(0, 1));
    MTL::Resource* resources[] = {buffer_};
    encoder->useResource(buffer_, MTL::ResourceUsageRead);
    encoder->useResources(resources, 1,
                          MTL::ResourceUsageRead | MTL::ResourceUsageWrite);
    encoder->memoryBarrier(resources, 1);
    encoder->memoryBarrier(MTL::BarrierScopeBuffers);
    MTL::Size grid = MTL::Size(1, 1, 1);
    encoder->dispatchThreadgroups(grid, MTL::Size::Make(1, 1, 1));
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilScheduled();
    commands->waitUntilCompleted();
    const float result = values[0];
    pool->release();
    return result;
  }

  MTL::Buffer* buffer() const { return buffer_; }

 private:
  MTL::Device* device_;
  MTL::CommandQueue* queue_;
  MTL::ComputePipelineState* pipeline_;
  MTL::Buffer* buffer_;
};

KernelFunction Double() {
  KernelFunction kernel;
  kernel.name = "double";
  kernel.threadgroup = [](const ThreadgroupContext& tg) {
    tg.buffer<float>(0).data[0] *= 2.0f;
  };
  return kernel;
}

using DeviceMetalCpp = DeviceTest;

TEST_F(DeviceMetalCpp, RawPointersThroughout) {
  const std::weak_ptr<Device> device = device_;
  queue_.reset();
  {
    Doubler doubler(device_.get(), Double());
    device_.reset();  // the doubler still has a reference
    EXPECT_EQ(doubler.Run(21.0f), 42.0f);
    EXPECT_EQ(doubler.Run(-1.0f), -2.0f);
    EXPECT_EQ(doubler.buffer()->label(), "values");
  }
  EXPECT_TRUE(device.expired());
}

TEST_F(DeviceMetalCpp, ReleaseTakesBackWhatNewGaveAndWhatRetainTook) {
  MTL::Buffer* raw = device_->newBuffer(16);
  const std::weak_ptr<const Object> weak = raw->weak_from_this();
  EXPECT_EQ(raw->retainCount(), 1u);
  EXPECT_EQ(raw->retain(), raw);
  EXPECT_EQ(raw->retainCount(), 2u);
  raw->release();
  EXPECT_FALSE(weak.expired());
  raw->release();
  EXPECT_TRUE(weak.expired());

  // The variable holds the only reference, so release() has no effect.
  auto kept = device_->newBuffer(16);
  EXPECT_EQ(kept->retainCount(), 0u);
  kept->release();
  kept->release();
  EXPECT_EQ(kept->length(), 16u);
  kept->retain();
  const std::weak_ptr<const Object> after = kept->weak_from_this();
  MTL::Buffer* const same = kept;
  kept.reset();
  EXPECT_EQ(same->length(), 16u);
  same->release();
  EXPECT_TRUE(after.expired());

  MTL::Buffer* const none = device_->newBuffer(size_t{0});
  EXPECT_EQ(none, nullptr);
}

TEST_F(DeviceMetalCpp, SharedPtrOfNs) {
  const auto transferred = NS::TransferPtr(device_->newBuffer(16));
  EXPECT_EQ(transferred->retainCount(), 0u);
  MTL::Buffer* raw = device_->newBuffer(16);
  const std::weak_ptr<const Object> weak = raw->weak_from_this();
  {
    NS::SharedPtr<MTL::Buffer> owner = NS::TransferPtr(raw);
    NS::SharedPtr<MTL::Buffer> other = NS::RetainPtr(raw);
    owner.reset();
    EXPECT_FALSE(weak.expired());
  }
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(NS::RetainPtr(static_cast<MTL::Buffer*>(nullptr)), nullptr);
}

// When a pool is drained, the objects of outer pools are not released.
TEST_F(DeviceMetalCpp, Pools) {
  NS::AutoreleasePool* outer = NS::AutoreleasePool::alloc()->init();
  MTL::CommandBuffer* a = queue_->commandBuffer();
  const std::weak_ptr<const Object> weak_a = a->weak_from_this();
  NS::AutoreleasePool* inner = NS::AutoreleasePool::alloc()->init();
  MTL::CommandBuffer* b = queue_->commandBuffer();
  MTL::CommandBuffer* c = queue_->commandBuffer()->retain();
  MTL::Buffer* d = device_->newBuffer(8);
  d->autorelease();
  const std::weak_ptr<const Object> weak_b = b->weak_from_this();
  const std::weak_ptr<const Object> weak_c = c->weak_from_this();
  const std::weak_ptr<const Object> weak_d = d->weak_from_this();
  EXPECT_FALSE(weak_b.expired());
  inner->drain();
  EXPECT_TRUE(weak_b.expired());
  EXPECT_TRUE(weak_d.expired());
  MTL::CommandBuffer* e = queue_->commandBuffer();
  const std::weak_ptr<const Object> weak_e = e->weak_from_this();
  inner->release();
  EXPECT_TRUE(weak_e.expired());
  EXPECT_FALSE(weak_a.expired());
  EXPECT_FALSE(weak_c.expired());
  outer->release();
  EXPECT_TRUE(weak_a.expired());
  c->commit();  // it can still be used, because it is retained
  c->waitUntilCompleted();
  ExpectCompleted(*c);
  c->release();
  EXPECT_TRUE(weak_c.expired());

  // Without a pool, objects live until the thread ends.
  std::weak_ptr<const Object> weak;
  std::thread([&] {
    MTL::CommandBuffer* f = queue_->commandBuffer();
    weak = f->weak_from_this();
    EXPECT_FALSE(weak.expired());
  }).join();
  EXPECT_TRUE(weak.expired());
}

// A handler retains the command buffer. After the handler has returned, this
// may be the only reference to the command buffer.
TEST_F(DeviceMetalCpp, RetainedInAHandler) {
  CommandBuffer* retained = nullptr;
  Flag called;
  auto work = Work([] {});
  work->addCompletedHandler([&](CommandBuffer* completed) {
    retained = completed->retain();
    called.Set();
  });
  work->commit();
  work.reset();
  called.Wait();
  retained->waitUntilCompleted();
  ExpectCompleted(*retained);
  const std::weak_ptr<const Object> weak = retained->weak_from_this();
  retained->release();
  ExpectQueueRuns();  // returns after the queue has released the buffer
  EXPECT_TRUE(weak.expired());
}

TEST_F(DeviceMetalCpp, NullArrays) {
  const auto expect = [&](const std::string& error, const Encode& encode) {
    const auto buffer = Encoded(*queue_, encode);
    EXPECT_EQ(buffer->error(), error);
  };
  expect("useResource: resource is null",
         [](Encoder& e) { e.useResource(nullptr, ResourceUsageRead); });
  expect("useResource: resource is null", [](Encoder& e) {
    Buffer* const all[] = {nullptr};
    e.useResources(all, 1, ResourceUsageRead);
  });
  expect("useHeap: heap is null", [](Encoder& e) { e.useHeap(nullptr); });
  expect("updateFence: fence is null",
         [](Encoder& e) { e.updateFence(nullptr); });
  expect("waitForFence: fence is null",
         [](Encoder& e) { e.waitForFence(nullptr); });
  expect("", [&](Encoder& e) {
    const auto fence = device_->newFence();
    e.updateFence(fence);
    e.waitForFence(fence.get());
  });
  expect("setBuffers: buffers or offsets is null", [](Encoder& e) {
    Buffer** const none = nullptr;
    e.setBuffers(none, nullptr, Range(0, 1));
  });
}

// A kernel reaches a buffer only by its address. useResource() keeps the
// buffer alive.
TEST_F(DeviceMetalCpp, UsedResourcesStay) {
  auto hidden = device_->newBuffer(4);
  const std::weak_ptr<Buffer> weak = hidden;
  const uint64_t address = hidden->gpuAddress();
  EXPECT_EQ(address, reinterpret_cast<uintptr_t>(hidden->contents()));
  const auto commands = Encoded(*queue_, [&](Encoder& e) {
    e.setComputePipelineState(Pipeline([&](const ThreadgroupContext&) {
      EXPECT_FALSE(weak.expired());
      const int32_t seven = 7;
      std::memcpy(reinterpret_cast<void*>(address), &seven, sizeof(seven));
    }));
    e.useResource(hidden, ResourceUsageWrite);
    DispatchOne(e);
  });
  hidden.reset();
  CommitAndWait(*commands);
  ExpectCompleted(*commands);
  EXPECT_TRUE(weak.expired());
}

TEST_F(DeviceMetalCpp, WhatEnginesAskOfADevice) {
  EXPECT_TRUE(device_->supportsFamily(MTL::GPUFamilyApple7));
  EXPECT_TRUE(device_->supportsFamily(MTL::GPUFamilyMetal3));
  EXPECT_TRUE(device_->supportsFamily(MTL::GPUFamilyCommon1));
  EXPECT_FALSE(device_->supportsFamily(MTL::GPUFamilyApple9));
  EXPECT_FALSE(device_->supportsFamily(MTL::GPUFamilyMetal4));
  EXPECT_GT(device_->recommendedMaxWorkingSetSize(), uint64_t{1} << 28);
  EXPECT_EQ(device_->currentAllocatedSize(), 0u);
  auto buffer = device_->newBuffer(1000, MTL::ResourceStorageModePrivate);
  EXPECT_EQ(buffer->storageMode(), MTL::StorageModeShared);
  EXPECT_EQ(buffer->allocatedSize(), 1000u);
  char bytes[16];
  int deallocated = 0;
  auto borrowed =
      device_->newBuffer(bytes, sizeof(bytes), MTL::ResourceStorageModeShared,
                         [&](void* pointer, NS::UInteger length) {
                           EXPECT_EQ(pointer, bytes);
                           deallocated += static_cast<int>(length);
                         });
  EXPECT_EQ(borrowed->contents(), bytes);
  EXPECT_EQ(device_->currentAllocatedSize(), 1000u);
  buffer.reset();
  borrowed.reset();
  EXPECT_EQ(deallocated, 16);
  EXPECT_EQ(device_->currentAllocatedSize(), 0u);
  MTL::Size size(3, 4, 5);
  EXPECT_EQ(size.x, 3u);
  EXPECT_EQ(size.y, 4u);
  EXPECT_EQ(size.z, 5u);
  size.y = 7;
  EXPECT_EQ(size.height, 7u);
}

// The next tests are about host code that makes libraries and functions. Such
// code passes NS::String, gets NS::Error, creates options and constants with
// alloc(), and calls release() on raw pointers.

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
  // Runs the function on the input {1} and returns the result.
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
  // The compiler must take the literal 0 for an index, not for a null name.
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
  // Options can also be passed by value. Null and {} stand for the defaults.
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
  // Libraries that Apple's compiler makes contain code for Apple's GPUs, so
  // newLibrary() refuses them.
  const std::string compiled = folder_.File("default.metallib");
  std::ofstream(compiled) << "MTLB and more";
  EXPECT_EQ(device_->newLibrary(Text(compiled.c_str()), &error), nullptr);
  EXPECT_EQ(std::string(error->localizedDescription()->utf8String()),
            compiled +
                ": is compiled for Apple's GPUs; give the .metal file from "
                "which it was compiled");
}

}  // namespace
}  // namespace switchyard::testing_support
