// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/llvm_text.h"

#include <cctype>

namespace switchyard::device::metal {

size_t ParseNumber(std::string_view text) {
  size_t number = 0;
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) break;
    number = 10 * number + static_cast<size_t>(c - '0');
  }
  return number;
}

size_t FindOutside(std::string_view text, char what, size_t at) {
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

std::vector<std::string_view> SplitOutside(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = FindOutside(text, at, begin);
    parts.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(' ', end + 1);
    if (begin == std::string_view::npos) break;
  }
  return parts;
}

Operand ParseOperand(std::string_view text) {
  size_t end = FindOutside(text, ' ');
  while (end + 1 < text.size() && text[end + 1] == '(') {
    end = FindOutside(text, ' ', end + 1);
  }
  if (end == text.size()) return {text, std::string_view()};
  return {text.substr(0, end), text.substr(end + 1)};
}

std::string_view FindCallee(std::string_view call) {
  const std::string_view name = call.substr(FindOutside(call, '@'));
  return name.substr(0, name.find('('));
}

}  // namespace switchyard::device::metal
