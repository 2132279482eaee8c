// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_ISAS_H_
#define SWITCHYARD_TOOLS_CLI_ISAS_H_

#include <stdexcept>
#include <string>
#include <vector>

#include "programs/status_text.h"
#include "switchyard/isa.h"
#include "switchyard/status.h"

namespace swy {

inline void Check(const switchyard::Status& status) {
  if (!status.ok()) throw std::runtime_error(program::StatusText(status));
}

// Returns the names of the runnable ISAs, the best first.
inline std::vector<std::string> RunnableIsaNames() {
  std::vector<std::string> names;
  for (const switchyard::Isa& isa : switchyard::RunnableIsas()) {
    names.push_back(isa.name);
  }
  return names;
}

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_ISAS_H_
