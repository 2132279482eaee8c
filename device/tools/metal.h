// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_DEVICE_TOOLS_METAL_H_
#define SWITCHYARD_DEVICE_TOOLS_METAL_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace switchyard::device {
class CompileOptions;
}  // namespace switchyard::device

namespace swy {

struct MetalOptions {
  std::string path;
  std::vector<std::string> macros, include_folders, prepended;
  std::string compiler;
  std::string json;  // of `swy metal` itself
  bool checked = false;
};
// Adds the file and the compile options to `app`; `what` describes the file.
void AddCompileOptions(CLI::App& app, const char* what, MetalOptions& options);
// Throws InputError.
switchyard::device::CompileOptions CompileOptionsOf(
    const MetalOptions& options);

// Replaces C++ field names in a library error by the options of swy:
// "--compiler: no such program: ...".
std::string WithOptions(std::string error);

// Adds `swy metal` and `swy metal run`. The result runs the command that the
// command line names and returns the exit code.
//
// `swy metal` compiles a .metal file and lists its kernels with their
// arguments, and unsupported features with their places. For a folder it
// prints one line per file below it. --json writes the results as JSON. The
// exit code is 1 if a feature is not supported or a file does not compile.
std::function<int()> AddMetal(CLI::App& app);

}  // namespace swy

#endif  // SWITCHYARD_DEVICE_TOOLS_METAL_H_
