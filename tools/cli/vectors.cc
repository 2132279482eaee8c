// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/vectors.h"

#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "programs/conformance/files.h"
#include "programs/program.h"

namespace swy {
namespace {

namespace fs = std::filesystem;
using program::InputError;

// Throws if the folder has anything but these files.
void RequireOnly(const std::set<fs::path>& paths, const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error) && paths.count(entry.path()) != 0) {
      continue;
    }
    throw InputError("DIR: " + entry.path().string() +
                     " is not a file of the vectors; remove it first");
  }
  if (error) {
    throw InputError("DIR: " + folder.string() + ": " + error.message());
  }
}

}  // namespace

CLI::App* AddVectors(CLI::App& app, std::string& folder) {
  CLI::App* const vectors = app.add_subcommand(
      "vectors", "Write the vectors that grade routers and layers");
  vectors->add_option("DIR", folder, "Gets the folders routing and layers")
      ->required();
  return vectors;
}

int WriteVectors(const std::string& folder) {
  const auto files = switchyard::conformance::MakeFiles();
  std::set<fs::path> paths, folders;
  size_t bytes = 0;
  for (const auto& file : files) {
    folders.insert(fs::path(folder) / file.folder);
    paths.insert(fs::path(folder) / file.folder / file.name);
    bytes += file.text.size();
  }
  for (const fs::path& each : folders) RequireOnly(paths, each);
  for (const fs::path& each : folders) {
    std::error_code error;
    fs::create_directories(each, error);
    if (error) {
      throw InputError("DIR: " + each.string() + ": " + error.message());
    }
  }
  for (const auto& file : files) {
    const fs::path path = fs::path(folder) / file.folder / file.name;
    program::WriteFile("DIR", path.string(), file.text);
  }
  std::printf("%zu files, %zu bytes\n", files.size(), bytes);
  return 0;
}

}  // namespace swy
