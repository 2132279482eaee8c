// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_WEIGHT_TENSOR_H_
#define SWITCHYARD_PROGRAMS_MOE_WEIGHT_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "switchyard/types.h"
#include "switchyard/views.h"

namespace moe_layer {

// The source of one tensor: a mapped file, or an integer hash. A matrix is
// [out, in], as in most files, row-major and dense; a vector is one row.
struct WeightTensor {
  std::vector<uint64_t> shape;  // empty: the tensor is missing

  // The stored bytes, on any byte boundary; null: generated.
  const uint8_t* stored = nullptr;
  switchyard::Type type = switchyard::Type::kF32;
  std::string name;              // file and tensor
  const char* kind = "weights";  // for messages
  // Elements from one row or column to the next; 0: dense. For a part of a
  // tensor, `stored` is the part's first element.
  size_t row_stride = 0;
  size_t col_stride = 0;
  float factor = 1;  // multiplies a vector's stored values

  // A generated tensor is uniform in offset +- scale.
  uint32_t key = 0;
  float scale = 0;
  float offset = 0;

  size_t Rows() const { return shape.size() == 2 ? size_t{shape[0]} : 1; }
  size_t Cols() const { return size_t{shape.back()}; }
  bool IsThere() const { return !shape.empty(); }
  // True for f32 values that can be read in place.
  bool IsPlainF32() const;
  // The matrix [rows, cols] that begins at an element of this tensor. Messages
  // call it `what`.
  WeightTensor Part(const std::string& what, size_t element, size_t rows,
                    size_t cols, size_t row_step, size_t col_step = 1) const;
  // Writes the tensor to `out` [Rows(), Cols()], in out's type. Throws
  // InputError if an element is not finite, because every result from it would
  // be NaN, and wrong results would look like right ones.
  void Read(const switchyard::AnyRows& out) const;

 private:
  void Generate(const switchyard::AnyRows& out) const;
  bool IsDense() const {
    return row_stride == 0 || (col_stride == 1 && row_stride == Cols());
  }
};

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_WEIGHT_TENSOR_H_
