// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Converts RouteOptions to text and back, with the names that SetOption()
// takes.

#ifndef SWITCHYARD_PROGRAMS_CONFORMANCE_OPTIONS_H_
#define SWITCHYARD_PROGRAMS_CONFORMANCE_OPTIONS_H_

#include <string>
#include <utility>
#include <vector>

#include "switchyard/route.h"

namespace switchyard::conformance {

using OptionText = std::pair<std::string, std::string>;  // name, value

// Returns the options that differ from their defaults, in the order of
// RouteOptions.
std::vector<OptionText> TextOf(const RouteOptions& options);

// Sets the options of `texts`, and returns them with the defaults of the other
// options. Throws program::InputError, which starts with `where`, if a name or
// a value does not exist.
RouteOptions OptionsFrom(const std::vector<OptionText>& texts,
                         const std::string& where);

}  // namespace switchyard::conformance

#endif  // SWITCHYARD_PROGRAMS_CONFORMANCE_OPTIONS_H_
