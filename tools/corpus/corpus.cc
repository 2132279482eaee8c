// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/corpus/corpus.h"

#include <cstring>

namespace switchyard {
namespace corpus {
namespace {

constexpr Expected kExpected[] = {
#include "tools/corpus/digests.inc"
    {nullptr, 0, 0},
};

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : bits;
}
uint32_t Bits(int32_t value) { return static_cast<uint32_t>(value); }

template <class T>
void AddMatrix(Digest& digest, const Matrix<const T>& m) {
  digest.Add(static_cast<uint32_t>(m.rows));
  digest.Add(static_cast<uint32_t>(m.cols));
  for (size_t r = 0; r < m.rows; ++r) {
    for (size_t c = 0; c < m.cols; ++c) digest.Add(Bits(m.Row(r)[c]));
  }
}

}  // namespace

void Digest::Add(Matrix<const float> m) { AddMatrix(*this, m); }
void Digest::Add(Matrix<const int32_t> m) { AddMatrix(*this, m); }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  AddRouteCases(cases);
  AddBucketCases(cases);
  AddGatherCases(cases);
  AddSiluMulCases(cases);
  AddCombineCases(cases);
  return cases;
}

const Expected* Find(const std::string& name) {
  for (const Expected& expected : kExpected) {
    if (expected.name != nullptr && name == expected.name) return &expected;
  }
  return nullptr;
}

uint32_t Hash(uint32_t seed, size_t i) {
  // splitmix64 of both.
  uint64_t z = (static_cast<uint64_t>(seed) << 40) + i;
  z = (z + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<uint32_t>(z >> 32);
}

float Uniform(uint32_t seed, size_t i, float range) {
  // A multiple of 2^-23 in [-1, 1): exact, and so is the product.
  const int32_t signed24 = static_cast<int32_t>(Hash(seed, i) >> 8) - (1 << 23);
  return static_cast<float>(signed24) * 0x1p-23f * range;
}

float AnyFloat(uint32_t seed, size_t i) {
  const uint32_t bits = Hash(seed, i);
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace corpus
}  // namespace switchyard
