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
// The file and how to compile it; `what` the file may be.
void AddCompileOptions(CLI::App& app, const char* what, MetalOptions& options);
// Throws InputError.
switchyard::device::CompileOptions CompileOptionsOf(
    const MetalOptions& options);

// The library's error with the options of swy in the place of the fields of C++
// that it names: "--compiler: no such program: ...".
std::string WithOptions(std::string error);

// Adds `swy metal` and `swy metal run`. The result runs the one that the
// command line names, and returns the exit code.
//
// `swy metal` compiles a .metal file, lists its kernels with their arguments,
// and unsupported features with their places; or all files below a folder, with
// a line each, and all of it as JSON. 1 if a feature is not supported or a file
// does not compile.
std::function<int()> AddMetal(CLI::App& app);

}  // namespace swy

#endif  // SWITCHYARD_DEVICE_TOOLS_METAL_H_
