// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Cuts a caller's memory into pieces. A function that takes pieces runs twice:
// first without memory, to compute the size, and then with memory.

#ifndef SWITCHYARD_SRC_BASE_TAKE_H_
#define SWITCHYARD_SRC_BASE_TAKE_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/views.h"

namespace switchyard::internal {

class Taker {
 public:
  // Every piece begins at a cache line.
  static constexpr size_t kAlignment = 64;

  Taker() = default;
  explicit Taker(Span<int32_t> memory)
      : begin_(reinterpret_cast<uintptr_t>(memory.data)),
        bytes_((begin_ + kAlignment - 1) / kAlignment * kAlignment - begin_) {}

  unsigned char* TakeBytes(size_t bytes) {
    unsigned char* const piece =
        begin_ == 0 ? nullptr
                    : reinterpret_cast<unsigned char*>(begin_ + bytes_);
    overflows_ |=
        bytes > SIZE_MAX / 2 ||
        __builtin_add_overflow(
            bytes_, (bytes + kAlignment - 1) & ~(kAlignment - 1), &bytes_) ||
        bytes_ > PTRDIFF_MAX - 2 * kAlignment;
    return piece;
  }
  // Takes `count` elements, which are not initialised.
  template <class T>
  T* Take(size_t count) {
    size_t bytes = 0;
    overflows_ |= __builtin_mul_overflow(count, sizeof(T), &bytes);
    return reinterpret_cast<T*>(TakeBytes(bytes));
  }

  bool overflows() const { return overflows_; }
  // Returns the size of all pieces as a number of int32. It includes padding,
  // because the memory may begin at any address.
  size_t size() const { return (bytes_ + kAlignment) / sizeof(int32_t); }
  size_t bytes() const { return bytes_; }

 private:
  uintptr_t begin_ = 0;
  size_t bytes_ = 0;
  bool overflows_ = false;
};

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BASE_TAKE_H_
