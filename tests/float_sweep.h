// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TESTS_FLOAT_SWEEP_H_
#define SWITCHYARD_TESTS_FLOAT_SWEEP_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "testing/inputs.h"

namespace switchyard::testing_support {

// Returns the stride of the sweep. A stride of 1 covers every bit pattern.
inline uint64_t SweepStride() {
#ifdef NDEBUG
  constexpr uint64_t kDefault = 256;
#else
  constexpr uint64_t kDefault = 1024;
#endif
  const char* const text = std::getenv("SWITCHYARD_MATH_STRIDE");
  const uint64_t stride =
      text == nullptr ? kDefault : std::strtoull(text, nullptr, 10);
  return stride == 0 ? kDefault : stride;
}

// Calls block(vector) for one vector of floats after the other, until it
// returns false. The vectors hold the given `x` and one of every `stride`
// floats. Each vector's size is a multiple of all lengths of SIMD vectors.
template <class Block>
void SweepFloats(std::vector<float> x, const Block& block,
                 uint64_t stride = SweepStride()) {
  constexpr size_t kBlock = 1 << 16;
  uint64_t offset = 0;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += stride) {
    // Varies which of `stride` floats is taken, so that the low bits vary.
    x.push_back(FromBits(static_cast<uint32_t>(bits + offset)));
    offset = (offset * 5 + 3) % stride;
    if (x.size() < kBlock || x.size() % 64 != 0) continue;
    if (!block(x)) return;
    x.clear();
  }
  while (x.size() % 64 != 0) x.push_back(0.0f);
  block(x);
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_FLOAT_SWEEP_H_
