// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Command lines of the programs.

#ifndef SWITCHYARD_PROGRAMS_ARGUMENTS_H_
#define SWITCHYARD_PROGRAMS_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "programs/program.h"
#include "switchyard/executor.h"

namespace program {

struct ThreadOptions {
  std::optional<size_t> threads;  // if empty, one for each core
  std::string isa;                // if empty, the best one
};
// Adds --threads and --isa.
void AddThreadOptions(CLI::App& app, ThreadOptions& options);

// Returns a check that accepts numbers from low to high.
CLI::Validator Within(int low, int high);

// Parses the command line. Returns false after it has printed the help or the
// version. Throws InputError with the name of the option, or SWITCHYARD_ISA.
bool Parse(CLI::App& app, int argc, const char* const* argv);

// Makes a pool with this number of threads, or without a number with one per
// core. Throws InputError if the pool cannot have so many. Returns null if the
// library was built without a pool.
std::shared_ptr<switchyard::Executor> MakePool(std::optional<size_t> threads);

// Caps the library to options.isa and makes the executor. Throws InputError.
std::shared_ptr<switchyard::Executor> MakeExecutor(
    const ThreadOptions& options);

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_ARGUMENTS_H_
