// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The bytes that vectors.metal is to leave.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/device/metal_features.h"

namespace switchyard::testing_support {
namespace {

Feature Construct() {
  return Feature("vectors", "construct")
      .Threads(9, 9)
      .Out(std::vector<float>{0,  0, 0, 0, 1, 2, 1, 2, 2, 3,  9, -1,
                              -1, 3, 4, 9, 1, 4, 5, 2, 1, -2, 3, -4,
                              6,  1, 2, 3, 2, 2, 2, 2, 1, 2,  3, 255});
}
Feature Swizzle() {
  const auto in = Values(40, [](size_t i) { return Float(i * i % 31); });
  std::vector<float> right;
  for (size_t i = 0; i < 10; ++i) {
    const float* const v = in.data() + 4 * i;
    const float y = v[2] + v[0] - v[3], z = 2.0f * (v[0] + 1.0f);
    const float x = z + v[2];
    right.insert(right.end(), {x, x, y + v[0], x + v[3] + v[1]});
  }
  return Feature("vectors", "swizzle").Threads(10, 4).In(in).Out(right);
}
Feature SwizzlesOfSwizzles() {
  const auto in = Values(40, [](size_t i) { return Float(i * i % 37); });
  std::vector<float> right;
  for (size_t i = 0; i < 10; ++i) {
    const float* const v = in.data() + 4 * i;
    right.insert(right.end(),
                 {2.0f * (v[2] + v[0]) + 2.0f * v[3], 2.0f * v[2] + 2.0f * v[2],
                  4.0f + 2.0f * v[1], 2.0f * v[1] + 2.0f * v[0]});
  }
  return Feature("vectors", "swizzles_of_swizzles")
      .Threads(10, 4)
      .In(in)
      .Out(right);
}
Feature Arithmetic() {
  std::vector<int32_t> in, right;
  for (size_t i = 0; i < 80; ++i) {
    in.push_back(static_cast<int32_t>(Hash(3, i) % 1000) -
                 (i % 8 < 4 ? 0 : 500));
  }
  for (size_t c = 0; c < 4; ++c) in[4 + c] = in[c];  // a == b
  for (size_t i = 0; i < 10; ++i) {
    bool any = false, all = true;
    for (size_t c = 0; c < 4; ++c) {
      const bool both = in[8 * i + c] > 0 && in[8 * i + 4 + c] > 0;
      any |= both;
      all &= both;
    }
    for (size_t c = 0; c < 4; ++c) {
      const int32_t a = in[8 * i + c], b = in[8 * i + 4 + c];
      int32_t v = a + b * 3 - (a / (b | 1)) % 5;
      v ^= a * 4 | b >> 1;
      if (a < b) v = -v;
      v += (a == b) + (a < b) * 2;
      if (c == 0) v += any * 1000;
      if (c == 1) v += all * 1000;
      right.push_back(~(v + 1) & 0xFFFF);
    }
  }
  return Feature("vectors", "arithmetic").Threads(10, 10).In(in).Out(right);
}
Feature Conversions() {
  const auto in = Values(
      40, [](size_t i) { return Float(Hash(4, i) % 4000) * 0.25f - 500.0f; });
  std::vector<uint32_t> right;
  for (size_t i = 0; i < 10; ++i) {
    const float* const v = in.data() + 4 * i;
    uint8_t c[4];
    for (size_t k = 0; k < 4; ++k) {
      c[k] = static_cast<uint8_t>(std::abs(static_cast<int16_t>(v[k])));
    }
    const int32_t sum = int32_t{static_cast<int8_t>(c[0])} +
                        int32_t{static_cast<int16_t>(v[1])};
    const uint32_t word = uint32_t{c[0]} | uint32_t{c[1]} << 8 |
                          uint32_t{c[2]} << 16 | uint32_t{c[3]} << 24;
    right.insert(right.end(),
                 {static_cast<uint32_t>(sum), word, Bits(v[0]) >> 16,
                  Bits(v[3]) ^ (Bits(v[2]) & 0xFFFF)});
  }
  return Feature("vectors", "conversions").Threads(10, 10).In(in).Out(right);
}

struct Packed {
  float a[3];
  uint8_t flag;
  int16_t b[3];
};
static_assert(sizeof(Packed) == 20);
Feature PackedTypes() {
  std::vector<Packed> in;
  std::vector<float> right;
  for (int i = 0; i < 7; ++i) {
    Packed p = {};
    for (int c = 0; c < 3; ++c) {
      p.a[c] = static_cast<float>(i + c);
      p.b[c] = static_cast<int16_t>(10 * c - i);
    }
    p.flag = static_cast<uint8_t>(i % 3);
    in.push_back(p);
    float sum[3];
    for (int c = 0; c < 3; ++c) {
      sum[c] = p.a[c] + static_cast<float>(p.b[c] * p.flag);
    }
    sum[1] += p.a[2] + p.a[0];
    sum[2] *= 2.0f;
    right.insert(right.end(), sum, sum + 3);
  }
  return Feature("vectors", "packed_types")
      .Threads(7, 7)
      .In(in)
      .Out(right)
      .Out(std::vector<uint32_t>{20, 48, 16, 16, 8, 4, 4, 24, 32, 32});
}

// float3 takes the place of four.
std::vector<float> Float3s(size_t n, uint32_t seed) {
  return Values(4 * n, [=](size_t i) {
    return i % 4 == 3 ? kNaN : Float(Hash(seed, i) % 9) - 4.0f;
  });
}

Feature Geometry() {
  const auto in = Float3s(20, 5);
  std::vector<double> right;
  for (size_t i = 0; i < 10; ++i) {
    double a[3], b[3];
    double ab = 0, aa = 0, bb = 0, apart = 0, raised = 0;
    for (size_t c = 0; c < 3; ++c) {
      a[c] = AsNumber(in[8 * i + c]);
      b[c] = AsNumber(in[8 * i + 4 + c]);
      ab += a[c] * b[c];
      aa += a[c] * a[c];
      bb += b[c] * b[c];
      apart += (a[c] - b[c]) * (a[c] - b[c]);
      raised += (a[c] + 1) * (a[c] + 1);
    }
    right.insert(right.end(),
                 {ab, a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                  a[0] * b[1] - a[1] * b[0], std::sqrt(aa), std::sqrt(apart),
                  (a[1] + 1) / std::sqrt(raised), bb - a[1] - b[0] + apart});
  }
  return Feature("vectors", "geometry").Threads(10, 10).In(in).Near(right, 4);
}

Feature Matrices() {
  const auto in = Float3s(3, 6);
  double m[3][3], n[3][3] = {{2, 4, 6}, {}, {}}, product[3][3];  // by columns
  for (size_t c = 0; c < 3; ++c) {
    for (size_t r = 0; r < 3; ++r) m[c][r] = AsNumber(in[4 * c + r]);
  }
  for (size_t r = 0; r < 3; ++r) n[1][r] = 2 * m[1][r];
  for (size_t c = 0; c < 3; ++c) {
    for (size_t r = 0; r < 3; ++r) {
      product[c][r] = -n[r][c];
      for (size_t k = 0; k < 3; ++k) product[c][r] += m[k][r] * n[c][k];
    }
  }
  const double determinant = m[0][0] * (m[1][1] * m[2][2] - m[2][1] * m[1][2]) -
                             m[1][0] * (m[0][1] * m[2][2] - m[2][1] * m[0][2]) +
                             m[2][0] * (m[0][1] * m[1][2] - m[1][1] * m[0][2]);
  std::vector<float> right;
  for (size_t i = 0; i < 3; ++i) {
    double wide[2][3] = {}, b[3] = {};
    for (size_t r = 0; r < 3; ++r) {
      for (size_t k = 0; k < 3; ++k) {
        wide[0][r] += m[k][r] * m[i][k];
        b[r] += m[i][k] * m[r][k];
      }
      wide[1][r] = b[r] + product[1][r];
    }
    wide[1][2] += determinant;
    double square = 0;
    for (size_t k = 0; k < 3; ++k) square += wide[0][k] * wide[1][k];
    for (const double value : {wide[0][0] + wide[0][1] * b[2], product[2][1],
                               square, square, wide[1][2], 5.0}) {
      right.push_back(static_cast<float>(value));
    }
  }
  return Feature("vectors", "matrices").Threads(3, 3).In(in).Out(right);
}

template <class T>
Feature SmallFloats(const char* name) {
  std::vector<T> in, right;
  for (size_t i = 0; i < 100; ++i) {
    in.push_back(Round<T>(Uniform(7, i, 4.0f)));
  }
  const auto round = [](float f) { return Widen(Round<T>(f)); };
  for (size_t i = 0; i < 50; ++i) {
    const float a = Widen(in[2 * i]), b = Widen(in[2 * i + 1]);
    float sum = round(a + b);
    sum = round(sum * a);
    sum = round(sum - round(b / 3.0f));
    const float more = round(round(sum + b) + round(b - a));
    right.push_back(Round<T>(a < b ? -more : more));
  }
  return Feature("vectors", name).Threads(50, 25).In(in).Out(right);
}
Feature HalfVectors() {
  std::vector<Float16> in, right;
  for (size_t i = 0; i < 40; ++i) {
    in.push_back(Round<Float16>(Float(Hash(8, i) % 17) * 0.25f - 2.0f));
  }
  for (size_t i = 0; i < 10; ++i) {
    float v[4], w[4];
    for (size_t c = 0; c < 4; ++c) {
      v[c] = Widen(in[4 * i + c]);
      w[c] = std::fmax(v[c], 0.0f) * 2.0f + v[c] * 0.5f;
    }
    w[3] = v[0] * v[2] + v[1] * v[3] + 1.5f;
    for (size_t c = 4; c-- != 0;) {
      right.push_back(Round<Float16>(v[c] * 2.0f + w[c]));
    }
  }
  return Feature("vectors", "half_vectors").Threads(10, 10).In(in).Out(right);
}
Feature Unaligned() {
  const auto in = Values(21 * 10, [](size_t i) { return Float(i * i % 37); });
  std::vector<float> right = in;
  for (size_t row = 0; row < 10; ++row) {
    float* const last = right.data() + 21 * row + 17;
    for (size_t c = 0; c < 4; ++c) {
      last[c] = (last[c] + last[c - 16]) * last[c - 4];
    }
  }
  return Feature("vectors", "unaligned").Threads(10, 10).In(in).Out(right);
}

const bool kAdded = AddFeatures({
    Construct(),
    Swizzle(),
    SwizzlesOfSwizzles(),
    Arithmetic(),
    Conversions(),
    PackedTypes(),
    Geometry(),
    Matrices(),
    SmallFloats<Float16>("small_half"),
    SmallFloats<BFloat16>("small_bfloat"),
    HalfVectors(),
    Unaligned(),
});

}  // namespace
}  // namespace switchyard::testing_support
