// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The threads of a threadgroup, their variables, and the simd functions.
// Included by kernel.h, where the whole is explained.

#ifndef SWITCHYARD_DEVICE_KERNEL_THREADS_H_
#define SWITCHYARD_DEVICE_KERNEL_THREADS_H_

#include <algorithm>
#include <cmath>
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

// Thrown where a kernel ends because all its threads have returned.
struct AllReturned {};

// Which threads there are and which of them have returned.
struct Threads {
  size_t count = 0;
  size_t simdgroups = 0;
  bool some_gone = false;            // have returned
  Size size;                         // of the threadgroup
  Size origin;                       // of the first thread, in the grid
  RunningThread* checked = nullptr;  // null: unchecked
  // A bit per lane that has not returned; valid once one has.
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

// What checked mode does; defined in the library.
void NoteSimdFunction(RunningThread& thread);
[[noreturn]] void LaneIsNotThere(RunningThread& thread, const char* function,
                                 size_t simdgroup, size_t lane);

template <class T>
bool IsNan(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value);
  } else {
    return false;
  }
}

}  // namespace kernel_internal

template <class T>
class PerThread;
template <class T>
class PerSimdgroup;
template <class Access>
class Threadgroup;

// One thread of a threadgroup, as for_each_thread() hands it to its function.
class Thread {
 public:
  const size_t thread_index_in_threadgroup;  // x fastest, then y, then z
  const size_t thread_index_in_simdgroup;
  const size_t simdgroup_index_in_threadgroup;

  Size thread_position_in_threadgroup() const { return Size(x_, y_, z_); }
  Size thread_position_in_grid() const {
    const Size& origin = threads_->origin;
    return Size(origin.width + x_, origin.height + y_, origin.depth + z_);
  }
  // Metal's `return` from the kernel: `return t.exit();`. Later calls of
  // for_each_thread() and simd functions go without this thread.
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

// A variable of every thread, for as long as the threadgroup: a local variable
// of a Metal kernel that is alive across a barrier or a simd function. Made by
// Threadgroup::per_thread(). Lies on the stack, 1024 elements whatever the size
// of the threadgroup: 4 KB for a float, 256 KB for the largest T.
template <class T>
class PerThread {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
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

// What a simd function gives: one value for all lanes of a simdgroup.
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

namespace kernel_internal {

// What sums are made of.
template <class T, bool kIsInteger = std::is_integral_v<T>>
struct Term {
  using Type = std::make_unsigned_t<T>;
};
template <class T>
struct Term<T, false> {
  using Type = T;
};

struct Simd {
  // of(result, values, lanes, simdgroup) for each simdgroup: `values` are its
  // lanes', bit l of `lanes` tells whether lane l takes part.
  template <class R, class T, class Function>
  static PerSimdgroup<R> ForEach(const PerThread<T>& v, const Function& of) {
    const Threads& threads = *v.threads_;
    if (threads.checked != nullptr) NoteSimdFunction(*threads.checked);
    PerSimdgroup<R> result;
    for (size_t s = 0; s < threads.simdgroups; ++s) {
      of(result.values_[s], v.values_ + s * kSimdWidth, threads.Lanes(s), s);
    }
    return result;
  }
  template <class T, class Better>
  static PerSimdgroup<T> Best(const PerThread<T>& v, const Better& better) {
    static_assert(std::is_arithmetic_v<T>);
    return ForEach<T>(v, [&](T& best, const T* values, uint32_t lanes, size_t) {
      bool first = true;
      for (size_t i = 0; i < kSimdWidth; ++i) {
        if ((lanes >> i & 1) == 0) continue;
        if (first || IsNan(best) || better(values[i], best)) best = values[i];
        first = false;
      }
    });
  }
  template <class T>
  static PerThread<T> ShuffleXor(const PerThread<T>& v, size_t mask) {
    const Threads& threads = *v.threads_;
    if (threads.checked != nullptr) NoteSimdFunction(*threads.checked);
    PerThread<T> result(threads, T());
    for (size_t i = 0; i < threads.count; ++i) {
      const size_t lane = (i % kSimdWidth) ^ mask;
      const size_t from = i - i % kSimdWidth + lane;
      if (lane < kSimdWidth && from < threads.count && threads.IsLeft(from)) {
        result.values_[i] = v.values_[from];
      }
    }
    return result;
  }
  template <class T>
  static const Threads& Of(const PerThread<T>& v) {
    return *v.threads_;
  }
};

}  // namespace kernel_internal

// The simd functions, for every simdgroup of the threadgroup; called outside
// for_each_thread(), which checked mode makes sure of. Lanes that do not
// exist or have returned take no part; a simdgroup without lanes gets T().

// A number wins over NaN, as in Metal.
template <class T>
PerSimdgroup<T> simd_max(const PerThread<T>& v) {
  return kernel_internal::Simd::Best(v, [](T a, T b) { return a > b; });
}
template <class T>
PerSimdgroup<T> simd_min(const PerThread<T>& v) {
  return kernel_internal::Simd::Best(v, [](T a, T b) { return a < b; });
}

// Lane l + 16 is added to lane l, then l + 8, 4, 2, 1; Metal leaves the order
// open. What is not there counts as 0.
template <class T>
PerSimdgroup<T> simd_sum(const PerThread<T>& v) {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
  return kernel_internal::Simd::ForEach<T>(v, [](T& sum, const T* values,
                                                 uint32_t lanes, size_t) {
    // Integers wrap around, as on a GPU.
    using Term = typename kernel_internal::Term<T>::Type;
    Term sums[kernel_internal::kSimdWidth];
    for (size_t i = 0; i < kernel_internal::kSimdWidth; ++i) {
      sums[i] = static_cast<Term>((lanes >> i & 1) != 0 ? values[i] : T());
    }
    for (size_t half = kernel_internal::kSimdWidth / 2; half != 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) {
        sums[i] = static_cast<Term>(sums[i] + sums[i + half]);
      }
    }
    sum = static_cast<T>(sums[0]);
  });
}

// The value of lane `lane`. One that is not there gives T(), and is an error in
// checked mode.
template <class T>
PerSimdgroup<T> simd_broadcast(const PerThread<T>& v, size_t lane) {
  kernel_internal::RunningThread* const checked =
      kernel_internal::Simd::Of(v).checked;
  return kernel_internal::Simd::ForEach<T>(
      v, [=](T& result, const T* values, uint32_t lanes, size_t simdgroup) {
        if (lane < kernel_internal::kSimdWidth && (lanes >> lane & 1) != 0) {
          result = values[lane];
        } else if (checked != nullptr && lanes != 0) {
          kernel_internal::LaneIsNotThere(*checked, "simd_broadcast", simdgroup,
                                          lane);
        }
      });
}

// Each lane gets the value of lane `its own index ^ mask`, T() if that is not
// there (undefined on Metal).
template <class T>
PerThread<T> simd_shuffle_xor(const PerThread<T>& v, size_t mask) {
  return kernel_internal::Simd::ShuffleXor(v, mask);
}

// Bit l is set if lane l is there and its value is not 0.
template <class T>
PerSimdgroup<uint64_t> simd_ballot(const PerThread<T>& v) {
  return kernel_internal::Simd::ForEach<uint64_t>(
      v, [](uint64_t& bits, const T* values, uint32_t lanes, size_t) {
        for (size_t i = 0; i < kernel_internal::kSimdWidth; ++i) {
          if ((lanes >> i & 1) != 0 && values[i] != T()) {
            bits |= uint64_t{1} << i;
          }
        }
      });
}

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_THREADS_H_
