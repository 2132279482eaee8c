// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstring>
#include <utility>

#include "device/src/core/encoder_state.h"
#include "device/src/core/pipeline.h"
#include "switchyard/device/device.h"

namespace switchyard::device {

struct ComputeCommandEncoder::State : CommandEncoder::State {
  const DispatchType type;
  const Pipeline* pipeline = nullptr;
  Binding bindings[kMaxBufferBindings];
  // The offset of each binding in its buffer, which setBufferOffset changes.
  size_t offsets[kMaxBufferBindings] = {};
  size_t num_bindings = 0;  // 1 + the highest index that was bound
  ThreadgroupLengths local_lengths;
  // True if the last dispatch has saved these bindings in the commands. The
  // next dispatch then uses the same records.
  bool bindings_saved = false;
  uint32_t first_binding = 0;
  // Null if no threadgroup memory length is set.
  const ThreadgroupLengths* saved_lengths = nullptr;
  bool new_scope = true;  // Dispatch::new_scope of the next dispatch

  State(std::shared_ptr<CommandBuffer> b, DispatchType t)
      : CommandEncoder::State(std::move(b)), type(t) {}

  std::string Kernel() const override {
    // The pipeline may no longer exist after commit().
    return pipeline == nullptr || buffer->state_->closed
               ? std::string()
               : pipeline->name + ": ";
  }

  void Bind(size_t index, const Binding& binding, size_t offset) {
    bindings[index] = binding;
    offsets[index] = offset;
    bindings_saved = false;
    if (index >= num_bindings) num_bindings = index + 1;
  }

  bool CheckIndex(const char* call, size_t index, size_t limit) {
    if (index < limit) return true;
    Fail(call, Format("index %zu is not below %zu", index, limit));
    return false;
  }

  bool CheckOffset(const char* call, size_t index, size_t offset,
                   size_t length) {
    if (offset < length) return true;
    Fail(call, Format("index %zu: offset %zu is past the end of a buffer of %zu"
                      " bytes",
                      index, offset, length));
    return false;
  }

  void SetBuffer(const char* call, const Buffer* b, size_t offset,
                 size_t index) {
    if (!CheckIndex(call, index, kMaxBufferBindings)) return;
    if (b == nullptr) {
      Bind(index, Binding(), 0);
      return;
    }
    if (!CheckOffset(call, index, offset, b->length_)) return;
    Retain(*b);
    Bind(index,
         {static_cast<unsigned char*>(b->contents_) + offset,
          b->length_ - offset, b->read_only_, b->fresh_, b},
         offset);
  }

  bool CheckThreadgroup(const char* call, const Size& threads) {
    if (pipeline == nullptr) {
      Fail(call, "no pipeline is set: setComputePipelineState is missing");
      return false;
    }
    size_t count = 0;
    if (threads.width == 0 || threads.height == 0 || threads.depth == 0 ||
        __builtin_mul_overflow(threads.width, threads.height, &count) ||
        __builtin_mul_overflow(count, threads.depth, &count) ||
        count > kMaxThreadsPerThreadgroup) {
      Fail(call, Format("threadsPerThreadgroup: %zu x %zu x %zu is not 1 to %zu"
                        " threads",
                        threads.width, threads.height, threads.depth,
                        kMaxThreadsPerThreadgroup));
      return false;
    }
    size_t local = 0;
    for (const size_t length : local_lengths.bytes) local += length;
    if (local > kMaxThreadgroupMemoryLength) {
      Fail(call, Format("setThreadgroupMemoryLength: %zu bytes, the most is "
                        "%zu",
                        local, kMaxThreadgroupMemoryLength));
      return false;
    }
    return true;
  }

  // Adds a dispatch with the current state, and returns it, or null after an
  // error. The caller sets the other members in the returned record, because
  // copying a record that was just written stalls for 5 ns.
  Dispatch* NewDispatch(const char* call, const Size& threads) {
    if (!CheckThreadgroup(call, threads)) return nullptr;
    Commands& to = commands();
    if (!bindings_saved) {
      first_binding = static_cast<uint32_t>(to.bindings.size());
      to.bindings.insert(to.bindings.end(), bindings, bindings + num_bindings);
      bindings_saved = true;
    }
    Dispatch& dispatch = to.dispatches.emplace_back();
    dispatch.pipeline = pipeline;
    dispatch.first_binding = first_binding;
    dispatch.num_bindings = static_cast<uint8_t>(num_bindings);
    dispatch.threads_per_threadgroup[0] = static_cast<uint16_t>(threads.width);
    dispatch.threads_per_threadgroup[1] = static_cast<uint16_t>(threads.height);
    dispatch.threads_per_threadgroup[2] = static_cast<uint16_t>(threads.depth);
    dispatch.local_lengths = saved_lengths;
    dispatch.place = place_saved ? place : SavePlace();
    dispatch.new_scope = type == DispatchTypeSerial || new_scope;
    new_scope = false;
    return &dispatch;
  }
};

ComputeCommandEncoder::ComputeCommandEncoder(
    std::shared_ptr<CommandBuffer> buffer, DispatchType type)
    : ComputeCommandEncoder(std::make_unique<State>(std::move(buffer), type)) {}
ComputeCommandEncoder::ComputeCommandEncoder(std::unique_ptr<State> state)
    : Referencing(std::move(state)), state_(static_cast<State*>(base_.get())) {}
ComputeCommandEncoder::~ComputeCommandEncoder() = default;

void ComputeCommandEncoder::setComputePipelineState(
    host_internal::Arg<ComputePipelineState> pipeline) noexcept {
  state_->IfOpen("setComputePipelineState", [&] {
    if (pipeline.get() == nullptr) {
      state_->Fail("setComputePipelineState", "pipeline is null");
      return;
    }
    state_->Retain(*pipeline.get());
    state_->pipeline = pipeline.get()->pipeline_.get();
  });
}

void ComputeCommandEncoder::setBuffer(host_internal::Arg<Buffer> buffer,
                                      size_t offset, size_t index) noexcept {
  state_->IfOpen("setBuffer", [&] {
    state_->SetBuffer("setBuffer", buffer.get(), offset, index);
  });
}

void ComputeCommandEncoder::setBufferOffset(size_t offset,
                                            size_t index) noexcept {
  state_->IfOpen("setBufferOffset", [&] {
    if (!state_->CheckIndex("setBufferOffset", index, kMaxBufferBindings)) {
      return;
    }
    const Binding& binding = state_->bindings[index];
    const size_t before = state_->offsets[index];
    const size_t length = binding.length + before;
    if (binding.data == nullptr) {
      state_->Fail("setBufferOffset",
                   Format("index %zu: nothing is bound", index));
    } else if (state_->CheckOffset("setBufferOffset", index, offset, length)) {
      state_->Bind(index,
                   {binding.data - before + offset, length - offset,
                    binding.read_only, binding.fresh, binding.buffer},
                   offset);
    }
  });
}

void ComputeCommandEncoder::setBuffers(const std::shared_ptr<Buffer> buffers[],
                                       const size_t offsets[],
                                       Range range) noexcept {
  SetBuffers(
      [](const void* all, size_t i) -> const Buffer* {
        return static_cast<const std::shared_ptr<Buffer>*>(all)[i].get();
      },
      buffers, offsets, range);
}

void ComputeCommandEncoder::SetBuffers(BufferAt at, const void* buffers,
                                       const size_t offsets[],
                                       Range range) noexcept {
  state_->IfOpen("setBuffers", [&] {
    if (range.length != 0 && (buffers == nullptr || offsets == nullptr)) {
      state_->Fail("setBuffers", "buffers or offsets is null");
      return;
    }
    for (size_t i = 0; i < range.length; ++i) {
      const size_t index = range.location + i;
      if (!state_->CheckIndex("setBuffers", index, kMaxBufferBindings)) return;
      state_->SetBuffer("setBuffers", at(buffers, i), offsets[i], index);
    }
  });
}

void ComputeCommandEncoder::setBytes(const void* bytes, size_t length,
                                     size_t index) noexcept {
  state_->IfOpen("setBytes", [&] {
    if (!state_->CheckIndex("setBytes", index, kMaxBufferBindings)) return;
    if (bytes == nullptr || length == 0 || length > kMaxSetBytesLength) {
      state_->Fail("setBytes",
                   bytes == nullptr
                       ? Format("index %zu: bytes is null", index)
                       : Format("index %zu: length %zu is not 1 to %zu", index,
                                length, kMaxSetBytesLength));
      return;
    }
    unsigned char* const copy = state_->commands().arena.Allocate(length);
    std::memcpy(copy, bytes, length);
    state_->Bind(index, {copy, length, true, false, nullptr}, 0);
  });
}

void ComputeCommandEncoder::setThreadgroupMemoryLength(size_t length,
                                                       size_t index) noexcept {
  state_->IfOpen("setThreadgroupMemoryLength", [&] {
    if (!state_->CheckIndex("setThreadgroupMemoryLength", index,
                            kMaxThreadgroupMemoryBindings)) {
      return;
    }
    if (length > kMaxThreadgroupMemoryLength) {
      state_->Fail("setThreadgroupMemoryLength",
                   Format("index %zu: %zu bytes, the most is %zu", index,
                          length, kMaxThreadgroupMemoryLength));
      return;
    }
    ThreadgroupLengths& lengths = state_->local_lengths;
    const uint32_t set = lengths.set | uint32_t{1} << index;
    if (lengths.set == set && lengths.bytes[index] == length) return;
    lengths.set = set;
    lengths.bytes[index] = length;
    // Makes a copy, because earlier dispatches must keep the lengths they
    // were encoded with.
    unsigned char* const copy =
        state_->commands().arena.Allocate(sizeof(lengths));
    std::memcpy(copy, &lengths, sizeof(lengths));
    state_->saved_lengths = reinterpret_cast<const ThreadgroupLengths*>(copy);
  });
}

void ComputeCommandEncoder::dispatchThreadgroups(
    Size threadgroups_per_grid, Size threads_per_threadgroup) noexcept {
  state_->IfOpen("dispatchThreadgroups", [&] {
    Dispatch* const dispatch =
        state_->NewDispatch("dispatchThreadgroups", threads_per_threadgroup);
    if (dispatch != nullptr) dispatch->grid = threadgroups_per_grid;
  });
}

void ComputeCommandEncoder::dispatchThreadgroups(
    host_internal::Arg<Buffer> indirect_buffer, size_t offset,
    Size threads_per_threadgroup) noexcept {
  const Buffer* const indirect = indirect_buffer.get();
  state_->IfOpen("dispatchThreadgroups", [&] {
    constexpr size_t kArgs = 3 * sizeof(uint32_t);
    if (indirect == nullptr) {
      state_->Fail("dispatchThreadgroups", "indirectBuffer is null");
      return;
    }
    const size_t length = indirect->length_;
    if (offset % sizeof(uint32_t) != 0) {
      state_->Fail(
          "dispatchThreadgroups",
          Format("indirectBufferOffset: %zu is not a multiple of 4", offset));
      return;
    }
    if (length < kArgs || offset > length - kArgs) {
      state_->Fail("dispatchThreadgroups",
                   Format("indirectBufferOffset: 12 bytes from %zu on are past "
                          "the end of a buffer of %zu bytes",
                          offset, length));
      return;
    }
    state_->Retain(*indirect);
    Dispatch* const dispatch =
        state_->NewDispatch("dispatchThreadgroups", threads_per_threadgroup);
    if (dispatch == nullptr) return;
    dispatch->indirect =
        static_cast<const unsigned char*>(indirect->contents_) + offset;
    dispatch->indirect_fresh = indirect->fresh_;
  });
}

void ComputeCommandEncoder::dispatchThreads(
    Size threads_per_grid, Size threads_per_threadgroup) noexcept {
  state_->IfOpen("dispatchThreads", [&] {
    Dispatch* const dispatch =
        state_->NewDispatch("dispatchThreads", threads_per_threadgroup);
    if (dispatch == nullptr) return;
    dispatch->grid = threads_per_grid;
    dispatch->in_threads = true;
  });
}

// Records a barrier. Dispatches run in order in any case; only checked mode
// uses the barriers.
void ComputeCommandEncoder::memoryBarrier(BarrierScope scope) noexcept {
  state_->IfOpen("memoryBarrier", [&] {
    if ((scope & BarrierScopeBuffers) != 0) state_->new_scope = true;
  });
}
void ComputeCommandEncoder::memoryBarrier(
    const std::shared_ptr<Buffer> resources[], size_t count) noexcept {
  BarrierOf(
      [](const void* all, size_t i) -> const Resource* {
        return static_cast<const std::shared_ptr<Buffer>*>(all)[i].get();
      },
      resources, count);
}

void ComputeCommandEncoder::BarrierOf(ResourceAt at, const void* resources,
                                      size_t count) noexcept {
  state_->IfOpen("memoryBarrier", [&] {
    if (count != 0 && resources == nullptr) {
      state_->Fail("memoryBarrier", "resources is null");
      return;
    }
    if (state_->type != DispatchTypeConcurrent) return;
    Commands& to = state_->commands();
    for (size_t i = 0; i < count; ++i) {
      const auto* const buffer = static_cast<const Buffer*>(at(resources, i));
      if (buffer == nullptr) continue;
      to.barriers.push_back(
          {to.dispatches.size(), buffer->contents_, buffer->length_});
    }
  });
}

void ComputeCommandEncoder::useResource(host_internal::Arg<Resource> resource,
                                        ResourceUsage) noexcept {
  state_->IfOpen("useResource", [&] {
    if (resource.get() == nullptr) {
      state_->Fail("useResource", "resource is null");
    } else {
      const Buffer& buffer = *static_cast<const Buffer*>(resource.get());
      state_->Retain(buffer);
      state_->MakeResident(buffer.contents(), buffer.length());
    }
  });
}

void ComputeCommandEncoder::useHeap(host_internal::Arg<Heap> heap) noexcept {
  state_->IfOpen("useHeap", [&] {
    if (heap.get() == nullptr) {
      state_->Fail("useHeap", "heap is null");
    } else {
      state_->commands().retained.push_back(heap.get()->shared_from_this());
      const Buffer* const memory = heap.get()->memory_.get();
      if (memory != nullptr) {
        state_->MakeResident(memory->contents(), memory->length());
      }
    }
  });
}

void ComputeCommandEncoder::updateFence(
    host_internal::Arg<Fence> fence) noexcept {
  UseFence("updateFence", fence);
}
void ComputeCommandEncoder::waitForFence(
    host_internal::Arg<Fence> fence) noexcept {
  UseFence("waitForFence", fence);
}

DispatchType ComputeCommandEncoder::dispatchType() const noexcept {
  return state_->type;
}

}  // namespace switchyard::device
