// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Encoders, which fill command buffers.

#ifndef SWITCHYARD_DEVICE_COMMAND_ENCODER_H_
#define SWITCHYARD_DEVICE_COMMAND_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "switchyard/device/buffer.h"
#include "switchyard/device/event.h"
#include "switchyard/device/foundation.h"
#include "switchyard/device/heap.h"
#include "switchyard/device/pipeline.h"
#include "switchyard/device/threadgroup.h"

namespace switchyard::device {

using BarrierScope = UInteger;
enum : BarrierScope {
  BarrierScopeBuffers = 1,
  BarrierScopeTextures = 2,
};

// With either type, dispatches run in the order they were encoded, each
// spread over the executor. A concurrent encoder only states that they could
// overlap between barriers.
enum DispatchType : uint32_t { DispatchTypeSerial, DispatchTypeConcurrent };

class CommandBuffer;

// The base of all encoders.
class CommandEncoder : public Referencing<CommandEncoder> {
 public:
  ~CommandEncoder();

  // Errors and times of the following dispatches show the label and the open
  // debug groups. The encoder that opened a group must close it; otherwise
  // endEncoding() is an error.
  void setLabel(const host_internal::Text& label) noexcept;
  std::string label() const;
  void pushDebugGroup(const host_internal::Text& name) noexcept;
  void popDebugGroup() noexcept;
  // Shown until the next signpost, or until a group begins or ends.
  void insertDebugSignpost(const host_internal::Text& name) noexcept;

  void endEncoding() noexcept;

 protected:
  friend class CommandBuffer;
  struct State;
  explicit CommandEncoder(std::unique_ptr<State> state);
  // Encoders run in order anyway, so this only checks that the fence is not
  // null.
  void UseFence(const char* call, host_internal::Arg<Fence> fence) noexcept;

  const std::unique_ptr<State> base_;
};

// Encodes dispatches into a command buffer. Bindings stay from dispatch to
// dispatch; setBytes copies at once; a buffer's contents are read when the
// dispatch executes.
class ComputeCommandEncoder
    : public Referencing<ComputeCommandEncoder, CommandEncoder> {
 public:
  ~ComputeCommandEncoder();

  void setComputePipelineState(
      host_internal::Arg<ComputePipelineState> pipeline) noexcept;
  // A null buffer unbinds. `offset` is in bytes, and less than the buffer's
  // length.
  void setBuffer(host_internal::Arg<Buffer> buffer, size_t offset,
                 size_t index) noexcept;
  // Changes the offset of a buffer that setBuffer bound.
  void setBufferOffset(size_t offset, size_t index) noexcept;
  // Binds range.length buffers with their offsets to the indices of the
  // range.
  void setBuffers(const std::shared_ptr<Buffer> buffers[],
                  const size_t offsets[], Range range) noexcept;
  template <class B>
  void setBuffers(B* const buffers[], const size_t offsets[],
                  Range range) noexcept {
    SetBuffers(
        [](const void* all, size_t i) -> const Buffer* {
          return static_cast<B* const*>(all)[i];
        },
        buffers, offsets, range);
  }
  // At most 4096 bytes.
  void setBytes(const void* bytes, size_t length, size_t index) noexcept;
  // In bytes, any length; all lengths together at most 32768. Built-in
  // kernels need no threadgroup memory and accept any length.
  void setThreadgroupMemoryLength(size_t length, size_t index) noexcept;

  // A grid of zero threadgroups does nothing.
  void dispatchThreadgroups(Size threadgroups_per_grid,
                            Size threads_per_threadgroup) noexcept;
  // Reads three uint32 at `offset` (bytes, a multiple of 4) when the dispatch
  // executes, so an earlier dispatch may write them.
  void dispatchThreadgroups(host_internal::Arg<Buffer> indirect_buffer,
                            size_t offset,
                            Size threads_per_threadgroup) noexcept;
  // Dispatches enough threadgroups to cover the threads; threadgroups at the
  // edge may be smaller.
  void dispatchThreads(Size threads_per_grid,
                       Size threads_per_threadgroup) noexcept;

  // Orders dispatches of a concurrent encoder. They run in order here anyway;
  // checked mode reports missing barriers.
  void memoryBarrier(BarrierScope scope) noexcept;
  void memoryBarrier(const std::shared_ptr<Buffer> resources[],
                     size_t count) noexcept;
  template <class R>
  void memoryBarrier(R* const resources[], size_t count) noexcept {
    BarrierOf(
        [](const void* all, size_t i) -> const Resource* {
          return static_cast<R* const*>(all)[i];
        },
        resources, count);
  }

  // Buffers that kernels reach through pointers in other buffers: keeps them
  // until the command buffer has run.
  void useResource(host_internal::Arg<Resource> resource,
                   ResourceUsage usage) noexcept;
  template <class R>
  void useResources(R* const resources[], size_t count,
                    ResourceUsage usage) noexcept {
    for (size_t i = 0; i < count; ++i) useResource(resources[i], usage);
  }
  void useHeap(host_internal::Arg<Heap> heap) noexcept;
  template <class H>
  void useHeaps(H* const heaps[], size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) useHeap(heaps[i]);
  }
  void updateFence(host_internal::Arg<Fence> fence) noexcept;
  void waitForFence(host_internal::Arg<Fence> fence) noexcept;

  DispatchType dispatchType() const noexcept;

 private:
  friend class CommandBuffer;
  struct State;
  ComputeCommandEncoder(std::shared_ptr<CommandBuffer> buffer,
                        DispatchType type);
  explicit ComputeCommandEncoder(std::unique_ptr<State> state);
  // Returns the i-th of an array of pointers, in any of the spellings.
  using BufferAt = const Buffer* (*)(const void* all, size_t i);
  using ResourceAt = const Resource* (*)(const void* all, size_t i);
  void SetBuffers(BufferAt at, const void* buffers, const size_t offsets[],
                  Range range) noexcept;
  void BarrierOf(ResourceAt at, const void* resources, size_t count) noexcept;

  State* const state_;  // base_
};

// Fills and copies buffers. Checked mode records these reads and writes.
class BlitCommandEncoder
    : public Referencing<BlitCommandEncoder, CommandEncoder> {
 public:
  void fillBuffer(host_internal::Arg<Buffer> buffer, Range range,
                  uint8_t value) noexcept;
  // The two ranges must not overlap.
  void copyFromBuffer(host_internal::Arg<Buffer> source, size_t source_offset,
                      host_internal::Arg<Buffer> destination,
                      size_t destination_offset, size_t size) noexcept;
  // Does nothing, because the host sees the kernels' writes anyway.
  void synchronizeResource(host_internal::Arg<Resource> resource) noexcept;
  void updateFence(host_internal::Arg<Fence> fence) noexcept;
  void waitForFence(host_internal::Arg<Fence> fence) noexcept;

 private:
  friend class CommandBuffer;
  struct State;
  explicit BlitCommandEncoder(std::shared_ptr<CommandBuffer> buffer);
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_COMMAND_ENCODER_H_
