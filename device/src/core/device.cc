// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/device/device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "device/src/core/checked_mode.h"
#include "device/src/core/pipeline.h"
#include "device/src/core/queue.h"
#include "switchyard/device/library.h"

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

// Returns the result of make(), or null if make() throws.
template <class T, class New>
Ref<T> OrNull(const New& make) noexcept {
  try {
    return std::shared_ptr<T>(make());
  } catch (...) {
    return nullptr;
  }
}

// Stores the error unless memory runs out, and returns null.
std::nullptr_t NoPipeline(const host_internal::ErrorOut& error,
                          const char* what, const char* name) noexcept {
  try {
    error.Set((std::string("newComputePipelineState: ") + what + name).c_str());
  } catch (...) {
  }
  return nullptr;
}

// Returns "name; there are ..." with the names of the known kernels, or an
// empty string if memory runs out.
std::string WithKnownNames(const char* name) noexcept {
  try {
    std::string text = name;
    const char* before = "; there are ";
    for (const std::string& known : BuiltInNames(name)) {
      text += before + known;
      before = ", ";
    }
    return text;
  } catch (...) {
    return std::string();
  }
}

}  // namespace

Device::Device(const DeviceOptions& options)
    : options_(WithExecutor(options)),
      allocated_(std::make_shared<std::atomic<size_t>>(0)) {}
Device::~Device() = default;

size_t Device::currentAllocatedSize() const noexcept {
  return allocated_->load(std::memory_order_relaxed);
}

uint64_t Device::recommendedMaxWorkingSetSize() const noexcept {
  const long pages = sysconf(_SC_PHYS_PAGES);  // NOLINT(runtime/int)
  const long bytes = sysconf(_SC_PAGESIZE);    // NOLINT(runtime/int)
  return pages <= 0 || bytes <= 0
             ? 0
             : static_cast<uint64_t>(pages) * static_cast<uint64_t>(bytes);
}

Ref<Event> Device::newEvent() noexcept {
  return OrNull<Event>([] { return new Event(); });
}
Ref<SharedEvent> Device::newSharedEvent() noexcept {
  return OrNull<SharedEvent>([] { return new SharedEvent(); });
}
Ref<Fence> Device::newFence() noexcept {
  return OrNull<Fence>([] { return new Fence(); });
}

Ref<Buffer> Device::newBuffer(size_t length, ResourceOptions options) noexcept {
  const std::shared_ptr<Buffer> buffer = Allocate(length, options);
  if (buffer != nullptr && options_.check_kernels && !options_.zeroed_buffers) {
    // The length is rounded up to whole words; the buffer's last page has
    // room for them.
    FillNeverWritten(buffer->contents(), (length + 3) / 4 * 4);
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
  const auto unmap = [allocated = allocated_](void* pointer, size_t size) {
    munmap(pointer, size);
    allocated->fetch_sub(size, std::memory_order_relaxed);
  };
  allocated_->fetch_add(length, std::memory_order_relaxed);
  std::shared_ptr<Buffer> buffer;
  try {
    buffer = newBufferWithBytesNoCopy(memory, length, options, unmap);
  } catch (...) {
  }
  if (buffer == nullptr) unmap(memory, length);
  return buffer;
}

Ref<Buffer> Device::newBuffer(const void* pointer, size_t length,
                              ResourceOptions options) noexcept {
  if (pointer == nullptr) return nullptr;
  const std::shared_ptr<Buffer> buffer = Allocate(length, options);
  if (buffer != nullptr) std::memcpy(buffer->contents(), pointer, length);
  return buffer;
}

Ref<Buffer> Device::newBufferWithBytesNoCopy(
    void* pointer, size_t length, ResourceOptions,
    Buffer::Deallocator deallocator) noexcept {
  return WrapBuffer(pointer, length, false, std::move(deallocator));
}
Ref<Buffer> Device::newBufferWithBytesNoCopy(
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
  const std::shared_ptr<Buffer> buffer =
      OrNull<Buffer>([&] { return new Buffer(pointer, length, read_only); });
  // The deallocator is set last, when nothing else can fail, because it must
  // not be called after a failure.
  if (buffer != nullptr) buffer->deallocator_ = std::move(deallocator);
  return buffer;
}

SizeAndAlign Device::heapBufferSizeAndAlign(size_t length,
                                            ResourceOptions) const noexcept {
  return {Heap::Padded(length), Heap::kAlignment};
}

Ref<Heap> Device::newHeap(
    host_internal::Arg<HeapDescriptor> descriptor) noexcept {
  const HeapDescriptor* const d = descriptor.get();
  if (d == nullptr || d->size() == 0) return nullptr;
  const bool placement = d->type() == HeapTypePlacement;
  std::shared_ptr<Buffer> memory;
  if (placement) memory = newBuffer(d->size());
  if (placement && memory == nullptr) return nullptr;
  return OrNull<Heap>([&] {
    return new Heap(std::static_pointer_cast<Device>(shared_from_this()),
                    d->type(), d->size(), std::move(memory));
  });
}

Ref<CommandQueue> Device::newCommandQueue() noexcept {
  return OrNull<CommandQueue>([this] {
    return new CommandQueue(
        std::static_pointer_cast<Device>(shared_from_this()),
        std::make_shared<Queue>(options_));
  });
}

Ref<Device> CreateDevice(const DeviceOptions& options) noexcept {
  return OrNull<Device>([&] { return new Device(options); });
}
Ref<Device> CreateSystemDefaultDevice() noexcept {
  return CreateDevice(DeviceOptions());
}

Ref<ComputePipelineState> Device::newComputePipelineState(
    const char* name, host_internal::ErrorOut error) noexcept {
  if (name == nullptr) return NoPipeline(error, "name is null", "");
  const BuiltIn* const built_in = FindBuiltIn(name);
  if (built_in == nullptr) {
    return NoPipeline(error, "no built-in kernel is named ",
                      WithKnownNames(name).c_str());
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

Ref<ComputePipelineState> Device::newComputePipelineState(
    KernelFunction kernel, host_internal::ErrorOut error) noexcept {
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

Ref<Library> Device::newLibrary(host_internal::Text source,
                                host_internal::Settings<CompileOptions> options,
                                host_internal::ErrorOut error) noexcept {
  if (source.is_null()) {
    error.Set("newLibrary: source is null");
    return nullptr;
  }
  return Library::Compile(options_, options, source.c_str(), nullptr, error);
}

Ref<Library> Device::newLibraryFromFile(
    host_internal::Text path, host_internal::Settings<CompileOptions> options,
    host_internal::ErrorOut error) noexcept {
  if (path.is_null()) {
    error.Set("newLibraryFromFile: path is null");
    return nullptr;
  }
  return Library::Compile(options_, options, nullptr, path.c_str(), error);
}

Ref<ComputePipelineState> Device::newComputePipelineState(
    host_internal::Arg<Function> argument,
    host_internal::ErrorOut error) noexcept {
  const Function* const function = argument.get();
  if (function == nullptr) {
    error.Set("newComputePipelineState: function is null");
    return nullptr;
  }
  try {
    return newComputePipelineState(function->AsKernel(), error);
  } catch (...) {
    return NoPipeline(error, "out of memory", "");
  }
}

}  // namespace switchyard::device
