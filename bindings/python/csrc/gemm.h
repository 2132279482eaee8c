// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes an expert's matrix product by torch's mm for the CPU, or by the
// library if this is faster.

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

// The weights of all experts for one product (gate, up or down), in the
// caller's tensor.
class Projection {
 public:
  // `weights` are [experts, out, in], or [experts, in, out] if transposed.
  // `bias` is [experts, out], or missing.
  Projection(const char* op, const char* argument, const Tensor& weights,
             const OptionalTensor& bias, const char* bias_argument,
             bool transposed);

  // Makes products use `packed`, which has the same weights packed by oneDNN.
  // It must outlive this object.
  void UsePacked(const char* op, const PackedProduct& packed);

  int64_t experts() const { return experts_; }
  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  Type type() const { return type_; }
  // True if oneDNN multiplies packed weights. If so, call Multiply() for all
  // columns of the product, because oneDNN always computes all of them.
  bool is_packed() const { return packed_ != nullptr; }
  // True if MultiplyTile() computes products of two or more rows.
  bool uses_tiles() const {
    return tiles_.data.data != nullptr && !is_packed();
  }
  WeightFormat format() const { return tiles_.format; }
  // Returns the bias [experts, out], or an empty view.
  const ConstAnyMatrix& bias() const { return bias_; }

  // Computes out = rows * weights of the expert, for columns [first_column,
  // first_column + out.cols). Adds the bias if add_bias. Each result is rounded
  // once.
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
  ExpertWeights tiles_;  // has no data if torch multiplies all products
  const std::vector<Tensor>* packed_ = nullptr;
};

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_GEMM_H_
