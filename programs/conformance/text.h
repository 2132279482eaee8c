// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Reads and writes the text form of cases and answers, which
// conformance/README.md defines. A text may have several cases or answers, one
// after another.
//
// If a text is wrong, each Read function throws program::InputError with the
// number of the line and the name of its key or block.

#ifndef SWITCHYARD_PROGRAMS_CONFORMANCE_TEXT_H_
#define SWITCHYARD_PROGRAMS_CONFORMANCE_TEXT_H_

#include <string>
#include <vector>

#include "programs/conformance/cases.h"

namespace switchyard::conformance {

// Returns the shortest text that reads back as the same float, or "nan", "inf"
// or "-inf".
std::string TextOf(float value);

std::string Write(const Case& c);
// Reads a text that has exactly one case.
Case Read(const std::string& text);
std::vector<Case> ReadCases(const std::string& text);

// Writes the ids and the weights as blocks of `slots` columns. If the answer
// has an `unsupported` reason, writes only the reason.
std::string Write(const Answer& answer, size_t slots);
// Reads answers with blocks of any shape. Grade() checks the shapes, because it
// knows the case of each answer.
std::vector<Answer> ReadAnswers(const std::string& text);

}  // namespace switchyard::conformance

#endif  // SWITCHYARD_PROGRAMS_CONFORMANCE_TEXT_H_
