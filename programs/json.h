// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// JSON from files that anybody may have written, and counts for our own.

#ifndef SWITCHYARD_PROGRAMS_JSON_H_
#define SWITCHYARD_PROGRAMS_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace program {

// Throws InputError, which says `malformed` and why: no JSON, or nested deeper
// than anything that these programs read. NaN, Infinity and -Infinity, which
// Python writes, are texts.
nlohmann::json ParseJson(const uint8_t* begin, const uint8_t* end,
                         const std::string& malformed);

// A count that was computed as a double, which JSON would have as 8.0.
uint64_t Count(double count);

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_JSON_H_
