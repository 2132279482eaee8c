// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdio>

#include "switchyard/isa.h"
#include "tools/swy/swy.h"

namespace swy {

std::vector<std::string> RunnableIsaNames() {
  const switchyard::Span<const switchyard::Isa> isas =
      switchyard::RunnableIsas();
  std::vector<std::string> names;
  for (size_t i = 0; i < isas.size; ++i) names.push_back(isas.data[i].name);
  return names;
}

int PrintIsas() {
  const std::vector<std::string> runnable = RunnableIsaNames();
  const switchyard::Span<const switchyard::Isa> isas =
      switchyard::CompiledIsas();
  std::printf("%-10s %-4s %-9s\n", "compiled", "FMA", "this CPU");
  for (size_t i = 0; i < isas.size; ++i) {
    const switchyard::Isa& isa = isas.data[i];
    const bool runs =
        std::find(runnable.begin(), runnable.end(), isa.name) != runnable.end();
    const bool active = switchyard::ActiveIsa().name == std::string(isa.name);
    std::printf("%-10s %-4s %s%s\n", isa.name, isa.fma ? "yes" : "no",
                runs ? "runs" : "cannot", active ? ", active" : "");
  }
  return 0;
}

}  // namespace swy
