// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What the command lines of the examples have in common.

#ifndef SWITCHYARD_EXAMPLES_COMMON_PROGRAM_H_
#define SWITCHYARD_EXAMPLES_COMMON_PROGRAM_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "switchyard/executor.h"

namespace example {

// Something the user gave is wrong. The message is one line that names the
// option, or the file and the tensor or key.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ThreadOptions {
  std::optional<size_t> threads;  // all cores
  std::string isa;                // empty: the best one
};
// --threads and --isa.
void AddThreadOptions(CLI::App& app, ThreadOptions& options);
// False if only help was asked for, which is then printed. Throws InputError,
// naming the option.
bool Parse(CLI::App& app, int argc, const char* const* argv);

// Caps the library to options.isa and makes the executor. Throws InputError.
std::shared_ptr<switchyard::Executor> MakeExecutor(
    const ThreadOptions& options);

// "" or "s".
const char* Plural(size_t count);

// Runs run(), which returns the exit code. What it throws becomes one line on
// stderr, "program: what went wrong", and exit code 2 for an InputError and for
// lack of memory, else `failed`.
int RunMain(const char* program, int failed, const std::function<int()>& run);

}  // namespace example

#endif  // SWITCHYARD_EXAMPLES_COMMON_PROGRAM_H_
