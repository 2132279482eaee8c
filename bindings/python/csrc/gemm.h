// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// One expert's matrix product, by torch's mm for the CPU, or by the library if
// that is faster.

#ifndef SWITCHYARD_PYTHON_GEMM_H_
#define SWITCHYARD_PYTHON_GEMM_H_

#include <cstddef>
#include <cstdint>

#include "packed.h"
#include "switchyard/expert_weights.h"
#include "switchyard/views.h"
#include "tensors.h"

namespace switchyard {
namespace python {

// The weights of one projection of all experts, in the caller's tensor.
class Projection {
 public:
  // weights [experts, out, in], or [experts, in, out] if transposed; bias
  // [experts, out] or none.
  Projection(const char* op, const char* argument, const Tensor& weights,
             const OptionalTensor& bias, const char* bias_argument,
             bool transposed);

  // Uses the same weights packed by oneDNN. `packed` must outlive this object.
  void UsePacked(const char* op, const PackedProduct& packed);

  int64_t experts() const { return experts_; }
  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  Type type() const { return type_; }
  // oneDNN multiplies by all columns of packed weights at once.
  bool is_packed() const { return packed_ != nullptr; }
  // MultiplyTile() multiplies two or more rows.
  bool uses_tiles() const {
    return tiles_.data.data != nullptr && !is_packed();
  }
  WeightFormat format() const { return tiles_.format; }
  // [experts, out], or empty.
  const ConstAnyMatrix& bias() const { return bias_; }

  // out = rows * weights of the expert (+ bias, if add_bias), rounded once.
  // Computes the product's columns from first_column on, as many as out has.
  void Multiply(int64_t expert, const ConstAnyMatrix& rows, size_t first_column,
                const AnyMatrix& out, bool add_bias) const;

 private:
  void MultiplyPacked(int64_t expert, const ConstAnyMatrix& rows,
                      const AnyMatrix& out, bool add_bias) const;
  void MultiplyTiles(int64_t expert, const ConstAnyMatrix& rows,
                     size_t first_column, const AnyMatrix& out,
                     bool add_bias) const;

  Type type_;
  const char* data_;
  int64_t experts_, in_, out_;
  int64_t expert_stride_, in_stride_, out_stride_;
  Tensor bias_keeper_;
  ConstAnyMatrix bias_;
  ExpertWeights tiles_;  // without data if torch multiplies any rows
  const std::vector<Tensor>* packed_ = nullptr;
};

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_GEMM_H_
