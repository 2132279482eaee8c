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

// A view of weights [in, out, experts], whose type has a format.
switchyard::ExpertWeights WeightsOf(const ggml_tensor* weights);

// The format of rows that products with weights of the type read.
switchyard::RowFormat OperandsOf(ggml_type type);
bool HaveSameOperands(ggml_type a, ggml_type b);

// Buffers that pack experts' weights in set_tensor and give the stored bytes
// back in get_tensor, in which the packed form is the only one in memory. Any
// part of a tensor may be set: the experts that it lies in are unpacked and
// packed again. Other tensors lie there as they are.
ggml_backend_buffer_type_t PackedBufferType(ggml_backend_dev_t device);
bool IsPackedBufferType(ggml_backend_buffer_type_t type);

// Whether such a buffer would pack the tensor.
bool IsPackable(const ggml_tensor* weights);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_WEIGHTS_H_
