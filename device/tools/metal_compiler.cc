// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The program switchyard-metal. It compiles a .metal file at build time:
//
//   switchyard-metal -o OUT.metallib [-d DEPENDENCIES] [-c CACHE]
//                    [-DNAME=VALUE] [-IFOLDER] [--compiler CLANG] FILE.metal
//
// switchyard_add_shaders() in the CMake package calls it.

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "switchyard/device/device.h"
#include "switchyard/device/library.h"

namespace {

int Fail(const std::string& what) {
  std::fprintf(stderr, "switchyard-metal: %s\n", what.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  switchyard::device::DeviceOptions device;
  switchyard::device::CompileOptions options;
  std::string input, output, dependencies;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i], option = argument.substr(0, 2);
    if (option == "-D") {
      const size_t equals = argument.find('=');
      if (equals == argument.npos) {
        options.preprocessor_macros.emplace_back(argument.substr(2), "1");
      } else {
        options.preprocessor_macros.emplace_back(argument.substr(2, equals - 2),
                                                 argument.substr(equals + 1));
      }
    } else if (option == "-I") {
      options.include_folders.push_back(argument.substr(2));
    } else if (argument == "-o" || argument == "-d" || argument == "-c" ||
               argument == "--compiler") {
      if (++i == argc) return Fail(argument + ": no value");
      (argument == "-o"   ? output
       : argument == "-d" ? dependencies
       : argument == "-c" ? device.metal_cache
                          : device.metal_compiler) = argv[i];
    } else if (option[0] == '-' || !input.empty()) {
      return Fail("'" + argument + "' is not an option");
    } else {
      input = argument;
    }
  }
  if (input.empty() || output.empty()) {
    return Fail("-o OUT.metallib and a FILE.metal are needed");
  }
  std::vector<std::string> files;
  std::string error;
  if (!switchyard::device::CompileMetallib(device, input, options, output,
                                           &files, &error)) {
    // Replaces the name of the C++ field in the message by the option's name.
    for (const std::string field :
         {"DeviceOptions::metal_compiler", "metal_compiler"}) {
      const size_t at = error.find(field);
      if (at == error.npos || error.find('\n') < at) continue;
      error.replace(at, field.size(), "--compiler");
    }
    // Clang's messages have several lines and name source places, so they are
    // printed without a prefix.
    if (error.find('\n') == error.npos) return Fail(error);
    std::fputs(error.c_str(), stderr);
    return 1;
  }
  if (dependencies.empty()) return 0;
  std::ofstream list(dependencies);
  list << output << ":";
  for (const std::string& file : files) {
    list << ' ';
    for (const char c : file) list << (c == ' ' ? "\\" : "") << c;
  }
  list << '\n';
  list.close();
  return list ? 0 : Fail("can't write " + dependencies);
}
