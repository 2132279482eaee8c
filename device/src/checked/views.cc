// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Creates the views through which a threadgroup accesses memory.

#include <cstring>
#include <stdexcept>

#include "device/src/checked/checked_threadgroup.h"

namespace switchyard::device::kernel_internal {

const View& CheckedThreadgroup::Buffer(const ThreadgroupContext& context,
                                       size_t index, size_t alignment,
                                       bool only_reads) {
  const ThreadgroupContext::Bytes bytes =
      context.Find(index, alignment, only_reads);
  View& view = buffers_[index];
  if (!only_reads) checker_.NoteOutput(index, running_->bindings[index]);
  if (view.data == nullptr) {
    view.data = static_cast<unsigned char*>(bytes.data);
    view.length = bytes.length;
    view.words = bytes.length < 4 ? 0 : bytes.length - 3;
    view.shadow = checker_.shadow().Base(bytes.data);
    view.halves = checker_.shadow().HalvesBase(bytes.data);
    view.trails = checker_.shadow().Trails(bytes.data);
    view.space = &device;
    view.thread = this;
    view.index = index;
    view.kind = kBufferView;
    view.fresh = running_->bindings[index].fresh;
  }
  return view;
}

const View& CheckedThreadgroup::LocalView(View& view, ViewKind kind,
                                          size_t index, void* data,
                                          size_t length) {
  if (view.data != nullptr) return view;
  view.data = static_cast<unsigned char*>(data);
  view.length = length;
  view.words = length < 4 ? 0 : length - 3;
  const uintptr_t memory = reinterpret_cast<uintptr_t>(local_);
  view.shadow = reinterpret_cast<uintptr_t>(local_cells_.get()) -
                memory / 4 * sizeof(Cell);
  view.halves =
      reinterpret_cast<uintptr_t>(local_cells_.get() + kLocalBytes / 4) -
      memory / 2 * sizeof(Cell);
  view.trails = kLocalCells * sizeof(Cell);
  view.space = &local;
  view.thread = this;
  view.index = index;
  view.kind = kind;
  view.fresh = true;
  FillNeverWritten(view.data, length);
  return view;
}

const View& CheckedThreadgroup::Memory(const ThreadgroupContext& context,
                                       size_t index) {
  const ThreadgroupContext::Bytes bytes = context.Local(index);
  return LocalView(memory_[index], kMemoryView, index, bytes.data,
                   bytes.length);
}

const View& CheckedThreadgroup::Array(const ThreadgroupContext& context,
                                      size_t length, DeclaredArrays* arrays) {
  const size_t index = arrays->count;
  void* const data = context.Array(length, arrays);
  return LocalView(arrays_[index], kArrayView, index, data, length);
}

void CheckedThreadgroup::NoteBinding(size_t index, bool only_reads,
                                     size_t length) {
  bool& noted = noted_[index][only_reads ? 0 : 1];
  if (!opaque_ || noted) return;
  noted = true;
  const std::string what = "buffer " + std::to_string(index) + " (as a whole)";
  const std::string error = checker_.Touch(
      what.c_str(), {running_->bindings[index].data, 1, length, length},
      !only_reads, CheckedMode::Fresh::kIgnore);
  if (!error.empty()) throw std::runtime_error(error);
}

void CheckedThreadgroup::Params(const ThreadgroupContext& context, size_t index,
                                size_t length, void* to) {
  context.Copy(index, length, to);
  const View& view = Buffer(context, index, 1, true);
  // Padding is never written, so a struct is reported only if none of its
  // words was written.
  bool fresh = view.fresh;
  for (size_t i = 0; i + 4 <= length && fresh; i += 4) {
    const uint32_t word = kNeverWritten;
    fresh = std::memcmp(view.data + i, &word, sizeof(word)) == 0;
  }
  if (fresh && length >= 4) {
    Fail(FindingKind::kNeverWritten,
         "reads the parameters in " + NameOf(view) +
             ", which nothing has written since newBuffer()",
         "write them before this dispatch");
  }
  View written = view;
  written.fresh = false;
  Check(written, 0, length, kReads);
}

}  // namespace switchyard::device::kernel_internal
