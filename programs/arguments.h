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
  std::optional<size_t> threads;  // all cores
  std::string isa;                // empty: the best one
};
// --threads and --isa.
void AddThreadOptions(CLI::App& app, ThreadOptions& options);

// Takes any number from low to high.
CLI::Validator Within(int low, int high);

// False if only help or the version was asked for, which is then printed.
// Throws InputError, naming the option, or SWITCHYARD_ISA.
bool Parse(CLI::App& app, int argc, const char* const* argv);

// A pool of so many threads; without a number, one per core. Throws InputError
// if that number cannot be had, and is null if there is no pool at all.
std::shared_ptr<switchyard::Executor> MakePool(std::optional<size_t> threads);

// Caps the library to options.isa and makes the executor. Throws InputError.
std::shared_ptr<switchyard::Executor> MakeExecutor(
    const ThreadOptions& options);

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_ARGUMENTS_H_
