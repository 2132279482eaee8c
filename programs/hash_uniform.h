// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_HASH_UNIFORM_H_
#define SWITCHYARD_PROGRAMS_HASH_UNIFORM_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace program {

// Generates weights and inputs, with the same numbers on every machine.

// Mixes the bits of x so that different x give different results, and a change
// of one bit of x changes each bit of the result about half of the time. Uses
// only 32-bit operations, so that compilers can vectorise its callers.
inline uint32_t HashMix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  x ^= x >> 16;
  return x;
}

// Returns the key of stream number `stream`, for HashUniform.
inline uint32_t HashKey(uint32_t stream) { return HashMix(20260117u + stream); }

// Returns element `index` of a stream, which is uniform in [-1, 1) and a
// multiple of 2^-23.
inline float HashUniform(uint32_t key, uint32_t index) {
  const uint32_t bits = HashMix(HashMix(index) ^ key);
  return static_cast<float>(static_cast<int32_t>(bits) >> 8) * 0x1p-23f;
}

// Returns the scale with which uniform weights have a standard deviation of
// `deviation` / sqrt(fan_in). A product of such weights with `fan_in` inputs
// around 1 is then around `deviation`.
inline float UniformScale(double deviation, size_t fan_in) {
  return static_cast<float>(deviation *
                            std::sqrt(3.0 / static_cast<double>(fan_in)));
}

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_HASH_UNIFORM_H_
