// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_MEMORY_H_
#define SWITCHYARD_PROGRAMS_MOE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "switchyard/views.h"

namespace moe_layer {

// Uninitialised memory on a 64-byte boundary. It replaces std::vector, which
// would first write gigabytes of zeros on one thread. Throws std::bad_alloc.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes);

  std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }

  // Returns memory for `count` elements. If the buffer is too small, allocates
  // a larger one and drops the content.
  template <class T>
  T* AtLeast(size_t count) {
    if (size_ < count * sizeof(T)) *this = Buffer(count * sizeof(T));
    return reinterpret_cast<T*>(data());
  }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept { std::free(data); }
  };
  std::unique_ptr<std::byte[], Free> data_;
  size_t size_ = 0;
};

// Owns rows of any type, and the rows' scales if the type has scales (i8).
class RowBuffer {
 public:
  RowBuffer() = default;
  RowBuffer(switchyard::Type type, size_t rows, size_t cols);

  // Returns the number of bytes of a buffer of this shape. The result is a
  // double, because a product of sizes may not fit 64 bits.
  static double Bytes(switchyard::Type type, double rows, double cols);

  const switchyard::AnyRows& rows() const { return rows_; }
  // Returns a view of the first `count` rows.
  switchyard::AnyRows First(size_t count) const {
    return rows_.RowRange(0, count);
  }
  // Returns a dense view of `count` rows with only `cols` columns, in the same
  // memory. Do not use full rows and such a view at the same time.
  switchyard::AnyRows First(size_t count, size_t cols) const {
    switchyard::AnyRows rows = First(count);
    rows.cols = rows.stride = cols;
    return rows;
  }

 private:
  Buffer buffer_;
  switchyard::AnyRows rows_;
};

struct GuardedMapping;

// Maps a regular file read-only; the destructor unmaps it. Throws InputError.
// If another program truncates the file meanwhile, an access to the missing
// part prints one line and ends this program with exit code 2.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  GuardedMapping* guard_ = nullptr;
};

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_MEMORY_H_
