// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/tools/metal.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "device/tools/metal_run.h"
#include "programs/json.h"
#include "programs/program.h"
#include "switchyard/device/device.h"
#include "switchyard/device/library.h"

namespace swy {
namespace {

namespace fs = std::filesystem;
namespace MTL = switchyard::device;

using program::FirstError;
using program::InputError;
using program::Plural;
using program::Printable;

std::string Counted(size_t count, const char* what) {
  return std::to_string(count) + " " + what + Plural(count);
}

void Print(const MTL::Function& function) {
  std::printf("%s  %s\n", Printable(function.name()).c_str(),
              Printable(function.place()).c_str());
  for (const MTL::FunctionArgument& argument : function.arguments()) {
    const std::string what =
        argument.is_buffer ? "buffer " + std::to_string(argument.index)
        : argument.is_threadgroup_memory
            ? "threadgroup " + std::to_string(argument.index)
            : "input";
    std::printf("  %-14s %s\n", what.c_str(),
                Printable(argument.declared).c_str());
  }
}

std::string Text(const MTL::UnsupportedFeature& u) {
  return Printable(u.file + ":" + std::to_string(u.line) + ":" +
                   std::to_string(u.column) + ": not supported: " + u.what +
                   (u.kernel.empty() ? "" : ", in " + u.kernel));
}

// Accepts NAME and NAME(x, y). Other text is refused here, because Clang's
// error about it would name a file that the user has never seen.
bool IsMacroName(const std::string& text) {
  const std::string name = text.substr(0, text.find('('));
  const auto is_letter = [](unsigned char c) {
    return std::isalpha(c) != 0 || c == '_';
  };
  return !name.empty() && is_letter(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [&](unsigned char c) {
                       return is_letter(c) || std::isdigit(c) != 0;
                     }) &&
         (name.size() == text.size() || text.back() == ')');
}

int CompileFile(MTL::Device& device, const MTL::CompileOptions& compile,
                const std::string& path) {
  std::string error;
  const std::shared_ptr<MTL::Library> library =
      device.newLibraryFromFile(path.c_str(), compile, &error);
  if (library == nullptr) {
    // Clang's messages have several lines and name source places, so they are
    // printed without a prefix.
    error = WithOptions(error);
    if (error.find('\n') == std::string::npos) throw InputError(error);
    std::fputs(Printable(error, "\n\t").c_str(), stderr);
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
  for (const MTL::FunctionConstant& constant : library->functionConstants()) {
    std::printf("constant %zu  %s %s\n", constant.index, constant.type.c_str(),
                Printable(constant.name).c_str());
  }
  for (const MTL::UnsupportedFeature& u : library->unsupported()) {
    std::printf("%s\n", Text(u).c_str());
  }
  std::printf("%s, %zu not supported\n", Counted(kernels, "kernel").c_str(),
              library->unsupported().size());
  return library->unsupported().empty() ? 0 : 1;
}

// Returns all .metal files below the folder, sorted by name. Links to folders
// are not followed, because they may lead back to a folder above.
std::vector<std::string> MetalFilesIn(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  std::string place = folder;
  for (; !error && at != fs::recursive_directory_iterator();
       at.increment(error)) {
    place = at->path().string();
    std::error_code ignored;
    if (at->path().extension() == ".metal" &&
        !fs::is_directory(at->status(ignored))) {
      files.push_back(place);
    }
  }
  if (error) throw InputError(place + ": " + error.message());
  if (files.empty()) throw InputError(folder + ": no .metal file in it");
  std::sort(files.begin(), files.end());
  return files;
}

// Returns the entry of a file for --json. `library` is null if the file does
// not compile.
nlohmann::json Described(const std::string& file, const MTL::Library* library,
                         const std::string& error) {
  if (library == nullptr) return {{"file", file}, {"error", error}};
  nlohmann::json unsupported = nlohmann::json::array();
  for (const MTL::UnsupportedFeature& u : library->unsupported()) {
    unsupported.push_back({{"kernel", u.kernel},
                           {"file", u.file},
                           {"line", u.line},
                           {"column", u.column},
                           {"what", u.what}});
  }
  return {{"file", file},
          {"kernels", library->functionNames()},
          {"unsupported", std::move(unsupported)}};
}

// Prints a line for each file, and writes `json` if it is not empty.
int Survey(MTL::Device& device, const MTL::CompileOptions& compile,
           const std::vector<std::string>& files, const std::string& json) {
  if (!json.empty()) program::RequireWritable("--json", json);
  nlohmann::json described = nlohmann::json::array();
  std::string error;
  // A missing Clang is reported here once, and not for each file.
  if (device.newLibrary("", compile, &error) == nullptr) {
    throw InputError(FirstError(WithOptions(error)));
  }
  size_t whole = 0, in_part = 0, kernels = 0;
  for (const std::string& file : files) {
    const std::shared_ptr<MTL::Library> library =
        device.newLibraryFromFile(file.c_str(), compile, &error);
    if (!json.empty()) {
      described.push_back(Described(file, library.get(), error));
    }
    std::string line;
    if (library == nullptr) {
      const std::string first = FirstError(error);
      // A message about the file itself begins with the file's name.
      const bool names_it = first.compare(0, file.size() + 1, file + ":") == 0;
      line = names_it ? first : file + ": " + first;
    } else {
      const size_t here = library->functionNames().size();
      const size_t missing = library->unsupported().size();
      kernels += here;
      ++(missing == 0 ? whole : in_part);
      line = file + ": " + Counted(here, "kernel");
      if (missing != 0) line += ", " + std::to_string(missing);
      if (missing != 0) line += " not supported";
    }
    std::printf("%s\n", Printable(line).c_str());
    program::FlushOutput();  // the next file may take minutes
  }
  std::printf("%s: %zu compiled, %zu in part, %zu not; %s\n",
              Counted(files.size(), "file").c_str(), whole, in_part,
              files.size() - whole - in_part,
              Counted(kernels, "kernel").c_str());
  if (!json.empty()) {
    const nlohmann::json all = {{"compiled", whole},
                                {"in_part", in_part},
                                {"failed", files.size() - whole - in_part},
                                {"kernels", kernels},
                                {"files", std::move(described)}};
    // Bytes that are not UTF-8 are replaced, because dump() would otherwise
    // throw.
    program::WriteFile(
        "--json", json,
        all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
            "\n");
  }
  return whole == files.size() ? 0 : 1;
}

}  // namespace

MTL::CompileOptions CompileOptionsOf(const MetalOptions& options) {
  MTL::CompileOptions compile;
  for (const std::string& folder : options.include_folders) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
      throw InputError("-I " + folder + ": " +
                       (error ? error.message() : "not a folder"));
    }
  }
  compile.include_folders = options.include_folders;
  compile.prepended_files = options.prepended;
  for (const std::string& macro : options.macros) {
    const size_t equals = macro.find('=');
    const std::string name = macro.substr(0, equals);
    if (name.empty()) throw InputError("-D: no name in '" + macro + "'");
    if (!IsMacroName(name)) {
      throw InputError("-D: '" + name + "' is not a macro's name");
    }
    if (macro.find('\n') != std::string::npos) {
      throw InputError("-D " + name + ": more than one line");
    }
    compile.preprocessor_macros.emplace_back(
        name, equals == std::string::npos ? "1" : macro.substr(equals + 1));
  }
  return compile;
}

void AddCompileOptions(CLI::App& app, const char* what, MetalOptions& options) {
  app.add_option("file", options.path, what);
  app.add_option("-D", options.macros, "Define a macro")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  app.add_option("-I", options.include_folders,
                 "Search this folder for included files")
      ->allow_extra_args(false)
      ->type_name("FOLDER");
  app.add_option("--prepend", options.prepended,
                 "Insert this file's text before the shader")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_option("--compiler", options.compiler,
                 "The Clang to use (default: clang++ in PATH)")
      ->type_name("PROGRAM");
  app.add_flag("--checked", options.checked,
               "Compile with the checks of checked mode");
}

std::string WithOptions(std::string error) {
  const std::pair<std::string, std::string> names[] = {
      {"metal_compiler", "--compiler"}, {"suppressions", "--suppress"}};
  for (const auto& [field, option] : names) {
    const size_t at = error.find("DeviceOptions::" + field);
    if (at != std::string::npos) {
      error.replace(at, 15 + field.size(), option);
    } else if (error.rfind(field + ": ", 0) == 0) {
      error.replace(0, field.size(), option);
    }
  }
  return error;
}

namespace {

CLI::App* AddList(CLI::App& app, MetalOptions& options) {
  CLI::App* const metal = app.add_subcommand(
      "metal", "Compile .metal files, list and run their kernels");
  AddCompileOptions(*metal, "A shader, or a folder with shaders", options);
  metal->get_option("file")->type_name("FILE|FOLDER");
  metal
      ->add_option("--json", options.json,
                   "Write the kernels or errors of each file")
      ->type_name("FILE");
  metal->footer(
      "For a folder, or with --json, prints one line per file: its kernels or "
      "its\nfirst error. Exit codes: 0 success; 1 a file does not compile, or "
      "uses features\nthat are not supported (a single file's are listed with "
      "their places); 2 wrong\ninput. A file and its includes have at most 16 "
      "MiB.\nExamples: swy metal -I include kernels.metal; swy metal shaders "
      "--json out.json");
  return metal;
}

int List(const MetalOptions& options) {
  if (options.path.empty()) throw InputError("file is required");
  const MTL::CompileOptions compile = CompileOptionsOf(options);
  MTL::DeviceOptions device_options;
  device_options.check_kernels = options.checked;
  device_options.metal_compiler = options.compiler;
  const std::shared_ptr<MTL::Device> device = MTL::CreateDevice(device_options);
  if (device == nullptr) throw InputError("out of memory");
  std::error_code ignored;
  if (fs::is_directory(options.path, ignored)) {
    return Survey(*device, compile, MetalFilesIn(options.path), options.json);
  }
  if (options.json.empty()) return CompileFile(*device, compile, options.path);
  return Survey(*device, compile, {options.path}, options.json);
}

struct Commands {
  MetalOptions list;
  MetalRunOptions run;
};

}  // namespace

std::function<int()> AddMetal(CLI::App& app) {
  const auto options = std::make_shared<Commands>();
  CLI::App* const metal = AddList(app, options->list);
  const CLI::App* const run = AddMetalRun(*metal, options->run);
  return [options, run] {
    return run->parsed() ? MetalRun(options->run) : List(options->list);
  };
}

}  // namespace swy
