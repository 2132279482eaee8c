// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Prints the ISAs that the library was compiled for, one per line.

#include <cstdio>

#include "switchyard/isa.h"

int main() {
  for (const switchyard::Isa& isa : switchyard::CompiledIsas()) {
    std::puts(isa.name);
  }
}
