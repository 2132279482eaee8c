// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_CHECKPOINT_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "safetensors.h"

namespace moe_layer {

// A Hugging Face checkpoint folder: config.json and either *.safetensors or
// shards behind model.safetensors.index.json. Shards are opened when a tensor
// of theirs is asked for: one layer of a large model needs one or two of them,
// and the others may be missing. Throws InputError.
class Checkpoint {
 public:
  explicit Checkpoint(const std::string& folder);

  std::string ConfigPath() const { return folder_ + "/config.json"; }
  const nlohmann::json& config() const { return config_; }

  struct Found {
    const StoredTensor* tensor;
    std::string file;
  };
  // The tensor of that name, which must have that shape.
  Found Find(const std::string& name, const std::vector<uint64_t>& shape);

 private:
  const SafetensorsFile& Open(const std::string& file_name);
  void ReadIndex(const std::string& path);
  void ListFiles();

  std::string folder_;
  nlohmann::json config_;
  std::string index_path_;  // empty without an index
  std::map<std::string, std::string> file_of_tensor_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> open_files_;
};

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_CHECKPOINT_H_
