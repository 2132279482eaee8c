// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/device/heap.h"

#include <atomic>
#include <utility>

#include "switchyard/device/device.h"

namespace switchyard::device {

Ref<HeapDescriptor> HeapDescriptor::alloc() noexcept {
  try {
    return std::shared_ptr<HeapDescriptor>(new HeapDescriptor());
  } catch (...) {
    return nullptr;
  }
}
Ref<HeapDescriptor> HeapDescriptor::init() noexcept {
  return std::static_pointer_cast<HeapDescriptor>(shared_from_this());
}

Heap::Heap(std::shared_ptr<Device> device, HeapType type, size_t size,
           std::shared_ptr<Buffer> memory)
    : device_(std::move(device)),
      type_(type),
      size_(size),
      memory_(std::move(memory)),
      used_(std::make_shared<std::atomic<size_t>>(memory_ == nullptr ? 0
                                                                     : size)) {}

UInteger Heap::usedSize() const noexcept {
  return used_->load(std::memory_order_relaxed);
}

UInteger Heap::maxAvailableSize(UInteger alignment) const noexcept {
  const size_t left = size_ - usedSize();
  const size_t unit = alignment < kAlignment ? kAlignment : alignment;
  return left / unit * unit;
}

Ref<Buffer> Heap::newBuffer(size_t length, ResourceOptions options) noexcept {
  if (memory_ != nullptr || length == 0 || length > size_) return nullptr;
  const size_t taken = Padded(length);
  size_t used = usedSize();
  do {
    if (taken > size_ || used > size_ - taken) return nullptr;
  } while (!used_->compare_exchange_weak(used, used + taken,
                                         std::memory_order_relaxed));
  std::shared_ptr<Buffer> buffer = device_->newBuffer(length, options);
  try {
    if (buffer != nullptr) {
      buffer->deallocator_ = [inner = buffer->deallocator_, heap = used_,
                              taken](void* pointer, size_t size) {
        inner(pointer, size);
        heap->fetch_sub(taken, std::memory_order_relaxed);
      };
      return buffer;
    }
  } catch (...) {
  }
  used_->fetch_sub(taken, std::memory_order_relaxed);
  return nullptr;
}

Ref<Buffer> Heap::newBuffer(size_t length, ResourceOptions options,
                            size_t offset) noexcept {
  if (memory_ == nullptr || offset % kAlignment != 0 || offset > size_ ||
      length > size_ - offset) {
    return nullptr;
  }
  void* const data = static_cast<unsigned char*>(memory_->contents()) + offset;
  try {
    const std::shared_ptr<Buffer> buffer = device_->newBufferWithBytesNoCopy(
        data, length, options, [memory = memory_](void*, size_t) {});
    if (buffer != nullptr) buffer->fresh_ = memory_->fresh_;
    return buffer;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace switchyard::device
