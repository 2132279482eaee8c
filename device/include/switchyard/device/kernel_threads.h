// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The threads of a threadgroup and their variables. kernel.h includes this
// file and explains the model.

#ifndef SWITCHYARD_DEVICE_KERNEL_THREADS_H_
#define SWITCHYARD_DEVICE_KERNEL_THREADS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "switchyard/device/threadgroup.h"

namespace switchyard::device {

namespace kernel_internal {

constexpr size_t kSimdWidth = 32;
constexpr size_t kMaxThreads = 1024;
constexpr size_t kMaxSimdgroups = kMaxThreads / kSimdWidth;

struct RunningThread;  // kernel_memory.h
struct Simd;

// Thrown to end a kernel after all its threads have returned.
struct AllReturned {};

// The threads of a threadgroup, and which of them have returned.
struct Threads {
  size_t count = 0;
  size_t simdgroups = 0;
  bool some_gone = false;            // true if a thread has returned
  Size size;                         // size of the threadgroup
  Size origin;                       // position of the first thread in the grid
  RunningThread* checked = nullptr;  // null without checks
  // One bit for each lane, set if the lane has not returned. Valid only if
  // some_gone is true.
  uint32_t left[kMaxSimdgroups] = {};

  uint32_t Present(size_t simdgroup) const {
    const size_t lanes = count - simdgroup * kSimdWidth;
    return lanes >= kSimdWidth ? ~uint32_t{0} : (uint32_t{1} << lanes) - 1;
  }
  uint32_t Lanes(size_t simdgroup) const {
    return some_gone ? left[simdgroup] : Present(simdgroup);
  }
  bool IsLeft(size_t thread) const {
    return (Lanes(thread / kSimdWidth) >> thread % kSimdWidth & 1) != 0;
  }
  void Exit(size_t thread) {
    if (!some_gone) {
      for (size_t s = 0; s < simdgroups; ++s) left[s] = Present(s);
    }
    some_gone = true;
    left[thread / kSimdWidth] &= ~(uint32_t{1} << thread % kSimdWidth);
  }
};

// The library defines these functions, which are called in checked mode.
void NoteSimdFunction(RunningThread& thread);
[[noreturn]] void LaneIsNotThere(RunningThread& thread, const char* function,
                                 size_t simdgroup, size_t lane);

}  // namespace kernel_internal

template <class T>
class PerThread;
template <class T>
class PerSimdgroup;
template <class Access>
class Threadgroup;

// One thread of a threadgroup. for_each_thread() passes it to its function.
class Thread {
 public:
  const size_t thread_index_in_threadgroup;  // x varies fastest, then y, then z
  const size_t thread_index_in_simdgroup;
  const size_t simdgroup_index_in_threadgroup;

  Size thread_position_in_threadgroup() const { return Size(x_, y_, z_); }
  Size thread_position_in_grid() const {
    const Size& origin = threads_->origin;
    return Size(origin.width + x_, origin.height + y_, origin.depth + z_);
  }
  // Ends the thread, like `return` in a Metal kernel. Write `return
  // t.exit();`. Later calls of for_each_thread() and simd functions skip this
  // thread.
  void exit() const { threads_->Exit(thread_index_in_threadgroup); }

 private:
  template <class Access>
  friend class Threadgroup;
  Thread(kernel_internal::Threads* threads, size_t index, size_t x, size_t y,
         size_t z)
      : thread_index_in_threadgroup(index),
        thread_index_in_simdgroup(index % kernel_internal::kSimdWidth),
        simdgroup_index_in_threadgroup(index / kernel_internal::kSimdWidth),
        threads_(threads),
        x_(x),
        y_(y),
        z_(z) {}

  kernel_internal::Threads* const threads_;
  const size_t x_, y_, z_;
};

// A variable that has one value per thread, for the lifetime of the
// threadgroup. It replaces a local variable of a Metal kernel that is used
// before and after a barrier or a simd function. Threadgroup::per_thread()
// returns it. It takes stack for 1024 elements, whatever the size of the
// threadgroup: 4 KB for a float, 256 KB for the largest T.
template <class T>
class PerThread {
 public:
  static_assert(kernel_internal::kIsBytes<T>,
                "per_thread: a type that can be copied byte by byte");
  static_assert(sizeof(T) <= 256, "1024 of them lie on the stack");

  PerThread(const PerThread& other) : threads_(other.threads_) {
    std::copy_n(other.values_, threads_->count, values_);
  }
  PerThread& operator=(const PerThread& other) {
    std::copy_n(other.values_, threads_->count, values_);
    return *this;
  }

  T& operator[](const Thread& t) {
    return values_[t.thread_index_in_threadgroup];
  }
  const T& operator[](const Thread& t) const {
    return values_[t.thread_index_in_threadgroup];
  }

 private:
  template <class Access>
  friend class Threadgroup;
  friend struct kernel_internal::Simd;

  PerThread(const kernel_internal::Threads& threads, const T& value)
      : threads_(&threads) {
    std::fill_n(values_, threads.count, value);
  }
  const kernel_internal::Threads* threads_;
  T values_[kernel_internal::kMaxThreads];
};

// The result of a simd function that gives one value to all lanes of a
// simdgroup.
template <class T>
class PerSimdgroup {
 public:
  const T& operator[](const Thread& t) const {
    return values_[t.simdgroup_index_in_threadgroup];
  }

 private:
  template <class Access>
  friend class Threadgroup;
  friend struct kernel_internal::Simd;

  PerSimdgroup() = default;

  T values_[kernel_internal::kMaxSimdgroups] = {};
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_THREADS_H_
