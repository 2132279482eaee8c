// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Access to experts' weights, which are either stored as ggml stores them, or
// packed in buffers of PackedBufferType().

#ifndef SWITCHYARD_GGML_WEIGHTS_H_
#define SWITCHYARD_GGML_WEIGHTS_H_

#include <cstddef>

#include "ggml-backend.h"
#include "ggml.h"
#include "switchyard/expert_weights.h"
#include "switchyard/layer.h"

namespace switchyard_ggml {

// True if the weights are packed, because they lie in a buffer of
// PackedBufferType(). Only the plug-in can read such weights.
bool IsPacked(const ggml_tensor* weights);

// True if the weights are as stored, but lie in a buffer of PackedBufferType().
// llama.cpp puts a LoRA adapter into the buffers of the weights that it adapts,
// and the plug-in does not pack the adapter's floats.
bool AreBesidePacked(const ggml_tensor* weights);

// Returns a view of weights [in, out, experts], for Switchyard. Their type must
// have a WeightFormat.
switchyard::ExpertWeights WeightsOf(const ggml_tensor* weights);

// Returns the row format that products with weights of this type read.
switchyard::RowFormat OperandsOf(ggml_type type);
bool HaveSameOperands(ggml_type a, ggml_type b);

// Returns the type of buffers that pack experts' weights in set_tensor, and
// return the stored bytes in get_tensor. Memory holds only the packed form. If
// set_tensor sets only a part of a tensor, it unpacks the experts of this part,
// changes them and packs them again. Other tensors are stored unchanged.
ggml_backend_buffer_type_t PackedBufferType(ggml_backend_dev_t device);
bool IsPackedBufferType(ggml_backend_buffer_type_t type);

// True if a buffer of PackedBufferType() packs this tensor.
bool IsPackable(const ggml_tensor* weights);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_WEIGHTS_H_
