// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The details of an error, such as "got [15, 2], needs [16, 2]". An error's
// message cannot have such numbers, because it is a string literal.

#ifndef SWITCHYARD_SRC_BASE_DETAILS_H_
#define SWITCHYARD_SRC_BASE_DETAILS_H_

#include <cstddef>
#include <string_view>

#include "switchyard/status.h"

namespace switchyard::internal {

// A text of fixed size, because the error itself may be a lack of memory. A
// text that is too long ends in "...".
class Details {
 public:
  [[gnu::cold]] Details& Put(std::string_view words) noexcept;
  [[gnu::cold]] Details& Put(size_t value) noexcept;
  [[gnu::cold]] Details& Put(int value) noexcept;
  // Puts the shortest text that reads back as this float. Uses the default
  // floating-point environment, because converting a NaN may trap.
  [[gnu::cold]] Details& Put(float value) noexcept;
  [[gnu::cold]] Details& PutShape(size_t rows, size_t cols) noexcept;

  bool empty() const noexcept { return size_ == 0; }
  const char* text() const noexcept { return text_; }

 private:
  char text_[kMaxDetails + 1] = {};
  size_t size_ = 0;
};

// Makes an error. This thread keeps `details` until its next Refuse().
[[gnu::cold]] Status Refuse(StatusCode code, const char* message,
                            const Details& details) noexcept;

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BASE_DETAILS_H_
