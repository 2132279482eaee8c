// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Success, or an error with its message.

#ifndef SWITCHYARD_STATUS_H_
#define SWITCHYARD_STATUS_H_

#include <cstdint>

#include "switchyard/language.h"

namespace switchyard {

enum class StatusCode : int32_t {
  kOk = 0,
  // An argument is wrong by itself: shape, stride, null, overlap, overflow.
  // Found in O(1), before anything is written.
  kInvalidArgument = 1,
  // The executor could not get memory. Outputs are unspecified.
  kOutOfMemory = 2,
  // The arguments are well-formed but do not fit the data: a bucket table too
  // narrow for the busiest expert, ids or rows that do not exist. The function
  // says what was written.
  kFailedPrecondition = 3,
  // The executor failed for another reason. Outputs are unspecified.
  kInternal = 4,
};

// The outcome of a call. Nothing in this library throws, prints or aborts.
//
// The message is a string literal "Function: argument: what is wrong"; it lives
// as long as the program. There is no conversion to bool: write `s.ok()`.
class [[nodiscard]] Status {
 public:
  constexpr Status() noexcept = default;  // kOk, empty message
  // `message` must be a string literal: it is kept, not copied.
  constexpr Status(StatusCode code, const char* message) noexcept
      : message_(message), code_(code) {}

  constexpr bool ok() const noexcept { return code_ == StatusCode::kOk; }
  constexpr StatusCode code() const noexcept { return code_; }
  constexpr const char* message() const noexcept { return message_; }

 private:
  const char* message_ = "";
  StatusCode code_ = StatusCode::kOk;
};

}  // namespace switchyard

#endif  // SWITCHYARD_STATUS_H_
