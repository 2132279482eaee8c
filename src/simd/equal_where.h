// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares the bytes of two structs that a mask selects. Uses only registers
// that every CPU of the architecture has.

#ifndef SWITCHYARD_SRC_SIMD_EQUAL_WHERE_H_
#define SWITCHYARD_SRC_SIMD_EQUAL_WHERE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace switchyard::simd {

// True if `a` and `b`, of kBytes each, are equal where `mask` has bytes 0xFF.
// Compares sixteen bytes at once, because RouteOptions has 28 members: to
// compare and branch for each would cost more than the rest of a check.
template <size_t kBytes>
[[gnu::always_inline]] inline bool AreEqualWhere(const unsigned char* mask,
                                                 const void* a, const void* b) {
  using Words = uint64_t __attribute__((vector_size(16)));
  constexpr size_t kStep = kBytes < 16 ? kBytes : 16;
  Words differing = {};
#pragma GCC unroll 16
  for (size_t at = 0; at < kBytes; at += kStep) {
    const size_t begin = at + kStep <= kBytes ? at : kBytes - kStep;
    Words x = {}, y = {}, m = {};
    std::memcpy(&x, static_cast<const char*>(a) + begin, kStep);
    std::memcpy(&y, static_cast<const char*>(b) + begin, kStep);
    std::memcpy(&m, mask + begin, kStep);
    differing |= (x ^ y) & m;
  }
  return (differing[0] | differing[1]) == 0;
}

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_EQUAL_WHERE_H_
