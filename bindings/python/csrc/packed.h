// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Weights in the form that oneDNN likes to read, kept by number: such tensors
// are opaque, and what passes them through torch.compile is a plain integer.

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

// Returns its number, which is not 0. For any thread. Fails unless all tensors
// are oneDNN's, of one shape and dtype in each product: what oneDNN is given is
// read by the shape that it has, not by the one that a layer expects.
int64_t KeepPacked(std::vector<Tensor> up, std::vector<Tensor> down);
// The memory goes when no call uses it any more.
void DropPacked(int64_t number);
// Null for 0; an error of `op` where there is none of that number.
std::shared_ptr<const Packed> FindPacked(const char* op, int64_t number);

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_PACKED_H_
