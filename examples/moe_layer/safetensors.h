// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_SAFETENSORS_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "mapped_file.h"

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
// Throws InputError, one line that names the file and the tensor.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return path_; }
  const std::unordered_map<std::string, StoredTensor>& tensors() const {
    return tensors_;
  }

 private:
  void ReadHeader(const char* begin, const char* end, size_t data_size);
  StoredTensor ReadEntry(const std::string& name, const nlohmann::json& entry,
                         size_t data_size) const;
  void RequireNoGaps(size_t data_size) const;

  std::string path_;
  MappedFile file_;
  const uint8_t* data_ = nullptr;
  std::unordered_map<std::string, StoredTensor> tensors_;
};

// "[128, 2048]"
std::string ShapeText(const std::vector<uint64_t>& shape);

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_SAFETENSORS_H_
