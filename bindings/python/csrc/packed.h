// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A table of weights packed by oneDNN. Each entry has a number, which
// operators take instead of the tensors, because torch.compile cannot handle
// oneDNN's opaque tensors.

#ifndef SWITCHYARD_PYTHON_PACKED_H_
#define SWITCHYARD_PYTHON_PACKED_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tensors.h"

namespace switchyard {
namespace python {

// The weights of one product: a tensor [out, in] for each expert.
struct PackedProduct {
  std::vector<Tensor> experts;
  Type type;
  int64_t out, in;
};
// The packed weights of a layer's two products.
struct Packed {
  PackedProduct up, down;
};

// Adds an entry and returns its number, which is not 0. Any thread may call
// KeepPacked. A tensor that is not oneDNN's is an error. So are tensors of a
// product that differ in shape or dtype, because oneDNN reads weights by the
// tensor's shape, not by the layer's.
int64_t KeepPacked(std::vector<Tensor> up, std::vector<Tensor> down);
// Removes an entry, and frees its weights. If a call still uses the weights,
// they are freed when the call ends.
void DropPacked(int64_t number);
// Returns the entry, or null for 0. An unknown number is an error of `op`.
std::shared_ptr<const Packed> FindPacked(const char* op, int64_t number);

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_PACKED_H_
