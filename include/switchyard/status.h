// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Status, the result of a call: success, or an error with its message.

#ifndef SWITCHYARD_STATUS_H_
#define SWITCHYARD_STATUS_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/language.h"

namespace switchyard {

// The kind of an error.
enum class StatusCode : int32_t {
  kOk = 0,  // no error
  // An argument, not the data, is wrong: shape, stride, null, overlap,
  // overflow. The call finds this in O(1), before it writes anything.
  kInvalidArgument = 1,
  // The executor could not allocate memory. Outputs are unspecified.
  kOutOfMemory = 2,
  // The arguments are well-formed but do not fit the data: a bucket table is
  // too narrow for the busiest expert, or ids or rows do not exist. The
  // function's contract lists the outputs that are written in this case.
  kFailedPrecondition = 3,
  // The executor failed for another reason. Outputs are unspecified.
  kInternal = 4,
};

class Status;

// The most characters that Status::details() returns.
inline constexpr size_t kMaxDetails = 127;
// Returns status.details().
const char* DetailsOf(const Status& status) noexcept;

namespace internal {
struct DetailsAccess;
}  // namespace internal

// The outcome of a call. The functions of this library do not throw, print or
// abort.
//
// The message is a string literal, "Function: argument: problem", and lives
// as long as the program. A Status does not convert to bool: write `s.ok()`.
class [[nodiscard]] Status {
 public:
  constexpr Status() noexcept = default;  // kOk, empty message
  // `message` must be a string literal: it is kept, not copied.
  constexpr Status(StatusCode code, const char* message) noexcept
      : message_(message), code_(code) {}

  // True if the call succeeded.
  constexpr bool ok() const noexcept { return code_ == StatusCode::kOk; }
  // Returns the kind of the error, or kOk.
  constexpr StatusCode code() const noexcept { return code_; }
  // Returns "Function: argument: problem", or "" if ok().
  constexpr const char* message() const noexcept { return message_; }

  // Returns the numbers of the error, or "" if it has none. For the message
  // "RouteTopK: topk_ids: is not [tokens, top_k]" the numbers are "got [15,
  // 2], needs [16, 2]". Each thread keeps only the numbers of its last error.
  // So call details() on the thread that made the failed call, before that
  // thread's next call, and copy the text. Later, or on another thread,
  // details() returns "", and never the numbers of another error.
  const char* details() const noexcept { return DetailsOf(*this); }

 private:
  friend struct internal::DetailsAccess;
  constexpr Status(StatusCode code, const char* message,
                   uint32_t number) noexcept
      : message_(message), code_(code), number_(number) {}

  const char* message_ = "";
  StatusCode code_ = StatusCode::kOk;
  // The number of this error, by which details() finds its text; 0 if the
  // error has no details.
  uint32_t number_ = 0;
};
static_assert(sizeof(Status) == 16 || sizeof(void*) != 8,
              "the number is where padding was");

namespace internal {
struct DetailsAccess {
  static constexpr Status Make(StatusCode code, const char* message,
                               uint32_t number) noexcept {
    return Status(code, message, number);
  }
  static constexpr uint32_t Number(const Status& status) noexcept {
    return status.number_;
  }
};
}  // namespace internal

}  // namespace switchyard

#endif  // SWITCHYARD_STATUS_H_
