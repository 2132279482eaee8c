// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/llvm_text.h"

namespace switchyard::device::metal {

size_t FindOutside(Text text, char what, size_t at) {
  int depth = 0;
  for (bool quoted = false; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == what && depth == 0) return at;
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
    if (c == ')' || c == ']' || c == '}' || c == '>') --depth;
  }
  return text.size();
}

std::vector<Text> SplitOutside(Text text, char at) {
  std::vector<Text> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = FindOutside(text, at, begin);
    parts.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(' ', end + 1);
    if (begin == Text::npos) break;
  }
  return parts;
}

Operand ParseOperand(Text text) {
  size_t end = FindOutside(text, ' ');
  while (end + 1 < text.size() && text[end + 1] == '(') {
    end = FindOutside(text, ' ', end + 1);
  }
  if (end == text.size()) return {text, Text()};
  return {text.substr(0, end), text.substr(end + 1)};
}

Text CalleeOf(Text call) {
  const Text name = call.substr(FindOutside(call, '@'));
  return name.substr(0, name.find('('));
}

}  // namespace switchyard::device::metal
