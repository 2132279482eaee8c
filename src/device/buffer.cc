// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Where buffers come from, heaps among it.

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "src/device/checked_mode.h"
#include "switchyard/device/device.h"

namespace switchyard::device {

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

Ref<Buffer> Device::newBuffer(size_t length, ResourceOptions options) noexcept {
  const std::shared_ptr<Buffer> buffer = Allocate(length, options);
  if (buffer != nullptr && options_.check_kernels && !options_.zeroed_buffers) {
    // In whole words, for which pages have room.
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
  try {
    return std::shared_ptr<Heap>(
        new Heap(std::static_pointer_cast<Device>(shared_from_this()),
                 d->type(), d->size(), std::move(memory)));
  } catch (...) {
    return nullptr;
  }
}

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
