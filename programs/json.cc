// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/json.h"

#include <cmath>
#include <cstddef>

#include "programs/program.h"

namespace program {
namespace {

using nlohmann::json;

// A json is copied and printed by recursion, so a file of brackets would
// overflow the stack.
constexpr size_t kMaxDepth = 64;

bool IsTooDeep(const uint8_t* begin, const uint8_t* end) {
  size_t depth = 0;
  bool in_string = false;
  for (const uint8_t* at = begin; at < end; ++at) {
    if (in_string) {
      in_string = *at != '"';
      // An escaped character ends no string.
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

}  // namespace

json ParseJson(const uint8_t* begin, const uint8_t* end,
               const std::string& malformed) {
  if (IsTooDeep(begin, end)) {
    throw InputError(malformed + ": nested more than " +
                     std::to_string(kMaxDepth) + " levels deep");
  }
  try {
    return json::parse(begin, end);
  } catch (const json::exception& error) {
    throw InputError(malformed + ": " + error.what());
  }
}

uint64_t Count(double count) {
  return static_cast<uint64_t>(std::llround(count));
}

}  // namespace program
