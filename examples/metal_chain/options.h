// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_OPTIONS_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_OPTIONS_H_

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

namespace metal_chain {

// Something the user gave is wrong. The message is one line that names the
// option; main prints it and exits with 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Options {
  bool full = false;
  size_t tokens = 512;            // of the prefill
  std::optional<size_t> threads;  // all cores
  std::string isa;                // empty: the best one
  std::string trace;              // empty: none
};

// Nullopt if only help was asked for, which is then printed. Throws InputError.
std::optional<Options> ParseOptions(int argc, const char* const* argv);

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_OPTIONS_H_
