// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_HASH_UNIFORM_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_HASH_UNIFORM_H_

#include <cstdint>

namespace moe_layer {

// A bijective mix of 32 bits in which every input bit flips each output bit
// about half of the time. No wider, so that compilers vectorise its callers.
inline uint32_t HashMix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  x ^= x >> 16;
  return x;
}

// The key of the stream of that number, from the program's fixed seed.
inline uint32_t HashKey(uint32_t stream) { return HashMix(20260117u + stream); }

// Element `index` of a stream: uniform in [-1, 1), a multiple of 2^-23.
inline float HashUniform(uint32_t key, uint32_t index) {
  const uint32_t bits = HashMix(HashMix(index) ^ key);
  return static_cast<float>(static_cast<int32_t>(bits) >> 8) * 0x1p-23f;
}

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_HASH_UNIFORM_H_
