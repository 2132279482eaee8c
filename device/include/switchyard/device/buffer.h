// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Buffers: memory that kernels and the host share.

#ifndef SWITCHYARD_DEVICE_BUFFER_H_
#define SWITCHYARD_DEVICE_BUFFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "switchyard/device/foundation.h"

namespace switchyard::device {

// These options are accepted but change nothing, because host and kernels
// always see the same bytes. The caller never has to track hazards, even with
// HazardTrackingModeUntracked, because encoders and dispatches run in order.
using ResourceOptions = UInteger;
enum : ResourceOptions {
  ResourceCPUCacheModeDefaultCache = 0,
  ResourceCPUCacheModeWriteCombined = 1,
  ResourceStorageModeShared = 0,
  ResourceStorageModeManaged = 1 << 4,
  ResourceStorageModePrivate = 2 << 4,
  ResourceStorageModeMemoryless = 3 << 4,
  ResourceHazardTrackingModeDefault = 0,
  ResourceHazardTrackingModeUntracked = 1 << 8,
  ResourceHazardTrackingModeTracked = 2 << 8,
};
enum CPUCacheMode : UInteger {
  CPUCacheModeDefaultCache = 0,
  CPUCacheModeWriteCombined = 1,
};
enum StorageMode : UInteger {
  StorageModeShared = 0,
  StorageModeManaged = 1,
  StorageModePrivate = 2,
  StorageModeMemoryless = 3,
};
enum HazardTrackingMode : UInteger {
  HazardTrackingModeDefault = 0,
  HazardTrackingModeUntracked = 1,
  HazardTrackingModeTracked = 2,
};
using ResourceUsage = UInteger;
enum : ResourceUsage {
  ResourceUsageRead = 1,
  ResourceUsageWrite = 2,
};

// The base of Buffer, and the argument of useResource(). Buffers are the only
// resources.
class Resource : public Referencing<Resource> {
 public:
  // Errors that name the buffer show its label.
  void setLabel(const host_internal::Text& label) noexcept {
    label_.Set(label);
  }
  std::string label() const { return label_.Get(); }
  StorageMode storageMode() const noexcept { return StorageModeShared; }
  CPUCacheMode cpuCacheMode() const noexcept {
    return CPUCacheModeDefaultCache;
  }

 protected:
  Resource() = default;
  ~Resource() = default;

 private:
  host_internal::Label label_;
};

// A buffer stays alive until every command buffer that binds it has run. It
// may be destroyed before the handlers of the command buffer run.
class Buffer : public Referencing<Buffer, Resource> {
 public:
  using Deallocator = std::function<void(void* pointer, size_t length)>;

  ~Buffer();

  // The pointer is valid from the start and for the buffer's life. As on
  // Metal, the host must not touch bytes that committed work uses until this
  // work has completed.
  void* contents() const noexcept { return contents_; }
  size_t length() const noexcept { return length_; }
  size_t allocatedSize() const noexcept { return length_; }
  // Returns the address of contents(), which a host may store as a pointer in
  // a struct for kernels.
  uint64_t gpuAddress() const noexcept {
    return reinterpret_cast<uintptr_t>(contents_);
  }
  // Does nothing, because kernels see the host's writes anyway.
  void didModifyRange(Range) noexcept {}

 private:
  friend class BlitCommandEncoder;
  friend class CommandEncoder;
  friend class ComputeCommandEncoder;
  friend class Device;
  friend class Heap;
  friend struct RunningDispatch;  // device/src/core
  Buffer(void* contents, size_t length, bool read_only) noexcept;

  void* const contents_;
  const size_t length_;
  const bool read_only_;
  bool fresh_ = false;  // true if checked mode reports reads before writes
  Deallocator deallocator_;
  // The number of the last command buffer that retained this buffer. This
  // number lets each command buffer copy the shared_ptr only once, and not
  // for every dispatch.
  mutable std::atomic<uint64_t> retained_by_{0};
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_BUFFER_H_
