// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Lines of LLVM's text form, taken apart. Clang writes and reads it, so that
// changing a module needs none of its libraries. It has pointers of types up to
// Clang 14 ("i8* %1"), and without afterwards ("ptr %1").

#ifndef SWITCHYARD_DEVICE_SRC_METAL_LLVM_TEXT_H_
#define SWITCHYARD_DEVICE_SRC_METAL_LLVM_TEXT_H_

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace switchyard::device::metal {

using Text = std::string_view;

inline bool BeginsWith(Text text, Text with) {
  return text.substr(0, with.size()) == with;
}

template <class Function>
void ForEachLine(Text text, const Function& function) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    function(text.substr(at, end - at));
    at = end + 1;
  }
}

// The first `what` from `at` on that is outside of brackets and quotes, or the
// end.
size_t FindOutside(Text text, char what, size_t at = 0);

std::vector<Text> SplitOutside(Text text, char at);

// "<4 x i64>* %4" is its type and its value. A type has blanks in brackets
// only, but for those of a function.
struct Operand {
  Text type, value;
};
Operand ParseOperand(Text text);

// The function that "call void @f(i32 1)" calls by name: "@f", or nothing.
Text CalleeOf(Text call);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_LLVM_TEXT_H_
