// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_HALF_FLOAT_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_HALF_FLOAT_H_

#include <cstddef>
#include <cstdint>

namespace moe_layer {

// `count` little-endian 16-bit floats at `source`, on any byte boundary, to
// float. Exact for every value: denormals, infinities and NaN payloads too.
void ConvertF16(const uint8_t* source, size_t count, float* out) noexcept;
void ConvertBf16(const uint8_t* source, size_t count, float* out) noexcept;

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_HALF_FLOAT_H_
