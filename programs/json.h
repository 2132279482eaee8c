// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Parses JSON from untrusted files, and converts counts for our output.

#ifndef SWITCHYARD_PROGRAMS_JSON_H_
#define SWITCHYARD_PROGRAMS_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace program {

// Parses JSON. Throws InputError if the text is not JSON, or is nested deeper
// than any file that these programs need. The message is `malformed`, a colon
// and the cause. NaN, Infinity and -Infinity, which Python writes, become
// strings.
nlohmann::json ParseJson(const uint8_t* begin, const uint8_t* end,
                         const std::string& malformed);

// Converts a count that was computed as a double to an integer, because JSON
// would print the double as 8.0.
uint64_t Count(double count);

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_JSON_H_
