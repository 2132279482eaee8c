// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The bytes that atomics.metal, simd_functions.metal and
// simdgroup_matrices.metal are to leave. metal/shim/ tests the functions of
// lanes and matrices one by one.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/device/metal_features.h"

namespace switchyard::testing_support {
namespace {

Feature OfInts() {
  const auto in = Values(96, [](size_t i) {
    return static_cast<int32_t>(Hash(11, i) % 4001) - 2000;
  });
  std::vector<int32_t> right = {10, 10, 0, 0, -1, 0, 0};
  const std::vector<int32_t> before = right;
  for (const int32_t x : in) {
    right[0] += x;
    right[1] -= x;
    right[2] = std::min(right[2], x);
    right[3] = std::max(right[3], x);
    right[4] &= x | 0xF0;
    right[5] |= x & 0xFF;
    right[6] ^= x;
  }
  return Feature("atomics", "of_ints")
      .Threads(96, 32)
      .InOut(before, right)
      .In(in);
}
Feature OfUints() {
  const auto in = Values(96, [](size_t i) { return Hash(12, i); });
  std::vector<uint32_t> right = {1, UINT32_MAX, 0};
  const std::vector<uint32_t> before = right;
  for (const uint32_t x : in) {
    right[0] += x;
    right[1] = std::min(right[1], x);
    right[2] = std::max(right[2], x);
  }
  return Feature("atomics", "of_uints")
      .Threads(96, 32)
      .InOut(before, right)
      .In(in);
}
Feature OfFloats() {
  const auto in = Values(96, [](size_t i) { return Float(i * 5 % 17); });
  std::vector<float> right = {0.5f, 0.25f};
  const std::vector<float> before = right;
  for (const float x : in) {
    right[0] += x;
    right[1] -= x;
  }
  return Feature("atomics", "of_floats")
      .Threads(96, 32)
      .InOut(before, right)
      .In(in);
}
Feature OfLongs() {
  const auto in = Values(96, [](size_t i) { return Hash(13, i); });
  std::vector<uint64_t> right = {0, UINT64_MAX};
  const std::vector<uint64_t> before = right;
  for (size_t i = 0; i < in.size(); ++i) {
    const uint64_t key = uint64_t{in[i]} << 20 | i;
    right[0] = std::max(right[0], key);
    right[1] = std::min(right[1], key);
  }
  return Feature("atomics", "of_longs")
      .Threads(96, 32)
      .InOut(before, right)
      .In(in);
}
// The largest element; and all that went through the exchanged word but the
// last are in the sum.
Feature ByExchange() {
  const auto in = Values(96, [](size_t i) { return Uniform(14, i, 1024.0f); });
  const float most = *std::max_element(in.begin(), in.end());
  Feature feature("atomics", "by_exchange");
  feature.Threads(96, 32).Out<uint32_t>(
      3, [=](const std::vector<uint32_t>& out) -> std::string {
        // The first content is the canary.
        const uint32_t canary = 0xA5A5A5A5;
        if (out[0] != Bits(most)) return "not the maximum";
        if (out[1] == 0 || out[1] > 96) return "no thread's";
        return out[1] + out[2] == 96 * 97 / 2 + 2 * canary ? "" : "lost one";
      });
  return feature.In(in).InAnyOrder();
}
Feature InThreadgroups() {
  auto in = Values(192, [](size_t i) { return Hash(15, i) % 64; });
  for (size_t i = 128; i < 192; ++i) in[i] += in[i] % 16 == 3;
  std::vector<uint32_t> bins(16), firsts(3, 999);
  for (size_t i = 0; i < in.size(); ++i) {
    ++bins[in[i] % 16];
    uint32_t& first = firsts[i / 64];
    if (in[i] % 16 == 3) first = std::min(first, static_cast<uint32_t>(i % 64));
  }
  return Feature("atomics", "in_threadgroups")
      .Threads(192, 64)
      .In(in)
      .InOut(std::vector<uint32_t>(16), bins)
      .Out(firsts);
}

Feature InBranches() {
  const auto in =
      Values(64, [](size_t i) { return static_cast<int32_t>(i * i % 29); });
  std::vector<int32_t> right;
  for (size_t i = 0; i < 64; ++i) {
    const size_t group = i / 32 * 32;
    const auto way = [&](size_t j) {
      return in[j] % 3 == 0 ? 0 : j % 32 >= 10 ? 1 : 2;
    };
    std::vector<size_t> same;
    for (size_t j = group; j < group + 32; ++j) {
      if (way(j) == way(i)) same.push_back(j);
    }
    int32_t result = 0;
    if (way(i) == 0) {
      for (const size_t j : same) result += in[j];
      if (i == same[0]) result *= 2;
    } else if (way(i) == 1) {
      result = static_cast<int32_t>(same.back() % 32 * 100) -
               static_cast<int32_t>(same[0] % 32);
    } else {
      const auto place = std::find(same.begin(), same.end(), i);
      result = static_cast<int32_t>(place - same.begin()) +
               static_cast<int32_t>(same[0] % 32) + 100;
    }
    right.push_back(result + (i % 32 < 16 ? 1 : 3));
  }
  return Feature("simd_functions", "in_branches")
      .Threads(64, 64)
      .In(in)
      .Out(right);
}

Feature Transposed() {
  const auto in = Values(256, [](size_t i) { return Float(i * 7 % 11); });
  auto right = in;
  for (size_t row = 0; row < 8; ++row) {
    for (size_t col = 0; col < 8; ++col) {
      float sum = 0.0f;
      for (size_t k = 0; k < 8; ++k) {
        sum += in[(4 + row) * 16 + 8 + k] * in[col * 16 + k];
      }
      right[(8 + row) * 16 + 8 + col] = 2.0f * sum;
    }
  }
  return Feature("simdgroup_matrices", "transposed")
      .Threads(32, 32)
      .In(in)
      .Out(right);
}
const bool kAdded = AddFeatures({
    OfInts(),
    OfUints(),
    OfFloats(),
    OfLongs(),
    ByExchange(),
    InThreadgroups(),
    InBranches(),
    Transposed(),
});

}  // namespace
}  // namespace switchyard::testing_support
