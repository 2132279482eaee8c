// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/json.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "programs/program.h"

namespace program {
namespace {

using nlohmann::json;

// The deepest accepted nesting. nlohmann::json copies and prints recursively,
// so a file with many nested brackets would overflow the stack.
constexpr size_t kMaxDepth = 64;

bool IsTooDeep(const uint8_t* begin, const uint8_t* end) {
  size_t depth = 0;
  bool in_string = false;
  for (const uint8_t* at = begin; at < end; ++at) {
    if (in_string) {
      in_string = *at != '"';
      // An escaped quote does not end the string.
      if (*at == '\\' && at + 1 < end) ++at;
    } else if (*at == '"') {
      in_string = true;
    } else if (*at == '[' || *at == '{') {
      if (++depth > kMaxDepth) return true;
    } else if ((*at == ']' || *at == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

// True if the text contains NaN or Infinity. Also true if only a string
// contains such a word, because searching is cheaper than parsing.
bool HasPythonsNumbers(const uint8_t* begin, const uint8_t* end) {
  const std::string_view text(reinterpret_cast<const char*>(begin),
                              static_cast<size_t>(end - begin));
  return text.find("Infinity") != text.npos || text.find("NaN") != text.npos;
}

// Puts quotes around NaN, Infinity and -Infinity. Python writes these words,
// for example in configurations with a time_step_limit, but JSON does not have
// them. The programs refuse a string where they need a number, and ignore it
// elsewhere. Adds no line break, so that errors keep their line numbers.
std::string QuotePythonsNumbers(const uint8_t* begin, const uint8_t* end) {
  std::string text;
  bool in_string = false;
  for (const uint8_t* at = begin; at < end;) {
    const auto left = static_cast<size_t>(end - at);
    size_t length = 1;
    if (in_string) {
      // An escaped quote does not end the string.
      if (*at == '\\' && left > 1) length = 2;
    } else {
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
        if (left >= word.size() &&
            std::memcmp(at, word.data(), word.size()) == 0) {
          length = word.size();
          break;
        }
      }
    }
    const bool is_word = !in_string && length > 1;
    if (*at == '"') in_string = !in_string;
    if (is_word) text += '"';
    text.append(reinterpret_cast<const char*>(at), length);
    if (is_word) text += '"';
    at += length;
  }
  return text;
}

}  // namespace

json ParseJson(const uint8_t* begin, const uint8_t* end,
               const std::string& malformed) {
  if (IsTooDeep(begin, end)) {
    throw InputError(malformed + ": nested more than " +
                     std::to_string(kMaxDepth) + " levels deep");
  }
  try {
    if (HasPythonsNumbers(begin, end)) {
      return json::parse(QuotePythonsNumbers(begin, end));
    }
    return json::parse(begin, end);
  } catch (const json::exception& error) {
    throw InputError(malformed + ": " + error.what());
  }
}

uint64_t Count(double count) {
  return static_cast<uint64_t>(std::llround(count));
}

}  // namespace program
