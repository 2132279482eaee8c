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

// A tensor in a mapped file. It can have any dtype and start at any byte. It
// stays valid as long as the SafetensorsFile that returned it exists.
struct StoredTensor {
  std::string dtype;  // as written: "F32", "BF16", "I64", ...
  std::vector<uint64_t> shape;
  const uint8_t* data = nullptr;
  size_t bytes = 0;
};

// A *.safetensors file: 8 bytes of little-endian header length, a JSON header
// {name: {dtype, shape, data_offsets}}, then the data without gaps. The
// constructor checks the header, so that later reads cannot leave the mapping.
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

// A checkpoint's folder as on Hugging Face: config.json, and either one
// *.safetensors file or shards (parts of the checkpoint) that
// model.safetensors.index.json lists. Opens a shard only when a tensor in it is
// needed. So one or two shards of a large model are enough to run one layer;
// the other shards may be missing. Throws InputError.
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
  // True if the tensor `name` exists and has this shape.
  bool HasShape(const std::string& name, const std::vector<uint64_t>& shape);
  // Returns the tensor `name`. Throws InputError unless it exists with this
  // shape.
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
