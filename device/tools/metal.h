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
  std::string json;  // the JSON file of `swy metal` itself
  bool checked = false;
};
// Adds the file argument and the compile options to `app`. The help text of
// the file argument is `what`.
void AddCompileOptions(CLI::App& app, const char* what, MetalOptions& options);
// Returns the library's options. Throws InputError if an option is wrong.
switchyard::device::CompileOptions CompileOptionsOf(
    const MetalOptions& options);

// Replaces the names of C++ fields in an error of the library by options of
// swy: the result is for example "--compiler: no such program: ...".
std::string WithOptions(std::string error);

// Adds the commands `swy metal` and `swy metal run`. The returned function
// runs the command that the command line names, and returns the exit code.
//
// `swy metal` compiles a .metal file. It lists the kernels with their
// arguments, and unsupported features with their places. For a folder, it
// prints one line for each file below the folder. --json writes the results
// as JSON. The exit code is 1 if a feature is not supported or a file does
// not compile.
std::function<int()> AddMetal(CLI::App& app);

}  // namespace swy

#endif  // SWITCHYARD_DEVICE_TOOLS_METAL_H_
