// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Code that the plain*.cc files share. The plain*.cc files are compiled for
// this machine's CPU with -O3 -march=native, as engines compile their code.
// They have loops that the compiler vectorises, without intrinsics and
// fast-math. This file includes few headers, because the flags also apply to
// the headers' inline functions, and the linker may use such a function in the
// whole program.

#ifndef SWITCHYARD_BENCH_PLAIN_INL_H_
#define SWITCHYARD_BENCH_PLAIN_INL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "switchyard/types.h"

namespace switchyard::bench::plain {
namespace {  // each plain*.cc has a copy, compiled with its flags

// The number of partial sums in reductions. The loops split sums themselves,
// because the compiler may not do so without fast-math.
constexpr size_t kLanes = 32;

inline float Sum(const float (&sums)[kLanes]) {
  float sum = 0.0f;
  for (const float s : sums) sum += s;
  return sum;
}

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

// Load and store numbers that are not NaN.
inline float Load(float f) { return f; }
inline float Load(BFloat16 f) { return FromBits(uint32_t{f.bits} << 16); }
inline void Store(float f, float* to) { *to = f; }
inline void Store(float f, BFloat16* to) {
  const uint32_t bits = Bits(f);
  to->bits = static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

// Calls function(float()) or function(BFloat16()).
template <class Function>
void WithElement(Type type, Function function) {
  if (type == Type::kBF16) {
    function(BFloat16());
  } else {
    function(float());
  }
}

// Returns e^x as 2^n e^r, with an error of up to 2 ulp. It replaces std::exp,
// because the compiler does not vectorise loops with std::exp.
inline float Exp(float x) {
  constexpr float kMagic = 0x1.8p23f;  // n + kMagic has n in its low bits
  x = x > -87.0f ? x : -87.0f;         // compiles to one instruction
  x = x < 88.0f ? x : 88.0f;
  const float shifted = x * 0x1.715476p0f + kMagic;
  const float n = shifted - kMagic;
  const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
  float p = 0x1.6850e4p-10f;
  p = p * r + 0x1.123bccp-7f;
  p = p * r + 0x1.555b98p-5f;
  p = p * r + 0x1.55548ep-3f;
  p = p * r + 0x1.fffff8p-2f;
  p = p * (r * r) + r;
  const float scale = FromBits((Bits(shifted) << 23) + 0x3F800000);
  return p * scale + scale;
}

}  // namespace
}  // namespace switchyard::bench::plain

#endif  // SWITCHYARD_BENCH_PLAIN_INL_H_
