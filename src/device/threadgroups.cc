// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/device/threadgroups.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "src/device/checked/threadgroup_checker.h"
#include "src/schedule.h"

namespace switchyard {
namespace device {

namespace {

size_t Padded(size_t length) {
  return (length + kLocalAlignment - 1) / kLocalAlignment * kLocalAlignment;
}

// The threads of threadgroup `position`, of `per` in the whole dimension.
size_t AtEdge(size_t position, size_t per, size_t threads) {
  return std::min(per, threads - position * per);
}

}  // namespace

bool& InKernel::Here() {
  thread_local bool here = false;
  return here;
}

void Threadgroups::Run(Call& call) {
  const Size& grid = call.threadgroups;
  size_t count = 0;
  if (__builtin_mul_overflow(grid.width, grid.height, &count) ||
      __builtin_mul_overflow(count, grid.depth, &count)) {
    call.GridOverflows();
    return;
  }
  const Threadgroups threadgroups(call);
  if (call.checker != nullptr) {
    threadgroups.RunChecked(count);
    if (threadgroups.failed) call.Fail(threadgroups.error);
    return;
  }
  call.Finish(internal::RunRows(call.executor, count,
                                call.dispatch.pipeline->kernel.threadgroup_ns,
                                RunRange, threadgroups));
  if (threadgroups.failed) call.Fail(threadgroups.error);
}

void Threadgroups::RunRange(const Threadgroups& threadgroups, size_t begin,
                            size_t end) {
  const InKernel in_kernel;
  alignas(kLocalAlignment) unsigned char local[kLocalBytes];
  const Size& grid = threadgroups.call.threadgroups;
  // Divided once, then counted on: a division takes as long as the rest of an
  // empty threadgroup.
  Size position;
  if (begin != 0) {
    position = Size(begin % grid.width, begin / grid.width % grid.height,
                    begin / grid.width / grid.height);
  }
  for (size_t i = begin; i < end; ++i) {
    // The dispatch has failed: what is left would only take time.
    if (threadgroups.failed.load(std::memory_order_relaxed)) return;
    threadgroups.RunOne(position, local, nullptr);
    if (++position.width == grid.width) {
      position.width = 0;
      if (++position.height == grid.height) {
        position.height = 0;
        ++position.depth;
      }
    }
  }
}

void Threadgroups::RunOne(const Size& position, void* local,
                          kernel_internal::ThreadgroupState* state) const {
  const Size dispatched = call.dispatch.ThreadsPerThreadgroup();
  Size threads = dispatched;
  if (call.dispatch.in_threads) {
    threads = Size(AtEdge(position.width, threads.width, call.threads.width),
                   AtEdge(position.height, threads.height, call.threads.height),
                   AtEdge(position.depth, threads.depth, call.threads.depth));
  }
  const ThreadgroupContext context(position, threads, dispatched, call, local,
                                   state);
  const KernelFunction& kernel = call.dispatch.pipeline->kernel;
  try {
    if (state != nullptr && kernel.checked != nullptr) {
      kernel.checked(context);
      // What the kernel has caught itself.
      const std::string& failure =
          kernel_internal::ThreadgroupChecker::Of(*state).failure();
      if (!failure.empty()) Fail(failure.c_str());
    } else {
      kernel.threadgroup(context);
    }
  } catch (const kernel_internal::AllReturned&) {
    // Of this threadgroup: as if it had returned itself.
  } catch (const std::exception& e) {
    Fail(e.what());
  } catch (...) {
    Fail("the kernel threw something that is not a std::exception");
  }
}

void Threadgroups::Fail(const char* what) const {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!failed.load(std::memory_order_relaxed)) {
    try {
      error = what;
    } catch (...) {  // no memory: then without a text
    }
  }
  failed.store(true, std::memory_order_relaxed);
}

ThreadgroupContext::ThreadgroupContext(
    const Size& position, const Size& threads, const Size& dispatched,
    const Call& call, void* local,
    kernel_internal::ThreadgroupState* state) noexcept
    : threadgroup_position_in_grid(position),
      threadgroups_per_grid(call.threadgroups),
      threads_per_grid(call.threads),
      threads_per_threadgroup(threads),
      dispatch_threads_per_threadgroup(dispatched),
      bindings_(call.bindings),
      num_bindings_(call.dispatch.num_bindings),
      local_lengths_(call.dispatch.local_lengths),
      local_(local),
      state_(state) {}

ThreadgroupContext::Bytes ThreadgroupContext::Bound(size_t index,
                                                    size_t alignment,
                                                    bool only_reads) const {
  const Bytes bytes = Find(index, alignment, only_reads);
  if (state_ != nullptr) {
    kernel_internal::ThreadgroupChecker::Of(*this).NoteBinding(
        index, only_reads, bytes.length);
  }
  return bytes;
}

void ThreadgroupContext::CopyParams(size_t index, size_t length,
                                    void* to) const {
  Copy(index, length, to);
  if (state_ != nullptr) {
    kernel_internal::ThreadgroupChecker::Of(*this).NoteBinding(index, true,
                                                               length);
  }
}

ThreadgroupContext::Bytes ThreadgroupContext::Find(size_t index,
                                                   size_t alignment,
                                                   bool only_reads) const {
  if (index >= num_bindings_ || bindings_[index].data == nullptr) {
    throw std::invalid_argument(Format("buffer %zu is not bound", index));
  }
  const Binding& binding = bindings_[index];
  if (reinterpret_cast<uintptr_t>(binding.data) % alignment != 0) {
    throw std::invalid_argument(Format(
        "buffer %zu: its address is not a multiple of %zu", index, alignment));
  }
  if (binding.read_only && !only_reads) {
    throw std::invalid_argument(
        Format("buffer %zu is written, and is read-only", index));
  }
  return {binding.data, binding.length};
}

void ThreadgroupContext::Copy(size_t index, size_t length, void* to) const {
  const Bytes bytes = Find(index, 1, true);
  if (bytes.length < length) {
    throw std::invalid_argument(Format(
        "buffer %zu (params) needs %zu bytes, %zu are bound: %zu too few",
        index, length, bytes.length, length - bytes.length));
  }
  std::memcpy(to, bytes.data, length);
}

ThreadgroupContext::Bytes ThreadgroupContext::Local(size_t index) const {
  if (local_lengths_ == nullptr || index >= kMaxThreadgroupMemoryBindings ||
      local_lengths_[index] == 0) {
    throw std::invalid_argument(
        Format("threadgroup memory %zu has no length set", index));
  }
  unsigned char* data = static_cast<unsigned char*>(local_);
  for (size_t i = 0; i < index; ++i) data += Padded(local_lengths_[i]);
  return {data, local_lengths_[index]};
}

void* ThreadgroupContext::Array(
    size_t length, kernel_internal::ThreadgroupArrays* arrays) const {
  size_t set = 0, padded = arrays->padded_bytes;
  if (local_lengths_ != nullptr) {
    for (size_t i = 0; i < kMaxThreadgroupMemoryBindings; ++i) {
      set += local_lengths_[i];
      padded += Padded(local_lengths_[i]);
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

}  // namespace device
}  // namespace switchyard
