// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Texts that the tests of the translation compare.

#ifndef SWITCHYARD_TESTS_DEVICE_TRANSLATE_TEXT_H_
#define SWITCHYARD_TESTS_DEVICE_TRANSLATE_TEXT_H_

#include <string>
#include <string_view>

#include "src/device/metal/translate.h"

namespace switchyard::device::metal {

// The part that stands for the shader, without the table behind it.
inline std::string Shader(const Translation& translation) {
  const size_t table = translation.code.find("\n# 1 \"<switchyard>\"\n");
  return translation.code.substr(0, table);
}

// One blank for several, none at the ends of lines.
inline std::string Squeeze(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ' ' &&
        (result.empty() || result.back() == ' ' || result.back() == '\n')) {
      continue;
    }
    if (c == '\n' && !result.empty() && result.back() == ' ') result.pop_back();
    result += c;
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

inline std::string Translated(std::string_view text) {
  return Squeeze(Shader(Translate(text)));
}

inline bool Contains(std::string_view text, std::string_view what) {
  return text.find(what) != text.npos;
}

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_TESTS_DEVICE_TRANSLATE_TEXT_H_
