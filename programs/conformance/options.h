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

// Returns RouteOptions with the values in `texts`, and with the defaults of all
// other options. If a name or a value does not exist, throws a
// program::InputError that starts with `where`.
RouteOptions OptionsFrom(const std::vector<OptionText>& texts,
                         const std::string& where);

}  // namespace switchyard::conformance

#endif  // SWITCHYARD_PROGRAMS_CONFORMANCE_OPTIONS_H_
