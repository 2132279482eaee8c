// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The numbers of an error: "got [15, 2], needs [16, 2]". A message is a literal
// and has none.

#ifndef SWITCHYARD_SRC_BASE_DETAILS_H_
#define SWITCHYARD_SRC_BASE_DETAILS_H_

#include <cstddef>
#include <string_view>

#include "switchyard/status.h"

namespace switchyard::internal {

// A text of fixed size, because an error may be that memory is out. It ends in
// "..." if more is put.
class Details {
 public:
  [[gnu::cold]] Details& Put(std::string_view words) noexcept;
  [[gnu::cold]] Details& Put(size_t value) noexcept;
  [[gnu::cold]] Details& Put(int value) noexcept;
  // The shortest text that reads back as this float. In the default
  // floating-point environment, because converting a NaN may trap.
  [[gnu::cold]] Details& Put(float value) noexcept;
  [[gnu::cold]] Details& PutShape(size_t rows, size_t cols) noexcept;

  bool empty() const noexcept { return size_ == 0; }
  const char* text() const noexcept { return text_; }

 private:
  char text_[kMaxDetails + 1] = {};
  size_t size_ = 0;
};

// An error whose details() are these, on this thread and until its next such
// error.
[[gnu::cold]] Status Refuse(StatusCode code, const char* message,
                            const Details& details) noexcept;

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BASE_DETAILS_H_
