// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The interface for kernels that you write in C++ as functions that compute
// one threadgroup at a time.

#ifndef SWITCHYARD_DEVICE_THREADGROUP_H_
#define SWITCHYARD_DEVICE_THREADGROUP_H_

#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>

#include "switchyard/views.h"

namespace switchyard::device {

struct BindingUse;       // device/src/core
struct RunningDispatch;  // device/src/core
class GridRunner;        // device/src/core
namespace metal {
class Crew;  // device/src/metal
}
template <class Access>
class Threadgroup;  // kernel.h

namespace kernel_internal {

// True if a T may be copied as bytes. The condition is not "trivially
// copyable", because vectors have assignment functions.
template <class T>
constexpr bool kIsBytes = std::is_trivially_copy_constructible_v<T>&&
    std::is_trivially_destructible_v<T>;

struct RunningThread;      // kernel_memory.h
class CheckedThreadgroup;  // device/src/checked

// Counts the threadgroup memory that a kernel has declared.
struct DeclaredArrays {
  size_t count = 0;
  size_t bytes = 0;
  size_t padded_bytes = 0;
};

}  // namespace kernel_internal

// A number of threads or threadgroups in each dimension.
struct Size {
  // Each dimension has two names: sizes use width, height and depth; positions
  // in the grid use x, y and z.
  union {
    size_t width = 0;
    size_t x;
  };
  union {
    size_t height = 0;
    size_t y;
  };
  union {
    size_t depth = 0;
    size_t z;
  };

  constexpr Size() noexcept = default;
  constexpr Size(size_t w, size_t h, size_t d) noexcept
      : width(w), height(h), depth(d) {}
  static constexpr Size Make(size_t w, size_t h, size_t d) noexcept {
    return Size(w, h, d);
  }
};

// One threadgroup of a dispatch, the argument of a kernel that you write.
// Members have Metal's names. If an accessor fails, it throws an exception,
// and the exception's text becomes the command buffer's error. Do not keep
// the object beyond the call.
class ThreadgroupContext {
 public:
  const Size& threadgroup_position_in_grid;
  const Size& threadgroups_per_grid;
  const Size& threads_per_grid;
  // The size of this threadgroup, which may be smaller at the edge of a grid
  // of dispatchThreads(). The first thread's position in the grid is
  // threadgroup_position_in_grid times dispatch_threads_per_threadgroup.
  const Size& threads_per_threadgroup;
  const Size& dispatch_threads_per_threadgroup;

  // Returns the buffer that is bound at `index`, from its offset to its end,
  // in whole elements. Throws if nothing is bound, if the address is not
  // aligned for T, or if T is not const and the buffer is read-only.
  template <class T>
  Span<T> buffer(size_t index) const {
    const Bytes bytes = Bound(index, alignof(T), std::is_const_v<T>);
    return Span<T>(static_cast<T*>(bytes.data), bytes.length / sizeof(T));
  }
  // Returns a copy of the parameter struct at `index`. Throws if too few
  // bytes are bound.
  template <class T>
  T params(size_t index) const {
    static_assert(kernel_internal::kIsBytes<T>);
    T value;
    CopyParams(index, sizeof(T), &value);
    return value;
  }
  // Returns the threadgroup memory that setThreadgroupMemoryLength() set at
  // `index`, in whole elements, aligned to 64 bytes. The memory may hold the
  // data of an earlier threadgroup.
  template <class T>
  Span<T> threadgroup(size_t index) const {
    const Bytes bytes = Local(index);
    return Span<T>(static_cast<T*>(bytes.data), bytes.length / sizeof(T));
  }

 private:
  friend class GridRunner;
  friend class kernel_internal::CheckedThreadgroup;
  friend class metal::Crew;
  template <class Access>
  friend class Threadgroup;
  template <class T, size_t N, class Access>
  friend typename Access::template Pointer<T> threadgroup_array(
      Threadgroup<Access>& tg);
  struct Bytes {
    void* data;
    size_t length;
  };
  ThreadgroupContext(const Size& position, const Size& threads,
                     const Size& dispatched, const RunningDispatch& running,
                     void* local,
                     kernel_internal::RunningThread* thread) noexcept;
  Bytes Bound(size_t index, size_t alignment, bool only_reads) const;
  void CopyParams(size_t index, size_t length, void* to) const;
  // Does the same as Bound(), but does not record that the kernel uses the
  // binding.
  Bytes Find(size_t index, size_t alignment, bool only_reads) const;
  Bytes Serving(const BindingUse& use) const;
  void Copy(size_t index, size_t length, void* to) const;
  Bytes Local(size_t index) const;
  // Returns `length` bytes of threadgroup memory, behind all memory that was
  // set or declared before.
  void* Array(size_t length, kernel_internal::DeclaredArrays* arrays) const;

  const RunningDispatch& running_;
  void* const local_;
  kernel_internal::RunningThread* const thread_;  // null if unchecked
};

// A kernel that you write. It is called once for each threadgroup of the
// grid, and loops over the threadgroup's threads itself. The threads of the
// device's executor run several threadgroups at a time, in no particular
// order.
//
// The kernel runs in the default floating-point environment (round to
// nearest, denormals honoured, no traps), whatever the settings of the
// executor's threads and of the thread that waits. The exception is long
// double on x86, which uses the settings of the thread.
//
// If the kernel or an accessor of the context throws an exception, the
// dispatch fails with the exception's text. Threadgroups that have not
// started by then do not run.
struct KernelFunction {
  std::string name;  // the name in errors, findings and times
  // Computes one threadgroup.
  std::function<void(const ThreadgroupContext&)> threadgroup;
  // A rough estimate of the time of one threadgroup, more than 0. Dispatches
  // that take less than 30 us by this estimate run on one thread.
  double threadgroup_ns = 30000.0;
  // Runs instead of `threadgroup` if DeviceOptions::check_kernels is set.
  // MakeKernel() in kernel.h makes both functions. If `checked` is empty,
  // `threadgroup` runs in checked mode too, and only its bindings are
  // checked.
  std::function<void(const ThreadgroupContext&)> checked = nullptr;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_THREADGROUP_H_
