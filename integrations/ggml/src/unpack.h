// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_GGML_UNPACK_H_
#define SWITCHYARD_GGML_UNPACK_H_

#include <cstdint>

#include "switchyard/expert_weights.h"

namespace switchyard_ggml {

// Inverts switchyard::PackWeights() for one expert in one of ggml's quantised
// formats. Reads the packed bytes at `from`, and writes the stored bytes to
// `to`. `to` must have room for ExpertWeightsSize() bytes of the stored layout.
// Only format, rows and cols of `packed` are used.
void UnpackExpert(const switchyard::ExpertWeights& packed, const uint8_t* from,
                  uint8_t* to);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_UNPACK_H_
