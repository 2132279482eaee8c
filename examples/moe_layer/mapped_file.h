// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_MAPPED_FILE_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace moe_layer {

// A file mapped read-only for as long as this lives. Throws InputError.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_MAPPED_FILE_H_
