// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_OPTIONS_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_OPTIONS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "common/program.h"

namespace metal_chain {

struct Options : example::ThreadOptions {
  bool full = false;
  size_t tokens = 512;  // of the prefill
  std::string trace;    // empty: none
};

// Nullopt if only help was asked for, which is then printed. Throws InputError,
// naming the option.
std::optional<Options> ParseOptions(int argc, const char* const* argv);

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_OPTIONS_H_
