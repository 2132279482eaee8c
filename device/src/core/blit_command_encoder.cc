// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Encodes fills and copies as dispatches of one threadgroup. Binding 0 is the
// range that a blit writes, binding 1 the range that it reads.

#include <cstring>
#include <utility>

#include "device/src/core/encoder_state.h"
#include "device/src/core/pipeline.h"
#include "device/src/core/running_dispatch.h"
#include "switchyard/device/device.h"

namespace switchyard::device {
namespace {

std::unique_ptr<const Pipeline> NewBlit(const char* name, Blit blit) {
  auto pipeline = std::make_unique<Pipeline>();
  pipeline->name = name;
  pipeline->blit = blit;
  return pipeline;
}

const Pipeline& PipelineOf(Blit blit) {
  // The pipelines are never destroyed, because a detached queue thread may
  // use them until the program ends.
  static const Pipeline& fill = *NewBlit("fillBuffer", Blit::kFill).release();
  static const Pipeline& copy =
      *NewBlit("copyFromBuffer", Blit::kCopy).release();
  return blit == Blit::kFill ? fill : copy;
}

}  // namespace

struct BlitCommandEncoder::State : CommandEncoder::State {
  using CommandEncoder::State::State;

  // Returns a Binding for the `length` bytes at `offset` in the buffer. After
  // an error, the Binding's data is null.
  Binding Bind(const char* call, const char* what, const Buffer* b,
               size_t offset, size_t length, bool writes) {
    if (b == nullptr) {
      Fail(call, std::string(what) + " is null");
    } else if (offset > b->length_ || length > b->length_ - offset) {
      Fail(call, Format("%s: %zu bytes from %zu on are past the end of a "
                        "buffer of %zu bytes",
                        what, length, offset, b->length_));
    } else if (writes && b->read_only_) {
      Fail(call, std::string(what) + " is read-only");
    } else {
      Retain(*b);
      return {static_cast<unsigned char*>(b->contents_) + offset, length,
              b->read_only_, b->fresh_, b};
    }
    return Binding();
  }

  void Encode(Blit blit, const Binding& to, const Binding& from) {
    if (to.length == 0) return;
    Commands& all = commands();
    Dispatch dispatch;
    dispatch.pipeline = &PipelineOf(blit);
    dispatch.grid = Size(1, 1, 1);
    for (uint16_t& n : dispatch.threads_per_threadgroup) n = 1;
    dispatch.first_binding = static_cast<uint32_t>(all.bindings.size());
    dispatch.num_bindings = 2;
    dispatch.place = SavePlace();
    all.bindings.push_back(to);
    all.bindings.push_back(from);
    all.dispatches.push_back(dispatch);
  }
};

BlitCommandEncoder::BlitCommandEncoder(std::shared_ptr<CommandBuffer> buffer)
    : Referencing(std::make_unique<State>(std::move(buffer))) {}

void BlitCommandEncoder::fillBuffer(host_internal::Arg<Buffer> buffer,
                                    Range range, uint8_t value) noexcept {
  State& state = static_cast<State&>(*base_);
  state.IfOpen("fillBuffer", [&] {
    const Binding to = state.Bind("fillBuffer", "buffer", buffer.get(),
                                  range.location, range.length, true);
    if (to.data == nullptr) return;
    unsigned char* const copy = state.commands().arena.Allocate(1);
    *copy = value;
    state.Encode(Blit::kFill, to, {copy, 1, true, false, nullptr});
  });
}

void BlitCommandEncoder::copyFromBuffer(host_internal::Arg<Buffer> source,
                                        size_t source_offset,
                                        host_internal::Arg<Buffer> destination,
                                        size_t destination_offset,
                                        size_t size) noexcept {
  State& state = static_cast<State&>(*base_);
  state.IfOpen("copyFromBuffer", [&] {
    const Binding from = state.Bind("copyFromBuffer", "source", source.get(),
                                    source_offset, size, false);
    if (from.data == nullptr) return;
    const Binding to =
        state.Bind("copyFromBuffer", "destination", destination.get(),
                   destination_offset, size, true);
    if (to.data == nullptr) return;
    const uintptr_t a = reinterpret_cast<uintptr_t>(from.data);
    const uintptr_t b = reinterpret_cast<uintptr_t>(to.data);
    if ((a < b ? b - a : a - b) < size) {
      state.Fail("copyFromBuffer", "source and destination overlap");
      return;
    }
    state.Encode(Blit::kCopy, to, from);
  });
}

void BlitCommandEncoder::synchronizeResource(
    host_internal::Arg<Resource> resource) noexcept {
  base_->IfOpen("synchronizeResource", [&] {
    if (resource.get() == nullptr) {
      base_->Fail("synchronizeResource", "resource is null");
    }
  });
}

void BlitCommandEncoder::updateFence(host_internal::Arg<Fence> fence) noexcept {
  UseFence("updateFence", fence);
}
void BlitCommandEncoder::waitForFence(
    host_internal::Arg<Fence> fence) noexcept {
  UseFence("waitForFence", fence);
}

// Reports both ranges to checked mode before it writes anything. Copying
// memory that was never written is allowed: the copy counts as never written,
// too.
void RunBlit(Blit blit, RunningDispatch& running) {
  const Binding& to = running.bindings[0];
  const Binding& from = running.bindings[1];
  if (running.checked != nullptr) {
    const auto touch = [&](const char* what, const Binding& b, bool write) {
      const std::string error =
          running.checked->Touch(what, {b.data, 1, b.length, b.length, 1},
                                 write, CheckedMode::Fresh::kIgnore);
      if (!error.empty()) running.Fail(error);
    };
    if (blit == Blit::kCopy) touch("the source", from, false);
    if (running.ok()) {
      touch(blit == Blit::kCopy ? "the destination" : "the buffer", to, true);
    }
  }
  if (!running.ok()) return;
  if (blit == Blit::kCopy) {
    std::memcpy(to.data, from.data, to.length);
  } else {
    std::memset(to.data, *from.data, to.length);
  }
}

}  // namespace switchyard::device
