// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Reads lines of LLVM's text form. Clang reads and writes this form, so
// changing a module needs no LLVM library. Pointers have types up to Clang 14
// ("i8* %1"), and none in later versions ("ptr %1").

#ifndef SWITCHYARD_DEVICE_SRC_METAL_LLVM_TEXT_H_
#define SWITCHYARD_DEVICE_SRC_METAL_LLVM_TEXT_H_

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace switchyard::device::metal {

inline bool BeginsWith(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

inline bool IsOpcode(std::string_view op,
                     std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), op) != all.end();
}

// Returns the number at the beginning of the text, or 0 if it does not begin
// with a digit.
size_t ParseNumber(std::string_view text);

template <class Function>
void ForEachLine(std::string_view text, const Function& function) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    function(text.substr(at, end - at));
    at = end + 1;
  }
}

// Returns the position of the first `what` at or behind `at` that is outside
// of brackets and quotes, or the text's size if there is none.
size_t FindOutside(std::string_view text, char what, size_t at = 0);

std::vector<std::string_view> SplitOutside(std::string_view text, char at);

// Splits "<4 x i64>* %4" into type and value at the blank. The only types
// with blanks outside of brackets are those of functions.
struct Operand {
  std::string_view type, value;
};
Operand ParseOperand(std::string_view text);

// Returns the function that a call names: "@f" for "call void @f(i32 1)".
// Returns an empty text if it names none.
std::string_view FindCallee(std::string_view call);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_LLVM_TEXT_H_
