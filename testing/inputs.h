// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Pseudo-random inputs from an integer hash and exact float operations, so
// that they are the same on every machine and with every compiler.

#ifndef SWITCHYARD_TESTING_INPUTS_H_
#define SWITCHYARD_TESTING_INPUTS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace switchyard::testing_support {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kDenormal = 1e-41f;

inline uint32_t Bits(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  return bits;
}
inline float FromBits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof(f));
  return f;
}

// splitmix64 without its last shift: maps the state n * kStep to the n-th
// number. Random applies the last shift. Hash does not, because the stored
// digests depend on its numbers.
constexpr uint64_t kStep = 0x9E3779B97F4A7C15u;
constexpr uint64_t Mix(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
  return (state ^ (state >> 27)) * 0x94D049BB133111EBu;
}

// Returns the hash from which element i of stream `seed` is made.
constexpr uint32_t Hash(uint32_t seed, size_t i) {
  const uint64_t n = (static_cast<uint64_t>(seed) << 40) + i + 1;
  return static_cast<uint32_t>(Mix(n * kStep) >> 32);
}
// Returns a number in [-range, range); `range` is a power of two.
constexpr float Uniform(uint32_t seed, size_t i, float range) {
  // The number below is a multiple of 2^-23 in [-1, 1). It is exact, and so
  // is its product with `range`.
  const int32_t signed24 = static_cast<int32_t>(Hash(seed, i) >> 8) - (1 << 23);
  return static_cast<float>(signed24) * 0x1p-23f * range;
}
// Returns any bit pattern, including NaNs, infinities and denormals.
inline float AnyFloat(uint32_t seed, size_t i) {
  return FromBits(Hash(seed, i));
}

// Draws the numbers of splitmix64 one after the other.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    const uint64_t z = Mix(state_ += kStep);
    return z ^ (z >> 31);
  }
  size_t Below(size_t n) { return static_cast<size_t>(Next() % n); }
  float Uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(Next() >> 40) * 0x1p-24f;
  }
  float AnyBits() { return FromBits(static_cast<uint32_t>(Next() >> 32)); }
  std::vector<float> Uniforms(size_t n, float low, float high) {
    std::vector<float> v(n);
    for (float& x : v) x = Uniform(low, high);
    return v;
  }
  std::vector<float> AnyBits(size_t n) {
    std::vector<float> v(n);
    for (float& x : v) x = AnyBits();
    return v;
  }

 private:
  uint64_t state_;
};

// Returns the bits of `f`, or 0x7FC00000 for every NaN. The library promises
// which outputs are NaN, but not their signs and payloads.
inline uint32_t CanonicalBits(float f) {
  return std::isnan(f) ? 0x7FC00000 : Bits(f);
}
inline std::vector<uint32_t> CanonicalBits(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  bits.reserve(values.size());
  for (const float f : values) bits.push_back(CanonicalBits(f));
  return bits;
}

// Returns |actual - exact| in ulps of f32. An ulp is the spacing of f32
// numbers at `exact`, rounded to f32.
inline double UlpError(float actual, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(rounded)) return std::isnan(actual) ? 0.0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(actual)) {
    return actual == rounded ? 0.0 : INFINITY;
  }
  int exponent = -126;
  if (std::fabs(rounded) >= 0x1p-126f) exponent = std::ilogb(rounded);
  return std::fabs(static_cast<double>(actual) - exact) /
         std::ldexp(1.0, exponent - 23);
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_INPUTS_H_
