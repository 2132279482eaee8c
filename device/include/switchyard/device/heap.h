// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Heaps. The buffers of an automatic heap share a budget of bytes, and the
// buffers of a placement heap share memory.

#ifndef SWITCHYARD_DEVICE_HEAP_H_
#define SWITCHYARD_DEVICE_HEAP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "switchyard/device/buffer.h"
#include "switchyard/device/foundation.h"

namespace switchyard::device {

class Device;

enum HeapType : UInteger {
  HeapTypeAutomatic = 0,
  HeapTypePlacement = 1,
};

// The bytes that a buffer takes in a heap, and their alignment.
struct SizeAndAlign {
  UInteger size = 0;   // in bytes
  UInteger align = 0;  // in bytes
};

// The settings of a heap.
class HeapDescriptor : public Referencing<HeapDescriptor> {
 public:
  static Ref<HeapDescriptor> alloc() noexcept;
  Ref<HeapDescriptor> init() noexcept;

  void setSize(UInteger size) noexcept { size_ = size; }
  UInteger size() const noexcept { return size_; }
  void setType(HeapType type) noexcept { type_ = type; }
  HeapType type() const noexcept { return type_; }
  // Heaps accept these settings but ignore them: see ResourceOptions.
  void setStorageMode(StorageMode) noexcept {}
  void setCpuCacheMode(CPUCacheMode) noexcept {}
  void setHazardTrackingMode(HazardTrackingMode) noexcept {}
  void setResourceOptions(ResourceOptions) noexcept {}

 private:
  HeapDescriptor() = default;
  UInteger size_ = 0;
  HeapType type_ = HeapTypeAutomatic;
};

// Buffers may outlive their heap.
class Heap : public Referencing<Heap> {
 public:
  static constexpr size_t kAlignment = 256;

  void setLabel(const host_internal::Text& label) noexcept {
    label_.Set(label);
  }
  std::string label() const { return label_.Get(); }
  HeapType type() const noexcept { return type_; }
  UInteger size() const noexcept { return size_; }
  // Returns the number of bytes that the heap's buffers take, each rounded up
  // to kAlignment. For a placement heap, returns the heap's size, because its
  // buffers may overlap.
  UInteger usedSize() const noexcept;
  UInteger currentAllocatedSize() const noexcept { return size_; }
  UInteger maxAvailableSize(UInteger alignment) const noexcept;

  // Makes a buffer as Device::newBuffer() does. Also returns nullptr if the
  // buffer does not fit in the heap, or if this is a placement heap.
  Ref<Buffer> newBuffer(size_t length, ResourceOptions options) noexcept;
  // Makes a buffer of the `length` bytes at `offset` of a placement heap.
  // `offset` is a multiple of kAlignment. Returns nullptr in an automatic
  // heap.
  Ref<Buffer> newBuffer(size_t length, ResourceOptions options,
                        size_t offset) noexcept;

 private:
  friend class Device;
  friend class ComputeCommandEncoder;
  Heap(std::shared_ptr<Device> device, HeapType type, size_t size,
       std::shared_ptr<Buffer> memory);
  static size_t Padded(size_t length) noexcept {
    return (length + kAlignment - 1) / kAlignment * kAlignment;
  }

  const std::shared_ptr<Device> device_;
  const HeapType type_;
  const size_t size_;
  const std::shared_ptr<Buffer> memory_;  // null in an automatic heap
  // The bytes in use. Buffers share this counter, and subtract their bytes
  // when they are destroyed.
  const std::shared_ptr<std::atomic<size_t>> used_;
  host_internal::Label label_;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_HEAP_H_
