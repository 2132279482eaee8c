// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The bytes that math.metal is to leave: math functions within a few units in
// the last place, all else exactly.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/device/metal_features.h"

namespace switchyard::testing_support {
namespace {

constexpr double kPi = 3.14159265358979323846;

// From -4 to 4, in steps that are exact, without 0.
std::vector<float> Numbers(size_t n) {
  return Values(n, [=](size_t i) {
    const float x = Float(i * 37 % n) * 8.0f / Float(n) - 4.0f;
    return x == 0.0f ? 0.25f : x;
  });
}
// function(x, row) appends a row.
template <class T, class Function>
std::vector<T> Rows(const std::vector<float>& in, const Function& function) {
  std::vector<T> rows;
  for (size_t i = 0; i < in.size(); ++i) {
    for (const auto value : function(i)) rows.push_back(static_cast<T>(value));
  }
  return rows;
}
using Row = std::vector<double>;

Feature Exponents() {
  const auto in = Numbers(64);
  const auto right = Rows<double>(in, [&](size_t i) {
    const double x = AsNumber(in[i]), p = std::fabs(x) + 0.5;
    return Row{std::exp(x),        std::exp2(x),       std::pow(10.0, 0.25 * x),
               std::log(p),        std::log2(p),       std::log10(p),
               std::pow(p, 1.5),   std::pow(p, -0.75), std::sqrt(std::fabs(x)),
               1.0 / std::sqrt(p), std::exp(-x),       std::exp(-x)};
  });
  return Feature("math", "exponents").Threads(64, 32).In(in).Near(right, 8);
}
Feature Angles() {
  const auto in = Numbers(64);
  const auto right = Rows<double>(in, [&](size_t i) {
    const double x = AsNumber(in[i]);
    return Row{std::sin(x),
               std::cos(x),
               std::sin(x),
               std::cos(x),
               std::tan(0.25 * x),
               std::asin(0.1 * x),
               std::acos(0.1 * x),
               std::atan(x),
               std::atan2(x, 2.0),
               std::sinh(0.5 * x),
               std::cosh(0.5 * x),
               std::tanh(x),
               std::asinh(x),
               std::acosh(std::fabs(x) + 1.0),
               std::atanh(0.1 * x),
               std::sin(kPi / 8) + std::cos(kPi / 4) + std::tan(kPi / 8)};
  });
  return Feature("math", "angles").Threads(64, 32).In(in).Near(right, 8);
}
Feature Rounding() {
  const auto in = Numbers(64);
  const auto right = Rows<float>(in, [&](size_t i) {
    const float x = in[i];
    float whole;
    int exponent;
    const float part = std::modf(x, &whole);
    const float mantissa = std::frexp(x, &exponent);
    return std::vector<float>{std::floor(x),
                              std::ceil(x),
                              std::trunc(x),
                              std::round(x),
                              std::nearbyint(x),
                              x - std::floor(x),
                              part,
                              whole,
                              mantissa,
                              static_cast<float>(exponent),
                              8.0f * x,
                              std::fmod(x, 1.5f),
                              x < 0.0f ? -2.0f : 2.0f,
                              std::fdim(x, 1.0f),
                              2.0f * x + 1.0f,
                              1.0f};
  });
  return Feature("math", "rounding").Threads(64, 32).In(in).Out(right);
}
Feature Extremes() {
  const auto in = Numbers(16);
  const auto right = Rows<double>(in, [&](size_t i) {
    const double x = AsNumber(in[i]), y = AsNumber(in[(i + 1) % 16]);
    const double low = std::min(x, y), high = std::max(x, y);
    const double t = (x + 4) / 8;
    return Row{low,
               high,
               x,
               y,
               std::max(high, 0.5),
               std::min(low, 0.5),
               std::max(low, std::min(high, 0.5)),
               std::min(std::max(x, -1.0), 1.0),
               x + (y - x) * 0.25,
               std::min(std::max(x, 0.0), 1.0),
               x < 0 ? -1.0 : 1.0,
               x < 0.5 ? 0.0 : 1.0,
               t * t * (3 - 2 * t),
               std::fabs(x) + std::fabs(y),
               x < y ? y : x,
               kPi};
  });
  return Feature("math", "extremes").Threads(16, 16).In(in).Near(right, 2);
}
Feature Classes() {
  const std::vector<float> in = {1.0f,  -1.0f, 0.0f,   -0.0f,   kInf,
                                 -kInf, kNaN,  1e-40f, -1e-40f, 0x1p-126f};
  return Feature("math", "classes")
      .Threads(in.size(), 5)
      .In(in)
      .Out(Values(in.size(), [&](size_t i) {
        const float x = in[i];
        const bool nan = std::isnan(x), finite = std::isfinite(x);
        return uint32_t{nan} | uint32_t{std::isinf(x)} << 1 |
               uint32_t{finite} << 2 | uint32_t{std::isnormal(x)} << 3 |
               uint32_t{std::signbit(x)} << 4 | uint32_t{!nan} << 5 |
               uint32_t{nan} << 6 | uint32_t{finite} << 7 | uint32_t{nan} << 8;
      }));
}

uint32_t Count(uint32_t x) {
  uint32_t n = 0;
  for (; x != 0; x &= x - 1) ++n;
  return n;
}
// Zeros before the highest bit that is set, of so many.
uint32_t Leading(uint32_t x, uint32_t width) {
  uint32_t n = width;
  for (; x != 0; x >>= 1) --n;
  return n;
}
uint32_t Reversed(uint32_t x) {
  uint32_t reversed = 0;
  for (int b = 0; b < 32; ++b) reversed |= (x >> b & 1) << (31 - b);
  return reversed;
}
Feature BitFunctions() {
  auto in = Values(40, [](size_t i) { return Hash(9, i) >> (i % 31); });
  in[3] = 0;
  in[4] = UINT32_MAX;
  std::vector<uint32_t> right;
  for (const uint32_t x : in) {
    right.insert(
        right.end(),
        {Count(x), Leading(x, 32), Leading(Reversed(x), 32), Reversed(x),
         x << 7 | x >> 25, x >> 4 & 0x1FF, (x & ~0xFF000u) | 0x5A000,
         static_cast<uint32_t>(static_cast<int32_t>(x) >> 28),
         Count(x & 0xFFFF) + Leading(x & 0xFF, 8), Count(x) + 2});
  }
  return Feature("math", "bits").Threads(40, 20).In(in).Out(right);
}

int32_t Saturated(int64_t x, int64_t low, int64_t high) {
  return static_cast<int32_t>(std::min(std::max(x, low), high));
}
Feature Integers() {
  auto in = Values(80, [](size_t i) {
    return static_cast<int32_t>(Hash(10, i) | 1) >> (i * 7 % 29);
  });
  const int32_t most = INT32_MAX;
  const std::vector<int32_t> ends = {most, most, -most, most, -most, -most,
                                     0,    most, -1,    0,    -5,    200};
  std::copy(ends.begin(), ends.end(), in.begin());
  std::vector<int32_t> right;
  for (size_t i = 0; i < 40; ++i) {
    const int64_t a = in[2 * i], b = in[2 * i + 1];
    const uint64_t high = uint64_t{static_cast<uint32_t>(in[2 * i])} *
                          static_cast<uint32_t>(in[2 * i + 1]);
    const int64_t low24 = (a & 0xFFF) * (b & 0xFFF);
    const int64_t sum = std::min<int64_t>(
        static_cast<uint8_t>(a) + static_cast<uint8_t>(b), 255);
    const int64_t difference =
        Saturated(static_cast<int8_t>(a) - static_cast<int8_t>(b), -128, 127);
    const int64_t least = std::min({a, b, int64_t{3}});
    const int64_t greatest = std::max({a, b, int64_t{3}});
    for (const int64_t value :
         {std::abs(a), std::abs(a - b),
          int64_t{Saturated(a + b, INT32_MIN, INT32_MAX)},
          int64_t{Saturated(a - b, INT32_MIN, INT32_MAX)}, (a + b) >> 1,
          (a + b + 1) >> 1, (a * b) >> 32, static_cast<int64_t>(high >> 32),
          ((a * b) >> 32) + 5, low24 + 7, low24,
          int64_t{Saturated(a * b + 1, INT32_MIN, INT32_MAX)},
          std::min<int64_t>(std::max<int64_t>(a, -5), 5),
          std::max(std::min(a, b), std::min(std::max(a, b), int64_t{0})),
          sum + difference, least ^ greatest}) {
      right.push_back(static_cast<int32_t>(static_cast<uint32_t>(value)));
    }
  }
  return Feature("math", "integers").Threads(40, 20).In(in).Out(right);
}

const bool kAdded = AddFeatures({
    Exponents(),
    Angles(),
    Rounding(),
    Extremes(),
    Classes(),
    BitFunctions(),
    Integers(),
});

}  // namespace
}  // namespace switchyard::testing_support
