// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Weights packed by oneDNN, kept in a table by number. Such tensors are
// opaque, so a plain integer stands for them in torch.compile.

#ifndef SWITCHYARD_PYTHON_PACKED_H_
#define SWITCHYARD_PYTHON_PACKED_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tensors.h"

namespace switchyard {
namespace python {

// The weights of one product, a tensor [out, in] for each expert.
struct PackedProduct {
  std::vector<Tensor> experts;
  Type type;
  int64_t out, in;
};
// A layer's two products.
struct Packed {
  PackedProduct up, down;
};

// Returns the number of a new entry, which is not 0. Any thread may call it.
// Fails unless all tensors are oneDNN's and have one shape and dtype in each
// product, because oneDNN reads weights by their shape, not by the layer's.
int64_t KeepPacked(std::vector<Tensor> up, std::vector<Tensor> down);
// The last call that uses the memory frees it.
void DropPacked(int64_t number);
// Null for 0. An unknown number is an error of `op`.
std::shared_ptr<const Packed> FindPacked(const char* op, int64_t number);

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_PACKED_H_
