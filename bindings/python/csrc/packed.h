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

// Of a layer's two products, a tensor for each expert.
struct Packed {
  std::vector<Tensor> up, down;
};

// Its number, which is not 0. For any thread.
int64_t KeepPacked(std::vector<Tensor> up, std::vector<Tensor> down);
// The memory goes when no call uses it any more.
void DropPacked(int64_t number);
// Null for 0; an error of `op` where there is none of that number.
std::shared_ptr<const Packed> FindPacked(const char* op, int64_t number);

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_PACKED_H_
