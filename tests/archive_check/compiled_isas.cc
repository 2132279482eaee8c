// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Prints the ISAs that the library was compiled for, one per line.

#include <cstdio>

#include "switchyard/isa.h"

int main() {
  const switchyard::Span<const switchyard::Isa> isas =
      switchyard::CompiledIsas();
  for (size_t i = 0; i < isas.size; ++i) std::puts(isas.data[i].name);
}
