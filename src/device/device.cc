// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/device/device.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "src/device/pipeline.h"

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
std::nullptr_t NoPipeline(const host_internal::ErrorOut& error,
                          const char* what, const char* name) noexcept {
  try {
    error.Set((std::string("newComputePipelineState: ") + what + name).c_str());
  } catch (...) {
  }
  return nullptr;
}

// "name; there are ...", without them if there is no memory.
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

namespace {

template <class T, class New>
Ref<T> OrNull(const New& make) noexcept {
  try {
    return std::shared_ptr<T>(make());
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

Ref<Event> Device::newEvent() noexcept {
  return OrNull<Event>([] { return new Event(); });
}
Ref<SharedEvent> Device::newSharedEvent() noexcept {
  return OrNull<SharedEvent>([] { return new SharedEvent(); });
}
Ref<Fence> Device::newFence() noexcept {
  return OrNull<Fence>([] { return new Fence(); });
}

Ref<Device> CreateDevice(const DeviceOptions& options) noexcept {
  try {
    return std::shared_ptr<Device>(new Device(options));
  } catch (...) {
    return nullptr;
  }
}
Ref<Device> CreateSystemDefaultDevice() noexcept {
  return CreateDevice(DeviceOptions());
}

ComputePipelineState::ComputePipelineState(
    std::unique_ptr<const Pipeline> pipeline)
    : pipeline_(std::move(pipeline)) {}
ComputePipelineState::~ComputePipelineState() = default;

const std::string& ComputePipelineState::label() const noexcept {
  return pipeline_->name;
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

}  // namespace switchyard::device
