// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_CHECKPOINT_H_
#define SWITCHYARD_PROGRAMS_MOE_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory.h"

namespace moe_layer {

// One tensor in a mapped file, as it is stored: any dtype, on any byte
// boundary. Lives as long as the file.
struct StoredTensor {
  std::string dtype;  // as written: "F32", "BF16", "I64", ...
  std::vector<uint64_t> shape;
  const uint8_t* data = nullptr;
  size_t bytes = 0;
};

// A *.safetensors file: 8 bytes of little-endian header length, a JSON header
// {name: {dtype, shape, data_offsets}}, then the data without gaps. All of it
// is checked while opening, so that later reads cannot leave the mapping.
// Throws InputError with a line that names the file and the tensor.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return path_; }
  const std::unordered_map<std::string, StoredTensor>& tensors() const {
    return tensors_;
  }

 private:
  StoredTensor ReadEntry(const std::string& name,
                         const nlohmann::json& entry) const;
  void RequireNoGaps() const;
  [[noreturn]] void Fail(const std::string& what) const;

  std::string path_;
  MappedFile file_;
  const uint8_t* data_ = nullptr;
  size_t data_size_ = 0;
  std::unordered_map<std::string, StoredTensor> tensors_;
};

// A Hugging Face checkpoint folder: config.json and either *.safetensors or
// shards listed in model.safetensors.index.json. Opens a shard when one of its
// tensors is needed: one layer of a large model needs one or two shards, and
// the others may be missing. Throws InputError.
class Checkpoint {
 public:
  explicit Checkpoint(const std::string& folder);

  std::string ConfigPath() const { return folder_ + "/config.json"; }
  const nlohmann::json& config() const { return config_; }

  struct Found {
    const StoredTensor* tensor;
    std::string file;
  };
  bool Has(const std::string& name) const {
    return file_of_tensor_.count(name) != 0;
  }
  // True if the tensor exists and has that shape.
  bool HasShape(const std::string& name, const std::vector<uint64_t>& shape);
  // The tensor of that name, which must have that shape.
  Found Find(const std::string& name, const std::vector<uint64_t>& shape);

 private:
  const SafetensorsFile& Open(const std::string& file_name);
  void ReadIndex(const std::string& path);
  void ListFiles();

  std::string folder_;
  nlohmann::json config_;
  std::string index_path_;  // empty if the folder lacks an index
  std::map<std::string, std::string> file_of_tensor_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> open_files_;
};

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_CHECKPOINT_H_
