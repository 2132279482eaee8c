// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Reads the argument `options` of operators, a text "name=value name=value".
// Passes the names to SetOption(), so that a new option of the library needs
// no code here.

#ifndef SWITCHYARD_PYTHON_OPTIONS_H_
#define SWITCHYARD_PYTHON_OPTIONS_H_

#include <cstdlib>
#include <sstream>
#include <string>

#include "switchyard/presets.h"
#include "tensors.h"

namespace switchyard {
namespace python {

// Calls set(name, value), with a double if the value is a number, and with a
// text otherwise.
template <class Set>
Status SetByText(const std::string& name, const char* value, const Set& set) {
  char* end = nullptr;
  const double number = std::strtod(value, &end);
  return *value != '\0' && *end == '\0' ? set(name.c_str(), number)
                                        : set(name.c_str(), value);
}

// Sets the options of `text` in one part of `preset`. `part` is "route" or
// "activate".
inline void SetOptions(const char* op, const std::string& part,
                       const std::string& text, Preset* preset) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equal = word.find('=');
    if (equal == word.npos)
      Fail(op, "options", "not name=value: '" + word + "'");
    const Status status =
        SetByText(part + '.' + word.substr(0, equal), word.c_str() + equal + 1,
                  [preset](const char* name, auto value) {
                    return SetOption(name, value, preset);
                  });
    if (status.ok()) continue;
    Fail(op, "options",
         "'" + word + "': " + status.message() + ": " + status.details());
  }
}

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_OPTIONS_H_
