// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_MEMORY_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

namespace moe_layer {

// Uninitialised floats on a 64-byte boundary: a std::vector would write
// gigabytes of zeros from one thread first. Throws std::bad_alloc.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  explicit FloatBuffer(size_t size);

  float* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(float* data) const noexcept { std::free(data); }
  };
  std::unique_ptr<float[], Free> data_;
  size_t size_ = 0;
};

struct GuardedMapping;

// A regular file mapped read-only for as long as this lives. Throws InputError.
// If the file is cut short meanwhile, reading what is gone prints the one line
// that says so and ends the program with exit code 2.
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
  GuardedMapping* guard_ = nullptr;
};

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_MEMORY_H_
