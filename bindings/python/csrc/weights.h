// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Experts' weights in the formats of switchyard/expert_weights.h, as tensors.

#ifndef SWITCHYARD_PYTHON_WEIGHTS_H_
#define SWITCHYARD_PYTHON_WEIGHTS_H_

#include <cstdint>
#include <string>

#include "switchyard/expert_weights.h"
#include "tensors.h"

namespace switchyard {
namespace python {

// The format of that name, "q4_0"; an error of `op` lists the names.
WeightFormat FormatOf(const char* op, const char* argument,
                      const std::string& name);

// A view of a product's weights, which are [rows, cols] for each expert.
// A tensor of two dimensions is packed: uint8 [experts, packed size]. One of
// three is as stored: uint8 [experts, rows, bytes of a row], or floats
// [experts, rows, cols]; the rows of an expert have no gaps.
ExpertWeights WeightsOf(const char* op, const char* argument,
                        const Tensor& tensor, WeightFormat format, int64_t rows,
                        int64_t cols);

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_WEIGHTS_H_
