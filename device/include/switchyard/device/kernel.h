// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The interface for kernels that you write in C++ thread by thread, like
// Metal shaders. With DeviceOptions::check_kernels, each access of such a
// kernel to memory is checked. device/docs/metal.md shows how to port a
// shader.
//
// A kernel is a function object that is called once per threadgroup. It is a
// template, because memory is accessed in two ways: unchecked and checked.
//
//   struct ScaleRow {
//     template <class Tg>
//     void operator()(Tg& tg) const {
//       const auto n = params<uint32_t>(tg, 1);
//       const auto x = buffer<float>(tg, 0) +
//                      tg.threadgroup_position_in_grid.width * n;
//       auto sum = tg.per_thread(0.0f);
//       tg.for_each_thread([&](auto t) {
//         for (size_t i = t.thread_index_in_threadgroup; i < n; i += 32) {
//           sum[t] += x[i];
//         }
//       });
//       const auto total = simd_sum(sum);
//       tg.for_each_thread([&](auto t) {
//         for (size_t i = t.thread_index_in_threadgroup; i < n; i += 32) {
//           x[i] /= total[t];
//         }
//       });
//     }
//   };
//   device->newComputePipelineState(MakeKernel("scale_row", ScaleRow{}),
//   &error);
//
// Each call of for_each_thread() runs one part of the kernel for all threads.
// Between these parts the threads meet, in barriers and simd functions, which
// are called outside of for_each_thread(). Other code outside runs once for
// the whole threadgroup; checked mode counts its reads and writes as those of
// thread 0.
//
// Without checks, buffer<T>() returns a T*, and the kernel compiles to the
// same code as a loop over plain pointers. In checked mode buffer<T>()
// returns a CheckedPointer<T>. A kernel compiles in both modes if you write
// the types of elements: `float v = x[i]`, not `auto v`, and
// std::max<float>(v, x[i]).
//
// Accessors (buffer(), params(), ...) throw if nothing or too little is
// bound, if the address is not aligned, or if T is not const and the buffer
// is read-only. The text of the exception becomes the command buffer's error.

#ifndef SWITCHYARD_DEVICE_KERNEL_H_
#define SWITCHYARD_DEVICE_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "switchyard/device/kernel_atomics.h"
#include "switchyard/device/kernel_members.h"
#include "switchyard/device/kernel_memory.h"
#include "switchyard/device/kernel_pointers.h"
#include "switchyard/device/kernel_simd.h"
#include "switchyard/device/kernel_threads.h"
#include "switchyard/device/kernel_types.h"
#include "switchyard/device/threadgroup.h"

namespace switchyard::device {

// The template argument Access of an unchecked kernel: its pointers to memory
// are plain pointers.
struct Unchecked {
  static constexpr bool kChecked = false;  // accesses are not checked
  // The type of a pointer to memory.
  template <class T>
  using Pointer = T*;
};
// The template argument Access of a checked kernel: a CheckedPointer checks
// each access.
struct Checked {
  static constexpr bool kChecked = true;  // every access is checked
  // The type of a pointer to memory.
  template <class T>
  using Pointer = CheckedPointer<T>;
};

// The kind of memory that a barrier orders.
enum class mem_flags : uint32_t {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_device_and_threadgroup = 3,
};
constexpr mem_flags operator|(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<uint32_t>(a) |
                                static_cast<uint32_t>(b));
}

namespace kernel_internal {

// Checked mode calls these functions where unchecked kernels use plain
// pointers. The library defines them.
const View& BufferView(const ThreadgroupContext& context, size_t index,
                       size_t alignment, bool only_reads);
const View& MemoryView(const ThreadgroupContext& context, size_t index);
const View& ArrayView(const ThreadgroupContext& context, size_t length,
                      DeclaredArrays* arrays);
void CheckedParams(const ThreadgroupContext& context, size_t index,
                   size_t length, void* to);
void CheckedBarrier(RunningThread& thread, Threads& threads, bool simdgroup,
                    uint32_t flags);
// Returns the order of the threads, or null if they run in the order of their
// indices.
const uint16_t* OrderOfThreads(RunningThread& thread, size_t count);
// Reports that `what`, a function where all threads meet, was called inside
// for_each_thread().
[[noreturn]] void CalledInside(RunningThread& thread, const char* what);
// Reports that the values of two threads differ.
[[noreturn]] void ThreadsDisagree(RunningThread& thread, size_t first,
                                  size_t second, const std::string& values);

}  // namespace kernel_internal

// One threadgroup of a dispatch. Members have the names and meanings of
// Metal.
template <class Access>
class Threadgroup {
 public:
  explicit Threadgroup(const ThreadgroupContext& context)
      : threadgroup_position_in_grid(context.threadgroup_position_in_grid),
        threadgroups_per_grid(context.threadgroups_per_grid),
        threads_per_grid(context.threads_per_grid),
        threads_per_threadgroup(context.threads_per_threadgroup),
        dispatch_threads_per_threadgroup(
            context.dispatch_threads_per_threadgroup),
        context_(context) {
    const Size& position = context.threadgroup_position_in_grid;
    const Size& dispatched = context.dispatch_threads_per_threadgroup;
    threads_.size = context.threads_per_threadgroup;
    threads_.count =
        threads_.size.width * threads_.size.height * threads_.size.depth;
    threads_.simdgroups = (threads_.count + kernel_internal::kSimdWidth - 1) /
                          kernel_internal::kSimdWidth;
    threads_.origin = Size(position.width * dispatched.width,
                           position.height * dispatched.height,
                           position.depth * dispatched.depth);
    if constexpr (Access::kChecked) threads_.checked = context.thread_;
  }
  Threadgroup(const Threadgroup&) = delete;
  Threadgroup& operator=(const Threadgroup&) = delete;

  const Size& threadgroup_position_in_grid;
  const Size& threadgroups_per_grid;
  const Size& threads_per_grid;
  // The size of this threadgroup, which may be smaller than
  // dispatch_threads_per_threadgroup at the edge of a grid of
  // dispatchThreads().
  const Size& threads_per_threadgroup;
  const Size& dispatch_threads_per_threadgroup;

  size_t simdgroups_per_threadgroup() const { return threads_.simdgroups; }
  size_t threads_per_simdgroup() const { return kernel_internal::kSimdWidth; }

  // Returns a variable that has one value per thread, initially `value`. v[t]
  // accesses the value of thread t.
  template <class T>
  PerThread<T> per_thread(T value) const {
    return PerThread<T>(threads_, value);
  }

  // Calls function(Thread) for every thread that has not returned, one after
  // the other. Results must not depend on the order. The function must not
  // call barriers, simd functions, uniform(), threadgroup_array() or
  // for_each_thread(): such a call is an error in checked mode, and undefined
  // behaviour without checks.
  template <class Function>
  void for_each_thread(const Function& function) {
    if constexpr (Access::kChecked) {
      const uint16_t* const order =
          kernel_internal::OrderOfThreads(*threads_.checked, threads_.count);
      for (size_t i = 0; i < threads_.count; ++i) {
        const size_t thread = order == nullptr ? i : order[i];
        if (threads_.some_gone && !threads_.IsLeft(thread)) continue;
        threads_.checked->SetThread(thread);
        function(At(thread));
      }
      threads_.checked->SetThread(0);
      threads_.checked->inside = false;
    } else if (threads_.some_gone) {
      for (size_t i = 0; i < threads_.count; ++i) {
        if (threads_.IsLeft(i)) function(At(i));
      }
    } else {
      // Fast path: all threads are present, so loops count the positions,
      // which avoids divisions.
      const Size size = threads_.size;
      size_t i = 0;
      for (size_t z = 0; z < size.depth; ++z) {
        for (size_t y = 0; y < size.height; ++y) {
          for (size_t x = 0; x < size.width; ++x, ++i) {
            function(Thread(&threads_, i, x, y, z));
          }
        }
      }
    }
  }

  // Makes threads wait for each other. Read memory that other threads wrote
  // only after a barrier whose flags include the kind of this memory. In
  // checked mode it is an error if some threads have returned and others wait
  // at a barrier.
  void threadgroup_barrier(
      mem_flags flags = mem_flags::mem_device_and_threadgroup) {
    Barrier(false, flags);
  }
  // Makes only the threads of the same simdgroup wait for each other.
  void simdgroup_barrier(
      mem_flags flags = mem_flags::mem_device_and_threadgroup) {
    Barrier(true, flags);
  }

  // Returns a value that is the same in all threads, for loops and branches
  // that contain barriers or simd functions: `while (tg.uniform(more))`.
  // Different values are an error in checked mode; without checks, uniform()
  // returns the first thread's value. If all threads have returned, the
  // kernel ends here, as on Metal.
  template <class T>
  T uniform(const PerThread<T>& v) {
    return Uniform<T>([&v](size_t thread) { return v.values_[thread]; });
  }
  template <class T>
  T uniform(const PerSimdgroup<T>& v) {
    return Uniform<T>([&v](size_t thread) {
      return v.values_[thread / kernel_internal::kSimdWidth];
    });
  }

 private:
  template <class T, class A>
  friend typename A::template Pointer<T> buffer(Threadgroup<A>& tg,
                                                size_t index);
  template <class T, class A>
  friend T params(Threadgroup<A>& tg, size_t index);
  template <class T, class A>
  friend typename A::template Pointer<T> threadgroup_memory(Threadgroup<A>& tg,
                                                            size_t index);
  template <class T, size_t N, class A>
  friend typename A::template Pointer<T> threadgroup_array(Threadgroup<A>& tg);

  Thread At(size_t i) {
    const Size& size = threads_.size;
    if (size.height == 1 && size.depth == 1) {
      return Thread(&threads_, i, i, 0, 0);
    }
    return Thread(&threads_, i, i % size.width, i / size.width % size.height,
                  i / size.width / size.height);
  }
  void Barrier(bool simdgroup, mem_flags flags) {
    if constexpr (Access::kChecked) {
      kernel_internal::CheckedBarrier(*threads_.checked, threads_, simdgroup,
                                      static_cast<uint32_t>(flags));
    } else {
      (void)simdgroup;
      (void)flags;
    }
  }
  template <class T, class Get>
  T Uniform(const Get& get) {
    if constexpr (Access::kChecked) {
      if (threads_.checked->inside) {
        kernel_internal::CalledInside(*threads_.checked, "uniform");
      }
    }
    size_t first = 0;
    while (first < threads_.count && !threads_.IsLeft(first)) ++first;
    if (first == threads_.count) throw kernel_internal::AllReturned();
    const T value = get(first);
    if constexpr (Access::kChecked) {
      using kernel_internal::IsNan;
      for (size_t i = first + 1; i < threads_.count; ++i) {
        if (!threads_.IsLeft(i) || get(i) == value) continue;
        if (IsNan(value) && IsNan(get(i))) continue;
        std::string values;
        if constexpr (std::is_arithmetic_v<T>) {
          values = std::to_string(value) + " and " + std::to_string(get(i));
        }
        kernel_internal::ThreadsDisagree(*threads_.checked, first, i, values);
      }
    }
    return value;
  }

  kernel_internal::Threads threads_;
  kernel_internal::DeclaredArrays arrays_;
  const ThreadgroupContext& context_;
};

// Returns the buffer that is bound at `index`, starting at the bound offset:
// MSL's `device T*`, or `constant T*` with a const T.
template <class T, class Access>
typename Access::template Pointer<T> buffer(Threadgroup<Access>& tg,
                                            size_t index) {
  static_assert(!std::is_reference_v<T> && kernel_internal::kIsBytes<T>,
                "buffer<T>: a type that can be copied byte by byte");
  if constexpr (Access::kChecked) {
    return CheckedPointer<T>(
        &kernel_internal::BufferView(tg.context_, index, alignof(T),
                                     std::is_const_v<T>),
        0);
  } else {
    return tg.context_.template buffer<T>(index).data;
  }
}

// Returns the buffer that is bound at `index`, for atomics: MSL's `device
// atomic_int*`.
template <class T, class Access>
auto atomic_buffer(Threadgroup<Access>& tg, size_t index) {
  return atomic_pointer(buffer<T>(tg, index));
}

// Returns a copy of the parameter struct that is bound at `index`: MSL's
// `constant T&`.
template <class T, class Access>
T params(Threadgroup<Access>& tg, size_t index) {
  if constexpr (Access::kChecked) {
    static_assert(kernel_internal::kIsBytes<T>,
                  "params<T>: a type that can be copied byte by byte");
    T value;
    kernel_internal::CheckedParams(tg.context_, index, sizeof(T), &value);
    return value;
  } else {
    return tg.context_.template params<T>(index);
  }
}

// Returns the memory that setThreadgroupMemoryLength() set at `index`: MSL's
// `threadgroup T* [[threadgroup(index)]]`.
template <class T, class Access>
typename Access::template Pointer<T> threadgroup_memory(Threadgroup<Access>& tg,
                                                        size_t index) {
  static_assert(alignof(T) <= 64, "threadgroup memory is aligned to 64 bytes");
  if constexpr (Access::kChecked) {
    return CheckedPointer<T>(&kernel_internal::MemoryView(tg.context_, index),
                             0);
  } else {
    return tg.context_.template threadgroup<T>(index).data;
  }
}

// Declares an array like MSL's `threadgroup T name[N]`. Call it once for each
// array, and not in a loop. A kernel may have 32 arrays. Together with the
// memory of setThreadgroupMemoryLength(), they have at most 32768 bytes.
template <class T, size_t N, class Access>
typename Access::template Pointer<T> threadgroup_array(
    Threadgroup<Access>& tg) {
  static_assert(kernel_internal::kIsBytes<T> && alignof(T) <= 64,
                "threadgroup_array<T, N>: a type that can be copied byte by "
                "byte, aligned to at most 64 bytes");
  if constexpr (Access::kChecked) {
    return CheckedPointer<T>(
        &kernel_internal::ArrayView(tg.context_, N * sizeof(T), &tg.arrays_),
        0);
  } else {
    return static_cast<T*>(tg.context_.Array(N * sizeof(T), &tg.arrays_));
  }
}

// Makes a kernel for newComputePipelineState(). It copies `kernel`, and
// several threadgroups call the const copy at the same time.
template <class Kernel>
KernelFunction MakeKernel(std::string name, const Kernel& kernel,
                          double threadgroup_ns = 30000.0) {
  KernelFunction result;
  result.name = std::move(name);
  result.threadgroup = [kernel](const ThreadgroupContext& context) {
    Threadgroup<Unchecked> tg(context);
    kernel(tg);
  };
  result.threadgroup_ns = threadgroup_ns;
  result.checked = [kernel](const ThreadgroupContext& context) {
    Threadgroup<Checked> tg(context);
    kernel(tg);
  };
  return result;
}

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_H_
