// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/metal.h"

#include <cstdio>
#include <memory>
#include <stdexcept>

#include "programs/program.h"
#include "switchyard/device/device.h"

namespace swy {
namespace {

namespace MTL = switchyard::device;

void Print(const MTL::Function& function) {
  std::printf("%s  %s\n", function.name().c_str(), function.place().c_str());
  for (const MTL::FunctionArgument& argument : function.arguments()) {
    const std::string what =
        argument.is_buffer ? "buffer " + std::to_string(argument.index)
        : argument.is_threadgroup_memory
            ? "threadgroup " + std::to_string(argument.index)
            : "input";
    std::printf("  %-14s %s\n", what.c_str(), argument.declared.c_str());
  }
}

}  // namespace

CLI::App* AddMetal(CLI::App& app, MetalOptions& options) {
  CLI::App* const metal =
      app.add_subcommand("metal", "Compile a .metal file and list its kernels");
  metal->add_option("file", options.file, "The shader's file")
      ->required()
      ->type_name("FILE");
  metal->add_option("-D", options.macros, "Define a macro, for the file")
      ->type_name("NAME=VALUE");
  metal
      ->add_option("-I", options.include_folders,
                   "Look there for what it includes")
      ->type_name("FOLDER");
  metal
      ->add_option("--compiler", options.compiler,
                   "The Clang to use (default: clang++ in PATH)")
      ->type_name("PROGRAM");
  metal->add_flag("--checked", options.checked,
                  "As a device with check_kernels compiles it");
  metal->footer(
      "Exit codes: 0; 1 if it does not compile, or for what is not supported, "
      "which\nis listed with its place; 2 for wrong input.\n"
      "Example: swy metal -I include kernels.metal");
  return metal;
}

int Metal(const MetalOptions& options) {
  MTL::DeviceOptions device_options;
  device_options.check_kernels = options.checked;
  device_options.metal_compiler = options.compiler;
  MTL::CompileOptions compile;
  compile.include_folders = options.include_folders;
  for (const std::string& macro : options.macros) {
    const size_t equals = macro.find('=');
    if (equals == 0 || macro.empty()) {
      throw program::InputError("-D: no name in '" + macro + "'");
    }
    compile.preprocessor_macros.emplace_back(
        macro.substr(0, equals),
        equals == std::string::npos ? "1" : macro.substr(equals + 1));
  }
  const std::shared_ptr<MTL::Device> device = MTL::CreateDevice(device_options);
  if (device == nullptr) throw program::InputError("out of memory");
  std::string error;
  const std::shared_ptr<MTL::Library> library =
      device->newLibraryFromFile(options.file.c_str(), compile, &error);
  if (library == nullptr) {
    // Clang's messages are several lines, each with its place.
    if (error.find('\n') == std::string::npos) throw program::InputError(error);
    std::fputs(error.c_str(), stderr);
    return 1;
  }
  size_t kernels = 0;
  for (const std::string& name : library->functionNames()) {
    const std::shared_ptr<MTL::Function> function =
        library->newFunction(name.c_str(), &error);
    if (function == nullptr) throw std::runtime_error(error);
    Print(*function);
    ++kernels;
  }
  for (const MTL::UnsupportedFeature& u : library->unsupported()) {
    std::printf("%s:%zu:%zu: not supported: %s%s%s\n", u.file.c_str(), u.line,
                u.column, u.what.c_str(), u.kernel.empty() ? "" : ", in ",
                u.kernel.c_str());
  }
  std::printf("%zu kernel%s, %zu not supported\n", kernels,
              program::Plural(kernels), library->unsupported().size());
  return library->unsupported().empty() ? 0 : 1;
}

}  // namespace swy
