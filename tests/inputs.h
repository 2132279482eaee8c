// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Test inputs from an integer hash: the same on every machine and library.

#ifndef SWITCHYARD_TESTS_INPUTS_H_
#define SWITCHYARD_TESTS_INPUTS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace switchyard {
namespace testing_support {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kDenormal = 1e-41f;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {  // splitmix64
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  size_t Below(size_t n) { return static_cast<size_t>(Next() % n); }
  float Uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(Next() >> 40) * 0x1p-24f;
  }
  // Any bit pattern: NaNs, infinities and denormals among them.
  float AnyBits() {
    const uint32_t bits = static_cast<uint32_t>(Next() >> 32);
    float f;
    std::memcpy(&f, &bits, sizeof(f));
    return f;
  }
  std::vector<float> Uniforms(size_t n, float low, float high) {
    std::vector<float> v(n);
    for (float& x : v) x = Uniform(low, high);
    return v;
  }

 private:
  uint64_t state_;
};

inline uint32_t Bits(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  return bits;
}

// Bit patterns with every NaN made 0x7FC00000: which outputs are NaN is part of
// the promise, a NaN's sign and payload are not.
inline uint32_t CanonicalBits(float f) {
  return std::isnan(f) ? 0x7FC00000 : Bits(f);
}
inline std::vector<uint32_t> CanonicalBits(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  bits.reserve(values.size());
  for (const float f : values) bits.push_back(CanonicalBits(f));
  return bits;
}

// |actual - exact| in units of the spacing of floats at the correctly rounded
// exact result.
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

}  // namespace testing_support
}  // namespace switchyard

#endif  // SWITCHYARD_TESTS_INPUTS_H_
