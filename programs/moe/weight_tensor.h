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
// [out, in], as most are stored, row-major and dense; a vector is one row.
struct WeightTensor {
  std::vector<uint64_t> shape;  // empty: there is no such tensor

  // The stored bytes, on any byte boundary; null: generated.
  const uint8_t* stored = nullptr;
  switchyard::Type type = switchyard::Type::kF32;
  std::string name;              // file and tensor
  const char* kind = "weights";  // for messages
  // Elements from one row or column to the next; 0: it is dense. Where it is
  // a part of a tensor, `stored` is its first element there.
  size_t row_stride = 0;
  size_t col_stride = 0;
  float factor = 1;  // of a vector's values, in the model

  // A generated one is uniform in offset +- scale.
  uint32_t key = 0;
  float scale = 0;
  float offset = 0;

  size_t Rows() const { return shape.size() == 2 ? size_t{shape[0]} : 1; }
  size_t Cols() const { return size_t{shape.back()}; }
  bool IsThere() const { return !shape.empty(); }
  // Floats that can be read where they are.
  bool IsPlainF32() const;
  // The matrix [rows, cols] that begins at an element of it, `what` for people.
  WeightTensor Part(const std::string& what, size_t element, size_t rows,
                    size_t cols, size_t row_step, size_t col_step = 1) const;
  // Writes it to `out` [Rows(), Cols()] in the type of that. Throws InputError
  // if an element is not finite: every result that it touches would be NaN,
  // right or wrong.
  void Read(const switchyard::AnyRows& out) const;

 private:
  void Generate(const switchyard::AnyRows& out) const;
  bool IsDense() const {
    return row_stride == 0 || (col_stride == 1 && row_stride == Cols());
  }
};

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_WEIGHT_TENSOR_H_
