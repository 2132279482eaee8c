// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The text form of cases and answers, which conformance/README.md defines.
// Several cases, or answers, may follow one another in one text.
//
// Each Read function throws program::InputError with the number of the wrong
// line, and the key or block.

#ifndef SWITCHYARD_PROGRAMS_CONFORMANCE_TEXT_H_
#define SWITCHYARD_PROGRAMS_CONFORMANCE_TEXT_H_

#include <string>
#include <vector>

#include "programs/conformance/cases.h"

namespace switchyard::conformance {

// Returns the shortest text that reads back as the same float, with "nan",
// "inf" and "-inf".
std::string TextOf(float value);

std::string Write(const Case& c);
// Reads exactly one case.
Case Read(const std::string& text);
std::vector<Case> ReadCases(const std::string& text);

// Writes a block of ids with `slots` columns, and the same for weights. If the
// answer has an `unsupported` reason, writes only the reason.
std::string Write(const Answer& answer, size_t slots);
// Blocks may have any shape, so that Grade() can say which case they do not
// match.
std::vector<Answer> ReadAnswers(const std::string& text);

}  // namespace switchyard::conformance

#endif  // SWITCHYARD_PROGRAMS_CONFORMANCE_TEXT_H_
