// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Test buffers that reveal wrong accesses: the page after the buffer is
// inaccessible, and canaries around the view change if something writes
// there. The view can have any misalignment.

#ifndef SWITCHYARD_TESTING_GUARDED_BUFFER_H_
#define SWITCHYARD_TESTING_GUARDED_BUFFER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/views.h"
#include "testing/guarded_pages.h"

namespace switchyard::testing_support {

// The word that fills the memory. It is a NaN as a float and a large number
// as an integer, so that a result computed from it stands out.
constexpr uint32_t kCanary = 0x7FC0DEAD;

// A view [rows, cols] that ends `slack` elements before the guard page. A
// stride of 0 means cols. With the slacks from 0 to 3, the view's start and
// end each take every position relative to a multiple of four elements.
// Without `values`, the elements of the view are canaries too.
template <class T>
class Guarded {
 public:
  explicit Guarded(size_t rows, size_t cols, size_t stride = 0,
                   size_t slack = 0, const std::vector<T>& values = {})
      : rows_(rows), cols_(cols), stride_(stride == 0 ? cols : stride) {
    const size_t used =
        rows == 0 || cols == 0 ? 0 : (rows - 1) * stride_ + cols;
    const size_t page = GuardedPages::PageSize();
    // Leaves at least 64 canaries before the view.
    const size_t bytes =
        ((used + slack + 64) * sizeof(T) + page - 1) / page * page;
    map_ = GuardedPages::Take(bytes);
    bytes_ = bytes;
    std::fill_n(reinterpret_cast<uint32_t*>(map_), bytes / 4, kCanary);
    first_ = bytes / sizeof(T) - used - slack;
    if (!values.empty()) Fill(values);
  }
  explicit Guarded(const std::vector<T>& values, size_t slack = 0)
      : Guarded(1, values.size(), 0, slack, values) {}
  ~Guarded() { GuardedPages::GiveBack(map_, bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() const { return reinterpret_cast<T*>(map_) + first_; }
  Matrix<T> view() const { return {data(), rows_, cols_, stride_}; }
  // Requires that stride == cols.
  Span<T> span() const { return {data(), rows_ * cols_}; }
  T& At(size_t row, size_t col) const { return data()[row * stride_ + col]; }

  // `values` holds rows * cols elements, row-major.
  void Fill(const std::vector<T>& values) const {
    ASSERT_EQ(values.size(), rows_ * cols_);
    for (size_t r = 0; r < rows_ && cols_ != 0; ++r) {
      std::memcpy(&At(r, 0), values.data() + r * cols_, cols_ * sizeof(T));
    }
  }
  // Returns the view's elements, row-major.
  std::vector<T> Values() const {
    std::vector<T> values(rows_ * cols_);
    for (size_t r = 0; r < rows_ && cols_ != 0; ++r) {
      std::memcpy(values.data() + r * cols_, &At(r, 0), cols_ * sizeof(T));
    }
    return values;
  }

  // Checks that nothing outside the view was written.
  void ExpectIntact(const char* name) const {
    size_t end = 0;  // where the checked elements end
    for (size_t r = 0; r < rows_ && cols_ != 0; ++r) {
      const size_t row = first_ + r * stride_;
      CheckElements(name, end, row);
      end = row + cols_;
    }
    CheckElements(name, end, bytes_ / sizeof(T));
  }
  // Checks that nothing was written since construction, not even the view.
  void ExpectUntouched(const char* name) const {
    CheckElements(name, 0, bytes_ / sizeof(T));
  }

 private:
  // Checks elements [begin, end) of the mapping.
  void CheckElements(const char* name, size_t begin, size_t end) const {
    const auto* const words = reinterpret_cast<const uint32_t*>(map_);
    const auto* const bytes = reinterpret_cast<const unsigned char*>(map_);
    unsigned char canary[4];
    std::memcpy(canary, &kCanary, 4);
    size_t b = begin * sizeof(T);
    const size_t end_byte = end * sizeof(T);
    while (b < end_byte) {
      if (b % 4 == 0 && end_byte - b >= 4 && words[b / 4] == kCanary) {
        b += 4;
        continue;
      }
      if (bytes[b] != canary[b % 4]) {
        FAIL() << name << ": element "
               << static_cast<ptrdiff_t>(b / sizeof(T)) -
                      static_cast<ptrdiff_t>(first_)
               << " counted from the view's start was overwritten";
      }
      ++b;
    }
  }

  size_t rows_, cols_, stride_;
  char* map_;
  size_t bytes_;  // the size of the mapping without the guard page
  size_t first_;  // the elements of the mapping before the view
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_GUARDED_BUFFER_H_
