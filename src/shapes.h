// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Finds the argument at fault where the shapes of a call's do not go together.
//
// A check compares an argument with sizes that it takes from another, and so
// names the wrong one where that other is missing or misshaped: without its
// output, Combine used to find fault with topk_weights. Front ends therefore
// ask here, once a shape check has failed:
//
//   const internal::Shaped arguments[] = {
//       SWITCHYARD_SHAPED(GatherRows, Role::kInput, tokens, num_tokens,
//       hidden),
//       ...};
//   return internal::OddOneOut(arguments, "GatherRows: rows: is not ...");

#ifndef SWITCHYARD_SRC_SHAPES_H_
#define SWITCHYARD_SRC_SHAPES_H_

#include <cstddef>

#include "src/check.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

// An argument, its role and its shape. A size is a dimension or a number, or
// two of these with * or + between: OddOneOut() reads the words of the message.
#define SWITCHYARD_SHAPED(fn, role, m, rows, cols)                          \
  ::switchyard::internal::Shaped(                                           \
      role, m, #rows, #cols, #fn ": " #m ": is not [" #rows ", " #cols "]", \
      #fn ": " #m ": not given")

// In a function that returns a Status to a front end, which asks OddOneOut() if
// its code is kMisfit: what does not fit is known by then, but not whose fault
// it is.
#define SWITCHYARD_CHECK_FITS(condition, message)                              \
  do {                                                                         \
    if (__builtin_expect(!(condition), 0)) {                                   \
      return ::switchyard::Status(::switchyard::internal::kMisfit, (message)); \
    }                                                                          \
  } while (false)
#define SWITCHYARD_CHECK_SHAPE_FITS(fn, m, num_rows, num_cols)            \
  SWITCHYARD_CHECK_FITS((m).rows == (num_rows) && (m).cols == (num_cols), \
                        #fn ": " #m ": is not [" #num_rows ", " #num_cols "]")

namespace switchyard::internal {

// Reaches no caller of the library.
inline constexpr StatusCode kMisfit = static_cast<StatusCode>(-1);

enum class Role : unsigned char {
  kInput,
  kOutput,
  kOptional,  // an input
  kOptionalOutput,
};

struct Shaped {
  Role role;
  bool is_given;
  size_t sizes[2];
  const char* words[2];  // what the sizes should be
  const char* misshaped;
  const char* missing;

  template <class M>
  Shaped(Role role_in, const M& m, const char* rows, const char* cols,
         const char* misshaped_in, const char* missing_in)
      : role(role_in),
        is_given(Given(m)),
        sizes{m.rows, m.cols},
        words{rows, cols},
        misshaped(misshaped_in),
        missing(missing_in) {}
  // [size, 1]
  template <class T>
  Shaped(Role role_in, const Span<T>& s, const char* rows, const char* cols,
         const char* misshaped_in, const char* missing_in)
      : role(role_in),
        is_given(Given(s)),
        sizes{s.size, 1},
        words{rows, cols},
        misshaped(misshaped_in),
        missing(missing_in) {}

  bool is_output() const {
    return role == Role::kOutput || role == Role::kOptionalOutput;
  }
  bool is_needed() const {
    return role == Role::kInput || role == Role::kOutput;
  }
};

// The message of the argument at fault, or `otherwise`
// where no single one explains it. At fault is the first of
//   1. one that is needed and not given,
//   2. one that fits the others with rows and columns exchanged,
//   3. the last one, but for the first of the list, without which the others
//      agree: outputs stand behind inputs, and are made to fit them,
//   4. the first output that differs from inputs that agree,
//   5. the first of the list, if the others agree.
[[gnu::cold]] const char* OddOneOut(const Shaped* arguments, size_t size,
                                    const char* otherwise) noexcept;
template <size_t N>
const char* OddOneOut(const Shaped (&arguments)[N],
                      const char* otherwise) noexcept {
  return OddOneOut(arguments, N, otherwise);
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_SHAPES_H_
