// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_HASH_UNIFORM_H_
#define SWITCHYARD_PROGRAMS_HASH_UNIFORM_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace program {

// Generates weights and inputs: the same numbers on every machine.

// Mixes 32 bits bijectively: every input bit flips each output bit about half
// of the time. Uses only 32 bits, so that compilers vectorise its callers.
inline uint32_t HashMix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  x ^= x >> 16;
  return x;
}

// The key of stream number `stream`.
inline uint32_t HashKey(uint32_t stream) { return HashMix(20260117u + stream); }

// Element `index` of a stream: uniform in [-1, 1), a multiple of 2^-23.
inline float HashUniform(uint32_t key, uint32_t index) {
  const uint32_t bits = HashMix(HashMix(index) ^ key);
  return static_cast<float>(static_cast<int32_t>(bits) >> 8) * 0x1p-23f;
}

// Uniform values of this scale have a standard deviation of `deviation` /
// sqrt(fan_in): a product with `fan_in` inputs around 1 is around `deviation`.
inline float UniformScale(double deviation, size_t fan_in) {
  return static_cast<float>(deviation *
                            std::sqrt(3.0 / static_cast<double>(fan_in)));
}

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_HASH_UNIFORM_H_
