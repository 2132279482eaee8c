// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests vectors and matrices of the shim, element by element.

#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "device/tests/metal/shim/shim_module.h"
#include "gtest/gtest.h"

namespace switchyard::testing_support {
namespace {

struct Swizzle {
  const char* name;
  void (*read)(const float* in, float* out);
  void (*assign)(float* out, const float* in);
};

TEST(ShimVec, Swizzles) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("swizzle", false);
  const auto swizzles = module.Function<const Swizzle*(int, int*)>("swizzles");
  ASSERT_NE(swizzles, nullptr);
  for (int size = 2; size <= 4; ++size) {
    int count = 0;
    const Swizzle* const all = swizzles(size, &count);
    std::set<std::string> names;
    for (int i = 0; i < count; ++i) {
      const std::string name = all[i].name;
      names.insert(name);
      const std::string letters =
          name.find_first_of("rgba") != std::string::npos ? "rgba" : "xyzw";
      std::vector<size_t> at;
      for (const char letter : name) at.push_back(letters.find(letter));
      alignas(16) const float in[] = {1, 2, 3, 4};
      float out[] = {0, 0, 0, 0};
      all[i].read(in, out);
      for (size_t k = 0; k < at.size(); ++k) {
        EXPECT_EQ(out[k], in[at[k]]) << name << " of " << size;
      }
      if (std::set<size_t>(at.begin(), at.end()).size() != at.size()) continue;
      std::vector<float> expected = {10, 20, 30, 40};
      alignas(16) float assigned[] = {10, 20, 30, 40};
      all[i].assign(assigned, in);
      for (size_t k = 0; k < at.size(); ++k) expected[at[k]] = in[k];
      for (size_t k = 0; k < static_cast<size_t>(size); ++k) {
        EXPECT_EQ(assigned[k], expected[k]) << name << " = of " << size;
      }
    }
    const auto n = static_cast<size_t>(size);
    EXPECT_EQ(names.size(), 2 * (n * n + n * n * n + n * n * n * n));
  }
}

TEST(ShimVec, Operators) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("vec", false);
  const auto operators =
      module.Function<void(const int*, const int*, int*)>("int_operators");
  ASSERT_NE(operators, nullptr);
  alignas(16) int x[4] = {100, -7, 0, 12345};
  alignas(16) int y[4] = {3, 5, 2, 9};
  alignas(16) int out[4 * 24];
  operators(x, y, out);
  int sum[4];
  for (int i = 0; i < 4; ++i) {
    const int a = x[i], b = y[i];
    const int expected[] = {
        a + b,        a - b,  a * b,  a / b,  a % b, a & b,     a | b,  a ^ b,
        a * (1 << b), a >> b, ~a,     -a,     !a,    a<b, a> b, a <= b, a >= b,
        a == b,       a != b, a && b, a || b, a + 7, 7 - a};
    for (int k = 0; k < 23; ++k) {
      EXPECT_EQ(out[4 * k + i], expected[k]) << k << " of " << a << ", " << b;
    }
    sum[i] = (a + b) * 3 - a + (i % 2 == 0 ? 5 : 0);
  }
  // The shader has swapped the elements y and w.
  EXPECT_EQ(out[92], sum[0]);
  EXPECT_EQ(out[93], sum[3]);
  EXPECT_EQ(out[94], sum[2]);
  EXPECT_EQ(out[95], sum[1]);
}

TEST(ShimVec, Constructors) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("vec", false);
  const auto constructors =
      module.Function<void(const float*, float*)>("constructors");
  ASSERT_NE(constructors, nullptr);
  const float in[] = {1.5f, 2.25f, -3, 8};
  const std::vector<float> expected = {
      8,    8,     8,     8,      //
      1.5f, 1.5f,  2.25f, -3,     //
      1.5f, 2.25f, 2.25f, 1.5f,   //
      1.5f, 2.25f, -3,    8,      //
      8,    1.5f,  2.25f, -3,     //
      -3,   2.25f, 1.5f,  1,      //
      3,    4.5f,  -6,    16,     //
      2,    -2,    1,     4,      //
      1.5f, 2.25f, 0,     0,      //
      3,    4.5f,  -6,    0,      //
      1.5f, 2.25f, 1.5f,  2.25f,  //
      1,    2,     3,     255,
  };
  std::vector<float> out(expected.size());
  constructors(in, out.data());
  EXPECT_EQ(out, expected);
}

// Computes a determinant by expansion along the first row.
double Determinant(const std::vector<std::vector<double>>& m) {
  if (m.size() == 1) return m[0][0];
  double sum = 0;
  for (size_t i = 0; i < m.size(); ++i) {
    std::vector<std::vector<double>> minor;
    for (size_t j = 0; j < m.size(); ++j) {
      if (j != i) minor.emplace_back(m[j].begin() + 1, m[j].end());
    }
    sum += (i % 2 == 0 ? 1 : -1) * m[i][0] * Determinant(minor);
  }
  return sum;
}

TEST(ShimVec, Matrices) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("vec", false);
  const auto matrices = module.Function<void(const float*, float*)>("matrices");
  ASSERT_NE(matrices, nullptr);
  std::mt19937 random(6);
  std::vector<float> in(20);
  for (float& each : in) each = static_cast<float>(random() % 15) - 7;
  std::vector<float> out(29);
  matrices(in.data(), out.data());
  // The matrices have columns of 3 and of 4 elements.
  const auto a = [&](size_t column, size_t row) {
    return in[3 * column + row];
  };
  const auto b = [&](size_t column, size_t row) {
    return in[12 + 4 * column + row];
  };
  size_t at = 0;
  for (size_t column = 0; column < 2; ++column) {
    for (size_t row = 0; row < 3; ++row) {
      float sum = 0;
      for (size_t k = 0; k < 4; ++k) sum += a(k, row) * b(column, k);
      EXPECT_EQ(out[at++], sum) << "product " << column << row;
    }
  }
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 4; ++column) {
      EXPECT_EQ(out[at++], a(column, row));
    }
  }
  float right[3];
  for (size_t row = 0; row < 3; ++row) {
    right[row] = 0;
    for (size_t k = 0; k < 4; ++k) right[row] += a(k, row) * b(0, k);
    EXPECT_EQ(out[at++], right[row]);
  }
  for (size_t column = 0; column < 4; ++column) {
    EXPECT_EQ(out[at++], right[0] * a(column, 0) + right[1] * a(column, 1) +
                             right[2] * a(column, 2));
  }
  for (size_t n = 4; n >= 2; --n) {
    std::vector<std::vector<double>> m(n, std::vector<double>(n));
    for (size_t column = 0; column < n; ++column) {
      for (size_t row = 0; row < n; ++row)
        m[column][row] = in[4 * column + row];
    }
    EXPECT_EQ(out[at++], Determinant(m)) << n;
  }
  EXPECT_EQ(out[at], 1);
}

}  // namespace
}  // namespace switchyard::testing_support
