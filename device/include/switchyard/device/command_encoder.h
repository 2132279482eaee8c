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

// Both types run dispatches in the order in which they were encoded, and
// spread each dispatch over the executor's threads. A concurrent encoder only
// declares that its dispatches could overlap between barriers; checked mode
// reports conflicts between such dispatches.
enum DispatchType : uint32_t { DispatchTypeSerial, DispatchTypeConcurrent };

class CommandBuffer;

// The base of all encoders.
class CommandEncoder : public Referencing<CommandEncoder> {
 public:
  ~CommandEncoder();

  // The errors and times of later dispatches show the label and the open
  // debug groups. The encoder that opened a group must close it. A group that
  // is still open makes endEncoding() an error.
  void setLabel(const host_internal::Text& label) noexcept;
  std::string label() const;
  void pushDebugGroup(const host_internal::Text& name) noexcept;
  void popDebugGroup() noexcept;
  // Errors and times show a signpost until the next one, or until a group
  // begins or ends.
  void insertDebugSignpost(const host_internal::Text& name) noexcept;

  void endEncoding() noexcept;

 protected:
  friend class CommandBuffer;
  struct State;
  explicit CommandEncoder(std::unique_ptr<State> state);
  // Only checks that the fence is not null, because encoders run in order
  // anyway.
  void UseFence(const char* call, host_internal::Arg<Fence> fence) noexcept;

  const std::unique_ptr<State> base_;
};

// Encodes dispatches into a command buffer. Bindings stay in place for later
// dispatches. setBytes copies its bytes at once, while the contents of a
// buffer are read when the dispatch executes.
class ComputeCommandEncoder
    : public Referencing<ComputeCommandEncoder, CommandEncoder> {
 public:
  ~ComputeCommandEncoder();

  void setComputePipelineState(
      host_internal::Arg<ComputePipelineState> pipeline) noexcept;
  // A null buffer removes the binding. `offset` is in bytes, and must be less
  // than the buffer's length.
  void setBuffer(host_internal::Arg<Buffer> buffer, size_t offset,
                 size_t index) noexcept;
  // Changes the offset of a buffer that setBuffer bound.
  void setBufferOffset(size_t offset, size_t index) noexcept;
  // Binds range.length buffers with their offsets to consecutive indices that
  // start at range.location.
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
  // Copies `length` bytes, at most 4096, and binds the copy.
  void setBytes(const void* bytes, size_t length, size_t index) noexcept;
  // `length` is in bytes and may have any value, but all lengths together are
  // at most 32768. Built-in kernels need no threadgroup memory and accept any
  // length.
  void setThreadgroupMemoryLength(size_t length, size_t index) noexcept;

  // A grid of zero threadgroups does nothing.
  void dispatchThreadgroups(Size threadgroups_per_grid,
                            Size threads_per_threadgroup) noexcept;
  // The dispatch reads its size, three uint32, from `indirect_buffer` when it
  // executes, so an earlier dispatch may write the size. `offset` is in bytes
  // and a multiple of 4.
  void dispatchThreadgroups(host_internal::Arg<Buffer> indirect_buffer,
                            size_t offset,
                            Size threads_per_threadgroup) noexcept;
  // Dispatches as many threadgroups as the grid needs. Threadgroups at the
  // edge of the grid may have fewer threads.
  void dispatchThreads(Size threads_per_grid,
                       Size threads_per_threadgroup) noexcept;

  // On Metal, a barrier orders the dispatches of a concurrent encoder. Here
  // dispatches run in order anyway, but checked mode reports missing
  // barriers.
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

  // Keeps a buffer alive until the command buffer has run. Call it for
  // buffers that kernels reach through pointers in other buffers.
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
  // A function that returns element i of the array `all`, which holds shared
  // or raw pointers.
  using BufferAt = const Buffer* (*)(const void* all, size_t i);
  using ResourceAt = const Resource* (*)(const void* all, size_t i);
  void SetBuffers(BufferAt at, const void* buffers, const size_t offsets[],
                  Range range) noexcept;
  void BarrierOf(ResourceAt at, const void* resources, size_t count) noexcept;

  State* const state_;  // base_.get()
};

// Fills and copies buffers. Checked mode records the reads and writes of blits.
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
