// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Pipelines, which are kernels that can be dispatched, and their limits.

#ifndef SWITCHYARD_DEVICE_PIPELINE_H_
#define SWITCHYARD_DEVICE_PIPELINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "switchyard/device/foundation.h"

namespace switchyard::device {

// The limits of kernels, which are those of Apple's GPUs.
constexpr size_t kMaxThreadsPerThreadgroup = 1024;
constexpr size_t kMaxThreadgroupMemoryLength = 32768;
constexpr size_t kThreadExecutionWidth = 32;
constexpr size_t kMaxBufferBindings = 31;
constexpr size_t kMaxThreadgroupMemoryBindings = 31;
constexpr size_t kMaxSetBytesLength = 4096;

struct Pipeline;  // device/src/core

// A kernel that is ready to be dispatched.
class ComputePipelineState : public Referencing<ComputePipelineState> {
 public:
  ~ComputePipelineState();

  const std::string& label() const noexcept;  // the kernel's name
  size_t maxTotalThreadsPerThreadgroup() const noexcept {
    return kMaxThreadsPerThreadgroup;
  }
  size_t staticThreadgroupMemoryLength() const noexcept { return 0; }
  size_t threadExecutionWidth() const noexcept { return kThreadExecutionWidth; }

 private:
  friend class CommandEncoder;
  friend class Device;
  friend class ComputeCommandEncoder;
  explicit ComputePipelineState(std::unique_ptr<const Pipeline> pipeline);

  const std::unique_ptr<const Pipeline> pipeline_;
  mutable std::atomic<uint64_t> retained_by_{0};
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_PIPELINE_H_
