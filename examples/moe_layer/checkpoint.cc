// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "common/program.h"
#include "mapped_file.h"

namespace moe_layer {
namespace {

using example::InputError;

namespace fs = std::filesystem;

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";

nlohmann::json ParseJsonFile(const std::string& path) {
  const MappedFile file(path);
  const char* text = reinterpret_cast<const char*>(file.data());
  try {
    return nlohmann::json::parse(text, text + file.size());
  } catch (const nlohmann::json::exception& error) {
    throw InputError(path + ": malformed JSON: " + error.what());
  }
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

Checkpoint::Checkpoint(const std::string& folder) : folder_(folder) {
  while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
  std::error_code ignored;
  if (!Exists(folder_)) {
    throw InputError("--checkpoint " + folder_ + ": no such folder");
  }
  if (!fs::is_directory(folder_, ignored)) {
    throw InputError("--checkpoint " + folder_ + ": not a folder");
  }
  config_ = ParseJsonFile(ConfigPath());
  if (!config_.is_object()) {
    throw InputError(ConfigPath() + ": malformed JSON: not an object");
  }
  const std::string index = folder_ + "/" + kIndexFile;
  if (Exists(index)) {
    ReadIndex(index);
  } else {
    ListFiles();
  }
}

void Checkpoint::ReadIndex(const std::string& path) {
  index_path_ = path;
  const nlohmann::json index = ParseJsonFile(path);
  if (!index.contains("weight_map") || !index["weight_map"].is_object()) {
    throw InputError(path + ": malformed index: no weight_map");
  }
  for (const auto& [name, file] : index["weight_map"].items()) {
    // Plain names only: an index has no business outside its folder.
    if (!file.is_string() ||
        fs::path(file.get<std::string>()).filename() !=
            file.get<std::string>() ||
        file.get<std::string>().empty()) {
      throw InputError(path + ": tensor '" + name +
                       "': expected a file name, found " + file.dump());
    }
    file_of_tensor_[name] = file.get<std::string>();
  }
}

void Checkpoint::ListFiles() {
  std::vector<std::string> names;
  if (Exists(folder_ + "/" + kSingleFile)) {
    names.push_back(kSingleFile);
  } else {
    std::error_code error;
    for (fs::directory_iterator it(folder_, error), end; !error && it != end;
         it.increment(error)) {
      if (it->path().extension() == ".safetensors") {
        names.push_back(it->path().filename().string());
      }
    }
    if (error) {
      throw InputError(folder_ + ": cannot list: " + error.message());
    }
  }
  if (names.empty()) {
    throw InputError(folder_ + ": no *.safetensors file and no " + kIndexFile);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& file : names) {
    for (const auto& entry : Open(file).tensors()) {
      const auto [place, added] = file_of_tensor_.emplace(entry.first, file);
      if (!added) {
        throw InputError(folder_ + "/" + file + ": tensor '" + entry.first +
                         "': also in " + place->second);
      }
    }
  }
}

const SafetensorsFile& Checkpoint::Open(const std::string& file_name) {
  std::unique_ptr<SafetensorsFile>& file = open_files_[file_name];
  if (file == nullptr) {
    file = std::make_unique<SafetensorsFile>(folder_ + "/" + file_name);
  }
  return *file;
}

Checkpoint::Found Checkpoint::Find(const std::string& name,
                                   const std::vector<uint64_t>& shape) {
  const auto place = file_of_tensor_.find(name);
  if (place == file_of_tensor_.end()) {
    const std::string where = !index_path_.empty() ? index_path_
                              : open_files_.size() == 1
                                  ? folder_ + "/" + open_files_.begin()->first
                                  : folder_ + "/*.safetensors";
    throw InputError(where + ": tensor '" + name + "': missing");
  }
  const SafetensorsFile& file = Open(place->second);
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end()) {
    throw InputError(file.path() + ": tensor '" + name + "': missing, though " +
                     index_path_ + " places it there");
  }
  const StoredTensor& tensor = found->second;
  if (tensor.shape != shape) {
    throw InputError(file.path() + ": tensor '" + name + "': shape " +
                     ShapeText(tensor.shape) + ", but " + ConfigPath() +
                     " makes it " + ShapeText(shape));
  }
  return {&tensor, file.path()};
}

}  // namespace moe_layer
