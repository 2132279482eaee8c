// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/device/threadgroup.h"

#include <cstring>
#include <stdexcept>

#include "device/src/core/grid_runner.h"

namespace switchyard::device {
namespace {

size_t Padded(size_t length) {
  return (length + kLocalAlignment - 1) / kLocalAlignment * kLocalAlignment;
}

}  // namespace

ThreadgroupContext::ThreadgroupContext(
    const Size& position, const Size& threads, const Size& dispatched,
    const RunningDispatch& running, void* local,
    kernel_internal::RunningThread* thread) noexcept
    : threadgroup_position_in_grid(position),
      threadgroups_per_grid(running.threadgroups),
      threads_per_grid(running.threads),
      threads_per_threadgroup(threads),
      dispatch_threads_per_threadgroup(dispatched),
      running_(running),
      local_(local),
      thread_(thread) {}

ThreadgroupContext::Bytes ThreadgroupContext::Bound(size_t index,
                                                    size_t alignment,
                                                    bool only_reads) const {
  const Bytes bytes = Find(index, alignment, only_reads);
  if (thread_ != nullptr) {
    running_.checked->NoteBinding(*thread_, index, only_reads, bytes.length);
  }
  return bytes;
}

void ThreadgroupContext::CopyParams(size_t index, size_t length,
                                    void* to) const {
  Copy(index, length, to);
  if (thread_ != nullptr) {
    running_.checked->NoteBinding(*thread_, index, true, length);
  }
}

ThreadgroupContext::Bytes ThreadgroupContext::Find(size_t index,
                                                   size_t alignment,
                                                   bool only_reads) const {
  BindingUse use;
  use.index = index;
  use.alignment = alignment;
  use.writes = !only_reads;
  return Serving(use);
}

ThreadgroupContext::Bytes ThreadgroupContext::Serving(
    const BindingUse& use) const {
  std::string why;
  const Binding* const binding = running_.Find(use, &why);
  if (binding == nullptr) throw std::invalid_argument(why);
  return {binding->data, binding->length};
}

void ThreadgroupContext::Copy(size_t index, size_t length, void* to) const {
  BindingUse use;
  use.index = index;
  Serving(use);
  use.bytes = length;
  use.name = "params";
  std::memcpy(to, Serving(use).data, length);
}

ThreadgroupContext::Bytes ThreadgroupContext::Local(size_t index) const {
  const ThreadgroupLengths* const lengths = running_.dispatch.local_lengths;
  if (lengths == nullptr || index >= kMaxThreadgroupMemoryBindings ||
      (lengths->set >> index & 1) == 0) {
    throw std::invalid_argument(
        Format("threadgroup memory %zu has no length set", index));
  }
  unsigned char* data = static_cast<unsigned char*>(local_);
  for (size_t i = 0; i < index; ++i) data += Padded(lengths->bytes[i]);
  return {data, lengths->bytes[index]};
}

void* ThreadgroupContext::Array(size_t length,
                                kernel_internal::DeclaredArrays* arrays) const {
  size_t set = 0, padded = arrays->padded_bytes;
  const ThreadgroupLengths* const lengths = running_.dispatch.local_lengths;
  if (lengths != nullptr) {
    for (const size_t bytes : lengths->bytes) {
      set += bytes;
      padded += Padded(bytes);
    }
  }
  if (arrays->count == kMaxThreadgroupArrays) {
    throw std::invalid_argument(Format(
        "threadgroup_array: more than %zu of them", kMaxThreadgroupArrays));
  }
  if (length > kMaxThreadgroupMemoryLength - set - arrays->bytes) {
    throw std::invalid_argument(
        Format("threadgroup_array: %zu bytes after %zu, the most is %zu",
               length, set + arrays->bytes, kMaxThreadgroupMemoryLength));
  }
  ++arrays->count;
  arrays->bytes += length;
  arrays->padded_bytes += Padded(length);
  return static_cast<unsigned char*>(local_) + padded;
}

}  // namespace switchyard::device
