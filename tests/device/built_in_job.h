// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A built-in kernel with its arguments, on memory that notices.

#ifndef SWITCHYARD_TESTS_DEVICE_BUILT_IN_JOB_H_
#define SWITCHYARD_TESTS_DEVICE_BUILT_IN_JOB_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/device/builtin/built_in.h"
#include "switchyard/device/device.h"
#include "switchyard/types.h"
#include "testing/guarded_buffer.h"
#include "tests/device/device_test.h"
#include "tests/device/raw_bytes.h"

namespace switchyard::testing_support {

struct BoundBuffer {
  size_t index;
  BufferPtr buffer;
  size_t offset;
};

// A vector in a device buffer that starts 5 elements in front of it, so that
// its offset is a multiple of an element's size and of nothing more, and ends 0
// to 2 elements behind it, at a guard page. Must outlive the work that uses it.
template <class T>
class DeviceArray {
 public:
  // Canaries, for a kernel to write. Elements may be of several T.
  DeviceArray(Device& device, size_t size, size_t element = 1)
      : front_(kFront * element),
        memory_(1, size, 0, Behind(size, element)),
        buffer_(device.newBufferWithBytesNoCopy(
            static_cast<void*>(memory_.data() - front_),
            Bytes(size, element))) {}
  // Read-only: a kernel that could write it is an error.
  DeviceArray(Device& device, const std::vector<T>& values, size_t element = 1)
      : front_(kFront * element),
        memory_(values, Behind(values.size(), element)),
        buffer_(device.newBufferWithBytesNoCopy(
            static_cast<const void*>(memory_.data() - front_),
            Bytes(values.size(), element))) {}

  BoundBuffer At(size_t index) const {
    return {index, buffer_, front_ * sizeof(T)};
  }
  const BufferPtr& buffer() const { return buffer_; }
  const Guarded<T>& memory() const { return memory_; }
  std::vector<T> Values() const { return memory_.Values(); }

 private:
  static constexpr size_t kFront = 5;
  // An offset has to be inside the buffer.
  static size_t Behind(size_t size, size_t element) {
    return size == 0 ? element : size / element % 3 * element;
  }
  static size_t Bytes(size_t size, size_t element) {
    return (kFront * element + size + Behind(size, element)) * sizeof(T);
  }

  const size_t front_;
  const Guarded<T> memory_;
  const BufferPtr buffer_;
};

// The binding of a kernel's argument.
struct Given {
  enum Kind { kRead, kWritten, kSameAs, kUnbound };
  Kind kind = kUnbound;
  RawBytes before = {};
  RawBytes whole = {};  // what the plain API writes
  size_t element = 4;   // bytes
  size_t same_as = 0;   // another argument

  // For floats, in memory of that type: rounded to it.
  Given As(Type type) const {
    return {kind, ToBytes(type, Recast<float>(before)),
            ToBytes(type, Recast<float>(whole)), SizeOf(type), same_as};
  }
};
template <class T>
Given In(const std::vector<T>& values) {
  static_assert(sizeof(T) == 4);
  return {Given::kRead, Recast<unsigned char>(values)};
}
template <class T>
Given Updated(const std::vector<T>& before, const std::vector<T>& whole) {
  static_assert(sizeof(T) == 4);
  return {Given::kWritten, Recast<unsigned char>(before),
          Recast<unsigned char>(whole)};
}
template <class T>
Given Out(const std::vector<T>& whole) {
  return Updated(Recast<T>(std::vector<uint32_t>(whole.size(), kCanary)),
                 whole);
}
inline Given SameAs(size_t argument) {
  return {Given::kSameAs, {}, {}, 4, argument};
}

// A built-in kernel, what it is called with, and what it has to write.
struct Job {
  std::string kernel;
  std::vector<uint32_t> params;
  std::vector<Given> arguments;  // in the order of the library's table
  size_t rows = 1, cols = 0;     // that grids cover; no `cols`: whole rows
  size_t threads = 256;          // per threadgroup
  size_t local_memory = 0;
  std::string error = {};  // instead of anything written

  const BuiltIn& BuiltInKernel() const { return *FindBuiltIn(kernel.c_str()); }
  bool OverTiles() const { return BuiltInKernel().grid.kind == Grid::kTiles; }
  Size WholeGrid() const {
    return OverTiles() ? Size(cols, rows, 1) : Size(rows * threads, 1, 1);
  }
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_DEVICE_BUILT_IN_JOB_H_
