// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Parses the command lines of the programs.

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
  std::optional<size_t> threads;  // if empty, one thread for each core
  std::string isa;                // if empty, the machine's best ISA
};
// Adds --threads and --isa.
void AddThreadOptions(CLI::App& app, ThreadOptions& options);

// Returns a check of an option's value that accepts numbers from low to high.
CLI::Validator Within(int low, int high);

// Parses the command line. Returns false after it has printed the help or the
// version. Throws InputError; the message names the wrong option, or the
// variable SWITCHYARD_ISA.
bool Parse(CLI::App& app, int argc, const char* const* argv);

// Makes a pool with `threads` threads. If `threads` is empty, the pool has one
// thread per core. If it cannot make a pool, because the library was built
// without TBB or memory runs out, throws InputError if `threads` has a value,
// and returns null if `threads` is empty.
std::shared_ptr<switchyard::Executor> MakePool(std::optional<size_t> threads);

// If options.isa is not empty, limits the library to this ISA. Returns the
// serial executor if options.threads is 1 or MakePool() returns null, otherwise
// a pool. Throws InputError if an option is wrong.
std::shared_ptr<switchyard::Executor> MakeExecutor(
    const ThreadOptions& options);

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_ARGUMENTS_H_
