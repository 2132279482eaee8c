// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_HASH_UNIFORM_H_
#define SWITCHYARD_PROGRAMS_HASH_UNIFORM_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace program {

// Generates random weights and inputs that are equal on every machine. A stream
// is a sequence of numbers, for example the elements of one tensor.

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

// Returns the key that HashUniform() takes for stream number `stream`.
inline uint32_t HashKey(uint32_t stream) { return HashMix(20260117u + stream); }

// Returns element `index` of the stream with this key. The elements are
// multiples of 2^-23, uniform in [-1, 1).
inline float HashUniform(uint32_t key, uint32_t index) {
  const uint32_t bits = HashMix(HashMix(index) ^ key);
  return static_cast<float>(static_cast<int32_t>(bits) >> 8) * 0x1p-23f;
}

// Returns the factor that gives HashUniform() values a standard deviation of
// `deviation` / sqrt(fan_in). The dot product of `fan_in` such weights with
// inputs around 1 is then around `deviation`.
inline float UniformScale(double deviation, size_t fan_in) {
  return static_cast<float>(deviation *
                            std::sqrt(3.0 / static_cast<double>(fan_in)));
}

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_HASH_UNIFORM_H_
