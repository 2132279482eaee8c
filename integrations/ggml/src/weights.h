// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Experts' weights: as ggml stores them, or packed by the buffer type below.

#ifndef SWITCHYARD_GGML_WEIGHTS_H_
#define SWITCHYARD_GGML_WEIGHTS_H_

#include <cstddef>

#include "ggml-backend.h"
#include "ggml.h"
#include "switchyard/expert_weights.h"
#include "switchyard/layer.h"

namespace switchyard_ggml {

// The weights' place in memory is a PackedBufferType(), and their bytes there
// are packed. Only we can read them.
bool IsPacked(const ggml_tensor* weights);

// A view of weights [in, out, experts] of a type with a format.
switchyard::ExpertWeights WeightsOf(const ggml_tensor* weights);

// The format of rows that products with weights of the type read.
switchyard::RowFormat OperandsOf(ggml_type type);
bool HaveSameOperands(ggml_type a, ggml_type b);

// Buffers that pack experts' weights in set_tensor and give the stored bytes
// back in get_tensor. The packed form is the only one in memory. To set a part
// of a tensor, set_tensor unpacks the part's experts and packs them again.
// Other tensors are kept as they are set.
ggml_backend_buffer_type_t PackedBufferType(ggml_backend_dev_t device);
bool IsPackedBufferType(ggml_backend_buffer_type_t type);

// Whether such a buffer would pack the tensor.
bool IsPackable(const ggml_tensor* weights);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_WEIGHTS_H_
