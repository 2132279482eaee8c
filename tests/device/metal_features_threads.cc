// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The bytes that atomics.metal, simd_functions.metal and
// simdgroup_matrices.metal are to leave.

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

// The value that lane `lane` of i's simdgroup has, and in i's quad.
template <class T>
T At(const std::vector<T>& in, size_t i, size_t lane) {
  return in[i / 32 * 32 + lane % 32];
}
template <class T>
T InQuad(const std::vector<T>& in, size_t i, size_t lane) {
  return in[i / 4 * 4 + lane % 4];
}

// op over elements [first, last).
template <class Op>
int32_t Over(const std::vector<int32_t>& in, size_t first, size_t last,
             int32_t start, const Op& op) {
  for (size_t i = first; i < last; ++i) start = op(start, in[i]);
  return start;
}
Feature Reductions() {
  const auto in =
      Values(64, [](size_t i) { return static_cast<int32_t>(i * 7 % 23); });
  std::vector<int32_t> right;
  const auto sum = [](int32_t a, int32_t b) { return a + b; };
  const auto product = [](int32_t a, int32_t b) { return a * (b % 2 + 1); };
  const auto times = [](int32_t a, int32_t b) { return a * b; };
  const auto least = [](int32_t a, int32_t b) { return std::min(a, b); };
  const auto most = [](int32_t a, int32_t b) { return std::max(a, b); };
  const auto exclusive_or = [](int32_t a, int32_t b) { return a ^ b; };
  for (size_t i = 0; i < 64; ++i) {
    const size_t simd = i / 32 * 32, quad = i / 4 * 4;
    const auto all = [&](int32_t start, const auto& op) {
      return Over(in, simd, simd + 32, start, op);
    };
    const auto of_quad = [&](int32_t start, const auto& op) {
      return Over(in, quad, quad + 4, start, op);
    };
    const auto both = [](int32_t a, int32_t b) { return a & b; };
    const auto either = [](int32_t a, int32_t b) { return a | b; };
    right.insert(
        right.end(),
        {all(0, sum), all(1, product), all(1000, least), all(-1, most),
         all(-1, [](int32_t a, int32_t b) { return a & (b | 0x11); }),
         all(0, [](int32_t a, int32_t b) { return a | (b & 0x16); }),
         all(0, exclusive_or), Over(in, simd, i + 1, 0, sum),
         Over(in, simd, i, 0, sum), Over(in, simd, i + 1, 1, product),
         Over(in, simd, i, 1, product), of_quad(0, sum), of_quad(1, times),
         of_quad(1000, least) ^ of_quad(-1, most),
         of_quad(-1, both) + of_quad(0, either) + of_quad(0, exclusive_or),
         in[i] + Over(in, quad, i + 1, 1, product) +
             Over(in, quad, i, 1, product)});
  }
  return Feature("simd_functions", "reductions")
      .Threads(64, 64)
      .In(in)
      .Out(right);
}

float TreeSum(const std::vector<float>& in, size_t first) {
  const auto from = in.begin() + static_cast<ptrdiff_t>(first);
  std::vector<float> lanes(from, from + 32);
  for (size_t half = 16; half != 0; half /= 2) {
    for (size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}
Feature FloatSums() {
  const auto in = Values(64, [](size_t i) { return Uniform(16, i, 2.0f); });
  std::vector<float> right;
  for (size_t i = 0; i < 64; ++i) {
    const float sum = TreeSum(in, i / 32 * 32);
    right.insert(right.end(), {sum, sum + 32.0f + -sum});
  }
  return Feature("simd_functions", "float_sums")
      .Threads(64, 32)
      .In(in)
      .Out(right);
}
Feature Shuffles() {
  const auto in = Values(64, [](size_t i) { return Float(i * i % 101); });
  std::vector<float> right;
  for (size_t i = 0; i < 64; ++i) {
    const size_t lane = i % 32, q = i % 4;
    right.insert(
        right.end(),
        {At(in, i, lane * 7), At(in, i, lane ^ 5), lane >= 3 ? in[i - 3] : 0.0f,
         lane < 30 ? in[i + 2] : 0.0f, At(in, i, lane + 28),
         At(in, i, lane + 9), lane >= 3 ? in[i - 3] : -At(in, i, lane + 29),
         lane < 29 ? in[i + 3] : -At(in, i, lane + 3), At(in, i, 11),
         At(in, i, 0), InQuad(in, i, 3 - q), InQuad(in, i, q ^ 2),
         q >= 1 ? in[i - 1] : 0.0f, InQuad(in, i, 2) + InQuad(in, i, 0),
         InQuad(in, i, q + 1) - InQuad(in, i, q + 3),
         (q >= 1 ? in[i - 1] : -InQuad(in, i, 3)) +
             (q < 2 ? in[i + 2] : -InQuad(in, i, q + 2))});
  }
  return Feature("simd_functions", "shuffles")
      .Threads(64, 64)
      .In(in)
      .Out(right);
}
Feature Votes() {
  // Simdgroup 1 is all odd, simdgroup 2 all even.
  const auto in = Values(96, [](size_t i) {
    return i < 32 ? Hash(17, i) % 1100
                  : static_cast<uint32_t>(2 * i + (i < 64));
  });
  std::vector<uint32_t> right;
  for (size_t i = 0; i < 96; ++i) {
    uint32_t ballot = 0, small = 0;
    for (size_t lane = 0; lane < 32; ++lane) {
      ballot |= (At(in, i, lane) % 2) << lane;
      small |= uint32_t{At(in, i, lane) < 1000} << lane;
    }
    const uint32_t of_quad = ballot >> (i % 32 / 4 * 4) & 15;
    right.insert(
        right.end(),
        {ballot, uint32_t{ballot == UINT32_MAX} | uint32_t{ballot != 0} << 1,
         uint32_t{small == UINT32_MAX} | uint32_t{ballot != 0} << 1,
         uint32_t{i % 32 == 0}, UINT32_MAX,
         uint32_t{of_quad == 15} | uint32_t{of_quad != 0} << 1 |
             uint32_t{i % 4 == 0} << 2,
         of_quad, 15u});
  }
  return Feature("simd_functions", "votes").Threads(96, 32).In(in).Out(right);
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

// Rows of `stride`; what is beside the eight columns is left alone.
constexpr size_t kStride = 12;
template <class T>
Feature Multiply(const char* name) {
  std::vector<T> a, b;
  std::vector<float> c, right;
  for (size_t i = 0; i < 8 * kStride; ++i) {
    a.push_back(Round<T>(Float(Hash(18, i) % 9) - 4.0f));
    b.push_back(Round<T>(Float(Hash(19, i) % 9) * 0.5f));
    c.push_back(Float(i));
  }
  right = c;
  for (size_t row = 0; row < 8; ++row) {
    for (size_t col = 0; col < 8; ++col) {
      for (size_t k = 0; k < 8; ++k) {
        right[row * kStride + col] +=
            Widen(a[row * kStride + k]) * Widen(b[k * kStride + col]);
      }
    }
  }
  return Feature("simdgroup_matrices", name)
      .Threads(32, 32)
      .In(a)
      .In(b)
      .InOut(c, right)
      .In(std::vector<uint32_t>{kStride});
}
Feature MultiplyFloat() {
  const auto a = Values(96, [](size_t i) { return Float(Hash(20, i) % 19); });
  const auto b = Values(96, [](size_t i) { return Float(Hash(21, i) % 19); });
  const auto c = Values(96, Float);
  auto right = c;
  for (size_t row = 0; row < 8; ++row) {
    for (size_t col = 0; col < 8; ++col) {
      for (size_t k = 0; k < 8; ++k) {
        right[row * kStride + col] +=
            a[row * kStride + k] * b[k * kStride + col];
      }
    }
  }
  return Feature("simdgroup_matrices", "multiply_float")
      .Threads(32, 32)
      .In(a)
      .In(b)
      .InOut(c, right)
      .In(std::vector<uint32_t>{kStride});
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
Feature Places() {
  std::vector<float> right(64);
  for (size_t lane = 0; lane < 32; ++lane) {
    const size_t row = (lane / 4 & 4) + lane / 2 % 4;
    const size_t col = (lane / 4 & 2) * 2 + lane % 2 * 2;
    right[8 * row + col] = 2.0f * (0.5f + Float(2 * lane));
    right[8 * row + col + 1] = 2.0f * (0.5f + Float(2 * lane + 1));
  }
  return Feature("simdgroup_matrices", "places").Threads(32, 32).Out(right);
}

const bool kAdded = AddFeatures({
    OfInts(),
    OfUints(),
    OfFloats(),
    OfLongs(),
    ByExchange(),
    InThreadgroups(),
    Reductions(),
    FloatSums(),
    Shuffles(),
    Votes(),
    InBranches(),
    MultiplyFloat(),
    Multiply<Float16>("multiply_half"),
    Multiply<BFloat16>("multiply_bfloat"),
    Transposed(),
    Places(),
});

}  // namespace
}  // namespace switchyard::testing_support
