// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares half and bfloat with double, for every value and for numbers
// between neighbouring values.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "device/tests/metal/shim/shim_module.h"
#include "gtest/gtest.h"

namespace switchyard::testing_support {
namespace {

// The parameters of a floating-point format.
struct Format {
  const char* name;
  int mantissa_bits;  // the number of stored bits
  int bias;
  int max_exponent;  // numbers of 2^max_exponent or more overflow

  double Decode(uint16_t bits) const {
    const int exponent_bits = 15 - mantissa_bits;
    const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    double value;
    if (exponent == (1 << exponent_bits) - 1) {
      value = mantissa != 0 ? NAN : INFINITY;
    } else if (exponent == 0) {
      value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
    } else {
      value = std::ldexp(mantissa + (1 << mantissa_bits),
                         exponent - bias - mantissa_bits);
    }
    return (bits & 0x8000) != 0 ? -value : value;
  }
  // Rounds to the nearest value of the format. A midpoint is rounded to the
  // even value.
  double Round(double value) const {
    if (value == 0 || !std::isfinite(value)) return value;
    int exponent;
    std::frexp(value, &exponent);
    exponent = std::max(exponent, 2 - bias);
    const int unit = exponent - mantissa_bits - 1;
    const double rounded =
        std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
    return std::fabs(rounded) >= std::ldexp(1.0, max_exponent)
               ? std::copysign(INFINITY, value)
               : rounded;
  }
};
std::ostream& operator<<(std::ostream& os, const Format& format) {
  return os << format.name;
}

class ShimHalf : public ::testing::TestWithParam<Format> {
 protected:
  void SetUp() override {
    SWITCHYARD_NEEDS_CLANG();
    module_ = std::make_unique<ShimModule>("half", false);
  }
  template <class F>
  F* Get(const std::string& function) {
    F* const found = module_->Function<F>((GetParam().name + function).c_str());
    EXPECT_NE(found, nullptr);
    return found;
  }
  // Expects that `bits` hold the value `expected`, including the sign of 0.
  void ExpectBits(uint16_t bits, double expected, double from) {
    const double value = GetParam().Decode(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << from;
    } else if (value != expected ||
               std::signbit(value) != std::signbit(expected)) {
      ADD_FAILURE() << from << " became " << value << ", not " << expected;
    }
  }
  std::unique_ptr<ShimModule> module_;
};

TEST_P(ShimHalf, BecomesFloat) {
  const auto to_float =
      Get<void(const uint16_t*, float*, uint64_t)>("_to_float");
  ASSERT_NE(to_float, nullptr);
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<float> out(bits.size());
  to_float(bits.data(), out.data(), bits.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    const double expected = GetParam().Decode(bits[i]);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(out[i])) << i;
    } else {
      EXPECT_EQ(out[i], expected) << i;
      EXPECT_EQ(std::signbit(out[i]), std::signbit(expected)) << i;
    }
  }
}

TEST_P(ShimHalf, IsMadeOfFloatAndDouble) {
  const auto from_float =
      Get<void(const float*, uint16_t*, uint64_t)>("_from_float");
  const auto from_double =
      Get<void(const double*, uint16_t*, uint64_t)>("_from_double");
  ASSERT_TRUE(from_float != nullptr && from_double != nullptr);
  // The inputs are all values, the midpoints between them, and the numbers
  // next to each value and midpoint.
  std::vector<double> doubles = {NAN, INFINITY, -INFINITY, 1e39, -1e39, 1e-60};
  for (uint32_t i = 0; i < 65536; ++i) {
    const double value = GetParam().Decode(static_cast<uint16_t>(i));
    const double next = GetParam().Decode(static_cast<uint16_t>(i + 1));
    if (!std::isfinite(value)) continue;
    const double middle =
        std::isfinite(next)
            ? (value + next) / 2
            : value + std::ldexp(value, -GetParam().mantissa_bits - 2);
    for (const double at : {value, middle}) {
      doubles.push_back(at);
      doubles.push_back(std::nextafter(at, INFINITY));
      doubles.push_back(std::nextafter(at, -INFINITY));
      const float as_float = static_cast<float>(at);
      doubles.push_back(std::nextafterf(as_float, INFINITY));
      doubles.push_back(std::nextafterf(as_float, -INFINITY));
    }
  }
  std::vector<float> floats(doubles.begin(), doubles.end());
  std::vector<uint16_t> out(doubles.size());
  from_float(floats.data(), out.data(), out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    ExpectBits(out[i], GetParam().Round(floats[i]), floats[i]);
  }
  from_double(doubles.data(), out.data(), out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    ExpectBits(out[i], GetParam().Round(doubles[i]), doubles[i]);
  }
}

TEST_P(ShimHalf, IsMadeOfInt) {
  const auto from_int = Get<void(const int*, uint16_t*, uint64_t)>("_from_int");
  ASSERT_NE(from_int, nullptr);
  std::mt19937 random(1);
  std::vector<int> in;
  for (int i = 0; i < 100000; ++i) {
    in.push_back(static_cast<int>(random()) >> (random() % 31));
  }
  std::vector<uint16_t> out(in.size());
  from_int(in.data(), out.data(), out.size());
  for (size_t i = 0; i < in.size(); ++i) {
    ExpectBits(out[i], GetParam().Round(in[i]), in[i]);
  }
}

TEST_P(ShimHalf, IsMadeOfLong) {
  const auto from_long =
      Get<void(const int64_t*, uint16_t*, uint64_t)>("_from_long");
  ASSERT_NE(from_long, nullptr);
  // The inputs are midpoints between two values of the format, and the
  // integers beside each midpoint. A double cannot hold the largest of these
  // integers.
  std::vector<int64_t> in;
  for (int shift = 0; shift < 50; ++shift) {
    for (const int64_t eight : {0x80, 0x81}) {
      for (const int64_t beside : {-1, 0, 1}) {
        in.push_back((2 * eight + 1) * (int64_t{1} << (54 - shift)) + beside);
        in.push_back(-in.back());
      }
    }
  }
  std::vector<uint16_t> out(in.size());
  from_long(in.data(), out.data(), in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    // `value` is a double with the upper 52 bits of the integer. The last bit
    // is set if any of the dropped bits is set.
    const auto size = static_cast<uint64_t>(in[i] < 0 ? -in[i] : in[i]);
    const uint64_t last = (size & 0xfff) != 0 ? 1 : 0;
    const double value =
        size >> 52 == 0
            ? static_cast<double>(size)
            : std::ldexp(static_cast<double>(size >> 12 | last), 12);
    ExpectBits(out[i], GetParam().Round(in[i] < 0 ? -value : value), value);
  }
}

TEST_P(ShimHalf, Computes) {
  const auto arithmetic =
      Get<void(const uint16_t*, const uint16_t*, uint16_t*, uint64_t)>(
          "_arithmetic");
  ASSERT_NE(arithmetic, nullptr);
  std::mt19937 random(2);
  std::vector<uint16_t> a, b;
  for (int i = 0; i < 300000; ++i) {
    a.push_back(static_cast<uint16_t>(random()));
    // Half of the values are close to the first operand, because sums of such
    // values must be rounded.
    b.push_back(static_cast<uint16_t>(
        i % 2 == 0 ? random() : a.back() ^ random() % 0x1000));
  }
  std::vector<uint16_t> out(8 * a.size());
  arithmetic(a.data(), b.data(), out.data(), a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = GetParam().Decode(a[i]), y = GetParam().Decode(b[i]);
    const double expected[] = {x + y, x - y,        x * y,
                               x / y, std::sqrt(x), x * y + x};
    for (size_t k = 0; k < 6; ++k) {
      ExpectBits(out[8 * i + k], GetParam().Round(expected[k]), expected[k]);
    }
    EXPECT_EQ(out[8 * i + 6], (x < y) | (x > y) << 1 | (x == y) << 2 |
                                  (x != y) << 3 | (x <= y) << 4 |
                                  (x >= y) << 5);
    EXPECT_EQ(out[8 * i + 7], a[i] ^ 0x8000);
  }
}

INSTANTIATE_TEST_SUITE_P(, ShimHalf,
                         ::testing::Values(Format{"half", 10, 15, 16},
                                           Format{"bfloat", 7, 127, 128}),
                         testing::PrintToStringParamName());

TEST(ShimHalfMixed, ConditionalExpressions) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("half", false);
  const auto conditional =
      module.Function<float(const uint16_t*, float, bool)>("conditional");
  ASSERT_NE(conditional, nullptr);
  const uint16_t halves[] = {0x4000, 0x4200};  // the bits of 2 and 3
  EXPECT_EQ(conditional(halves, 5, true), 2 + 50 + 0 + 20000);
  EXPECT_EQ(conditional(halves, 5, false), 5 + 20 + 200 + 30000);
}

TEST(ShimHalfMixed, WithOtherTypes) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("half", false);
  struct Half {  // is passed like the class half
    uint16_t bits;
  };
  const auto mixture = module.Function<float(Half, int, float)>("mixture");
  ASSERT_NE(mixture, nullptr);
  // The function computes f = (5 + 3) * 3, h = (3 + 1) / 2 + 1, u = 3 + 10.
  EXPECT_EQ(mixture(Half{0x4200}, 9, 5), 24 + 13000 + 100000);
}

}  // namespace
}  // namespace switchyard::testing_support
