// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "half_float.h"

#include <cstring>

namespace moe_layer {
namespace {

uint16_t Load16(const uint8_t* source) {
  uint16_t bits;
  std::memcpy(&bits, source, sizeof(bits));
  return bits;
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

void ConvertF16(const uint8_t* source, size_t count, float* out) noexcept {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t half = Load16(source + 2 * i);
    const uint32_t sign = (half & 0x8000u) << 16;
    const uint32_t magnitude = (half & 0x7FFFu) << 13;
    uint32_t bits;
    if (magnitude >= 0x0F800000u) {  // infinity, NaN: the exponent stays full
      bits = magnitude | 0x7F800000u;
    } else if (magnitude >= 0x00800000u) {
      bits = magnitude + (112u << 23);  // 127 - 15, the exponents' biases
    } else {
      // Zero and denormals are multiples of 2^-24: 2^-14 plus such a multiple
      // is exact in a float, and so is taking the 2^-14 away again.
      const float value = FromBits(magnitude + (113u << 23)) - 0x1p-14f;
      std::memcpy(&bits, &value, sizeof(bits));
    }
    out[i] = FromBits(bits | sign);
  }
}

void ConvertBf16(const uint8_t* source, size_t count, float* out) noexcept {
  for (size_t i = 0; i < count; ++i) {
    out[i] = FromBits(uint32_t{Load16(source + 2 * i)} << 16);
  }
}

}  // namespace moe_layer
