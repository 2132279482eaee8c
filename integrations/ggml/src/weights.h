// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Experts' weights: as ggml stores them, or packed in the buffers below.

#ifndef SWITCHYARD_GGML_WEIGHTS_H_
#define SWITCHYARD_GGML_WEIGHTS_H_

#include <cstddef>

#include "ggml-backend.h"
#include "ggml.h"
#include "switchyard/expert_weights.h"
#include "switchyard/layer.h"

namespace switchyard_ggml {

// Whether the weights lie in a PackedBufferType(), where their bytes are
// packed. Only the plug-in can read them.
bool IsPacked(const ggml_tensor* weights);

// A view of weights [in, out, experts]. Their type must have a WeightFormat.
switchyard::ExpertWeights WeightsOf(const ggml_tensor* weights);

// The format of rows that products with weights of this type read.
switchyard::RowFormat OperandsOf(ggml_type type);
bool HaveSameOperands(ggml_type a, ggml_type b);

// Buffers that pack experts' weights in set_tensor, and return the stored
// bytes in get_tensor. Memory holds only the packed form. To set a part of a
// tensor, set_tensor unpacks the experts of the part and packs them again.
// Other tensors are stored unchanged.
ggml_backend_buffer_type_t PackedBufferType(ggml_backend_dev_t device);
bool IsPackedBufferType(ggml_backend_buffer_type_t type);

// Whether such a buffer packs this tensor.
bool IsPackable(const ggml_tensor* weights);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_WEIGHTS_H_
