// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Translates any text. The translation must keep all lines, and its time must
// be bounded by the length of the text.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "device/src/metal/translate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr char kTable[] = "\n# 1 \"<switchyard>\"\n";
  if (text.find("<switchyard>") != text.npos) return 0;
  const auto translation = switchyard::device::metal::Translate(text);
  const std::string& code = translation.code;
  const size_t shader = code.find(kTable);
  const auto end =
      code.begin() + static_cast<std::ptrdiff_t>(std::min(shader, code.size()));
  if (std::count(code.begin(), end, '\n') !=
      std::count(text.begin(), text.end(), '\n')) {
    std::fprintf(stderr, "other lines\n");
    std::abort();
  }
  if (translation.looks > 60 * (size + 10)) {
    std::fprintf(stderr, "%zu bytes took %llu looks\n", size,
                 static_cast<unsigned long long>(translation.looks));
    std::abort();
  }
  return 0;
}
