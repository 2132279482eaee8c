// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Helpers for the targets that fuzz moe_layer's file readers.

#ifndef SWITCHYARD_FUZZ_FILES_H_
#define SWITCHYARD_FUZZ_FILES_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "fuzz/call.h"
#include "programs/program.h"

namespace switchyard::fuzz {

// A temporary folder that is deleted at exit.
class TempFolder {
 public:
  TempFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "switchyard_fuzz_XXXXXX")
            .string();
    FUZZ_CHECK(mkdtemp(name.data()) != nullptr, name);
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string Write(const std::string& name, const std::string& content) const {
    const std::string path = path_ + "/" + name;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << content;
    FUZZ_CHECK(file.flush().good(), path);
    return path;
  }

 private:
  std::string path_;
};

// Returns a file in the safetensors format: the header's length, the header
// and the data.
inline std::string Safetensors(const std::string& header,
                               const std::string& data) {
  std::string bytes;
  for (size_t i = 0; i < 8; ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  }
  return bytes + header + data;
}

// Runs read(), which has to succeed or throw an InputError that names a file
// in `folder`. Any other exception ends the program.
template <class Read>
void ReadOrRefuse(const std::string& folder, const Read& read) {
  try {
    read();
  } catch (const program::InputError& error) {
    const std::string what = error.what();
    FUZZ_CHECK(what.compare(0, folder.size(), folder) == 0, what);
    FUZZ_CHECK(what.size() > folder.size() + 2, what);
  }
}

}  // namespace switchyard::fuzz

#endif  // SWITCHYARD_FUZZ_FILES_H_
