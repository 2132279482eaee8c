// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdio>

#include "switchyard/isa.h"
#include "tools/swy/swy.h"

namespace swy {

std::vector<std::string> RunnableIsaNames() {
  std::vector<std::string> names;
  for (const switchyard::Isa& isa : switchyard::RunnableIsas()) {
    names.push_back(isa.name);
  }
  return names;
}

int PrintIsas() {
  const std::vector<std::string> runnable = RunnableIsaNames();
  std::printf("%-10s %-4s %-9s\n", "compiled", "FMA", "this CPU");
  for (const switchyard::Isa& isa : switchyard::CompiledIsas()) {
    const bool runs =
        std::find(runnable.begin(), runnable.end(), isa.name) != runnable.end();
    const bool active = switchyard::ActiveIsa().name == std::string(isa.name);
    std::printf("%-10s %-4s %s%s\n", isa.name, isa.fma ? "yes" : "no",
                runs ? "runs" : "cannot", active ? ", active" : "");
  }
  return 0;
}

}  // namespace swy
