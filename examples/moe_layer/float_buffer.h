// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_FLOAT_BUFFER_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_FLOAT_BUFFER_H_

#include <cstddef>
#include <memory>

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
    void operator()(float* data) const noexcept;
  };
  std::unique_ptr<float[], Free> data_;
  size_t size_ = 0;
};

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_FLOAT_BUFFER_H_
