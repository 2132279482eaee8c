// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/device/device.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "src/device/checked_mode.h"
#include "src/device/pipeline.h"
#include "src/device/queue.h"
#include "src/device/queue_thread.h"

namespace switchyard::device {
namespace {

DeviceOptions WithExecutor(DeviceOptions options) {
  if (options.executor == nullptr) {
    options.executor = MakeTbbExecutor();
  }
  if (options.executor == nullptr) {
    options.executor =
        std::shared_ptr<Executor>(&SerialExecutor(), [](Executor*) {});
  }
  return options;
}

// Without a message if there is no memory for one.
std::nullptr_t NoPipeline(std::string* error, const char* what,
                          const char* name) noexcept {
  if (error == nullptr) return nullptr;
  try {
    *error = std::string("newComputePipelineState: ") + what + name;
  } catch (...) {
  }
  return nullptr;
}

}  // namespace

Buffer::Buffer(void* contents, size_t length, bool read_only) noexcept
    : contents_(contents), length_(length), read_only_(read_only) {}

Buffer::~Buffer() {
  if (deallocator_ == nullptr) return;
  try {
    deallocator_(contents_, length_);
  } catch (...) {
    // A destructor has nobody to tell.
  }
}

Device::Device(const DeviceOptions& options)
    : options_(WithExecutor(options)) {}
Device::~Device() = default;

std::shared_ptr<Device> CreateDevice(const DeviceOptions& options) noexcept {
  try {
    return std::shared_ptr<Device>(new Device(options));
  } catch (...) {
    return nullptr;
  }
}
std::shared_ptr<Device> CreateSystemDefaultDevice() noexcept {
  return CreateDevice(DeviceOptions());
}

std::shared_ptr<Buffer> Device::newBuffer(size_t length,
                                          ResourceOptions options) noexcept {
  const std::shared_ptr<Buffer> buffer = Allocate(length, options);
  if (buffer != nullptr && options_.check_kernels) {
    FillNeverWritten(buffer->contents(), length);
    buffer->fresh_ = true;
  }
  return buffer;
}

std::shared_ptr<Buffer> Device::Allocate(size_t length,
                                         ResourceOptions options) noexcept {
  if (length == 0 || length > maxBufferLength()) return nullptr;
  void* const memory = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const auto unmap = [](void* pointer, size_t size) { munmap(pointer, size); };
  std::shared_ptr<Buffer> buffer =
      newBufferWithBytesNoCopy(memory, length, options, unmap);
  if (buffer == nullptr) unmap(memory, length);
  return buffer;
}

std::shared_ptr<Buffer> Device::newBuffer(const void* pointer, size_t length,
                                          ResourceOptions options) noexcept {
  if (pointer == nullptr) return nullptr;
  const std::shared_ptr<Buffer> buffer = Allocate(length, options);
  if (buffer != nullptr) std::memcpy(buffer->contents(), pointer, length);
  return buffer;
}

std::shared_ptr<Buffer> Device::newBufferWithBytesNoCopy(
    void* pointer, size_t length, ResourceOptions,
    Buffer::Deallocator deallocator) noexcept {
  return WrapBuffer(pointer, length, false, std::move(deallocator));
}
std::shared_ptr<Buffer> Device::newBufferWithBytesNoCopy(
    const void* pointer, size_t length, ResourceOptions,
    Buffer::Deallocator deallocator) noexcept {
  return WrapBuffer(const_cast<void*>(pointer), length, true,
                    std::move(deallocator));
}

std::shared_ptr<Buffer> Device::WrapBuffer(
    void* pointer, size_t length, bool read_only,
    Buffer::Deallocator deallocator) noexcept {
  if (pointer == nullptr || length == 0 || length > maxBufferLength()) {
    return nullptr;
  }
  try {
    // Given its deallocator last: what throws before must not call it.
    std::unique_ptr<Buffer> buffer(new Buffer(pointer, length, read_only));
    Buffer& wrapped = *buffer;
    std::shared_ptr<Buffer> shared(std::move(buffer));
    wrapped.deallocator_ = std::move(deallocator);
    return shared;
  } catch (...) {
    return nullptr;
  }
}

ComputePipelineState::ComputePipelineState(
    std::unique_ptr<const Pipeline> pipeline)
    : pipeline_(std::move(pipeline)) {}
ComputePipelineState::~ComputePipelineState() = default;

const std::string& ComputePipelineState::label() const noexcept {
  return pipeline_->name;
}

std::shared_ptr<ComputePipelineState> Device::newComputePipelineState(
    const char* name, std::string* error) noexcept {
  if (name == nullptr) return NoPipeline(error, "name is null", "");
  const BuiltIn* const built_in = FindBuiltIn(name);
  if (built_in == nullptr) {
    return NoPipeline(error, "no built-in kernel is named ", name);
  }
  try {
    auto pipeline = std::make_unique<Pipeline>();
    pipeline->name = name;
    pipeline->built_in = built_in;
    return std::shared_ptr<ComputePipelineState>(
        new ComputePipelineState(std::move(pipeline)));
  } catch (...) {
    return NoPipeline(error, "out of memory", "");
  }
}

std::shared_ptr<ComputePipelineState> Device::newComputePipelineState(
    KernelFunction kernel, std::string* error) noexcept {
  if (kernel.name.empty()) return NoPipeline(error, "kernel: no name", "");
  if (kernel.threadgroup == nullptr) {
    return NoPipeline(error, "no function in kernel ", kernel.name.c_str());
  }
  try {
    auto pipeline = std::make_unique<Pipeline>();
    pipeline->name = kernel.name;
    pipeline->kernel = std::move(kernel);
    return std::shared_ptr<ComputePipelineState>(
        new ComputePipelineState(std::move(pipeline)));
  } catch (...) {
    return NoPipeline(error, "out of memory", "");
  }
}

std::shared_ptr<CommandQueue> Device::newCommandQueue() noexcept {
  try {
    return std::shared_ptr<CommandQueue>(new CommandQueue(
        shared_from_this(), std::make_shared<Queue>(options_)));
  } catch (...) {
    return nullptr;
  }
}

CommandQueue::CommandQueue(std::shared_ptr<Device> device,
                           std::shared_ptr<Queue> queue)
    : device_(std::move(device)),
      queue_(std::move(queue)),
      // Shares the queue: a detached thread outlives this.
      thread_([shared = queue_]() mutable {
        Queue::RunThread(std::move(shared));
      }) {}

CommandQueue::~CommandQueue() {
  const bool orphan = AtWork::Here();  // then nobody may wait
  if (orphan) Orphans::Add();
  queue_->Close(orphan);
  if (orphan) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

std::shared_ptr<CommandBuffer> CommandQueue::commandBuffer() noexcept {
  static std::atomic<uint64_t> last_id{0};
  try {
    const std::shared_ptr<CommandBuffer> buffer(
        new CommandBuffer(std::make_unique<CommandBuffer::State>(
            last_id.fetch_add(1, std::memory_order_relaxed) + 1, queue_,
            queue_->NewCommands())));
    const auto handle =
        std::make_shared<CommandBuffer::Handle>(shared_from_this(), buffer);
    buffer->state_->handle = handle;
    buffer->state_->place.push_back(buffer);
    return std::shared_ptr<CommandBuffer>(handle, buffer.get());
  } catch (...) {
    return nullptr;
  }
}

}  // namespace switchyard::device
